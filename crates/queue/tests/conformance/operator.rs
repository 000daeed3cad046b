//! "People" of the contract: requeue, retry, hold, pause, cancel, empty, delete.

use crate::both;
use crate::support::worker::{permanent, reap, transient};
use crate::support::{ANN, LEASE, SECOND, World};
use queue::rules::operator::cancel::{self, Cancelled};
use queue::rules::operator::hold::{self, Group};
use queue::rules::operator::pause::{self, Scope};
use queue::rules::operator::retry::{self, Filter, Retried};
use queue::rules::operator::{discard, review};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::rules::running;
use queue::{Error, JobId, NewJob, Outcome, Pipeline, Result, Settled, State, Status};

const STAGES: &[&str] = &["downloading", "resolving", "storing", "recording"];

fn ingest(w: &World) -> Pipeline {
    let mut spec = PipelineSpec::staged("ingest", STAGES);
    spec.restart = Some("resolving".to_string());
    spec.settings.forward_from = Some("recording".to_string());
    w.make(spec)
}

fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

/// A job of `ingest` that has failed in `stage`.
fn failed_in(w: &World, ingest: &Pipeline, stage: &str, lock: &str) -> JobId {
    let job = w.add_job(ingest, NewJob { lock: Some(lock.to_string()), ..NewJob::new(lock) });
    let a = w.worker("a");
    for name in STAGES {
        let outcome = if *name == stage { permanent("broken") } else { Outcome::success() };
        assert_eq!(a.work_in(ingest, name, outcome), job);
        if *name == stage {
            break;
        }
    }
    assert_eq!(w.status(job), Status::Failed);
    job
}

/// "Requeue a failed job: to the stage it failed in (offered first) or any earlier one; never later,
/// never a finished or unrecoverable one."
fn requeue_to_the_same_or_an_earlier_stage(w: &World) {
    let ingest = ingest(w);
    let job = failed_in(w, &ingest, "storing", "object/1");
    assert!(refused(w.requeue(job, Some("recording"))).contains("comes later"));
    assert_eq!(w.status(job), Status::Failed, "the refusal changed nothing");
    w.requeue(job, None).unwrap();
    assert_eq!((w.stage(job).as_str(), w.status(job)), ("storing", Status::Queued));
    let a = w.worker("b");
    a.work_in(&ingest, "storing", permanent("again"));
    w.requeue(job, Some("downloading")).unwrap();
    assert_eq!(w.stage(job), "downloading");
    for stage in STAGES {
        a.work_in(&ingest, stage, Outcome::success());
    }
    assert_eq!(w.status(job), Status::Succeeded);
    refused(w.requeue(job, None));
    assert!(matches!(w.requeue(job, Some("nowhere")), Err(Error::Refused(_))));
    let other = failed_in(w, &ingest, "storing", "object/2");
    assert!(matches!(w.requeue(other, Some("nowhere")), Err(Error::Unknown { .. })));
    assert!(matches!(w.requeue(JobId::new(999), None), Err(Error::Unknown { .. })));
}

/// "A queued, started job may be sent back to an earlier stage; a running one must be cancelled or
/// fail first."
fn a_queued_started_job_may_be_sent_back(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "box");
    refused(w.requeue(job, None));
    let a = w.worker("a");
    a.work_in(&ingest, "downloading", Outcome::success());
    a.work_in(&ingest, "resolving", Outcome::success());
    refused(w.requeue(job, None));
    refused(w.requeue(job, Some("storing")));
    w.requeue(job, Some("downloading")).unwrap();
    assert_eq!(w.stage(job), "downloading");
    let claimed = a.claim_in(&ingest, "downloading").unwrap();
    refused(w.requeue(job, Some("downloading")));
    a.settle(&claimed, Outcome::success());
    assert_eq!(w.stage(job), "resolving");
}

