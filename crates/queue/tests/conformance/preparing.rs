//! A batch ends with the job that prepares it, and opens again with it: no batch waits for nothing.

use crate::both;
use crate::support::worker::{permanent, transient};
use crate::support::{LEASE, SECOND, World};
use queue::rules::batch::{self, Batch, Entry, NewBatch};
use queue::rules::report::{self, Report};
use queue::rules::{add, lease, preparing};
use queue::{BatchId, BatchState, JobId, NewJob, Outcome, Pipeline, Status};

/// A pending batch with an entry, and the job that prepares it.
fn deposit(w: &World, preparing: &Pipeline) -> (BatchId, JobId) {
    let (pipeline, name) = (w.staged("ingest", &["storing"]).id, preparing.name.clone());
    w.rule(move |tx, now, c| {
        let new = NewBatch {
            label: "box 17",
            pipeline,
            collection: None,
            submitter: "ann",
            mode: "either",
            priority: None,
        };
        let batch = batch::create(tx, now, &new)?;
        let added = add::add(tx, now, c.named(&name)?, "ann", &[NewJob::new("box 17")])?;
        preparing::prepare(tx, batch, added[0].job)?;
        fill(tx, c, batch)?;
        Ok((batch, added[0].job))
    })
    .unwrap()
}

fn fill(tx: &mut db::Tx<'_>, c: &queue::Catalog, batch: BatchId) -> queue::Result<()> {
    let entry = Entry { number: 1, subject: "a".to_string(), lock: None, payload: None };
    batch::fill(tx, c, batch, &[entry])
}

fn load(w: &World, batch: BatchId) -> Batch {
    w.rule(move |tx, _, _| batch::load(tx, batch)).unwrap()
}

fn report(w: &World) -> Option<Report> {
    w.rule(report::write_next).unwrap()
}

/// The report that a batch ended with.
fn failed(w: &World, batch: BatchId) -> String {
    let report = report(w).expect("it is reported");
    assert_eq!((report.batch, report.state), (batch, BatchState::Failed));
    assert_eq!(load(w, batch).state, BatchState::Failed);
    assert_eq!(w.number("select count(*) from batch_entries where batch = $1", batch), 0);
    report.error.expect("it says why")
}

fn accept(w: &World, batch: BatchId) {
    w.rule(move |tx, now, c| {
        fill(tx, c, batch)?;
        batch::accept(tx, now, batch)
    })
    .unwrap();
}

fn exhausted_attempts_end_the_batch(w: &World) {
    let jobs = w.staged("batch", &["examining", "expanding"]);
    let (b, job) = deposit(w, &jobs);
    let a = w.worker("a");
    while w.status(job) != Status::Failed {
        assert_eq!(load(w, b).state, BatchState::Pending);
        let claimed = a.next(&jobs).expect("it is tried again");
        a.settle(&claimed, transient("no answer"));
        w.advance(3600 * SECOND);
        a.renew().unwrap();
    }
    let error = failed(w, b);
    assert!(error.contains(&format!("`accession jobs requeue {job}`")), "{error}");
}

fn a_requeue_opens_the_batch_again(w: &World) {
    let jobs = w.staged("batch", &["examining"]);
    let (b, job) = deposit(w, &jobs);
    let a = w.worker("a");
    a.settle(&a.next(&jobs).unwrap(), permanent("it is broken"));
    failed(w, b);
    w.requeue(job, None).unwrap();
    let again = load(w, b);
    assert_eq!((again.state, again.error), (BatchState::Pending, None));
    let claimed = a.next(&jobs).unwrap();
    accept(w, b);
    a.settle(&claimed, Outcome::success());
    assert_eq!(load(w, b).state, BatchState::Processing);
}

/// It fails a second time: a second report.
fn a_batch_fails_again_with_its_job(w: &World) {
    let jobs = w.staged("batch", &["examining"]);
    let (b, job) = deposit(w, &jobs);
    let a = w.worker("a");
    a.settle(&a.next(&jobs).unwrap(), permanent("it is broken"));
    // Its report is not written yet.
    w.requeue(job, None).unwrap();
    assert!(report(w).is_none(), "a pending batch is not reported");
    a.settle(&a.next(&jobs).unwrap(), permanent("it is broken"));
    failed(w, b);
    w.requeue(job, None).unwrap();
    a.settle(&a.next(&jobs).unwrap(), permanent("it is broken"));
    failed(w, b);
}

fn lost_workers_end_the_batch_in_the_end(w: &World) {
    let jobs = w.staged("batch", &["examining"]);
    let (b, job) = deposit(w, &jobs);
    while w.status(job) != Status::Failed {
        assert_eq!(load(w, b).state, BatchState::Pending);
        w.worker("doomed").next(&jobs).expect("it is queued again");
        w.advance(LEASE + SECOND);
        w.rule(|tx, now, c| lease::reap(tx, now, c, None)).unwrap();
    }
    let error = failed(w, b);
    assert!(error.contains("cut short"), "{error}");
}

fn a_cancelled_job_ends_the_batch(w: &World) {
    let jobs = w.staged("batch", &["examining"]);
    let (b, job) = deposit(w, &jobs);
    w.cancel(job).unwrap();
    let error = failed(w, b);
    assert!(error.contains("was cancelled by ann: because"), "{error}");
}

fn a_running_job_that_is_cancelled_ends_the_batch(w: &World) {
    let jobs = w.staged("batch", &["examining", "expanding"]);
    let (b, job) = deposit(w, &jobs);
    let a = w.worker("a");
    let claimed = a.next(&jobs).unwrap();
    w.cancel(job).unwrap();
    assert_eq!(load(w, b).state, BatchState::Pending);
    a.settle(&claimed, Outcome::success());
    failed(w, b);
}

/// A success that leaves its batch pending would leave it for ever.
fn a_success_that_accepts_nothing_ends_the_batch(w: &World) {
    let jobs = w.staged("batch", &["examining"]);
    let (b, _) = deposit(w, &jobs);
    let a = w.worker("a");
    a.settle(&a.next(&jobs).unwrap(), Outcome::success());
    let error = failed(w, b);
    assert!(error.contains("without accepting the batch"), "{error}");
}

/// What a person cancelled stays cancelled, even if the job is requeued.
fn a_batch_that_was_cancelled_is_not_opened_again(w: &World) {
    let jobs = w.staged("batch", &["examining"]);
    let (b, job) = deposit(w, &jobs);
    let a = w.worker("a");
    let claimed = a.next(&jobs).unwrap();
    w.rule(move |tx, now, _| batch::fail(tx, now, b, "cancelled by ann")).unwrap();
    a.settle(&claimed, permanent("it is broken"));
    assert_eq!(failed(w, b), "cancelled by ann");
    w.requeue(job, None).unwrap();
    assert_eq!(load(w, b).state, BatchState::Failed);
}

both!(
    exhausted_attempts_end_the_batch,
    a_requeue_opens_the_batch_again,
    a_batch_fails_again_with_its_job,
    lost_workers_end_the_batch_in_the_end,
    a_cancelled_job_ends_the_batch,
    a_running_job_that_is_cancelled_ends_the_batch,
    a_success_that_accepts_nothing_ends_the_batch,
    a_batch_that_was_cancelled_is_not_opened_again,
);
