insert into stages (id, pipeline, position, name, settings) values ($1, $2, $3, $4, $5)
