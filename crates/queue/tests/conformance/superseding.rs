//! Superseding: "failed jobs of the same pipeline and subject that were accepted earlier and are not of
//! the same batch are then resolved … and said in the reports of both batches. Rows of one batch never
//! supersede one another."

use super::batches::{batch_of, load, report, state};
use crate::both;
use crate::support::worker::permanent;
use crate::support::{ANN, World};
use queue::rules::operator::retry::{self, Filter, Retried};
use queue::rules::replacing;
use queue::{BatchState, Content, JobId, NewJob, Outcome, Pipeline, Status};

/// Runs what can be claimed, oldest first; each with its outcome.
fn work(w: &World, pipeline: &Pipeline, outcomes: &[Outcome]) -> Vec<JobId> {
    let a = w.worker("a");
    let mut done = Vec::new();
    for outcome in outcomes {
        let one = a.next(pipeline).expect("a job is claimable");
        a.settle(&one, outcome.clone());
        done.push(one.lease.job);
    }
    a.deregister();
    done
}

fn retry_all(w: &World) -> Retried {
    let all = Filter::default();
    w.rule(move |tx, now, c| retry::retry(tx, now, c, ANN, &all, false, JobId::default(), 100))
        .unwrap()
}

/// Two rows of one batch with one subject: the first fails, the second succeeds. The batch has failed,
/// and the first row can be requeued.
fn rows_of_one_batch_never_supersede_one_another(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let b = batch_of(w, &jobs, &["box", "box"]);
    let ids = work(w, &jobs, &[permanent("404"), Outcome::success()]);
    assert_eq!((w.status(ids[0]), w.status(ids[1])), (Status::Failed, Status::Succeeded));
    let first = report(w).unwrap();
    assert_eq!((first.state, first.succeeded, first.failed), (BatchState::Failed, 1, 1));
    assert_eq!((first.superseded, first.replaces.len()), (0, 0));
    w.advance(1);
    w.requeue(ids[0], None).unwrap();
    work(w, &jobs, &[Outcome::success()]);
    assert_eq!(report(w).unwrap().state, BatchState::Completed);
    assert_eq!(load(w, b).cancelled, 0);
}

/// A later batch supersedes: both reports say so, and the earlier batch is not completed by it, since
/// nothing says that the content is the same.
fn both_batches_say_what_replaced_what(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let early = batch_of(w, &jobs, &["box", "map"]);
    let ids = work(w, &jobs, &[permanent("404"), Outcome::success()]);
    assert_eq!(report(w).unwrap().state, BatchState::Failed);
    w.advance(1);
    let late = batch_of(w, &jobs, &["box"]);
    let by = work(w, &jobs, &[Outcome::success()])[0];
    assert_eq!(w.status(ids[0]), Status::Cancelled);
    let mut reports = [report(w).unwrap(), report(w).unwrap()];
    reports.sort_by_key(|r| r.batch);
    let [old, new] = reports;
    assert_eq!((old.batch, old.state, old.superseded), (early, BatchState::Failed, 1));
    assert_eq!((old.failed, old.cancelled), (0, 1));
    assert_eq!(
        old.replaced[0].replaced_sentence(),
        format!("superseded by job {by} of batch {late}: content not compared")
    );
    assert!(old.cancellations.is_empty(), "no person cancelled it");
    assert_eq!((new.batch, new.state), (late, BatchState::Completed));
    assert_eq!(
        new.replaces[0].replaces_sentence(),
        format!("replaces failed job {} of batch {early}: content not compared", ids[0])
    );
    assert_eq!(state(w, early), BatchState::Failed);
}

/// The same with content that was compared: what is the same is preserved, what is not is not.
fn only_the_same_content_completes_the_earlier_batch(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let verdicts =
        [(Content::Same, BatchState::Completed), (Content::Different, BatchState::Failed)];
    for (content, expected) in verdicts {
        let early = batch_of(w, &jobs, &["box"]);
        let failed = work(w, &jobs, &[permanent("store is full")])[0];
        report(w).unwrap();
        w.advance(1);
        batch_of(w, &jobs, &["box"]);
        let a = w.worker("a");
        let one = a.next(&jobs).unwrap();
        let by = one.lease.job;
        w.rule(move |tx, _, _| replacing::compared(tx, failed, by, Some(content))).unwrap();
        assert_eq!(w.rule(move |tx, _, _| replacing::of_job(tx, failed)).unwrap(), None);
        a.settle(&one, Outcome::success());
        report(w).unwrap();
        report(w).unwrap();
        assert_eq!(state(w, early), expected);
        let found = w.rule(move |tx, _, _| replacing::of_job(tx, failed)).unwrap().unwrap();
        assert_eq!((found.by, found.content), (by, Some(content)));
        w.advance(1);
    }
}

