//! "Batches" of the contract, and the use cases of seed 001 step by step.

use crate::both;
use crate::support::worker::permanent;
use crate::support::{ANN, World};
use queue::rules::batch::{self, Batch, Entry, NewBatch};
use queue::rules::operator::hold::{self, Group};
use queue::rules::report::{self, Report};
use queue::{
    BatchId, BatchState, Error, JobId, NewJob, Outcome, Pipeline, Result, Settled, Status,
};

pub fn create(w: &World, pipeline: &Pipeline, subjects: &[&str]) -> BatchId {
    let (id, subjects) = (pipeline.id, subjects.iter().map(|s| s.to_string()).collect::<Vec<_>>());
    w.rule(move |tx, now, c| {
        let new = NewBatch {
            label: "box 17",
            pipeline: id,
            collection: Some("maps"),
            submitter: "ann",
            mode: "either",
            priority: None,
        };
        let batch = batch::create(tx, now, &new)?;
        let entries: Vec<Entry> = (1..)
            .zip(&subjects)
            .map(|(number, s)| Entry { number, subject: s.clone(), lock: None, payload: None })
            .collect();
        batch::fill(tx, c, batch, &entries)?;
        Ok(batch)
    })
    .unwrap()
}

pub fn accept(w: &World, batch: BatchId) -> Result<Batch> {
    w.rule(move |tx, now, _| batch::accept(tx, now, batch))
}

fn move_all(w: &World) {
    while w.rule(|tx, now, c| batch::move_entries(tx, now, c, 2)).unwrap() > 0 {}
}

/// An accepted batch with its jobs made.
pub fn batch_of(w: &World, pipeline: &Pipeline, subjects: &[&str]) -> BatchId {
    let batch = create(w, pipeline, subjects);
    accept(w, batch).unwrap();
    move_all(w);
    batch
}

pub fn load(w: &World, batch: BatchId) -> Batch {
    w.rule(move |tx, _, _| batch::load(tx, batch)).unwrap()
}

pub fn state(w: &World, batch: BatchId) -> BatchState {
    load(w, batch).state
}

pub fn report(w: &World) -> Option<Report> {
    w.rule(report::write_next).unwrap()
}

fn job_of(w: &World, subject: &str) -> JobId {
    let jobs: Vec<(JobId, String)> = w.rows("select id, subject from jobs");
    jobs.into_iter().find(|j| j.1 == subject).map(|j| j.0).unwrap()
}

/// Works one named job of the batch; the others stay pending.
fn work(w: &World, pipeline: &Pipeline, subject: &str, outcome: Outcome) {
    let a = w.worker("a");
    let mut found = None;
    let claimed = a.try_claim(pipeline.first().id, 10, 0).unwrap();
    for one in claimed {
        match one.subject == subject {
            true => found = Some(one),
            false => _ = a.settle(&one, Outcome::Interrupted("given back".to_string())),
        }
    }
    let found = found.expect("the job is claimable");
    assert!(a.start(&found));
    a.settle(&found, outcome);
    a.deregister();
}

fn statuses(w: &World) -> [Status; 3] {
    ["1", "2", "3"].map(|s| w.status(job_of(w, s)))
}

/// Seed 001, "Successful Batch".
fn successful_batch(w: &World) {
    use BatchState::*;
    use Status::*;
    let jobs = w.staged("ingest", &["storing"]);
    // "User submits manifest with 3 items. Batch downloads manifest and creates 3 jobs.
    //  Batch: Processing. Job 1: Pending, Job 2: Pending, Job 3: Pending"
    let b = batch_of(w, &jobs, &["1", "2", "3"]);
    assert_eq!((state(w, b), statuses(w)), (Processing, [Queued; 3]));
    // "Job 2 completes. Batch: Processing. Job 1: Pending, Job 2: Complete, Job 3: Pending"
    work(w, &jobs, "2", Outcome::success());
    assert_eq!((state(w, b), statuses(w)), (Processing, [Queued, Succeeded, Queued]));
    // "Job 3 completes. Batch: Processing. Job 1: Pending, Job 2: Complete, Job 3: Complete"
    work(w, &jobs, "3", Outcome::success());
    assert_eq!((state(w, b), statuses(w)), (Processing, [Queued, Succeeded, Succeeded]));
    // "Job 1 completes. … Batch goes to Reporting State"
    assert!(report(w).is_none());
    work(w, &jobs, "1", Outcome::success());
    assert_eq!((state(w, b), statuses(w)), (Reporting, [Succeeded; 3]));
    // "success email sent to depositor. Batch goes to Completed State"
    let report = report(w).expect("a report is due");
    assert_eq!((report.version, report.submitted, report.succeeded, report.failed), (1, 3, 3, 0));
    assert_eq!((report.state, state(w, b)), (Completed, Completed));
}