/// "Going back discards the checkpoints of the stages that will run again."
fn going_back_discards_checkpoints(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    for stage in ["downloading", "resolving", "storing"] {
        let claimed = a.claim_in(&ingest, stage).unwrap();
        assert!(a.checkpoint(&claimed, "file 1"));
        let outcome = if stage == "storing" { permanent("x") } else { Outcome::success() };
        a.settle(&claimed, outcome);
    }
    let marks = |stage: &str| {
        let stage = ingest.stage_named(stage).unwrap().id;
        w.rule(move |tx, _, _| running::checkpoints(tx, job, stage)).unwrap().len()
    };
    w.requeue(job, None).unwrap();
    assert_eq!(["downloading", "resolving", "storing"].map(marks), [1, 1, 1], "it resumes");
    w.worker("b").work_in(&ingest, "storing", permanent("x"));
    w.requeue(job, Some("resolving")).unwrap();
    assert_eq!(["downloading", "resolving", "storing"].map(marks), [1, 0, 0]);
}

/// "If another job of the lock has started since it failed, it resumes no later than the pipeline's
/// restart stage (ingest: resolving)."
fn an_overtaken_job_resumes_at_the_restart_stage(w: &World) {
    let ingest = ingest(w);
    let job = failed_in(w, &ingest, "storing", "object/1");
    let other =
        w.add_job(&ingest, NewJob { lock: Some("object/1".to_string()), ..NewJob::new("other") });
    let a = w.worker("b");
    let claimed = a.next(&ingest).unwrap();
    assert_eq!(claimed.lease.job, other);
    // "queued behind the owner when another job owns the lock."
    w.requeue(job, None).unwrap();
    assert_eq!((w.stage(job).as_str(), w.state(job)), ("resolving", Some(State::Parked)));
    a.settle(&claimed, permanent("no"));
    assert_eq!(a.claim_in(&ingest, "resolving").unwrap().lease.job, job);
}

/// A failed job whose data were discarded starts again from the first stage, with no checkpoint; a
/// later stage is refused, and `retry` does the same.
fn a_discarded_job_starts_again(w: &World) {
    let ingest = ingest(w);
    let job = failed_in(w, &ingest, "storing", "object/1");
    let discard = |job| w.rule(move |tx, now, c| discard::discard(tx, now, c, ANN, job));
    assert!(discard(job).unwrap());
    assert!(!discard(job).unwrap(), "once");
    assert!(refused(w.requeue(job, Some("storing"))).contains("discarded"));
    assert_eq!(w.status(job), Status::Failed);
    w.rule(move |tx, now, c| {
        retry::retry(tx, now, c, ANN, &Filter::default(), false, JobId::default(), 100)
    })
    .unwrap();
    assert_eq!((w.stage(job), w.status(job)), (ingest.first().name.clone(), Status::Queued));
    let marks: usize = ingest
        .stages
        .iter()
        .map(|stage| {
            let stage = stage.id;
            w.rule(move |tx, _, _| running::checkpoints(tx, job, stage)).unwrap().len()
        })
        .sum();
    assert_eq!(marks, 0);
    assert!(refused(discard(job)).contains("only a failed job"), "a requeue that came first wins");
}

/// From `recording` on a job only goes forward, and needs its data for that.
fn what_has_begun_recording_cannot_be_discarded(w: &World) {
    let ingest = ingest(w);
    let job = failed_in(w, &ingest, "recording", "object/1");
    let done = w.rule(move |tx, now, c| discard::discard(tx, now, c, ANN, job));
    assert!(refused(done).contains("forward"));
}

/// "Refused with a reason when, with coalescing, a newer one waits".
fn requeue_is_refused_while_a_newer_one_waits(w: &World) {
    let files = w.queue("files");
    w.add(&files, "a");
    let a = w.worker("a");
    let failed = a.work(&files, permanent("bad"));
    let newer = w.add(&files, "a");
    assert!(refused(w.requeue(failed, None)).contains(&format!("job {newer}")));
    assert_eq!((w.status(failed), w.status(newer)), (Status::Failed, Status::Queued));
    // Once it runs, requeueing queues behind it.
    let running = a.next(&files).unwrap();
    w.requeue(failed, None).unwrap();
    assert_eq!(w.state(failed), Some(State::Parked));
    a.settle(&running, Outcome::success());
    assert_eq!(a.next(&files).unwrap().lease.job, failed);
}

