//! "Breakers" of the contract.

use crate::both;
use crate::support::worker::Worker;
use crate::support::{SECOND, World};
use queue::rules::breaker::{self, Target};
use queue::rules::pipelines::PipelineSpec;
use queue::{JobError, JobId, NewJob, Outcome, Pipeline, State, Status};

fn down() -> Outcome {
    Outcome::Transient(JobError::new("unreachable", "connection refused").at("s3-west"))
}

fn target(w: &World) -> Option<Target> {
    w.rule(|tx, _, _| breaker::all(tx)).unwrap().into_iter().find(|t| t.name == "s3-west")
}

fn patient_queue(w: &World) -> Pipeline {
    let mut spec = PipelineSpec::queue("copies");
    spec.stages[0].1.max_attempts = 100;
    spec.stages[0].1.backoff_seconds = 0;
    w.make(spec)
}

fn needing(subject: &str) -> NewJob {
    NewJob { targets: vec!["s3-west".to_string()], ..NewJob::new(subject) }
}

/// Five jobs fail at the target, and it is down.
fn open_breaker(w: &World, copies: &Pipeline, a: &Worker<'_>) -> Vec<JobId> {
    let jobs: Vec<JobId> = (0..5).map(|n| w.add(copies, &format!("opens {n}"))).collect();
    let claimed = a.claim(copies, 5);
    assert_eq!(claimed.len(), 5);
    for (index, one) in claimed.iter().enumerate() {
        assert!(target(w).is_none_or(|t| t.opened_at.is_none()), "still up after {index}");
        a.settle(one, down());
    }
    assert!(target(w).unwrap().opened_at.is_some());
    jobs
}

/// "After 5 consecutive errors naming the same target the breaker opens: jobs known to need it (said
/// at add, by the stage before, or by their last error) wait together without losing attempts".
fn five_errors_in_a_row_open_it(w: &World) {
    let copies = patient_queue(w);
    let a = w.worker("a");
    let jobs = open_breaker(w, &copies, &a);
    let needs = w.add_job(&copies, needing("said at add"));
    let free = w.add(&copies, "needs nothing");
    assert_eq!(a.ids(&copies), [free]);
    for job in jobs.iter().chain([&needs]) {
        assert_eq!(w.state(*job), Some(State::Blocked), "job {job}");
        assert_eq!(w.status(*job), Status::Queued);
    }
}

/// "consecutive": a success between them closes the count.
fn a_success_between_errors_keeps_it_closed(w: &World) {
    let copies = patient_queue(w);
    let a = w.worker("a");
    for round in 0..3 {
        for n in 0..4 {
            w.add(&copies, &format!("{round}/{n}"));
            a.work(&copies, down());
            let again = a.next(&copies).unwrap();
            a.settle(&again, Outcome::Skip("enough".to_string()));
        }
    }
    assert!(target(w).is_none_or(|t| t.opened_at.is_none()));
}

