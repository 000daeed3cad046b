-- The job that sends a message, so that what a batch still has to send is found by the batch.
alter table messages add column sender bigint;
create index messages_unsent on messages (coalesce(batch, 0), id) where sent_at is null;

-- Rows of batches that were cancelled before they became jobs: what reports say of them.
create table cancelled_rows (
  batch bigint not null,
  number bigint not null,
  subject text not null,
  who text not null,
  reason text not null,
  at bigint not null,
  primary key (batch, number)
);
