-- The people who had a part in an event, beside the program: JSON.
alter table events add column people text;
