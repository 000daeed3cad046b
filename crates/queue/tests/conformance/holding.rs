//! I9: "A held job, any job of a held batch or collection at whatever stage … are never claimed. A run
//! that is under way finishes its stage; from *recording* on a job only goes forward."

use super::batches::{batch_of, create, load};
use crate::both;
use crate::support::worker::{reap, transient};
use crate::support::{ANN, LEASE, SECOND, World};
use queue::rules::moving::FreeSlots;
use queue::rules::operator::hold::{self, Group, JobHold};
use queue::rules::operator::{Actor, cancel};
use queue::rules::pipelines::PipelineSpec;
use queue::rules::{add, batch, preparing as preparing_rule};
use queue::{
    Error, Handover, JobId, NewJob, Outcome, Pipeline, Settled, Settlement, State, Status, view,
};

/// Stages of an ingest; from recording on a job only goes forward.
fn ingest(w: &World) -> Pipeline {
    let mut spec =
        PipelineSpec::staged("ingest", &["downloading", "verifying", "recording", "notifying"]);
    spec.settings.forward_from = Some("recording".to_string());
    w.make(spec)
}

fn of_maps(subject: &str) -> NewJob {
    NewJob { collection: Some("maps".to_string()), ..NewJob::new(subject) }
}

const MAPS: Group<'_> = Group::Collection("maps");

fn hold_maps(w: &World) {
    w.rule(|tx, now, c| {
        hold::hold_group(tx, now, ANN, MAPS)?;
        let mut after = Some(JobId::default());
        while let Some(from) = after {
            after = hold::flip_held(tx, now, c, ANN, MAPS, from, 2)?;
        }
        Ok(())
    })
    .unwrap();
}

fn release_maps(w: &World) {
    w.rule(|tx, now, c| {
        hold::release_group(tx, MAPS)?;
        hold::flip_released(tx, now, c, ANN, MAPS, JobId::default(), 100)
    })
    .unwrap();
}

fn why(w: &World, job: JobId) -> String {
    w.rule(move |tx, now, c| view::why(tx, now, c, job)).unwrap()
}

/// A run finishes its stage, and then its job is held, with its lock, until it is released.
fn a_running_job_is_held_when_its_run_ends(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "a");
    let a = w.worker("a");
    let run = a.next(&ingest).unwrap();
    assert_eq!(w.hold(job).unwrap(), JobHold::AfterRun);
    assert!(matches!(w.hold(job), Err(Error::Refused(_))), "it is held already");
    assert_eq!(w.status(job), Status::Running);
    assert!(why(w, job).contains("held when this stage ends: job `1` is held by ann"));
    assert_eq!(a.settle(&run, Outcome::success()), Settled::Now(Status::Held));
    assert_eq!(w.stage(job), "verifying");
    assert!(a.claim_in(&ingest, "verifying").is_none());
    assert!(w.job(job).owns, "it keeps its lock");
    assert!(why(w, job).starts_with("it is held by ann since "), "{}", why(w, job));
    assert!(why(w, job).ends_with(": because"));
    w.release(job).unwrap();
    assert!(a.claim_in(&ingest, "verifying").is_some());
}

/// A hold that is lifted before the run ends leaves no trace, and one of a job that ends goes with it.
fn a_hold_of_a_run_can_be_lifted(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "a");
    let a = w.worker("a");
    let run = a.next(&ingest).unwrap();
    w.hold(job).unwrap();
    w.release(job).unwrap();
    assert!(matches!(w.release(job), Err(Error::Refused(_))), "it is not held any more");
    assert_eq!(a.settle(&run, Outcome::success()), Settled::Now(Status::Queued));
    let files = w.queue("files");
    let last = w.add(&files, "b");
    let run = a.next(&files).unwrap();
    w.hold(last).unwrap();
    assert_eq!(a.settle(&run, Outcome::success()), Settled::Now(Status::Succeeded));
    assert_eq!(w.number("select count(*) from holds where at > $1", 0), 0);
}

/// The same whichever way a run ends: with an error, with a wait, with its worker, with another lock.
fn whatever_comes_back_is_held(w: &World) {
    let ingest = ingest(w);
    let jobs: Vec<JobId> = ["a", "b", "c", "d"].map(|s| w.add_job(&ingest, of_maps(s))).into();
    let a = w.worker("a");
    let runs = a.claim(&ingest, 3);
    let lost = w.worker("lost");
    assert_eq!(lost.next(&ingest).unwrap().lease.job, jobs[3]);
    hold_maps(w);
    let due = w.now() + 10 * SECOND;
    let wait = Outcome::Wait { due, why: "no room".to_string() };
    assert_eq!(a.settle(&runs[0], wait), Settled::Now(Status::Held));
    assert_eq!(a.settle(&runs[1], transient("no answer")), Settled::Now(Status::Held));
    let relock = Outcome::Relock("object/9".to_string());
    assert_eq!(a.settle(&runs[2], relock), Settled::Now(Status::Held));
    w.advance(LEASE + SECOND);
    a.renew().ok();
    reap(w);
    assert!(jobs.iter().all(|job| w.status(*job) == Status::Held));
    let b = w.worker("b");
    assert!(b.claim(&ingest, 10).is_empty());
    release_maps(w);
    w.advance(60 * SECOND);
    assert_eq!(b.claim(&ingest, 10).len(), 4);
}

