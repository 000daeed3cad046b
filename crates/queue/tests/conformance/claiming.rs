//! "Claiming" of the contract: what is skipped, budgets, and work spaces.

use crate::both;
use crate::support::worker::Worker;
use crate::support::{SECOND, World};
use queue::rules::budget;
use queue::rules::lease::NewWorker;
use queue::rules::pipelines::PipelineSpec;
use queue::{Amounts, JobId, NewJob, Outcome, Settled, State, Status};

fn amounts(list: &[(&str, i64)]) -> Amounts {
    list.iter().map(|(name, amount)| (name.to_string(), *amount)).collect()
}

/// "A claim for n jobs returns up to n, each with its own token, in one transaction."
fn a_claim_returns_up_to_n_with_tokens_of_their_own(w: &World) {
    let files = w.queue("files");
    (0..5).for_each(|n| _ = w.add(&files, &n.to_string()));
    let a = w.worker("a");
    let claimed = a.claim(&files, 3);
    assert_eq!(claimed.len(), 3);
    let mut tokens: Vec<i64> = claimed.iter().map(|c| c.lease.token).collect();
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
    let rest = a.claim(&files, 100);
    assert_eq!(rest.len(), 2);
    assert!(rest.iter().all(|c| c.lease.token > *tokens.iter().max().unwrap()), "tokens grow");
    assert!(a.claim(&files, 0).is_empty());
}

/// "Skipped …: not yet due": it is handed out once its time has come.
fn a_job_is_not_claimed_before_it_is_due(w: &World) {
    let files = w.queue("files");
    let later = NewJob { due: Some(w.now() + 10 * SECOND), ..NewJob::new("later") };
    let later = w.add_job(&files, later);
    let a = w.worker("a");
    assert!(a.next(&files).is_none());
    w.advance(9 * SECOND);
    assert!(a.next(&files).is_none());
    w.advance(SECOND);
    assert_eq!(a.next(&files).unwrap().lease.job, later);
}

/// "Skipped, never collided with: lock owned by another job": of jobs of one lock, in whatever
/// pipelines, one is handed out at a time.
fn a_lock_is_shared_between_pipelines(w: &World) {
    let (ingest, fixity) = (w.staged("ingest", &["storing"]), w.queue("fixity"));
    let of = |s: &str| NewJob { lock: Some("object/1".to_string()), ..NewJob::new(s) };
    w.add_job(&ingest, of("box"));
    let check = w.add_job(&fixity, of("box"));
    let (a, b) = (w.worker("a"), w.worker("b"));
    let claimed = a.next(&ingest).unwrap();
    assert!(b.next(&fixity).is_none());
    a.settle(&claimed, Outcome::success());
    assert_eq!(b.next(&fixity).unwrap().lease.job, check);
}

/// "Skipped, never collided with": one that was left ready while its lock was taken, as may happen
/// when rows are locked by others, is parked by the claim that meets it. The others are handed out.
fn a_ready_job_whose_lock_is_taken_is_parked(w: &World) {
    let files = w.queue("files");
    let of = |s: &str| NewJob { lock: Some("object/1".to_string()), ..NewJob::new(s) };
    w.add_job(&files, of("first"));
    let (a, b) = (w.worker("a"), w.worker("b"));
    let first = a.next(&files).unwrap();
    let second = w.add_job(&files, of("second"));
    let third = w.add(&files, "third");
    assert_eq!(w.state(second), Some(State::Parked));
    w.rows::<(JobId,)>("update waiting set state = 0 where state = 1 returning id");
    let claimed: Vec<JobId> = b.claim(&files, 10).iter().map(|c| c.lease.job).collect();
    assert_eq!(claimed, [third]);
    assert_eq!(w.state(second), Some(State::Parked));
    a.settle(&first, Outcome::success());
    assert_eq!(b.next(&files).unwrap().lease.job, second);
}

/// I3: "A job owns its lock from its first claim until it succeeds …, through retries, waits and all
/// stages."
fn a_job_keeps_its_lock_through_all_stages(w: &World) {
    let ingest = w.staged("ingest", &["downloading", "storing", "recording"]);
    let of = |s: &str| NewJob { lock: Some("object/1".to_string()), ..NewJob::new(s) };
    let first = w.add_job(&ingest, of("v1"));
    let second = w.add_job(&ingest, of("v2"));
    let (a, b) = (w.worker("a"), w.worker("b"));
    for stage in ["downloading", "storing", "recording"] {
        assert_eq!(w.stage(first), stage);
        let claimed = a.claim_in(&ingest, stage).unwrap();
        assert_eq!(claimed.lease.job, first);
        assert!(b.next(&ingest).is_none());
        let wait = Outcome::Wait { due: w.now() + SECOND, why: "no space".to_string() };
        assert_eq!(a.settle(&claimed, wait), Settled::Now(Status::Queued));
        assert!(b.next(&ingest).is_none(), "waiting keeps the lock");
        w.advance(SECOND);
        assert_eq!(a.work_in(&ingest, stage, Outcome::success()), first);
    }
    assert_eq!(w.status(first), Status::Succeeded);
    assert_eq!(b.next(&ingest).unwrap().lease.job, second);
}

