insert into batch_reports (batch, version, at, content) values ($1, $2, $3, $4)
