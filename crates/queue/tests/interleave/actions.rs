//! What the actors do, and what must be true of it afterwards.

use crate::scene::{self, COLLECTION, Scene};
use crate::scheduler::Scheduler;
use crate::support::{ANN, LEASE, World};
use db::{Micros, Statement, Tx};
use queue::rules::claim::{self, Request};
use queue::rules::operator::hold::{self, Group};
use queue::rules::operator::pause::{self, Scope};
use queue::rules::operator::retry::{self, Filter};
use queue::rules::operator::{cancel, discard, requeue};
use queue::rules::{add, batch, lease, settle};
use queue::{
    BatchId, Catalog, Claimed, Error, JobId, Outcome, PipelineId, Settled, Settlement, StageId,
    WorkerId,
};
use rand::Rng;
use rand::rngs::StdRng;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum Action {
    Add { staged: bool, subject: &'static str, batch: bool },
    Claim { staged: bool, second: bool, limit: usize },
    Settle(Outcome),
    Hold(JobId),
    Release(JobId),
    Cancel(JobId),
    Requeue(JobId),
    Discard(JobId),
    Pause,
    Unpause,
    HoldCollection,
    FlipHeld,
    FlipReleased,
    Retry,
    Reap,
    TakeOver { staged: bool },
    Empty { staged: bool },
    MoveEntries,
    Renew,
}

/// An action that ended, and the step its COMMIT was let through at.
#[derive(Debug)]
pub struct Done {
    pub actor: usize,
    pub action: Action,
    pub result: Result<Answer, Error>,
    pub step: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Nothing,
    Jobs(Vec<JobId>),
    /// The lease that was settled was no longer good.
    Stale,
}

/// What an actor holds.
#[derive(Default)]
pub struct Hands {
    begun: bool,
    claimed: Vec<Claimed>,
}

/// Draws an action at random; those that move jobs come up most.
pub fn draw(scene: &Scene, random: &mut StdRng) -> Action {
    let job = scene.jobs[random.random_range(0..scene.jobs.len())];
    let staged = random.random_bool(0.5);
    match random.random_range(0..36) {
        0..=5 => {
            Action::Add { staged, subject: scene::subject(random), batch: random.random_bool(0.2) }
        }
        6..=11 => Action::Claim {
            staged,
            second: random.random_bool(0.3),
            limit: random.random_range(1..3),
        },
        12..=17 => Action::Settle(scene::outcome(random)),
        18..=19 => Action::Hold(job),
        20 => Action::Release(job),
        21..=22 => Action::Cancel(job),
        23..=24 => Action::Requeue(job),
        25 => Action::Pause,
        26 => Action::Unpause,
        27 => Action::HoldCollection,
        28 => Action::FlipHeld,
        29 => Action::FlipReleased,
        30 => Action::Retry,
        31 => Action::Reap,
        34..=35 => Action::Discard(job),
        32 => match random.random_range(0..4) {
            0 => Action::Empty { staged },
            1 => Action::MoveEntries,
            2 => Action::Renew,
            _ => Action::TakeOver { staged },
        },
        _ => Action::MoveEntries,
    }
}

/// Runs one action as a transaction that the scheduler steps.
pub fn act(
    scheduler: &Arc<Scheduler>,
    world: &World,
    scene: &Scene,
    actor: usize,
    action: &Action,
    hands: &mut Hands,
) -> Result<Answer, Error> {
    if !hands.begun {
        *hands = Hands { begun: true, claimed: scene.hands[actor].clone() };
    }
    let settling = match action {
        Action::Settle(_) => hands.claimed.pop(),
        _ => None,
    };
    let call = Call {
        action: action.clone(),
        worker: scene.workers[actor],
        queue: scene.pipelines.queue,
        staged: scene.pipelines.staged,
        batch: scene.batch,
        settling,
        soon: LEASE + 1,
    };
    let scheduler = scheduler.clone();
    let (claimed, stale) = world.db.write_blocking(move |tx| {
        const PID: Statement =
            Statement { name: "pid", sqlite: "select 0", postgres: "select pg_backend_pid()" };
        let (pid,): (i64,) = tx.one(&PID, &[])?;
        let (now, catalog) = (tx.now(), Catalog::load(tx)?);
        scheduler.enter(actor, i32::try_from(pid).unwrap());
        let result = call.run(tx, now, &catalog);
        if result.is_err() {
            // It is rolled back without a further step, or run again and enters anew.
            scheduler.leave();
        }
        result
    })?;
    let ids = claimed.iter().map(|c| c.lease.job).collect();
    hands.claimed.extend(claimed);
    Ok(match action {
        Action::Claim { .. } | Action::TakeOver { .. } => Answer::Jobs(ids),
        Action::Settle(_) if stale => Answer::Stale,
        _ => Answer::Nothing,
    })
}

struct Call {
    action: Action,
    worker: WorkerId,
    queue: PipelineId,
    staged: PipelineId,
    batch: BatchId,
    settling: Option<Claimed>,
    soon: Micros,
}

impl Call {
    /// What was handed out, and whether what was settled was stale.
    fn run(
        &self,
        tx: &mut Tx<'_>,
        now: Micros,
        catalog: &Catalog,
    ) -> queue::Result<(Vec<Claimed>, bool)> {
        let pipeline =
            |staged: bool| catalog.pipeline(if staged { self.staged } else { self.queue });
        let group = Group::Collection(COLLECTION);
        match &self.action {
            Action::Add { staged, subject, batch } => {
                let job = scene::new_job(subject, batch.then_some(self.batch));
                add::add(tx, now, pipeline(*staged)?, "ann", &[job])?;
            }
            Action::Claim { staged, second, limit } => {
                let pipeline = pipeline(*staged)?;
                let stage = match second {
                    true => pipeline.stages[pipeline.stages.len() - 1].id,
                    false => pipeline.first().id,
                };
                return Ok((claim::claim(tx, now, catalog, self.request(stage, *limit))?, false));
            }
            Action::TakeOver { staged } => {
                let stage = pipeline(*staged)?.first().id;
                return Ok((lease::take_over(tx, now, catalog, self.request(stage, 1))?, false));
            }
            Action::Settle(outcome) => {
                let Some(claimed) = &self.settling else { return Ok((Vec::new(), false)) };
                // A job cannot move to the lock it has.
                let outcome = match outcome {
                    Outcome::Relock(lock) if *lock == claimed.lease.lock => Outcome::success(),
                    outcome => outcome.clone(),
                };
                let item = Settlement::new(claimed.lease.clone(), outcome);
                let settled = settle::settle(tx, now, catalog, self.worker, "w", &[item])?;
                return Ok((Vec::new(), matches!(settled[..], [Settled::Stale])));
            }
            Action::Hold(job) => drop(hold::hold_job(tx, now, catalog, ANN, *job)?),
            Action::Release(job) => hold::release_job(tx, now, catalog, ANN, *job)?,
            Action::Cancel(job) => drop(cancel::cancel(tx, now, catalog, ANN, *job)?),
            Action::Requeue(job) => _ = requeue::requeue(tx, now, catalog, ANN, *job, None)?,
            Action::Discard(job) => _ = discard::discard(tx, now, catalog, ANN, *job)?,
            Action::Pause => pause::pause(tx, now, catalog, ANN, Scope::Everything)?,
            Action::Unpause => pause::unpause(tx, catalog, Scope::Everything)?,
            Action::HoldCollection => hold::hold_group(tx, now, ANN, group)?,
            Action::FlipHeld => {
                hold::flip_held(tx, now, catalog, ANN, group, JobId::default(), 100)?;
            }
            Action::FlipReleased => {
                hold::release_group(tx, group)?;
                hold::flip_released(tx, now, catalog, ANN, group, JobId::default(), 100)?;
            }
            Action::Retry => {
                let (all, start) = (Filter::default(), JobId::default());
                retry::retry(tx, now, catalog, ANN, &all, false, start, 100)?;
            }
            Action::Reap => drop(lease::reap(tx, now + self.soon, catalog, None)?),
            Action::Empty { staged } => {
                let stage = pipeline(*staged)?.first().id;
                cancel::empty(tx, now, catalog, ANN, stage, 100)?;
            }
            Action::MoveEntries => drop(batch::move_entries(tx, now, catalog, 2)?),
            Action::Renew => drop(lease::renew(tx, now, self.worker, LEASE)?),
        }
        Ok((Vec::new(), false))
    }

    fn request(&self, stage: StageId, limit: usize) -> Request<'static> {
        Request { worker: self.worker, who: "w", stage, limit, start: 1 }
    }
}

