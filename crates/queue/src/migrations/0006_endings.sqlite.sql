-- Which run a job succeeded by. With it an ending says all that a row of history would, and a success
-- is written once.
alter table endings add column token integer;
