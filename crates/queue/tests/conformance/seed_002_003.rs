//! Settings and requeueing of seeds 002 and 003, and the state tables of seed 001.

use crate::both;
use crate::support::worker::{permanent, transient};
use crate::support::{SECOND, World};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::rules::running;
use queue::{Error, JobId, NewJob, Outcome, Pipeline, Settled, StageSettings, State, Status};

fn set(
    w: &World,
    stage: Option<&'static str>,
    changes: &[(&str, &str)],
) -> Result<Pipeline, Error> {
    let changes: Vec<(String, String)> =
        changes.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    w.rule(move |tx, _, c| pipelines::set(tx, c, "ingest", stage, &changes))
}

/// 002, "Workers", "Buffer Size" and "Max Attempts" settings: per stage, all changeable while it
/// runs, and each refused if it makes no sense.
fn settings_are_per_stage(w: &World) {
    let ingest = w.staged("ingest", &["validating", "recording"]);
    let defaults = StageSettings::default();
    assert_eq!((defaults.workers, defaults.buffer, defaults.max_attempts), (2, 4, 3));
    let changed = set(w, Some("recording"), &[("workers", "1"), ("buffer", "9")]).unwrap();
    assert_eq!(changed.stages[0].settings, defaults);
    assert_eq!((changed.stages[1].settings.workers, changed.stages[1].settings.buffer), (1, 9));
    assert_eq!(w.catalog().named("ingest").unwrap().stages[1].settings.workers, 1);
    assert!(matches!(set(w, None, &[("workers", "1")]), Err(Error::BadInput(_))), "which stage?");
    assert!(matches!(set(w, Some("recording"), &[("wrokers", "1")]), Err(Error::Unknown { .. })));
    assert!(matches!(set(w, Some("nowhere"), &[("workers", "1")]), Err(Error::Unknown { .. })));
    for (name, value) in [("workers", "-1"), ("workers", "two"), ("max_attempts", "0")] {
        let refused = set(w, Some("recording"), &[(name, value)]);
        assert!(matches!(refused, Err(Error::BadInput(_))), "{name}={value}");
    }
    assert_eq!(w.catalog().named("ingest").unwrap().stages[1].settings.workers, 1);
    assert_eq!(ingest.stages.len(), 2);
}

/// A second `create` with the same settings finds the queue, with others it is refused.
fn creating_twice(w: &World) {
    let first = w.queue("files");
    assert_eq!(w.queue("files").id, first.id);
    let other = PipelineSpec { coalesces: false, ..PipelineSpec::queue("files") };
    let refused = w.rule(move |tx, now, _| pipelines::create(tx, now, "ann", &other).map(|_| ()));
    assert!(matches!(refused, Err(Error::Refused(_))));
    let nameless = PipelineSpec::queue("no/such name");
    let refused =
        w.rule(move |tx, now, _| pipelines::create(tx, now, "ann", &nameless).map(|_| ()));
    assert!(matches!(refused, Err(Error::BadInput(_))));
}

/// 002: "When a task fails due to transient errors, the worker requeues it. After requeuing it
/// MAX_ATTEMPTS times, the worker stops …: NeedsAdminReview = true, Note = Detailed information".
/// A limit changed while the job waits counts at its next error.
fn max_attempts_can_change_while_it_runs(w: &World) {
    let ingest = w.staged("ingest", &["storing"]);
    let job = w.add(&ingest, "box");
    w.worker("a").work(&ingest, transient("connection reset by peer"));
    set(w, None, &[("max_attempts", "2")]).unwrap();
    w.advance(3600 * SECOND);
    w.worker("b").work(&ingest, transient("connection reset by peer"));
    assert_eq!(w.status(job), Status::Failed);
    let failures: Vec<(i64, Option<String>)> = w.rows("select needs_review, note from failures");
    assert_eq!(failures[0].0, 1);
    assert!(failures[0].1.as_deref().is_some_and(|n| n.contains("2 attempts")));
}

/// 003: "the next uploader can see that 95 of the 100 files have already been successfully uploaded,
/// and it will upload only the remaining 5": marks survive the error and the worker.
fn the_next_run_sees_what_is_done(w: &World) {
    let ingest = w.staged("ingest", &["storing"]);
    w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    assert!(a.checkpoint(&claimed, "file 1") && a.checkpoint(&claimed, "file 2"));
    a.settle(&claimed, transient("timeout"));
    w.advance(60 * SECOND);
    let again = w.worker("b").next(&ingest).unwrap();
    let (job, stage) = (again.lease.job, again.stage);
    let marks = w.rule(move |tx, _, _| running::checkpoints(tx, job, stage)).unwrap();
    assert_eq!(marks.iter().map(|m| m.0.as_str()).collect::<Vec<_>>(), ["file 1", "file 2"]);
}

/// 003, fatal errors: "Retry = false, NeedsAdminReview = true, Note"; 002: the admin may requeue,
/// "generally … to the last attempted stage", and the attempts begin anew.
fn an_admin_requeues_after_a_fatal_error(w: &World) {
    let ingest = w.staged("ingest", &["validating", "storing"]);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    a.work_in(&ingest, "validating", Outcome::success());
    a.work_in(&ingest, "storing", permanent("no permission"));
    w.requeue(job, None).unwrap();
    assert_eq!(w.stage(job), "storing");
    assert_eq!(w.number("select count(*) from failures where job = $1", job), 0);
    let claimed = a.claim_in(&ingest, "storing").unwrap();
    assert_eq!(claimed.attempt, 1);
    let event = w.history(job).into_iter().find(|e| e.event == "requeued").unwrap();
    assert_eq!((event.who.as_str(), event.why.as_deref()), ("ann", Some("because")));
}