/// Seed 001, "Failed Batch".
fn failed_batch(w: &World) {
    use BatchState::{Processing, Reporting};
    use Status::*;
    let jobs = w.staged("ingest", &["storing"]);
    let b = batch_of(w, &jobs, &["1", "2", "3"]);
    work(w, &jobs, "2", Outcome::success());
    // "Job 3 fails. Batch: Processing. Job 1: Pending, Job 2: Complete, Job 3: Failed"
    work(w, &jobs, "3", permanent("bad bag"));
    assert_eq!((state(w, b), statuses(w)), (Processing, [Queued, Succeeded, Failed]));
    // "Job 1 completed. … Batch goes to Reporting State"
    work(w, &jobs, "1", Outcome::success());
    assert_eq!((state(w, b), statuses(w)), (Reporting, [Succeeded, Succeeded, Failed]));
    // "failed email sent to depositor. Batch goes to Failed State"
    let report = report(w).unwrap();
    assert_eq!((report.succeeded, report.failed, report.failures.len()), (2, 1, 1));
    assert_eq!(report.failures[0].why.as_deref(), Some("bad bag"));
    assert_eq!((report.state, state(w, b)), (BatchState::Failed, BatchState::Failed));
}

/// Seed 001, "Failed Batch with Retry".
fn failed_batch_with_retry(w: &World) {
    use Status::*;
    let jobs = w.staged("ingest", &["storing"]);
    let b = batch_of(w, &jobs, &["1", "2", "3"]);
    work(w, &jobs, "2", Outcome::success());
    work(w, &jobs, "3", permanent("bad bag"));
    work(w, &jobs, "1", Outcome::success());
    report(w).unwrap();
    // "Batch goes to Failed State. Batch: Failed. Job 1: Complete, Job 2: Complete, Job 3: Failed"
    assert_eq!((state(w, b), statuses(w)), (BatchState::Failed, [Succeeded, Succeeded, Failed]));
    // "Job 3 restarted. Batch: Failed. … Job 3: Processing*"
    w.advance(1);
    w.requeue(job_of(w, "3"), None).unwrap();
    let a = w.worker("b");
    let again = a.next(&jobs).unwrap();
    assert_eq!((state(w, b), statuses(w)), (BatchState::Failed, [Succeeded, Succeeded, Running]));
    assert!(report(w).is_none());
    // "Job 3 completes. Batch: Failed … Job 3: Complete*. Batch set to UpdateReporting"
    a.settle(&again, Outcome::success());
    assert_eq!((state(w, b), statuses(w)), (BatchState::UpdateReporting, [Succeeded; 3]));
    // "email update to depositor to reflect change in Job 3 status. Batch set to Complete"
    let report = report(w).unwrap();
    assert_eq!((report.version, report.succeeded, report.failed), (2, 3, 0));
    assert_eq!(report.changed.iter().map(|i| i.subject.as_str()).collect::<Vec<_>>(), ["3"]);
    assert_eq!(state(w, b), BatchState::Completed);
}

/// Seed 001, "UpdateReporting --> Failed": the re-run failed again.
fn update_reporting_may_fail_again(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let b = batch_of(w, &jobs, &["1"]);
    work(w, &jobs, "1", permanent("bad bag"));
    report(w).unwrap();
    w.advance(1);
    w.requeue(job_of(w, "1"), None).unwrap();
    work(w, &jobs, "1", permanent("still bad"));
    assert_eq!(state(w, b), BatchState::UpdateReporting);
    let second = report(w).unwrap();
    assert_eq!((second.version, second.state), (2, BatchState::Failed));
    assert_eq!(state(w, b), BatchState::Failed);
    // "update-reporting: … automatically, or by hand": a report can be asked for again.
    w.rule(move |tx, now, _| batch::report_again(tx, now, b)).unwrap();
    assert_eq!(report(w).unwrap().version, 3);
}