/// "Skipped …: work space out of reach": "only workers that reach it may claim it".
fn a_work_space_out_of_reach_is_skipped(w: &World) {
    let files = w.queue("files");
    let of = |s: &str| NewJob { workspace: Some(s.to_string()), ..NewJob::new(s) };
    let here = w.add_job(&files, of("disk-1"));
    let there = w.add_job(&files, of("disk-2"));
    let a = Worker::with(
        w,
        NewWorker {
            name: "a".to_string(),
            workspaces: vec!["disk-2".to_string()],
            ..NewWorker::default()
        },
    );
    assert_eq!(a.ids(&files), [there]);
    assert_eq!(w.state(here), Some(State::Ready), "another worker may reach it");
}

/// "Skipped …: over a resource budget"; "a claim never exceeds it".
fn a_budget_of_the_deployment_is_never_exceeded(w: &World) {
    let mut spec = PipelineSpec::queue("files");
    spec.stages[0].1.needs = amounts(&[("drives", 1)]);
    let files = w.make(spec);
    w.rule(|tx, now, _| budget::set_total(tx, now, "drives", Some(2))).unwrap();
    let jobs: Vec<JobId> = (0..4).map(|n| w.add(&files, &n.to_string())).collect();
    let (a, b) = (w.worker("a"), w.worker("b"));
    let first = a.claim(&files, 1);
    let second = b.claim(&files, 5);
    assert_eq!((first.len(), second.len()), (1, 1), "two drives for two jobs");
    assert!(a.next(&files).is_none());
    assert_eq!(w.state(jobs[3]), Some(State::Starved));
    a.settle(&first[0], Outcome::success());
    let third = a.claim(&files, 5);
    assert_eq!(third.len(), 1);
    w.rule(|tx, now, _| budget::set_total(tx, now, "drives", Some(3))).unwrap();
    assert_eq!(a.claim(&files, 5).len(), 1, "a larger budget lets one more through");
}

/// "A worker or the whole deployment [says] what there is": a worker's own limit keeps a job from
/// it, not from others; a job's own needs count where they are more than the stage's.
fn a_workers_own_budget_is_its_own(w: &World) {
    let files = w.queue("files");
    let big = NewJob { needs: amounts(&[("memory_bytes", 800)]), ..NewJob::new("big") };
    let big = w.add_job(&files, big);
    let small = NewJob { needs: amounts(&[("memory_bytes", 100)]), ..NewJob::new("small") };
    let small = w.add_job(&files, small);
    let with = |name: &str, bytes: i64| {
        let new = NewWorker {
            name: name.to_string(),
            capacity: amounts(&[("memory_bytes", bytes)]),
            ..NewWorker::default()
        };
        Worker::with(w, new)
    };
    let (little, large) = (with("little", 500), with("large", 1000));
    assert_eq!(little.ids(&files), [small]);
    assert_eq!(large.ids(&files), [big]);
}

/// "a crash never leaks it": what a lost worker had reserved is free again.
fn a_lost_worker_leaks_no_budget(w: &World) {
    let mut spec = PipelineSpec::queue("files");
    spec.stages[0].1.needs = amounts(&[("drives", 1)]);
    let files = w.make(spec);
    w.rule(|tx, now, _| budget::set_total(tx, now, "drives", Some(1))).unwrap();
    w.add(&files, "1");
    w.add(&files, "2");
    w.worker("a").next(&files).unwrap();
    w.advance(crate::support::LEASE + 1);
    let b = w.worker("b");
    assert!(b.next(&files).is_none());
    assert_eq!(crate::support::worker::reap(w).len(), 1);
    assert_eq!(b.claim(&files, 5).len(), 1);
}

/// A job that nobody can start yet is not lost behind others: every skip at the head is passed.
fn skips_at_the_head_do_not_hide_what_can_be_claimed(w: &World) {
    let files = w.queue("files");
    let of = |s: String| NewJob {
        workspace: Some("elsewhere".to_string()),
        priority: Some(1),
        ..NewJob::new(s)
    };
    (0..5).for_each(|n| _ = w.add_job(&files, of(format!("far {n}"))));
    let near = w.add(&files, "near");
    assert_eq!(w.worker("a").next(&files).unwrap().lease.job, near);
}

both!(
    a_claim_returns_up_to_n_with_tokens_of_their_own,
    a_job_is_not_claimed_before_it_is_due,
    a_lock_is_shared_between_pipelines,
    a_ready_job_whose_lock_is_taken_is_parked,
    a_job_keeps_its_lock_through_all_stages,
    a_work_space_out_of_reach_is_skipped,
    a_budget_of_the_deployment_is_never_exceeded,
    a_workers_own_budget_is_its_own,
    a_lost_worker_leaks_no_budget,
    skips_at_the_head_do_not_hide_what_can_be_claimed,
);