/// What turns out to be another thing that only has the same name stays failed, and can be requeued.
fn another_thing_of_the_same_name_is_not_superseded(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let early = batch_of(w, &jobs, &["scans"]);
    let failed = work(w, &jobs, &[permanent("store is full")])[0];
    report(w).unwrap();
    w.advance(1);
    batch_of(w, &jobs, &["scans"]);
    let a = w.worker("a");
    let one = a.next(&jobs).unwrap();
    let by = one.lease.job;
    w.rule(move |tx, _, _| replacing::compared(tx, failed, by, Some(Content::Unrelated))).unwrap();
    a.settle(&one, Outcome::success());
    assert_eq!((w.status(by), w.status(failed)), (Status::Succeeded, Status::Failed));
    assert_eq!((state(w, early), load(w, early).cancelled), (BatchState::Failed, 0));
    let report = report(w).unwrap();
    assert_eq!((report.state, report.replaces.len()), (BatchState::Completed, 0));
    w.requeue(failed, None).unwrap();
}

/// "failed jobs … accepted earlier": one that was added after the job that succeeded stays failed.
fn later_failures_are_not_resolved(w: &World) {
    let files = w.staged("files", &["storing"]);
    let first = w.add(&files, "a");
    work(w, &files, &[permanent("no")]);
    let second = w.add(&files, "a");
    work(w, &files, &[permanent("no")]);
    w.requeue(first, None).unwrap();
    work(w, &files, &[Outcome::success()]);
    assert_eq!((w.status(first), w.status(second)), (Status::Succeeded, Status::Failed));
}

/// "Retry all … of several for one pipeline and subject the newest goes, the others are superseded",
/// but all rows of one batch go.
fn a_retry_supersedes_no_rows_of_one_batch(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    batch_of(w, &jobs, &["box"]);
    batch_of(w, &jobs, &["box", "box"]);
    let ids = work(w, &jobs, &[permanent("no"), permanent("no"), permanent("no")]);
    assert_eq!(retry_all(w), Retried { requeued: 2, superseded: 1, refused: 0, next: None });
    let statuses: Vec<Status> = ids.iter().map(|id| w.status(*id)).collect();
    assert_eq!(statuses, [Status::Cancelled, Status::Queued, Status::Queued]);
    let old = ids[0];
    let found = w.rule(move |tx, _, _| replacing::of_job(tx, old)).unwrap().unwrap();
    assert_eq!(found.by, ids[2]);
}

/// The same name in another collection is another thing: a success there supersedes nothing, and a
/// retry sends both again.
fn nothing_is_superseded_across_collections(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let add = |collection: &str| {
        let collection = Some(collection.to_string());
        let lock = Some(format!("object/{}/box", collection.as_deref().unwrap_or_default()));
        w.add_job(&jobs, NewJob { collection, lock, ..NewJob::new("box") })
    };
    let (maps, letters) = (add("maps"), add("letters"));
    work(w, &jobs, &[permanent("the store is down"), permanent("the store is down")]);
    assert_eq!(retry_all(w), Retried { requeued: 2, superseded: 0, refused: 0, next: None });
    work(w, &jobs, &[permanent("broken"), Outcome::success()]);
    assert_eq!((w.status(maps), w.status(letters)), (Status::Failed, Status::Succeeded));
    let again = add("maps");
    work(w, &jobs, &[Outcome::success()]);
    assert_eq!((w.status(maps), w.status(again)), (Status::Cancelled, Status::Succeeded));
}

/// With coalescing, a run that goes back while its subject was added again is superseded by the newer
/// job, unless both are rows of one batch.
fn coalescing_supersedes_no_rows_of_one_batch(w: &World) {
    let files = w.queue("files");
    let b = batch_of(w, &files, &["a"]);
    let a = w.worker("a");
    let running = a.next(&files).unwrap();
    w.add_job(&files, NewJob { batch: Some(b), ..NewJob::new("a") });
    a.settle(&running, Outcome::Interrupted("shutdown".to_string()));
    assert_eq!(w.status(running.lease.job), Status::Queued);
    let mut done = work(w, &files, &[Outcome::success(), Outcome::success()]);
    assert_eq!(done.remove(0), running.lease.job, "it keeps its lock and goes on first");
    assert_eq!((load(w, b).succeeded, load(w, b).cancelled), (2, 0));
    assert_eq!(report(w).unwrap().state, BatchState::Completed);
}

both!(
    rows_of_one_batch_never_supersede_one_another,
    both_batches_say_what_replaced_what,
    only_the_same_content_completes_the_earlier_batch,
    another_thing_of_the_same_name_is_not_superseded,
    later_failures_are_not_resolved,
    a_retry_supersedes_no_rows_of_one_batch,
    nothing_is_superseded_across_collections,
    coalescing_supersedes_no_rows_of_one_batch,
);