/// "pending → processing: … expanded into jobs, all or nothing": until it is accepted there are no
/// jobs, and afterwards there are all of them, in however small steps.
fn a_batch_is_expanded_all_or_nothing(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let b = create(w, &jobs, &["1", "2", "3", "4", "5"]);
    move_all(w);
    assert_eq!(w.number("select count(*) from jobs where id > $1", 0), 0);
    let accepted = accept(w, b).unwrap();
    assert_eq!((accepted.state, accepted.total, accepted.open), (BatchState::Processing, 5, 5));
    assert!(matches!(accept(w, b), Err(Error::Refused(_))), "once");
    w.rule(|tx, now, c| batch::move_entries(tx, now, c, 2)).unwrap();
    // The two there are may end; the batch waits for those that are not jobs yet.
    let a = w.worker("a");
    for claimed in a.claim(&jobs, 10) {
        a.settle(&claimed, Outcome::success());
    }
    assert_eq!((state(w, b), load(w, b).open), (BatchState::Processing, 3));
    move_all(w);
    assert_eq!(a.claim(&jobs, 10).len(), 3);
}

/// "A payload that cannot be expanded fails the batch and is reported all the same."
fn a_batch_that_cannot_be_expanded_is_reported(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let b = create(w, &jobs, &[]);
    w.rule(move |tx, now, _| batch::fail(tx, now, b, "line 3: no url")).unwrap();
    let report = report(w).unwrap();
    assert_eq!(
        (report.state, report.error.as_deref()),
        (BatchState::Failed, Some("line 3: no url"))
    );
    assert_eq!(state(w, b), BatchState::Failed);
    let empty = create(w, &jobs, &[]);
    assert_eq!(accept(w, empty).unwrap().state, BatchState::Reporting);
}

/// "completed if every row that was submitted is preserved (or was cancelled by a person, who is
/// named), else failed."
fn cancelled_jobs_are_counted(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let some = batch_of(w, &jobs, &["1", "2"]);
    w.cancel(job_of(w, "1")).unwrap();
    work(w, &jobs, "2", Outcome::success());
    let first = report(w).unwrap();
    assert_eq!((first.state, first.cancelled), (BatchState::Completed, 1));
    let who = &first.cancellations[0];
    assert_eq!((who.by.as_deref(), who.why.as_deref()), (Some("ann"), Some("because")));
    let none = batch_of(w, &jobs, &["3"]);
    w.cancel(job_of(w, "3")).unwrap();
    assert_eq!(state(w, none), BatchState::Reporting);
    assert_eq!(report(w).unwrap().state, BatchState::Failed);
    assert_eq!(state(w, some), BatchState::Completed);
}

/// "Priority of a batch's jobs: the profile's, else `min(99, floor(5 + 10·ln(jobs)))`."
fn small_batches_go_first(w: &World) {
    assert_eq!([1, 2, 10, 1000, 100_000].map(batch::priority_of_size), [5, 11, 28, 74, 99]);
    let jobs = w.staged("ingest", &["storing"]);
    batch_of(w, &jobs, &["1", "2", "3"]);
    batch_of(w, &jobs, &["small"]);
    assert_eq!(w.worker("a").next(&jobs).unwrap().subject, "small");
}

/// "Pending → Held … Held → Processing (admin function)": a held batch is not worked on, a run finishes
/// its stage, and release lets it go on.
fn a_held_batch_waits(w: &World) {
    let jobs = w.staged("ingest", &["storing", "recording"]);
    let b = batch_of(w, &jobs, &["1", "2"]);
    let a = w.worker("a");
    let running = a.next(&jobs).unwrap();
    w.rule(move |tx, now, _| batch::hold(tx, now, ANN, b)).unwrap();
    assert!(load(w, b).held);
    assert!(a.next(&jobs).is_none(), "I9: claims refuse it before its jobs are flipped");
    let start = JobId::default();
    let flip = move |w: &World, held: bool| {
        w.rule(move |tx, now, c| match held {
            true => hold::flip_held(tx, now, c, ANN, Group::Batch(b), start, 100),
            false => hold::flip_released(tx, now, c, ANN, Group::Batch(b), start, 100),
        })
        .unwrap()
    };
    flip(w, true);
    assert_eq!(w.status(job_of(w, "2")), Status::Held);
    assert_eq!(a.settle(&running, Outcome::success()), Settled::Now(Status::Held));
    assert!(a.claim_in(&jobs, "recording").is_none());
    assert!(w.rule(move |tx, now, _| batch::hold(tx, now, ANN, b)).is_err(), "held already");
    w.rule(move |tx, now, _| batch::release(tx, now, b)).unwrap();
    flip(w, false);
    assert_eq!(a.next(&jobs).unwrap().subject, "2");
    assert_eq!(a.claim_in(&jobs, "recording").unwrap().subject, "1");
}