/// Nothing is carried on to the next stage while it is held.
fn a_held_job_is_not_carried_on(w: &World) {
    let ingest = ingest(w);
    let (held, free) = (w.add_job(&ingest, of_maps("a")), w.add(&ingest, "b"));
    let a = w.worker("a");
    let runs = a.claim(&ingest, 2);
    w.rule(|tx, now, _| hold::hold_group(tx, now, ANN, MAPS)).unwrap();
    let next = ingest.stage_named("verifying").unwrap().id;
    let items = runs.iter().map(|r| Settlement::new(r.lease.clone(), Outcome::success()));
    let settled = a.settle_and_carry(items.collect(), FreeSlots::from([(next, 2)]));
    assert_eq!(settled[0], Settled::Now(Status::Held));
    assert_eq!(settled[1].carried().unwrap().lease.job, free);
    assert_eq!((w.status(held), w.stage(held).as_str()), (Status::Held, "verifying"));
    assert_eq!(w.events(held)[2..], ["moved", "held"]);
}

/// What a worker has only claimed does not start: the hold takes it back.
fn claimed_jobs_that_have_not_started_are_taken_back(w: &World) {
    let ingest = ingest(w);
    let (one, two) = (w.add_job(&ingest, of_maps("a")), w.add(&ingest, "b"));
    let a = w.worker("a");
    let claimed = a.try_claim(ingest.first().id, 2, 0).unwrap();
    hold_maps(w);
    assert_eq!(w.status(one), Status::Held);
    assert!(!a.start(&claimed[0]), "its lease is over");
    assert_eq!(w.hold(two).unwrap(), JobHold::Now);
    assert!(!a.start(&claimed[1]));
    assert_eq!(w.number("select count(*) from tries where job > $1", 0), 0, "nothing is counted");
    // Until the hold has taken them back, nobody else gets them.
    w.release(two).unwrap();
    let claimed = a.try_claim(ingest.first().id, 1, 0).unwrap();
    assert_eq!(claimed.len(), 1);
    w.advance(2 * SECOND);
    assert_eq!(w.worker("b").take_over(&ingest, 5).len(), 1, "it is not of a held group");
}

/// "from *recording* on a job only goes forward"; one that comes there while it is held waits at its
/// door, and may still be cancelled.
fn what_has_begun_recording_goes_forward(w: &World) {
    let ingest = ingest(w);
    let to = |name: &str| Outcome::Success(Handover::to(name));
    let begun = w.add_job(&ingest, of_maps("a"));
    let before = w.add_job(&ingest, of_maps("b"));
    let a = w.worker("a");
    a.work(&ingest, to("recording"));
    a.work(&ingest, to("verifying"));
    let record = a.claim_in(&ingest, "recording").unwrap();
    let verify = a.claim_in(&ingest, "verifying").unwrap();
    hold_maps(w);
    assert!(matches!(w.hold(begun), Err(Error::Refused(_))), "it can only go forward");
    assert_eq!(a.settle(&verify, Outcome::success()), Settled::Now(Status::Held));
    assert_eq!((w.status(before), w.stage(before).as_str()), (Status::Held, "recording"));
    let back = Outcome::Interrupted("shutdown".to_string());
    assert_eq!(a.settle(&record, back), Settled::Now(Status::Queued));
    assert_eq!(a.claim_in(&ingest, "recording").unwrap().lease.job, begun);
    assert!(a.claim_in(&ingest, "recording").is_none());
    assert_eq!(w.cancel(before).unwrap(), cancel::Cancelled::Now);
    assert!(matches!(w.cancel(begun), Err(Error::Refused(_))));
}

/// Parked and delayed jobs are held as well, and come back as what they were.
fn parked_and_delayed_jobs_are_held(w: &World) {
    let ingest = ingest(w);
    let locked = |s: &str| NewJob { lock: Some("o/1".to_string()), ..of_maps(s) };
    let first = w.add_job(&ingest, NewJob { lock: Some("o/1".to_string()), ..NewJob::new("a") });
    let parked = w.add_job(&ingest, locked("b"));
    let delayed = NewJob { due: Some(w.now() + 10 * SECOND), ..of_maps("c") };
    let delayed = w.add_job(&ingest, delayed);
    hold_maps(w);
    assert_eq!((w.status(parked), w.status(delayed)), (Status::Held, Status::Held));
    w.advance(20 * SECOND);
    let a = w.worker("a");
    assert_eq!(a.ids(&ingest), [first]);
    release_maps(w);
    assert_eq!(w.state(parked), Some(State::Parked));
    assert_eq!(a.ids(&ingest), [delayed]);
}

