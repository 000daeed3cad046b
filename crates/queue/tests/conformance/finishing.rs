//! "Finishing" of the contract: how a run can end, and what becomes of its job.

use crate::both;
use crate::support::worker::{permanent, transient};
use crate::support::{SECOND, World};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::{Handover, JobError, NewJob, Outcome, Settled, Settlement, State, Status};
use std::sync::Arc;

/// "Success moves the job to the next stage (same job, same lock) or, at the end, to `succeeded`",
/// and takes along what a stage says to the next.
fn success_moves_on(w: &World) {
    let ingest = w.staged("ingest", &["estimating", "storing"]);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    let handover = Handover {
        note: Some("40 GiB".to_string()),
        targets: Some(vec!["s3-west".to_string()]),
        priority: Some(60),
        workspace: None,
        needs: None,
        ..Handover::default()
    };
    assert_eq!(a.settle(&claimed, Outcome::Success(handover)), Settled::Now(Status::Queued));
    assert_eq!((w.stage(job).as_str(), w.status(job)), ("storing", Status::Queued));
    let next = a.claim_in(&ingest, "storing").unwrap();
    assert_eq!((next.lease.job, &next.lease.lock), (job, &claimed.lease.lock));
    assert_eq!((next.priority, next.targets.as_slice()), (60, &["s3-west".to_string()][..]));
    assert_eq!(a.settle(&next, Outcome::success()), Settled::Now(Status::Succeeded));
    assert_eq!(w.events(job), ["added", "claimed", "moved", "claimed", "succeeded"]);
}

/// "Skip (nothing to do, e.g. unchanged) is a success with a reason."
fn skip_is_a_success_with_a_reason(w: &World) {
    let files = w.queue("files");
    w.add(&files, "a.fits");
    let job = w.worker("a").work(&files, Outcome::Skip("unchanged".to_string()));
    assert_eq!((w.status(job), w.ended_why(job).as_str()), (Status::Succeeded, "unchanged"));
}

/// "Wait (no space, not thawed, object in use): back to queued with a due time and a reason; no
/// attempt counted; the worker slot is free meanwhile."
fn wait_counts_no_attempt(w: &World) {
    let files = w.queue("files");
    let job = w.add(&files, "a.fits");
    let a = w.worker("a");
    for _ in 0..10 {
        let claimed = a.next(&files).unwrap();
        assert_eq!(claimed.attempt, 1);
        let wait = Outcome::Wait { due: w.now() + SECOND, why: "not thawed".to_string() };
        assert_eq!(a.settle(&claimed, wait), Settled::Now(Status::Queued));
        assert_eq!(w.state(job), Some(State::Delayed));
        assert!(a.next(&files).is_none());
        w.advance(SECOND);
    }
    assert_eq!(a.renew().unwrap(), []);
}

/// "Transient error: attempt +1; under the stage's `max_attempts`: queued again after back-off
/// (exponential, jittered, capped); at the limit: failed, `needs_review`, note."
fn transient_errors_are_retried_up_to_the_limit(w: &World) {
    let mut spec = PipelineSpec::queue("files");
    spec.stages[0].1.max_attempts = 4;
    spec.stages[0].1.backoff_seconds = 10;
    spec.stages[0].1.backoff_seconds_max = 25;
    let files = w.make(spec);
    let job = w.add(&files, "a.fits");
    let a = w.worker("a");
    for (attempt, seconds) in [(1, 10), (2, 20), (3, 25)] {
        let claimed = a.next(&files).unwrap();
        assert_eq!(claimed.attempt, attempt);
        assert_eq!(a.settle(&claimed, transient("timeout")), Settled::Now(Status::Queued));
        let wait = w.job(job).due.unwrap() - w.now();
        let spread = seconds * SECOND / 5;
        assert!((wait - seconds * SECOND).abs() <= spread, "back-off {attempt} was {wait}");
        w.advance(wait - 1);
        assert!(a.next(&files).is_none());
        w.advance(1);
    }
    assert_eq!(a.work(&files, transient("timeout")), job);
    assert_eq!(w.status(job), Status::Failed);
    let failure: Vec<(String, i64, Option<String>)> =
        w.rows("select message, needs_review, note from failures");
    assert_eq!((failure[0].0.as_str(), failure[0].1), ("timeout", 1));
    assert!(failure[0].2.as_deref().is_some_and(|n| n.contains("4 attempts")));
    // "Every attempt's error is kept, not only the last."
    let errors = w.history(job).iter().filter(|e| e.code.as_deref() == Some("flaky")).count();
    assert_eq!(errors, 4);
}