/// "held | failed → deleted"; "delete (held or failed only; its jobs are cancelled, its report
/// kept)"; "cancel": entries that are not jobs yet never become any.
fn batches_are_cancelled_and_deleted(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let b = create(w, &jobs, &["1", "2", "3", "4"]);
    accept(w, b).unwrap();
    w.rule(|tx, now, c| batch::move_entries(tx, now, c, 2)).unwrap();
    let a = w.worker("a");
    let running = a.next(&jobs).unwrap();
    assert!(matches!(w.rule(move |tx, now, _| batch::delete(tx, now, b)), Err(Error::Refused(_))));
    let cancel = move |w: &World| {
        let start = JobId::default();
        w.rule(move |tx, now, c| batch::cancel_some(tx, now, c, ANN, b, start, 100)).unwrap()
    };
    cancel(w);
    assert_eq!(w.status(job_of(w, "2")), Status::Cancelled);
    assert_eq!((load(w, b).open, load(w, b).cancelled), (1, 3));
    assert!(a.renew().unwrap()[0].cancel_requested);
    a.settle(&running, Outcome::Cancelled);
    assert_eq!(report(w).unwrap().cancelled, 4);
    assert_eq!(state(w, b), BatchState::Failed);
    w.rule(move |tx, now, _| batch::delete(tx, now, b)).unwrap();
    assert_eq!(state(w, b), BatchState::Deleted);
    let kept = w.rule(move |tx, _, _| report::newest(tx, b)).unwrap();
    assert!(kept.is_some_and(|r| r.contains("box 17")));
}

/// With coalescing, a subject twice in a batch is one job and counted once.
fn a_subject_twice_in_a_batch_is_counted_once(w: &World) {
    let files = w.queue("files");
    let b = batch_of(w, &files, &["a", "b", "a", "c", "a"]);
    assert_eq!((load(w, b).total, load(w, b).open), (3, 3));
    let a = w.worker("a");
    for claimed in a.claim(&files, 10) {
        a.settle(&claimed, Outcome::success());
    }
    assert_eq!(report(w).unwrap().submitted, 3);
}

/// "I7 A batch's counts equal the sum over its jobs", through failing and requeueing of single jobs
/// added to a batch that runs.
fn counts_follow_every_change(w: &World) {
    let files = w.queue("files");
    let b = batch_of(w, &files, &["a"]);
    let in_batch = |s: &str| NewJob { batch: Some(b), ..NewJob::new(s) };
    w.add_job(&files, in_batch("b"));
    assert_eq!((load(w, b).total, load(w, b).open), (2, 2));
    work(w, &files, "a", permanent("no"));
    w.add_job(&files, in_batch("a"));
    work(w, &files, "a", Outcome::success());
    let now = load(w, b);
    assert_eq!((now.total, now.open, now.succeeded, now.failed, now.cancelled), (3, 1, 1, 1, 0));
    work(w, &files, "b", Outcome::success());
    assert_eq!(report(w).unwrap().state, BatchState::Failed);
    w.advance(1);
    w.requeue(job_of(w, "a"), None).unwrap();
    work(w, &files, "a", Outcome::success());
    assert_eq!(report(w).unwrap().state, BatchState::Completed);
}

both!(
    successful_batch,
    failed_batch,
    failed_batch_with_retry,
    update_reporting_may_fail_again,
    a_batch_is_expanded_all_or_nothing,
    a_batch_that_cannot_be_expanded_is_reported,
    cancelled_jobs_are_counted,
    small_batches_go_first,
    a_held_batch_waits,
    batches_are_cancelled_and_deleted,
    a_subject_twice_in_a_batch_is_counted_once,
    counts_follow_every_change,
);
