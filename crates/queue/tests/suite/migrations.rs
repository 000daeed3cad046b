//! The queue's schema, brought up to date from the one before with jobs of every kind in it.

use crate::support;
use db::{Address, Db, Options, Statement, Tx};
use queue::rules::claim::{Request, claim};
use queue::rules::lease::{NewWorker, register};
use queue::rules::operator::{Actor, requeue};
use queue::rules::{batch, history, report};
use queue::{BatchId, BatchState, Catalog, JobId, Result, StageId, Status, WorkerId, view};

/// As the first schema had them: one job waits, one succeeded, one was cancelled, one failed, one runs;
/// one batch is under way, one is to be reported.
const BEFORE: &[&str] = &[
    "insert into pipelines (id, name, plain, coalesces, history, restart_position, settings, created_at, created_by)
     values (1, 'letters', 1, 1, 0, 0, '{}', 5, 'ann')",
    "insert into stages (id, pipeline, position, name, settings) values (1, 1, 0, 'letters', '{}')",
    "insert into jobs (id, pipeline, subject, lock, priority, status, stage, added_at, added_by, ended_at, ended_by, ended_why)
     values (1, 1, 'a', 'q/a', 50, 0, 1, 10, 'ann', null, null, null),
            (2, 1, 'b', 'q/b', 50, 4, 1, 11, 'ann', 21, 'bob', null),
            (3, 1, 'c', 'q/c', 50, 5, 1, 12, 'ann', 22, 'eve', 'not wanted'),
            (4, 1, 'd', 'q/d', 50, 3, 1, 13, 'ann', 23, 'bob', 'torn')",
    // A deposit whose job failed when nothing ended its batch, and one whose job waits.
    "insert into pipelines (id, name, plain, coalesces, history, restart_position, settings, created_at, created_by)
     values (2, 'batch', 0, 0, 1, 0, '{}', 5, 'ann')",
    "insert into stages (id, pipeline, position, name, settings) values (2, 2, 0, 'examining', '{}')",
    "insert into jobs (id, pipeline, subject, lock, priority, status, stage, added_at, added_by, ended_at, ended_by, ended_why)
     values (5, 2, 'batch 3', 'batch/3', 50, 3, 2, 13, 'ann', 24, 'bob', 'no answer'),
            (6, 2, 'batch 4', 'batch/4', 50, 0, 2, 13, 'ann', null, null, null)",
    "insert into waiting (id, stage, state, priority, due, lock, begun, since)
     values (6, 2, 0, 50, 10, 'batch/4', 0, 10)",
    "insert into failures (job, pipeline, subject, lock, stage, failed_at, code, message, needs_review, recoverable, overtaken)
     values (5, 2, 'batch 3', 'batch/3', 2, 24, 'flaky', 'no answer', 1, 1, 0)",
    "insert into batch_entries (batch, number, subject) values (3, 1, 'a'), (4, 1, 'b')",
    "insert into waiting (id, stage, state, priority, due, lock, coalesce_key, begun, since)
     values (1, 1, 0, 50, 10, 'q/a', 'k', 0, 10)",
    "insert into jobs (id, pipeline, subject, lock, priority, status, stage, added_at, added_by, ended_at, ended_by, ended_why)
     values (7, 1, 'g', 'q/g', 50, 0, 1, 14, 'ann', null, null, null)",
    "insert into started (lock, id, stage, worker, token, claimed_at, started_at) values ('q/g', 7, 1, 9, 70, 15, 16)",
    // Of b, which kept its whole history then.
    "insert into history (job, id, at, who, event, from_stage, from_status, to_stage, to_status, token)
     values (2, 1, 20, 'bob', 'claimed', 1, 0, 1, 1, 7), (2, 2, 21, 'bob', 'succeeded', 1, 1, 1, 4, 7)",
    "insert into failures (job, pipeline, subject, lock, stage, failed_at, code, message, needs_review, recoverable, overtaken)
     values (4, 1, 'd', 'q/d', 1, 23, 'torn', 'torn', 1, 1, 0)",
    "insert into batches (id, label, pipeline, submitter, mode, state, held, total, open, succeeded, failed, cancelled, moved,
       created_at, updated_at)
     values (1, 'under way', 1, 'ann', 'new', 1, 0, 1, 1, 0, 0, 0, 1, 10, 10),
            (2, 'to be reported', 1, 'ann', 'new', 2, 0, 1, 0, 1, 0, 0, 1, 11, 11),
            (3, 'waits for nothing', 1, 'ann', 'new', 0, 0, 0, 0, 0, 0, 0, 0, 12, 12),
            (4, 'pending', 1, 'ann', 'new', 0, 0, 0, 0, 0, 0, 0, 0, 13, 13)",
];

