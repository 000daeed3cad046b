//! "After a clock set back by days, delayed jobs are not late by days."

use crate::both;
use crate::support::worker::{reap, transient};
use crate::support::{LEASE, SECOND, World};
use queue::rules::clock::{self, TOLERANCE_MICROS};
use queue::{JobError, NewJob, Outcome, State};

const DAYS: i64 = 3 * 86_400 * SECOND;

fn follow(w: &World) -> usize {
    w.rule(|tx, now, _| clock::follow(tx, now)).unwrap()
}

fn back_offs_count_from_now(w: &World) {
    let jobs = w.queue("files");
    let job = w.add(&jobs, "a");
    w.worker("a").work(&jobs, transient("no answer"));
    let wait = w.job(job).due.unwrap() - w.now();
    assert!(wait > 0);
    w.advance(-DAYS);
    assert!(follow(w) > 0);
    assert_eq!(w.job(job).due, Some(w.now() + wait));
    w.advance(wait);
    assert_eq!(w.worker("b").ids(&jobs), [job]);
}

fn a_time_that_a_person_gave_stays(w: &World) {
    let jobs = w.queue("files");
    let due = w.now() + SECOND;
    let job = w.add_job(&jobs, NewJob { due: Some(due), ..NewJob::new("a") });
    w.advance(-DAYS);
    follow(w);
    assert_eq!((w.job(job).due, w.state(job)), (Some(due), Some(State::Delayed)));
}

fn a_lost_worker_is_lost_after_one_lease(w: &World) {
    let jobs = w.queue("files");
    let job = w.add(&jobs, "a");
    let (lost, alive) = (w.worker("lost"), w.worker("alive"));
    lost.next(&jobs).unwrap();
    w.advance(-DAYS);
    follow(w);
    // Nobody loses a lease that it may still believe in.
    w.advance(LEASE - SECOND);
    assert!(reap(w).is_empty());
    alive.renew().unwrap();
    w.advance(2 * SECOND);
    assert_eq!(reap(w), [lost.id]);
    assert_eq!(alive.ids(&jobs), [job]);
}

fn a_target_is_probed_again(w: &World) {
    let jobs = w.queue("files");
    let a = w.worker("a");
    for n in 0..6 {
        w.add(&jobs, &n.to_string());
    }
    let down = || Outcome::Transient(JobError::new("down", "no answer").at("s3"));
    for _ in 0..5 {
        a.work(&jobs, down());
    }
    w.advance(-DAYS);
    follow(w);
    let wait = w.rows::<(i64,)>("select next_probe from targets")[0].0 - w.now();
    assert!(wait <= 300 * SECOND, "{wait}");
}

/// Clocks are corrected all the time.
fn a_small_correction_changes_nothing(w: &World) {
    let jobs = w.queue("files");
    let job = w.add(&jobs, "a");
    w.worker("a").work(&jobs, transient("no answer"));
    let due = w.job(job).due;
    w.advance(-TOLERANCE_MICROS);
    assert_eq!((follow(w), w.job(job).due), (0, due));
}

both!(
    back_offs_count_from_now,
    a_time_that_a_person_gave_stays,
    a_lost_worker_is_lost_after_one_lease,
    a_target_is_probed_again,
    a_small_correction_changes_nothing,
);