/// "Retry all failed jobs matching a filter, with a dry run that says how many; of several for one
/// pipeline and subject the newest goes, the others are superseded."
fn retry_all_with_a_dry_run(w: &World) {
    let files = w.queue("files");
    let a = w.worker("a");
    w.add(&files, "a");
    let old = a.work(&files, permanent("bad"));
    w.add(&files, "a");
    let new = a.work(&files, permanent("bad"));
    w.add(&files, "b");
    let other = a.work(&files, permanent("bad"));
    let retry = |dry: bool, code: Option<&'static str>| {
        w.rule(move |tx, now, c| {
            let filter = Filter { code: code.map(str::to_string), ..Filter::default() };
            retry::retry(tx, now, c, ANN, &filter, dry, JobId::default(), 100)
        })
        .unwrap()
    };
    let expected = Retried { requeued: 2, superseded: 1, refused: 0, next: None };
    assert_eq!(retry(true, Some("nothing like it")), Retried::default());
    assert_eq!(retry(true, None), expected);
    assert_eq!(w.status(new), Status::Failed, "a dry run changes nothing");
    assert_eq!(retry(false, Some("broken")), expected);
    assert_eq!(w.status(old), Status::Cancelled);
    assert!(w.ended_why(old).contains(&format!("superseded by job {new}")));
    assert_eq!(a.ids(&files), [new, other]);
}

/// In small steps the result is the same.
fn retry_all_in_steps(w: &World) {
    let files = w.queue("files");
    let a = w.worker("a");
    let jobs: Vec<JobId> = (0..5).map(|n| w.add(&files, &n.to_string())).collect();
    jobs.iter().for_each(|_| _ = a.work(&files, permanent("bad")));
    let (mut after, mut requeued) = (Some(JobId::default()), 0);
    while let Some(from) = after {
        let step = w.rule(move |tx, now, c| {
            retry::retry(tx, now, c, ANN, &Filter::default(), false, from, 2)
        });
        let step = step.unwrap();
        requeued += step.requeued;
        after = step.next;
    }
    assert_eq!(requeued, 5);
    assert_eq!(a.ids(&files), jobs);
}

/// "Hold / release a job": I9 "A held job … [is] never claimed", with who, when and why.
fn a_held_job_is_never_claimed(w: &World) {
    let files = w.queue("files");
    let (held, free) = (w.add(&files, "a"), w.add(&files, "b"));
    w.hold(held).unwrap();
    refused(w.hold(held));
    let a = w.worker("a");
    assert_eq!(a.ids(&files), [free]);
    refused(w.release(free));
    let event = w.history(held).pop().unwrap();
    assert_eq!((event.event.as_str(), event.who.as_str()), ("held", "ann"));
    assert_eq!(event.why.as_deref(), Some("because"));
    w.release(held).unwrap();
    assert_eq!(a.ids(&files), [held]);
}

/// A hold keeps a started job's lock, and lets others of the lock through before it started.
fn holding_keeps_the_line_moving(w: &World) {
    let ingest = ingest(w);
    let of = |s: &str, lock: &str| NewJob { lock: Some(lock.to_string()), ..NewJob::new(s) };
    let (first, second) = (w.add_job(&ingest, of("1", "o/1")), w.add_job(&ingest, of("2", "o/1")));
    assert_eq!(w.state(second), Some(State::Parked));
    w.hold(first).unwrap();
    let a = w.worker("a");
    assert_eq!(a.work_in(&ingest, "downloading", Outcome::success()), second);
    w.hold(second).unwrap();
    w.release(first).unwrap();
    assert_eq!(w.state(first), Some(State::Parked), "the held one has started and keeps its lock");
    w.release(second).unwrap();
    assert_eq!(a.claim_in(&ingest, "resolving").unwrap().lease.job, second);
}

/// A held job keeps its due time.
fn release_respects_the_due_time(w: &World) {
    let files = w.queue("files");
    let later = NewJob { due: Some(w.now() + 10 * SECOND), ..NewJob::new("a") };
    let job = w.add_job(&files, later);
    w.hold(job).unwrap();
    w.advance(SECOND);
    w.release(job).unwrap();
    let a = w.worker("a");
    assert!(a.next(&files).is_none());
    w.advance(9 * SECOND);
    assert_eq!(a.next(&files).unwrap().lease.job, job);
}