/// "Permanent error: failed at once, `needs_review`, note. No automatic retry: nothing changed."
fn permanent_errors_fail_at_once(w: &World) {
    let files = w.queue("files");
    w.add(&files, "a.fits");
    let a = w.worker("a");
    let job = a.work(&files, permanent("no such bag"));
    assert_eq!(w.status(job), Status::Failed);
    let failure: Vec<(String, i64)> = w.rows("select message, needs_review from failures");
    assert_eq!(failure, [("no such bag".to_string(), 1)]);
    w.advance(1_000_000 * SECOND);
    assert!(w.worker("b").next(&files).is_none());
}

/// "Error seen, still working …: it shows as running with the error until it finishes one way or the
/// other": a success after an error seen is a success.
fn an_error_seen_may_still_end_well(w: &World) {
    let files = w.queue("files");
    let job = w.add(&files, "a.fits");
    let a = w.worker("a");
    let claimed = a.next(&files).unwrap();
    assert!(a.error_seen(&claimed, "one file missing"));
    assert_eq!(w.status(job), Status::Running);
    assert_eq!(a.settle(&claimed, Outcome::success()), Settled::Now(Status::Succeeded));
    assert!(w.events(job).contains(&"error seen, still working".to_string()));
}

/// "A job going back to queued while a newer job of the same pipeline and subject waits: in a
/// coalescing pipeline, one still in its first stage is resolved as superseded by the newer one".
fn going_back_while_readded_is_superseded(w: &World) {
    let outcomes = [
        transient("timeout"),
        Outcome::Wait { due: 0, why: "no space".to_string() },
        Outcome::Interrupted("stopped".to_string()),
    ];
    let files = w.queue("files");
    let a = w.worker("a");
    for outcome in outcomes {
        w.add(&files, "a.fits");
        let old = a.next(&files).unwrap();
        let newer = w.add(&files, "a.fits");
        assert_eq!(a.settle(&old, outcome), Settled::Now(Status::Cancelled));
        assert!(w.ended_why(old.lease.job).contains(&format!("superseded by job {newer}")));
        assert_eq!(a.work(&files, Outcome::success()), newer);
    }
}

/// "otherwise it keeps its lock and goes on first. Never a constraint error."
fn going_back_without_coalescing_goes_first(w: &World) {
    let ingest = w.staged("ingest", &["storing"]);
    let a = w.worker("a");
    let first = w.add(&ingest, "box");
    let old = a.next(&ingest).unwrap();
    let newer = w.add(&ingest, "box");
    a.settle(&old, Outcome::Wait { due: w.now() + SECOND, why: "no space".to_string() });
    assert!(a.next(&ingest).is_none(), "the newer one waits behind it");
    w.advance(SECOND);
    assert_eq!(a.work(&ingest, Outcome::success()), first);
    assert_eq!(a.work(&ingest, Outcome::success()), newer);
}

/// The same in a later stage of a pipeline that coalesces.
fn going_back_in_a_later_stage_goes_first(w: &World) {
    let spec = PipelineSpec { coalesces: true, ..PipelineSpec::staged("copy", &["read", "write"]) };
    let copy = w.make(spec);
    let a = w.worker("a");
    let first = w.add(&copy, "box");
    a.work(&copy, Outcome::success());
    let newer = w.add(&copy, "box");
    assert_ne!(first, newer);
    assert_eq!(a.work_in(&copy, "write", transient("timeout")), first);
    assert!(a.next(&copy).is_none());
    w.advance(100 * SECOND);
    let a = w.worker("b");
    assert_eq!(a.work_in(&copy, "write", Outcome::success()), first);
    assert_eq!(a.next(&copy).unwrap().lease.job, newer);
}

/// What a run recorded is in the same transaction as its outcome; a record that cannot be written
/// fails the job and leaves nothing behind.
fn records_are_written_with_the_outcome(w: &World) {
    const INSERT: &str = "insert into resources (name, total) values ('kept', 1)";
    const BAD: &str = "insert into resources (name, total) values (null, 1)";
    let files = w.queue("files");
    let (good, bad) = (w.add(&files, "good"), w.add(&files, "bad"));
    let a = w.worker("a");
    let claimed = a.claim(&files, 2);
    let keep = db::Statement { name: "keep", sqlite: INSERT, postgres: INSERT };
    let fail = db::Statement { name: "fail", sqlite: BAD, postgres: BAD };
    let item = |index: usize, records: queue::Records| Settlement {
        records: Some(records),
        ..Settlement::new(claimed[index].lease.clone(), Outcome::success())
    };
    let settled = a.settle_all(vec![
        item(0, Arc::new(move |tx| Ok(tx.execute(&keep, &[]).map(|_| ())?))),
        item(1, Arc::new(move |tx| Ok(tx.execute(&fail, &[]).map(|_| ())?))),
    ]);
    assert_eq!(settled, [Settled::Now(Status::Succeeded), Settled::Now(Status::Failed)]);
    assert_eq!((w.status(good), w.status(bad)), (Status::Succeeded, Status::Failed));
    assert_eq!(w.rows::<(String,)>("select name from resources"), [("kept".to_string(),)]);
}

