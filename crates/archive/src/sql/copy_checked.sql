-- Only here is `verified_at` renewed, and only if all that the copy has was read ($5). A copy that
-- became another one while it was looked at keeps what is known of it.
update copies set checked_at = $4,
  state = case when cast($6 as bigint) = 1 then 1 when cast($5 as bigint) is not null then 0 else state end,
  verified_at = case when cast($6 as bigint) = 0 then coalesce(cast($5 as bigint), verified_at) else verified_at end,
  current_read_at = case when cast($6 as bigint) = 0 then coalesce(cast($5 as bigint), current_read_at) else current_read_at end,
  fixity_due = case when cast($6 as bigint) = 0 then coalesce(cast($7 as bigint), fixity_due) else fixity_due end
where object = $1 and store = $2 and digest = $3
