-- As on PostgreSQL. Here 0003 has made it already.
create index if not exists waiting_parked on waiting (lock) where state = 1;
