-- 1: the data that the job had gathered was discarded, so it can only start again from the first stage.
alter table failures add column discarded smallint not null default 0;
