-- What a stage leaves for the stages after it.

-- name: keep_state
insert into states (job, stage, state, at) values ($1, $2, $3, $4)
on conflict (job, stage) do update set state = excluded.state, at = excluded.at

-- name: state_before
-- What the nearest stage before this one left.
select s.state from states s join stages g on g.id = s.stage
where s.job = $1 and g.position < (select position from stages where id = $2)
order by g.position desc limit 1

-- name: job_states
select s.stage, s.at, s.state from states s join stages g on g.id = s.stage where s.job = $1 order by g.position

-- name: forget_state
delete from states where job = $1 and stage = $2