/// "Status, why and the batch's state agree": a batch of a held collection is held too.
fn a_batch_of_a_held_collection_is_held(w: &World) {
    let jobs = w.staged("ingest", &["storing"]);
    let b = batch_of(w, &jobs, &["1"]);
    assert!(!load(w, b).is_held());
    hold_maps(w);
    assert!(load(w, b).is_held() && !load(w, b).held);
    let listed = w.rule(|tx, _, _| batch::list(tx, None, None, 10)).unwrap();
    assert!(listed[0].is_held());
    let job = w.rows::<(JobId,)>("select min(id) from jobs")[0].0;
    assert_eq!(w.status(job), Status::Held);
    assert!(why(w, job).starts_with("collection `maps` is held by ann since "));
    let refused = batch::refuse_delete(&load(w, b)).unwrap_err().to_string();
    assert!(refused.contains("held with its collection"), "{refused}");
    release_maps(w);
    assert!(!load(w, b).is_held());
    assert_eq!(w.worker("a").ids(&jobs), [job]);
}

/// A batch that is held before it is expanded is not expanded until it is released.
fn the_job_that_prepares_a_batch_is_held_with_it(w: &World) {
    let (jobs, preparing) = (w.staged("ingest", &["storing"]), w.staged("batch", &["examining"]));
    let b = create(w, &jobs, &["1"]);
    let prepares = preparing.name.clone();
    let job = w
        .rule(move |tx, now, c| {
            let new = NewJob::new("batch");
            let job = add::add(tx, now, c.named(&prepares)?, "ann", &[new])?[0].job;
            preparing_rule::prepare(tx, b, job)?;
            Ok(job)
        })
        .unwrap();
    let actor = Actor { who: "ann", reason: "wait" };
    w.rule(move |tx, now, _| batch::hold(tx, now, actor, b)).unwrap();
    assert_eq!(w.status(job), Status::Held);
    assert!(why(w, job).contains("held by ann"));
    w.rule(move |tx, now, _| batch::release(tx, now, b)).unwrap();
    let a = w.worker("a");
    let run = a.next(&preparing).unwrap();
    // Held while it is examined: the run finishes, and the batch stays held.
    w.rule(move |tx, now, _| batch::hold(tx, now, actor, b)).unwrap();
    assert_eq!(a.settle(&run, transient("no answer")), Settled::Now(Status::Held));
    w.rule(move |tx, now, _| batch::fail(tx, now, b, "cancelled by ann")).unwrap();
    assert_ne!(w.status(job), Status::Held, "nobody would release it any more");
}

/// A batch that is held with its collection is not expanded either, in whatever order the two holds
/// are laid on it and lifted.
fn the_job_that_prepares_a_batch_is_held_with_its_collection(w: &World) {
    let (jobs, preparing) = (w.staged("ingest", &["storing"]), w.staged("batch", &["examining"]));
    let actor = Actor { who: "ann", reason: "wait" };
    let hold_batch = |b| w.rule(move |tx, now, _| batch::hold(tx, now, actor, b)).unwrap();
    let release_batch = |b| w.rule(move |tx, now, _| batch::release(tx, now, b)).unwrap();
    for (batch_first, batch_last) in [(true, true), (true, false), (false, true), (false, false)] {
        let b = create(w, &jobs, &["1"]);
        let prepares = preparing.name.clone();
        let job = w
            .rule(move |tx, now, c| {
                let new = of_maps(&format!("batch {b}"));
                let job = add::add(tx, now, c.named(&prepares)?, "ann", &[new])?[0].job;
                preparing_rule::prepare(tx, b, job)?;
                Ok(job)
            })
            .unwrap();
        let a = w.worker("a");
        let is_held = |which: &str| {
            assert_eq!(w.status(job), Status::Held, "{batch_first} {batch_last} {which}");
            assert!(a.claim(&preparing, 1).is_empty());
            assert!(why(w, job).contains("held by ann"), "{}", why(w, job));
        };
        match batch_first {
            true => (hold_batch(b), is_held("batch"), hold_maps(w)),
            false => (hold_maps(w), is_held("collection"), hold_batch(b)),
        };
        is_held("both");
        match batch_last {
            true => (release_maps(w), is_held("batch still"), release_batch(b)),
            false => (release_batch(b), is_held("collection still"), release_maps(w)),
        };
        assert_eq!(a.ids(&preparing), [job], "{batch_first} {batch_last}");
        assert_eq!(w.number("select count(*) from holds where at > $1", 0), 0);
    }
}

both!(
    a_running_job_is_held_when_its_run_ends,
    a_hold_of_a_run_can_be_lifted,
    whatever_comes_back_is_held,
    a_held_job_is_not_carried_on,
    claimed_jobs_that_have_not_started_are_taken_back,
    what_has_begun_recording_goes_forward,
    parked_and_delayed_jobs_are_held,
    a_batch_of_a_held_collection_is_held,
    the_job_that_prepares_a_batch_is_held_with_it,
    the_job_that_prepares_a_batch_is_held_with_its_collection,
);