/// What the answers themselves refute.
pub fn refuted(done: &[Done]) -> Vec<String> {
    let mut wrong = Vec::new();
    let takes = |d: &Done| {
        use Action::{FlipHeld, Hold, Reap, TakeOver};
        matches!(d.action, Reap | TakeOver { .. } | Hold(_) | FlipHeld)
    };
    let taken_away = done.iter().any(takes);
    for one in done {
        // A finish is refused only if somebody took the job away.
        if matches!(one.result, Ok(Answer::Stale)) && !taken_away {
            wrong.push(format!("the outcome of a good lease was refused at {}", one.step));
        }
        match &one.result {
            Ok(_) | Err(Error::Refused(_) | Error::Unknown { .. } | Error::LeaseLost(_)) => {}
            Err(error) => wrong.push(format!("an error reached the caller: {error}")),
        }
        // I9: a claim whose commit came after that of a pause must have found nothing.
        let Ok(Answer::Jobs(jobs)) = &one.result else { continue };
        let last_before = |wanted: fn(&Action) -> bool| {
            let steps = done.iter().filter(|d| wanted(&d.action) && d.result.is_ok());
            steps.map(|d| d.step).filter(|s| *s < one.step).max().unwrap_or(0)
        };
        let paused = last_before(|a| matches!(a, Action::Pause));
        if paused > last_before(|a| matches!(a, Action::Unpause)) && !jobs.is_empty() {
            wrong.push(format!("I9: {jobs:?} claimed at {} after a pause at {paused}", one.step));
        }
        for job in jobs {
            let about = |d: &&Done, hold: bool| match &d.action {
                Action::Hold(j) => hold && j == job,
                Action::Release(j) | Action::Requeue(j) => !hold && j == job,
                _ => false,
            };
            let last = |hold: bool| {
                let steps = done.iter().filter(|d| about(d, hold) && d.result.is_ok());
                steps.map(|d| d.step).filter(|s| *s < one.step).max().unwrap_or(0)
            };
            if last(true) > last(false) {
                wrong.push(format!("I9: job {job} claimed at {} after a hold", one.step));
            }
        }
    }
    wrong
}
