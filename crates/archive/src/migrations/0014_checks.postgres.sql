-- What the last look at a copy has found: 0 good, 1 bad. `verified_at` is older than a look that did
-- not read everything.
alter table copies add column state bigint not null default 0;
alter table copies add column checked_at bigint;

-- When all content that the current version refers to was last compared. Content of earlier versions
-- may have been compared longer ago: `verified_at` is about all of it.
alter table copies add column current_read_at bigint not null default 0;
update copies set current_read_at = verified_at;

-- What the deposit and its package say of the object; `metadata` is that and what stays of the
-- version before.
alter table ingests add column said text;
