//! Leases, fencing tokens, interruptions and taking over.

use crate::both;
use crate::support::worker::{permanent, reap};
use crate::support::{LEASE, SECOND, World};
use queue::{Error, JobId, Outcome, Settled, Status, WorkerId};

/// I4: "A stale token changes nothing: start, finish, fail, progress, checkpoint and renew all
/// require the current one."
fn a_stale_token_changes_nothing(w: &World) {
    let files = w.queue("files");
    let job = w.add(&files, "a");
    let a = w.worker("a");
    let stale = a.next(&files).unwrap();
    w.advance(LEASE + 1);
    assert_eq!(reap(w), [a.id]);
    let b = w.worker("b");
    let current = b.next(&files).unwrap();
    assert!(current.lease.token > stale.lease.token);
    assert!(!a.start(&stale) && !a.progress(&stale) && !a.checkpoint(&stale, "x"));
    assert!(!a.error_seen(&stale, "late"));
    for outcome in [Outcome::success(), permanent("late"), Outcome::Cancelled] {
        assert_eq!(a.settle(&stale, outcome), Settled::Stale);
    }
    // The right worker with the wrong token, and the right token in the wrong hands.
    assert_eq!(b.settle(&stale, Outcome::success()), Settled::Stale);
    assert_eq!(a.settle(&current, Outcome::success()), Settled::Stale);
    assert!(matches!(a.renew(), Err(Error::LeaseLost(_))));
    assert!(matches!(a.try_claim(files.first().id, 1, 1), Err(Error::LeaseLost(_))));
    assert_eq!(w.status(job), Status::Running);
    assert_eq!(w.number("select count(*) from checkpoints where job >= $1", 0), 0);
    assert_eq!(b.settle(&current, Outcome::success()), Settled::Now(Status::Succeeded));
    assert_eq!(b.settle(&current, Outcome::success()), Settled::Stale, "once");
}

/// A worker whose time is up claims nothing, even before anyone has reaped it.
fn an_expired_worker_claims_nothing(w: &World) {
    let files = w.queue("files");
    w.add(&files, "a");
    let a = w.worker("a");
    w.advance(LEASE + 1);
    assert!(matches!(a.try_claim(files.first().id, 1, 1), Err(Error::LeaseLost(_))));
}

/// "renewing returns the job ids the database thinks it holds", and keeps the jobs.
fn renewing_keeps_what_a_worker_holds(w: &World) {
    let files = w.queue("files");
    let (one, two) = (w.add(&files, "1"), w.add(&files, "2"));
    let a = w.worker("a");
    a.claim(&files, 2);
    for _ in 0..5 {
        w.advance(LEASE / 2);
        let mut held: Vec<JobId> = a.renew().unwrap().iter().map(|h| h.job).collect();
        held.sort_unstable();
        assert_eq!(held, [one, two]);
        assert_eq!(reap(w), Vec::<WorkerId>::new());
    }
}

/// "Lost lease / shutdown / worker killed: interruption +1, queued at once; past a cap of its own
/// (poison jobs kill workers) it is failed for review." Attempts are not touched (I6).
fn lost_leases_are_interruptions_with_a_cap(w: &World) {
    let mut spec = queue::rules::pipelines::PipelineSpec::queue("files");
    spec.stages[0].1.max_interruptions = 2;
    let files = w.make(spec);
    let job = w.add(&files, "poison");
    for lost in 1..=3 {
        let a = w.worker("a");
        assert_eq!(a.next(&files).unwrap().attempt, 1);
        w.advance(LEASE + 1);
        reap(w);
        let expected = if lost <= 2 { Status::Queued } else { Status::Failed };
        assert_eq!(w.status(job), expected, "after {lost} lost leases");
    }
    assert_eq!(w.number("select interruptions_ever from tries where job = $1", job), 3);
    assert_eq!(w.number("select attempts_ever from tries where job = $1", job), 0);
    let failures: Vec<(String, i64)> = w.rows("select code, needs_review from failures");
    assert_eq!(failures, [("interrupted_too_often".to_string(), 1)]);
    w.requeue(job, None).unwrap();
    assert_eq!(w.number("select interruptions from tries where job = $1", job), 0);
    assert_eq!(w.number("select requeues from tries where job = $1", job), 1);
    assert_eq!(w.number("select interruptions_ever from tries where job = $1", job), 3);
}

/// "so a claimed but unstarted job can be given back": no interruption is counted for it.
fn what_has_not_started_is_given_back(w: &World) {
    let files = w.queue("files");
    (0..3).for_each(|n| _ = w.add(&files, &n.to_string()));
    let a = w.worker("a");
    let claimed = a.try_claim(files.first().id, 3, 1).unwrap();
    assert_eq!(claimed.iter().map(|c| c.started).collect::<Vec<_>>(), [true, false, false]);
    a.deregister();
    assert_eq!(w.number("select count(*) from tries where interruptions_ever >= $1", 1), 1);
    assert_eq!(w.worker("b").claim(&files, 10).len(), 3);
    assert!(matches!(a.renew(), Err(Error::LeaseLost(_))));
}

