insert into reservations (job, resource, amount, worker) values ($1, $2, $3, $4)