/// "a collection (nothing of it is claimed any more, at any stage; … releasing the collection releases
/// them all or leaves them for one-by-one release)".
fn a_collection_is_held_and_released(w: &World) {
    let two = w.staged("two", &["first", "second"]);
    let of = |s: &str, c: &str| NewJob { collection: Some(c.to_string()), ..NewJob::new(s) };
    let maps: Vec<JobId> = (0..4).map(|n| w.add_job(&two, of(&n.to_string(), "maps"))).collect();
    let photo = w.add_job(&two, of("photo", "photos"));
    let a = w.worker("a");
    assert_eq!(a.work(&two, Outcome::success()), maps[0]);
    let group = Group::Collection("maps");
    w.rule(move |tx, now, _| hold::hold_group(tx, now, ANN, group)).unwrap();
    assert_eq!(a.ids(&two), [photo], "I9, before a single job was flipped");
    let steps = |held: u8| {
        let mut after = Some(JobId::default());
        while let Some(from) = after {
            after = w
                .rule(move |tx, now, c| match held {
                    0 => hold::flip_held(tx, now, c, ANN, group, from, 2),
                    1 => hold::flip_released(tx, now, c, ANN, group, from, 2),
                    _ => hold::keep_held(tx, now, group, from, 2),
                })
                .unwrap();
        }
    };
    steps(0);
    assert!(maps.iter().all(|j| w.status(*j) == Status::Held), "at whatever stage");
    assert!(a.claim_in(&two, "second").is_none());
    assert!(refused(w.release(maps[1])).contains("collection"));
    w.rule(move |tx, _, _| hold::release_group(tx, group)).unwrap();
    refused(w.rule(move |tx, _, _| hold::release_group(tx, group)));
    steps(2);
    assert!(a.next(&two).is_none(), "left for one-by-one release");
    w.release(maps[0]).unwrap();
    assert_eq!(a.claim_in(&two, "second").unwrap().lease.job, maps[0]);
    w.release(maps[1]).unwrap();
    assert_eq!(a.ids(&two), [maps[1]]);
    w.rule(move |tx, now, _| hold::hold_group(tx, now, ANN, group)).unwrap();
    w.rule(move |tx, _, _| hold::release_group(tx, group)).unwrap();
    steps(1);
    assert!(
        a.next(&two).is_none(),
        "held each on its own, they are not the collection's to release"
    );
    w.release(maps[2]).unwrap();
    assert_eq!(a.ids(&two), [maps[2]]);
}

/// "Pause / unpause a stage, a pipeline, everything": "nothing is handed out, adding goes on, running
/// work finishes".
fn pausing_lets_running_work_finish(w: &World) {
    let two = w.staged("two", &["first", "second"]);
    w.add(&two, "a");
    let a = w.worker("a");
    let running = a.next(&two).unwrap();
    let scope = Scope::Pipeline(two.id);
    w.rule(move |tx, now, c| pause::pause(tx, now, c, ANN, scope)).unwrap();
    refused(w.rule(move |tx, now, c| pause::pause(tx, now, c, ANN, scope)));
    assert_eq!(a.settle(&running, Outcome::success()), Settled::Now(Status::Queued));
    assert!(a.claim_in(&two, "second").is_none());
    let pauses = w.rule(|tx, _, _| pause::all(tx)).unwrap();
    assert_eq!((pauses[0].who.as_str(), pauses[0].reason.as_str()), ("ann", "because"));
    w.rule(move |tx, _, c| pause::unpause(tx, c, scope)).unwrap();
    refused(w.rule(move |tx, _, c| pause::unpause(tx, c, scope)));
    assert!(a.claim_in(&two, "second").is_some());
}

