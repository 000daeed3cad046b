//! Carrying on: a run that succeeds is claimed and started for its next stage by the transaction
//! that settles it, where its worker has a place and a claim would hand it out now.

use crate::both;
use crate::support::worker::Worker;
use crate::support::{LEASE, World};
use queue::rules::lease::NewWorker;
use queue::rules::moving::FreeSlots;
use queue::rules::operator::Actor;
use queue::rules::operator::pause::{self, Scope};
use queue::{Amounts, Claimed, Handover, NewJob, Outcome, Pipeline, Settled, Settlement, Status};
use std::sync::Arc;

const STAGES: &[&str] = &["estimating", "storing", "recording"];
const ANN: Actor<'static> = Actor { who: "ann", reason: "lunch" };

fn places(pipeline: &Pipeline, free: usize) -> FreeSlots {
    FreeSlots::from([(pipeline.stage_named("storing").unwrap().id, free)])
}

/// Settles one success with a place free.
fn go_on(worker: &Worker<'_>, pipeline: &Pipeline, job: &Claimed, handover: Handover) -> Settled {
    let item = Settlement::new(job.lease.clone(), Outcome::Success(handover));
    worker.settle_and_carry(vec![item], places(pipeline, 1)).remove(0)
}

/// The lock stays with the job; the lease is a new one, with a token of its own (I2, I4).
fn it_goes_on_with_a_new_lease(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let first = a.next(&ingest).unwrap();
    let note = Some("40 GiB".to_string());
    let handover = Handover { note, priority: Some(60), ..Handover::default() };
    let settled = go_on(&a, &ingest, &first, handover);
    let next = settled.carried().expect("there was a place").clone();
    assert_eq!((w.stage(job).as_str(), w.status(job)), ("storing", Status::Running));
    assert_eq!((next.lease.job, &next.lease.lock), (job, &first.lease.lock));
    assert_eq!((next.subject.as_str(), next.priority, next.attempt), ("box", 60, 1));
    assert!(next.started && next.lease.token > first.lease.token);
    assert_eq!(a.settle(&first, Outcome::success()), Settled::Stale);
    assert_eq!(a.settle(&next, Outcome::success()), Settled::Now(Status::Queued));
    assert_eq!(w.events(job), ["added", "claimed", "moved", "claimed", "moved"]);
}

/// "Order: priority, then due time, then id."
fn it_passes_nobody_who_waits(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    let urgent =
        |subject: &str, priority| NewJob { priority: Some(priority), ..NewJob::new(subject) };
    for (subject, priority) in [("first", 50), ("second", 50), ("third", 40)] {
        w.add_job(&ingest, urgent(subject, priority));
    }
    let a = w.worker("a");
    let claimed = a.claim(&ingest, 3);
    let [third, first, second] = &claimed[..] else { panic!("three were claimed") };
    assert_eq!(a.settle(first, Outcome::success()), Settled::Now(Status::Queued));
    let same = go_on(&a, &ingest, second, Handover::default());
    assert_eq!(same, Settled::Now(Status::Queued), "one of its priority waits");
    let sooner = go_on(&a, &ingest, third, Handover::default());
    assert!(sooner.carried().is_some(), "those that wait are less urgent");
}

/// As many as there are places, the most urgent of them.
fn no_more_go_on_than_there_are_places(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    for priority in [50, 40, 60] {
        let subject = format!("box {priority}");
        w.add_job(&ingest, NewJob { priority: Some(priority), ..NewJob::new(subject) });
    }
    let a = w.worker("a");
    let item = |job: &Claimed| Settlement::new(job.lease.clone(), Outcome::success());
    let mut items: Vec<Settlement> = a.claim(&ingest, 3).iter().map(item).collect();
    items.reverse();
    let settled = a.settle_and_carry(items, places(&ingest, 2));
    let on: Vec<Option<i64>> = settled.iter().map(|s| s.carried().map(|c| c.priority)).collect();
    assert_eq!(on, [None, Some(50), Some(40)]);
}