/// "Starting the work is a fenced write of its own, so a claimed but unstarted job can be … taken
/// over safely."
fn what_lies_in_a_buffer_can_be_taken_over(w: &World) {
    let files = w.queue("files");
    (0..2).for_each(|n| _ = w.add(&files, &n.to_string()));
    let (a, b) = (w.worker("a"), w.worker("b"));
    let claimed = a.try_claim(files.first().id, 2, 1).unwrap();
    assert!(b.take_over(&files, 10).is_empty(), "it has only just been claimed");
    w.advance(2 * SECOND);
    let taken = b.take_over(&files, 10);
    assert_eq!(taken.len(), 1, "the started one stays");
    assert_eq!(taken[0].lease.job, claimed[1].lease.job);
    assert!(taken[0].started && taken[0].lease.token > claimed[1].lease.token);
    assert!(!a.start(&claimed[1]));
    assert_eq!(a.settle(&claimed[1], Outcome::success()), Settled::Stale);
    assert_eq!(b.settle(&taken[0], Outcome::success()), Settled::Now(Status::Succeeded));
    assert_eq!(a.settle(&claimed[0], Outcome::success()), Settled::Now(Status::Succeeded));
}

/// A paused stage hands nothing over either (I9), and a worker without a lease takes nothing.
fn taking_over_respects_pauses_and_leases(w: &World) {
    use queue::rules::operator::pause::{self, Scope};
    let files = w.queue("files");
    w.add(&files, "1");
    let (a, b) = (w.worker("a"), w.worker("b"));
    a.try_claim(files.first().id, 1, 0).unwrap();
    w.advance(2 * SECOND);
    let stage = Scope::Stage(files.first().id);
    w.rule(move |tx, now, c| pause::pause(tx, now, c, crate::support::ANN, stage)).unwrap();
    assert!(b.take_over(&files, 10).is_empty());
    w.rule(move |tx, _, c| pause::unpause(tx, c, stage)).unwrap();
    a.renew().unwrap();
    w.advance(LEASE - SECOND);
    let (worker, stage) = (b.id, files.first().id);
    let late = w.rule(move |tx, now, c| {
        let request = queue::rules::claim::Request { worker, who: "b", stage, limit: 1, start: 1 };
        queue::rules::lease::take_over(tx, now, c, request).map(|taken| taken.len())
    });
    assert!(matches!(late, Err(Error::LeaseLost(_)) | Ok(0)), "{late:?}");
}

/// What was reserved for a job goes with it when it is taken over.
fn a_budget_is_taken_over_too(w: &World) {
    let mut spec = queue::rules::pipelines::PipelineSpec::queue("files");
    spec.stages[0].1.needs = [("drives".to_string(), 1)].into();
    let files = w.make(spec);
    w.rule(|tx, now, _| queue::rules::budget::set_total(tx, now, "drives", Some(1))).unwrap();
    w.add(&files, "1");
    let (a, b) = (w.worker("a"), w.worker("b"));
    a.try_claim(files.first().id, 1, 0).unwrap();
    w.advance(2 * SECOND);
    let taken = b.take_over(&files, 1);
    assert_eq!(taken.len(), 1);
    crate::support::invariants::check(w);
    b.settle(&taken[0], Outcome::success());
}

/// I6: "Attempts, interruptions and requeues are kept for every stage of every pipeline";
/// "`max_attempts` counts, per stage, since the last requeue."
fn counters_are_kept_per_stage(w: &World) {
    let two = w.staged("two", &["first", "second"]);
    let job = w.add(&two, "box");
    let flaky = || crate::support::worker::transient("timeout");
    for stage in ["first", "second"] {
        for attempt in 1..=2 {
            let a = w.worker("a");
            let claimed = a.claim_in(&two, stage).unwrap();
            assert_eq!(claimed.attempt, attempt, "{stage}");
            a.settle(&claimed, flaky());
            w.advance(LEASE * 10);
        }
        w.worker("b").work_in(&two, stage, Outcome::success());
    }
    assert_eq!(w.status(job), Status::Succeeded);
    assert_eq!(
        w.number("select cast(sum(attempts_ever) as bigint) from tries where job = $1", job),
        4
    );
}

both!(
    a_stale_token_changes_nothing,
    an_expired_worker_claims_nothing,
    renewing_keeps_what_a_worker_holds,
    lost_leases_are_interruptions_with_a_cap,
    what_has_not_started_is_given_back,
    what_lies_in_a_buffer_can_be_taken_over,
    taking_over_respects_pauses_and_leases,
    a_budget_is_taken_over_too,
    counters_are_kept_per_stage,
);