/// "Cancel queued, held or failed jobs; a running one is asked to stop at its next checkpoint."
fn cancel_ends_or_asks(w: &World) {
    let files = w.queue("files");
    let (queued, held) = (w.add(&files, "queued"), w.add(&files, "held"));
    w.hold(held).unwrap();
    assert_eq!(w.cancel(queued).unwrap(), Cancelled::Now);
    assert_eq!(w.cancel(held).unwrap(), Cancelled::Now);
    refused(w.cancel(queued));
    w.add(&files, "failed");
    let a = w.worker("a");
    let failed = a.work(&files, permanent("bad"));
    assert_eq!(w.cancel(failed).unwrap(), Cancelled::Now);
    w.add(&files, "running");
    let claimed = a.next(&files).unwrap();
    let running = claimed.lease.job;
    assert_eq!(w.cancel(running).unwrap(), Cancelled::Requested);
    refused(w.cancel(running));
    assert_eq!(w.status(running), Status::Running);
    assert!(a.renew().unwrap()[0].cancel_requested);
    assert_eq!(a.settle(&claimed, Outcome::Cancelled), Settled::Now(Status::Cancelled));
    assert_eq!(w.ended_why(running), "because");
}

/// "`cancel_requested` is stored: a lease lost after it ends the job cancelled, not queued"; nor
/// does it go on by any other way out, except that a finished job is finished.
fn a_cancel_request_survives(w: &World) {
    let two = w.staged("two", &["first", "second"]);
    let endings = [
        (transient("x"), Status::Cancelled),
        (permanent("x"), Status::Cancelled),
        (Outcome::success(), Status::Cancelled),
        (Outcome::Wait { due: 0, why: "x".to_string() }, Status::Cancelled),
        (Outcome::Interrupted("x".to_string()), Status::Cancelled),
        (Outcome::Relock("another".to_string()), Status::Cancelled),
    ];
    for (ending, status) in endings {
        w.add(&two, "a");
        let a = w.worker("a");
        let claimed = a.next(&two).unwrap();
        w.cancel(claimed.lease.job).unwrap();
        assert_eq!(a.settle(&claimed, ending.clone()), Settled::Now(status), "{ending:?}");
    }
    w.add(&two, "a");
    let a = w.worker("a");
    a.work(&two, Outcome::success());
    let last = a.claim_in(&two, "second").unwrap();
    w.cancel(last.lease.job).unwrap();
    assert_eq!(a.settle(&last, Outcome::success()), Settled::Now(Status::Succeeded));
    let lost = w.add(&two, "b");
    a.next(&two).unwrap();
    w.cancel(lost).unwrap();
    w.advance(LEASE + 1);
    reap(w);
    assert_eq!(w.status(lost), Status::Cancelled);
}

/// "An ingest that has begun *recording* can only go forward."
fn what_has_begun_recording_cannot_be_cancelled(w: &World) {
    let ingest = ingest(w);
    let job = failed_in(w, &ingest, "recording", "object/1");
    assert!(refused(w.cancel(job)).contains("forward"));
    w.requeue(job, None).unwrap();
    let a = w.worker("b");
    let claimed = a.claim_in(&ingest, "recording").unwrap();
    assert!(refused(w.cancel(job)).contains("forward"));
    a.settle(&claimed, Outcome::success());
    assert_eq!(w.status(job), Status::Succeeded);
}

/// Cancelling the owner of a lock lets the next in line through.
fn cancel_lets_the_next_through(w: &World) {
    let ingest = ingest(w);
    let of = |s: &str| NewJob { lock: Some("o/1".to_string()), ..NewJob::new(s) };
    let jobs: Vec<JobId> = ["1", "2", "3"].iter().map(|s| w.add_job(&ingest, of(s))).collect();
    let a = w.worker("a");
    a.work(&ingest, Outcome::success());
    w.cancel(jobs[0]).unwrap();
    w.cancel(jobs[1]).unwrap();
    assert_eq!(a.next(&ingest).unwrap().lease.job, jobs[2]);
}

/// "Empty a stage (cancels its waiting jobs)", in steps; running ones go on.
fn emptying_cancels_what_waits(w: &World) {
    let files = w.queue("files");
    let running = w.add(&files, "running");
    let a = w.worker("a");
    let claimed = a.next(&files).unwrap();
    let waiting: Vec<JobId> = (0..5).map(|n| w.add(&files, &n.to_string())).collect();
    w.hold(waiting[0]).unwrap();
    let stage = files.first().id;
    let mut done = 0;
    loop {
        let some = w.rule(move |tx, now, c| cancel::empty(tx, now, c, ANN, stage, 2)).unwrap();
        done += some;
        if some == 0 {
            break;
        }
    }
    assert_eq!(done, 5);
    assert!(waiting.iter().all(|j| w.status(*j) == Status::Cancelled));
    assert_eq!(w.status(running), Status::Running);
    assert_eq!(a.settle(&claimed, Outcome::success()), Settled::Now(Status::Succeeded));
}

