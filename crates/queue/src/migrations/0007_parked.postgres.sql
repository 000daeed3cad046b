-- Empty most of the time, so that ending a job that nobody waits behind costs a look and no more.
create index waiting_parked on waiting (lock) where state = 1;