/// "When the package itself says otherwise, *resolving* moves the job to the right lock, waiting if
/// another job owns it."
fn a_job_moves_to_another_lock(w: &World) {
    let ingest = w.staged("ingest", &["resolving", "storing"]);
    let of = |s: &str, lock: &str| NewJob { lock: Some(lock.to_string()), ..NewJob::new(s) };
    let first = w.add_job(&ingest, of("known", "object/1"));
    let second = w.add_job(&ingest, of("guessed", "object/2"));
    let behind = w.add_job(&ingest, of("behind", "object/2"));
    let a = w.worker("a");
    let claimed = a.claim(&ingest, 2);
    assert_eq!(claimed.iter().map(|c| c.lease.job).collect::<Vec<_>>(), [first, second]);
    a.settle(&claimed[1], Outcome::Relock("object/1".to_string()));
    assert_eq!(w.state(second), Some(State::Parked));
    assert_eq!(w.state(behind), Some(State::Ready), "the old lock is given up");
    assert_eq!(a.ids(&ingest), [behind]);
    a.settle(&claimed[0], Outcome::success());
    a.work_in(&ingest, "storing", Outcome::success());
    let again = a.next(&ingest).expect("the right lock is free now");
    assert_eq!((again.lease.job, again.lease.lock.as_str()), (second, "object/1"));
}

/// To a free lock at once.
fn a_job_moves_to_a_free_lock_at_once(w: &World) {
    let ingest = w.staged("ingest", &["resolving"]);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    a.work(&ingest, Outcome::Relock("object/9".to_string()));
    let again = a.next(&ingest).unwrap();
    assert_eq!((again.lease.job, again.lease.lock.as_str()), (job, "object/9"));
    assert_eq!(a.settle(&again, Outcome::success()), Settled::Now(Status::Succeeded));
}

/// I8: "Every change of stage or status has a history row …: when, who, from, to, why. A plain queue
/// may be set to keep only how each job ended".
fn history_is_full_or_of_outcomes(w: &World) {
    let files = w.queue("files");
    w.add(&files, "a");
    let a = w.worker("a");
    let quiet = a.work(&files, Outcome::success());
    assert_eq!(w.events(quiet), ["succeeded"], "only how it ended");
    let set = vec![("history".to_string(), "full".to_string())];
    w.rule(move |tx, _, c| pipelines::set(tx, c, "files", None, &set)).unwrap();
    w.add(&files, "b");
    let full = a.work(&files, Outcome::success());
    assert_eq!(w.events(full), ["added", "claimed", "succeeded"]);
    let ended = w.history(full).pop().unwrap();
    assert_eq!((ended.who.as_str(), ended.at), ("a", w.now()));
    assert_eq!((ended.from.1, ended.to.1), (Some(Status::Running), Some(Status::Succeeded)));
}

/// An error may name its target; the message and code are kept with the attempt.
fn errors_keep_their_code_and_target(w: &World) {
    let files = w.queue("files");
    w.add(&files, "a");
    let error = JobError::new("http_503", "s3-west said 503").at("s3-west");
    let job = w.worker("a").work(&files, Outcome::Transient(error));
    let kept = w.history(job).pop().unwrap();
    assert_eq!(kept.code.as_deref(), Some("http_503"));
    assert_eq!(kept.target.as_deref(), Some("s3-west"));
}

both!(
    success_moves_on,
    skip_is_a_success_with_a_reason,
    wait_counts_no_attempt,
    transient_errors_are_retried_up_to_the_limit,
    permanent_errors_fail_at_once,
    an_error_seen_may_still_end_well,
    going_back_while_readded_is_superseded,
    going_back_without_coalescing_goes_first,
    going_back_in_a_later_stage_goes_first,
    records_are_written_with_the_outcome,
    a_job_moves_to_another_lock,
    a_job_moves_to_a_free_lock_at_once,
    history_is_full_or_of_outcomes,
    errors_keep_their_code_and_target,
);
