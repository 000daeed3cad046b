//! The contract as queries that must find nothing, whatever was done before.

use super::World;
use db::{Statement, Tx};

const NOTHING: &[(&str, &str)] = &[
    (
        "I5: an unended job is neither waiting nor running",
        "select id from jobs j where status = 0
           and not exists (select 1 from waiting w where w.id = j.id)
           and not exists (select 1 from leases s where s.id = j.id and s.worker is not null)",
    ),
    (
        "I5: an ended job is still waiting or running",
        "select id from jobs j where status <> 0
           and (exists (select 1 from waiting w where w.id = j.id)
             or exists (select 1 from leases s where s.id = j.id))",
    ),
    (
        "I5: a row of a job that does not exist",
        "select id from waiting w where not exists (select 1 from jobs j where j.id = w.id)
         union all select id from leases s where not exists (select 1 from jobs j where j.id = s.id)",
    ),
    (
        "I2: a running job is waiting too",
        "select s.id from leases s join waiting w on w.id = s.id where s.worker is not null",
    ),
    (
        "I3: a job owns a lock that is not its own, or two",
        "select s.id from leases s join jobs j on j.id = s.id where j.lock <> s.lock
         union all select id from leases group by id having count(*) > 1",
    ),
    (
        "lost wake-up: a lock is owned by a job that neither waits nor runs",
        "select id from leases s where worker is null
           and not exists (select 1 from waiting w where w.id = s.id)",
    ),
    (
        "lost wake-up: a job is parked behind nobody",
        "select id from waiting w where state = 1
           and not exists (select 1 from leases s where s.lock = w.lock and s.id <> w.id)
           and not exists (select 1 from waiting r where r.lock = w.lock and r.state = 0)",
    ),
    (
        "a job is in the hands of a worker that has ended",
        "select s.id from leases s join workers w on w.id = s.worker where w.ended_at is not null",
    ),
    (
        "a failed job has no failure, or another has one",
        "select id from jobs j where status = 3 and not exists (select 1 from failures f where f.job = j.id)
         union all select job from failures f
           where not exists (select 1 from jobs j where j.id = f.job and j.status = 3)",
    ),
    (
        "a reservation of a job that does not run",
        "select job from reservations r
           where not exists (select 1 from leases s where s.id = r.job and s.worker = r.worker)",
    ),
    (
        "a probe of a job that does not run",
        "select probe_job from targets t where probe_job is not null
           and not exists (select 1 from leases s where s.id = t.probe_job and s.worker is not null and s.probe = t.name)",
    ),
    (
        "a job waits for a target that is not down",
        "select id from waiting w where state = 4
           and not exists (select 1 from targets t where t.name = w.blocked_on and (t.opened_at is not null or t.closing = 1))",
    ),
    (
        "I7: a batch's counts are not the sum over its jobs",
        "select id from batches b where state <> 0 and (
             succeeded <> (select count(*) from jobs j where j.batch = b.id and j.status = 4)
          or failed <> (select count(*) from jobs j where j.batch = b.id and j.status = 3)
          or open <> (select count(*) from jobs j where j.batch = b.id and j.status = 0)
               + (select count(*) from batch_entries e where e.batch = b.id)
          or cancelled < (select count(*) from jobs j where j.batch = b.id and j.status = 5)
          or total <> open + succeeded + failed + cancelled)",
    ),
    (
        "I7: a batch with nothing left to do is still processing",
        "select id from batches where state = 1 and open = 0",
    ),
    (
        "a job whose data was discarded went on after its first stage",
        "select r.job from history r
           join history d on d.job = r.job and d.event = 'discarded' and d.id < r.id
           join stages s on s.id = r.to_stage
           where r.event = 'requeued' and s.position > 0
             and not exists (select 1 from history q where q.job = r.job
               and q.event = 'requeued' and q.id > d.id and q.id < r.id)",
    ),
];

/// What is wrong, one line each.
pub fn violations(tx: &mut Tx<'_>) -> db::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (rule, sql) in NOTHING {
        let statement = Statement { name: sql, sqlite: sql, postgres: sql };
        let found: Vec<(i64,)> = tx.query(&statement, &[])?;
        if !found.is_empty() {
            let ids: Vec<i64> = found.into_iter().map(|r| r.0).collect();
            wrong.push(format!("{rule}: {ids:?}"));
        }
    }
    Ok(wrong)
}

pub fn check(world: &World) {
    let wrong = world.db.write_blocking(violations).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