/// "and delete a plain queue": not while it runs, never a built-in one, and the name is free again.
fn a_plain_queue_can_be_deleted(w: &World) {
    let files = w.queue("files");
    w.staged("ingest", &["storing"]);
    let delete =
        |name: &'static str| w.rule(move |tx, now, c| pipelines::delete(tx, now, c, ANN, name, 2));
    refused(delete("ingest"));
    let a = w.worker("a");
    w.add(&files, "failed");
    let failed = a.work(&files, permanent("bad"));
    w.add(&files, "running");
    let claimed = a.next(&files).unwrap();
    let waiting: Vec<JobId> = (0..3).map(|n| w.add(&files, &n.to_string())).collect();
    refused(delete("files"));
    a.settle(&claimed, Outcome::success());
    while !delete("files").unwrap() {}
    assert!(waiting.iter().chain([&failed]).all(|j| w.status(*j) == Status::Cancelled));
    assert!(matches!(delete("files"), Err(Error::Unknown { .. })));
    assert_ne!(w.queue("files").id, files.id);
}

/// "review: a job that needs a person …; cleared by requeue, cancel or 'seen'".
fn seen_clears_a_review(w: &World) {
    let files = w.queue("files");
    w.add(&files, "a");
    let job = w.worker("a").work(&files, permanent("bad"));
    let open = || w.number("select count(*) from failures where needs_review = $1", 1);
    assert_eq!(open(), 1);
    w.rule(move |tx, now, c| review::seen(tx, now, c, ANN, job)).unwrap();
    assert_eq!((open(), w.status(job)), (0, Status::Failed));
    refused(w.rule(move |tx, now, c| review::seen(tx, now, c, ANN, job)));
    w.requeue(job, None).unwrap();
}

/// I10: "Pauses, holds and settings survive restarts."
fn what_people_set_survives_a_restart(w: &World) {
    let files = w.queue("files");
    let job = w.add(&files, "a");
    w.hold(job).unwrap();
    let stage = Scope::Stage(files.first().id);
    w.rule(move |tx, now, c| pause::pause(tx, now, c, ANN, stage)).unwrap();
    w.rule(|tx, now, _| hold::hold_group(tx, now, ANN, Group::Collection("maps"))).unwrap();
    let set = vec![("workers".to_string(), "7".to_string())];
    w.rule(move |tx, _, c| pipelines::set(tx, c, "files", None, &set)).unwrap();
    let options = db::Options { clock: w.clock.clone(), ..db::Options::default() };
    let again = db::Db::open(&w.address, queue::MIGRATIONS, &options).unwrap();
    let found = again
        .write_blocking(move |tx| {
            let catalog = queue::Catalog::load(tx)?;
            Ok::<_, Error>((
                catalog.named("files")?.first().settings.workers,
                pause::all(tx)?.len(),
                hold::held_names(tx)?.of(None, Some("maps")),
                queue::rules::operator::look(tx, job)?.status(),
            ))
        })
        .unwrap();
    assert_eq!(found, (7, 1, Some("collection"), Status::Held));
}

both!(
    requeue_to_the_same_or_an_earlier_stage,
    a_queued_started_job_may_be_sent_back,
    going_back_discards_checkpoints,
    an_overtaken_job_resumes_at_the_restart_stage,
    a_discarded_job_starts_again,
    what_has_begun_recording_cannot_be_discarded,
    requeue_is_refused_while_a_newer_one_waits,
    retry_all_with_a_dry_run,
    retry_all_in_steps,
    a_held_job_is_never_claimed,
    holding_keeps_the_line_moving,
    release_respects_the_due_time,
    a_collection_is_held_and_released,
    pausing_lets_running_work_finish,
    cancel_ends_or_asks,
    a_cancel_request_survives,
    what_has_begun_recording_cannot_be_cancelled,
    cancel_lets_the_next_through,
    emptying_cancels_what_waits,
    a_plain_queue_can_be_deleted,
    seen_clears_a_review,
    what_people_set_survives_a_restart,
);