/// I9: nothing is claimed in a paused stage, and nothing is carried on to it.
fn it_does_not_go_on_while_anything_is_paused(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    let storing = ingest.stage_named("storing").unwrap().id;
    w.rule(move |tx, now, c| pause::pause(tx, now, c, ANN, Scope::Stage(storing))).unwrap();
    let settled = go_on(&a, &ingest, &claimed, Handover::default());
    assert_eq!(settled, Settled::Now(Status::Queued));
    assert!(a.claim_in(&ingest, "storing").is_none());
}

/// What a claim would not hand out is not carried on: it waits, and says for what.
fn it_does_not_go_on_to_where_it_may_not(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    let a = Worker::with(w, NewWorker { name: "a".to_string(), ..NewWorker::default() });
    let away = Handover { workspace: Some("shelf".to_string()), ..Handover::default() };
    let needs = Some(Amounts::from([("memory_bytes".to_string(), 1)]));
    let heavy = Handover { needs, ..Handover::default() };
    for (subject, handover) in [("away", away), ("heavy", heavy)] {
        w.add(&ingest, subject);
        let claimed = a.next(&ingest).unwrap();
        let settled = go_on(&a, &ingest, &claimed, handover);
        assert_eq!(settled, Settled::Now(Status::Queued), "{subject}");
    }
    // A target that is down.
    for n in 0..queue::rules::breaker::ERRORS_TO_OPEN {
        w.add(&ingest, &format!("lost {n}"));
    }
    let down = || Outcome::Transient(queue::JobError::new("timeout", "no answer").at("s3-west"));
    a.claim(&ingest, 10).iter().for_each(|one| _ = a.settle(one, down()));
    w.add(&ingest, "to the west");
    let claimed = a.next(&ingest).unwrap();
    let west = Handover { targets: Some(vec!["s3-west".to_string()]), ..Handover::default() };
    assert_eq!(go_on(&a, &ingest, &claimed, west), Settled::Now(Status::Queued));
}

/// A worker whose lease has run out gets nothing, though what it did counts if nobody else has it.
fn a_late_worker_gets_nothing(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    w.advance(LEASE + 1);
    let settled = go_on(&a, &ingest, &claimed, Handover::default());
    assert_eq!((settled, w.status(job)), (Settled::Now(Status::Queued), Status::Queued));
}

/// Cancelled jobs stop, and one whose results cannot be recorded fails: neither goes on.
fn what_is_asked_to_stop_or_cannot_be_recorded_does_not_go_on(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    let (stopped, lost) = (w.add(&ingest, "stopped"), w.add(&ingest, "lost"));
    let a = w.worker("a");
    let claimed = a.claim(&ingest, 2);
    w.cancel(stopped).unwrap();
    let mut items: Vec<Settlement> =
        claimed.iter().map(|job| Settlement::new(job.lease.clone(), Outcome::success())).collect();
    items[1].records = Some(Arc::new(|_| Err(queue::Error::BadInput("no room".to_string()))));
    let settled = a.settle_and_carry(items, places(&ingest, 2));
    assert_eq!(settled, [Settled::Now(Status::Cancelled), Settled::Now(Status::Failed)]);
    assert_eq!((w.status(stopped), w.status(lost)), (Status::Cancelled, Status::Failed));
}

/// I3, I6: if its worker dies it is queued again where it had come to, with one interruption.
fn what_was_carried_on_is_taken_back_from_the_dead(w: &World) {
    let ingest = w.staged("ingest", STAGES);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    assert!(go_on(&a, &ingest, &claimed, Handover::default()).carried().is_some());
    w.advance(LEASE + 1);
    assert_eq!(crate::support::worker::reap(w), [a.id]);
    assert_eq!((w.stage(job).as_str(), w.status(job)), ("storing", Status::Queued));
    let b = w.worker("b");
    assert_eq!(b.claim_in(&ingest, "storing").unwrap().lease.job, job);
    assert_eq!(w.number("select interruptions from tries where job = $1", job), 1);
}

both!(
    it_goes_on_with_a_new_lease,
    it_passes_nobody_who_waits,
    no_more_go_on_than_there_are_places,
    it_does_not_go_on_while_anything_is_paused,
    it_does_not_go_on_to_where_it_may_not,
    a_late_worker_gets_nothing,
    what_is_asked_to_stop_or_cannot_be_recorded_does_not_go_on,
    what_was_carried_on_is_taken_back_from_the_dead,
);