fn statement(text: &'static str) -> Statement {
    Statement { name: text, sqlite: text, postgres: text }
}

fn from_the_first(address: &Address) {
    let before = Db::open(address, &queue::MIGRATIONS[..1], &Options::default()).unwrap();
    let filled: Result<()> = before.write_blocking(|tx| {
        for text in BEFORE {
            tx.execute(&statement(text), &[])?;
        }
        Ok(())
    });
    filled.unwrap();
    drop(before);

    let db = Db::open(address, queue::MIGRATIONS, &Options::default()).unwrap();
    let seen: Result<Vec<view::JobView>> = db.write_blocking(|tx| {
        let catalog = Catalog::load(tx)?;
        (1..=4).map(|id| view::show(tx, &catalog, JobId::new(id))).collect()
    });
    let ended: Vec<_> = seen
        .unwrap()
        .into_iter()
        .map(|job| (job.subject, job.status, job.ended_at, job.ended_by, job.ended_why))
        .collect();
    let some = |text: &str| Some(text.to_string());
    assert_eq!(
        ended,
        [
            ("a".to_string(), Status::Queued, None, None, None),
            ("b".to_string(), Status::Succeeded, Some(21), some("bob"), None),
            ("c".to_string(), Status::Cancelled, Some(22), some("eve"), some("not wanted")),
            ("d".to_string(), Status::Failed, Some(23), some("bob"), some("torn")),
        ]
    );
    let views: Result<Vec<(String, String, WorkerId)>> = db.read_blocking(|tx| {
        let rows = statement(
            "select j.subject, j.status, l.worker from queue_leases l join queue_jobs j on j.id = l.job",
        );
        let catalog = Catalog::load(tx)?;
        assert_eq!(view::show(tx, &catalog, JobId::new(7))?.status, Status::Running);
        Ok(tx.query(&rows, &[])?)
    });
    let lease = ("g".to_string(), "open".to_string(), WorkerId::new(9));
    assert_eq!(views.unwrap(), [lease], "its lease was kept");
    let told: Result<Vec<String>> = db.read_blocking(|tx| {
        let events = history::of_job(tx, JobId::new(2), 0, 10)?;
        Ok(events.into_iter().map(|event| event.event).collect())
    });
    assert_eq!(told.unwrap(), ["claimed", "succeeded"], "what was kept before is told once");
    let claimed: Result<Vec<JobId>> = db.write_blocking(|tx: &mut Tx<'_>| {
        let catalog = Catalog::load(tx)?;
        let now = tx.now();
        let worker = register(tx, now, &NewWorker::default(), 60_000_000)?;
        let stage = StageId::new(1);
        let request = Request { worker, who: "test", stage, limit: 10, start: 10 };
        let jobs = claim(tx, now, &catalog, request)?;
        Ok(jobs.into_iter().map(|job| job.lease.job).collect())
    });
    assert_eq!(claimed.unwrap(), [JobId::new(1)]);
    let reported: Result<Vec<BatchId>> = db.write_blocking(|tx| {
        let catalog = Catalog::load(tx)?;
        Ok(report::write_next(tx, tx.now(), &catalog)?.into_iter().map(|r| r.batch).collect())
    });
    assert_eq!(reported.unwrap(), [BatchId::new(2)]);
    let ended: Result<Vec<(BatchId, Option<String>)>> = db.write_blocking(|tx| {
        let catalog = Catalog::load(tx)?;
        let report = report::write_next(tx, tx.now(), &catalog)?;
        Ok(report.into_iter().map(|r| (r.batch, r.error)).collect())
    });
    let ended = ended.unwrap();
    assert_eq!(ended[0].0, BatchId::new(3), "it waited for a job that had failed");
    assert!(ended[0].1.as_ref().unwrap().contains("no answer"), "{ended:?}");
    let states: Result<Vec<BatchState>> = db.write_blocking(|tx| {
        let catalog = Catalog::load(tx)?;
        let actor = Actor { who: "ann", reason: "fixed" };
        requeue::requeue(tx, tx.now(), &catalog, actor, JobId::new(5), None)?;
        [3, 4].map(|id| Ok(batch::load(tx, BatchId::new(id))?.state)).into_iter().collect()
    });
    assert_eq!(states.unwrap(), [BatchState::Pending, BatchState::Pending]);
}

#[test]
fn from_the_first_schema_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    from_the_first(&Address::sqlite(directory.path().join("queue.db")));
}

#[test]
fn from_the_first_schema_on_postgres() {
    let Some(fresh) = support::server::FreshDatabase::create_without_schema() else {
        testing::skip("on PostgreSQL: ACCESSION_TEST_POSTGRES is not set");
        return;
    };
    from_the_first(&Address::parse(&fresh.url).unwrap());
}