/// "and one probe at a time is let through, ever more rarely up to a limit … Probes count no
/// attempt."
fn one_probe_at_a_time_ever_more_rarely(w: &World) {
    let copies = patient_queue(w);
    let a = w.worker("a");
    let jobs = open_breaker(w, &copies, &a);
    let before: i64 = attempts(w);
    assert!(a.next(&copies).is_none());
    let mut waits = Vec::new();
    for _ in 0..7 {
        let wait = target(w).unwrap().next_probe.unwrap() - w.now();
        waits.push(wait / SECOND);
        w.advance(wait - 1);
        let a = w.worker("p");
        assert!(a.next(&copies).is_none(), "not before its time");
        w.advance(1);
        let probe = a.claim(&copies, 5);
        assert_eq!(probe.len(), 1, "one at a time");
        assert!(jobs.contains(&probe[0].lease.job));
        assert!(w.worker("q").claim(&copies, 5).is_empty());
        a.settle(&probe[0], down());
        assert_eq!(w.state(probe[0].lease.job), Some(State::Blocked));
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(attempts(w), before, "probes count no attempt");
}

fn attempts(w: &World) -> i64 {
    w.number("select cast(coalesce(sum(attempts_ever), 0) as bigint) from tries where job > $1", 0)
}

/// "one success closes it", and everything that waited goes on.
fn one_success_closes_it(w: &World) {
    let copies = patient_queue(w);
    let a = w.worker("a");
    open_breaker(w, &copies, &a);
    w.advance(11 * SECOND);
    let probe = a.next(&copies).expect("a probe");
    a.settle(&probe, Outcome::success());
    assert!(target(w).is_none_or(|t| t.opened_at.is_none()));
    assert_eq!(a.claim(&copies, 10).len(), 4);
}

/// A probe whose worker died is void: another may go.
fn a_dead_workers_probe_is_void(w: &World) {
    let copies = patient_queue(w);
    let a = w.worker("a");
    open_breaker(w, &copies, &a);
    w.advance(11 * SECOND);
    a.next(&copies).expect("a probe");
    w.advance(crate::support::LEASE + 1);
    assert_eq!(crate::support::worker::reap(w).len(), 1);
    let b = w.worker("b");
    w.advance(300 * SECOND / 8);
    assert_eq!(b.claim(&copies, 5).len(), 1);
}

/// A probe that fails for a reason of its own, or is cancelled, does not block the next one.
fn a_probe_that_ends_otherwise_is_over(w: &World) {
    let copies = patient_queue(w);
    let a = w.worker("a");
    open_breaker(w, &copies, &a);
    let endings = [
        crate::support::worker::permanent("bad bag"),
        crate::support::worker::transient("no memory"),
        Outcome::Wait { due: i64::MAX, why: "later".to_string() },
        Outcome::Cancelled,
    ];
    for ending in endings {
        w.advance(40 * SECOND);
        let p = w.worker("p");
        let probe = p.claim(&copies, 5);
        assert_eq!(probe.len(), 1, "before {ending:?}");
        p.settle(&probe[0], ending);
        assert!(target(w).unwrap().opened_at.is_some());
    }
}

/// "An error that says that its target is down opens the breaker at once": a job that is alone waits
/// for it as long as that takes, and loses no attempt.
fn a_job_that_is_alone_waits_for_a_target_that_is_down(w: &World) {
    let mut spec = PipelineSpec::queue("copies");
    spec.stages[0].1.max_attempts = 1;
    let copies = w.make(spec);
    let is_down = || {
        let error = JobError::new("unreachable", "connection refused").at("s3-west");
        Outcome::Transient(error.down())
    };
    let a = w.worker("a");
    let job = w.add(&copies, "alone");
    a.work(&copies, is_down());
    assert_eq!((w.status(job), w.state(job)), (Status::Queued, Some(State::Blocked)));
    assert!(a.next(&copies).is_none(), "not before its time");
    for _ in 0..4 {
        w.advance(target(w).unwrap().next_probe.unwrap() - w.now());
        let p = w.worker("p");
        let probe = p.next(&copies).expect("a probe");
        p.settle(&probe, is_down());
        assert_eq!(w.state(job), Some(State::Blocked));
    }
    // Others that need it do not try in vain.
    w.add_job(&copies, needing("another"));
    assert!(w.worker("b").next(&copies).is_none());
    assert_eq!(attempts(w), 0, "no attempt was counted");
    w.advance(target(w).unwrap().next_probe.unwrap() - w.now());
    let p = w.worker("q");
    let probe = p.next(&copies).expect("a probe");
    p.settle(&probe, Outcome::success());
    assert!(target(w).is_none_or(|t| t.opened_at.is_none()));
    let other = p.next(&copies).expect("the other goes on");
    p.settle(&other, Outcome::success());
    assert_eq!(w.status(job), Status::Succeeded);
}

/// Blocked jobs can be held, released and cancelled like any others.
fn people_reach_blocked_jobs(w: &World) {
    let copies = patient_queue(w);
    let a = w.worker("a");
    let jobs = open_breaker(w, &copies, &a);
    assert!(a.next(&copies).is_none());
    w.hold(jobs[0]).unwrap();
    w.cancel(jobs[1]).unwrap();
    assert_eq!(w.status(jobs[0]), Status::Held);
    w.release(jobs[0]).unwrap();
    assert!(a.next(&copies).is_none(), "its target is still down");
    assert_eq!(w.state(jobs[0]), Some(State::Blocked));
}

both!(
    five_errors_in_a_row_open_it,
    a_success_between_errors_keeps_it_closed,
    one_probe_at_a_time_ever_more_rarely,
    one_success_closes_it,
    a_dead_workers_probe_is_void,
    a_probe_that_ends_otherwise_is_over,
    a_job_that_is_alone_waits_for_a_target_that_is_down,
    people_reach_blocked_jobs,
);