/// 002: two workers never work on one item, though a message may come twice: the second add merges
/// or waits, and is never handed out beside the first.
fn duplicates_are_harmless(w: &World) {
    let fixity = w.queue("fixity");
    let job = w.add(&fixity, "file 7");
    assert_eq!(w.add(&fixity, "file 7"), job);
    let (a, b) = (w.worker("a"), w.worker("b"));
    let claimed = a.next(&fixity).unwrap();
    let later = w.add(&fixity, "file 7");
    assert!(b.next(&fixity).is_none());
    a.settle(&claimed, Outcome::success());
    assert_eq!(b.work(&fixity, Outcome::Skip("checked just now".to_string())), later);
}

/// 001, job states: Pending → Held → (released) → Estimating → … → Completed, each step seen.
fn the_states_of_a_job(w: &World) {
    let stages = ["estimating", "provisioning", "downloading", "processing", "recording", "notify"];
    let ingest = w.staged("ingest", &stages);
    let job = w.add(&ingest, "box");
    // "Pending --> Held", "Held --> Estimating (admin function)".
    w.hold(job).unwrap();
    assert_eq!((w.status(job), w.job(job).begun), (Status::Held, false));
    w.release(job).unwrap();
    let a = w.worker("a");
    for stage in stages {
        assert_eq!((w.stage(job).as_str(), w.status(job)), (stage, Status::Queued));
        // "Downloading --> Failed", "Failed --> Downloading" and so on: resumed where it failed.
        a.work_in(&ingest, stage, permanent("broken"));
        assert_eq!((w.stage(job).as_str(), w.status(job)), (stage, Status::Failed));
        w.requeue(job, None).unwrap();
        assert_eq!((w.stage(job).as_str(), w.status(job)), (stage, Status::Queued));
        a.work_in(&ingest, stage, Outcome::success());
    }
    assert_eq!(w.status(job), Status::Succeeded);
    let requeues = "select cast(sum(requeues) as bigint) from tries where job = $1";
    assert_eq!(w.number(requeues, job), 6, "retry_count: deliberate requeues");
}

/// 001: "Failed --> Deleted (admin function)", "Held --> Deleted (admin function)".
fn held_and_failed_jobs_are_deleted(w: &World) {
    let ingest = w.staged("ingest", &["downloading"]);
    let (held, failed) = (w.add(&ingest, "held"), w.add(&ingest, "failed"));
    w.hold(held).unwrap();
    w.worker("a").work(&ingest, permanent("404"));
    w.cancel(held).unwrap();
    w.cancel(failed).unwrap();
    assert_eq!((w.status(held), w.status(failed)), (Status::Cancelled, Status::Cancelled));
    assert!(w.worker("b").next(&ingest).is_none());
}

/// 001, "Provisioning: if working storage is more than 80% full, then wait": a wait holds no worker
/// and no attempt, and keeps its reason.
fn provisioning_waits_without_a_worker(w: &World) {
    let ingest = w.staged("ingest", &["provisioning"]);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    let wait =
        Outcome::Wait { due: w.now() + 60 * SECOND, why: "81% of disk-1 is used".to_string() };
    assert_eq!(a.settle(&claimed, wait), Settled::Now(Status::Queued));
    let why: Vec<(Option<String>,)> = w.rows("select why from waiting");
    assert_eq!(why[0].0.as_deref(), Some("81% of disk-1 is used"));
    assert_eq!(w.state(job), Some(State::Delayed));
    assert_eq!(w.number("select count(*) from tries where job = $1", job), 0);
}

/// Unknown jobs, stages and queues are named in one line with what to do.
fn what_is_unknown_is_said(w: &World) {
    let files = w.queue("files");
    let wrong = w.rule(|_, _, c| c.named("flies").map(|_| ())).err().unwrap().to_string();
    assert_eq!(wrong, "there is no queue `flies`; there are: files");
    let job = w.hold(JobId::new(77)).err().unwrap();
    assert!(job.to_string().starts_with("there is no job `77`; "), "{job}");
    assert_eq!(job.code(), queue::ErrorCode::Unknown);
    let stage = files.stage_named("nowhere").err().unwrap().to_string();
    assert_eq!(stage, "there is no stage `nowhere`; files has files");
    let big = NewJob { payload: Some(vec![0; 70_000]), ..NewJob::new("big") };
    let error = w.try_add(&files, big).err().unwrap().to_string();
    assert!(error.contains("payload_bytes_max") && !error.contains('\n'), "{error}");
}

both!(
    settings_are_per_stage,
    creating_twice,
    max_attempts_can_change_while_it_runs,
    the_next_run_sees_what_is_done,
    an_admin_requeues_after_a_fatal_error,
    duplicates_are_harmless,
    the_states_of_a_job,
    held_and_failed_jobs_are_deleted,
    provisioning_waits_without_a_worker,
    what_is_unknown_is_said,
);
