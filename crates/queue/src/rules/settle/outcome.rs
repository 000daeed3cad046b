//! What each outcome of a run makes of its job.

use super::SettleBatch;
use crate::catalog::{Pipeline, Stage};
use crate::codes::Status;
use crate::error::{Error, Result};
use crate::error_code::ErrorCode;
use crate::id::{JobId, PipelineId};
use crate::job::{Handover, JobError, Lease, Outcome, Settled, Settlement};
use crate::rules::breaker;
use crate::rules::budget;
use crate::rules::ending::{self, EndRow, Verdict};
use crate::rules::moving::StageMoves;
use crate::rules::running::{self, Return, Run};
use crate::rules::state;
use db::{Micros, Statement, Tx, statement};

/// Earlier failures of subjects that now succeeded.
pub(super) fn resolve(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    jobs: &[(JobId, PipelineId)],
) -> Result<()> {
    const SUBJECT: Statement = statement!(settle::job_subject);
    if !work.failures || jobs.is_empty() {
        return Ok(());
    }
    let mut subjects = Vec::with_capacity(jobs.len());
    for (job, pipeline) in jobs {
        let (subject,): (String,) = tx.one(&SUBJECT, &db::params![job])?;
        subjects.push((*job, *pipeline, subject));
    }
    let succeeded: Vec<(JobId, PipelineId, &str)> =
        subjects.iter().map(|(j, p, s)| (*j, *p, s.as_str())).collect();
    let (catalog, now, who) = (work.catalog, work.now, work.who.clone());
    ending::resolve_failures(
        tx,
        now,
        catalog,
        &who,
        &succeeded,
        &mut work.journal,
        &mut work.counts,
    )
}

/// What the outcome makes of the job; None for one that moves on, which is written with the others.
pub(super) fn settle_one<'w>(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'w>,
    moving: &mut StageMoves<'w>,
    (index, item, run): (usize, &'w Settlement, Run),
    outcome: &Outcome,
) -> Result<Option<Settled>> {
    let catalog = work.catalog;
    let (pipeline, stage) = catalog.stage(run.stage)?;
    let large = outcome.state().and_then(|state| state::refuse_large(pipeline, stage, state));
    let outcome = large.as_ref().unwrap_or(outcome);
    let (next, outcome) = match pipeline.onward(stage, outcome.next_stage()) {
        Ok(next) => (next, outcome),
        Err(why) => (None, &wrong_way(stage, &why)),
    };
    if work.reservations {
        budget::release(tx, work.now, std::iter::once(item.lease.job))?;
    }
    let status = match outcome {
        Outcome::Success(_) | Outcome::Skip(_) => {
            let handover = match outcome {
                Outcome::Success(handover) => handover.clone(),
                Outcome::Skip(why) => Handover { note: Some(why.clone()), ..Handover::default() },
                _ => Handover::default(),
            };
            work.minutes.entry(stage.id).or_default().0 += 1;
            breaker::succeeded(tx, work, item.lease.job, run.probe.as_deref())?;
            if let Some(left) = &handover.state {
                state::keep(tx, work.now, item.lease.job, stage, left)?;
            }
            match (next, &run.cancel) {
                (None, _) => succeed(tx, work, stage, &item.lease, handover.note)?,
                (Some(_), Some((who, why))) => {
                    running::cancel(tx, work, pipeline, &item.lease, &run, who, why)?
                }
                (Some(next), None) => {
                    let hold = work.take_hold(tx, (pipeline, stage), item.lease.job, &run)?;
                    moving.add((index, item, run), (pipeline, stage, next), handover, hold);
                    return Ok(None);
                }
            }
        }
        Outcome::Wait { due, why } => {
            breaker::probe_over(tx, work, &run, None)?;
            let back = Return { due: *due, event: "waits", why, error: None, blocked_on: None };
            running::back_to_queue(tx, work, pipeline, stage, &item.lease, &run, &back)?
        }
        Outcome::Transient(error) => {
            transient(tx, work, pipeline, stage, &item.lease, &run, error)?
        }
        Outcome::Permanent(error) => {
            work.minutes.entry(stage.id).or_default().1 += 1;
            if run.probe.is_none() {
                // A probe counts no attempt, however it ends.
                count_attempt(tx, item.lease.job, stage)?;
            }
            breaker::probe_over(tx, work, &run, None)?;
            let note = match error.recoverable {
                true => "permanent error: trying again changes nothing before its cause is fixed",
                false => "permanent error: what was submitted is bad; submit a corrected one",
            };
            let verdict = Verdict { error, note, recoverable: error.recoverable };
            running::fail(tx, work, pipeline, &item.lease, &run, &verdict)?
        }
        Outcome::Relock(lock) => {
            running::relock(tx, work, pipeline, stage, &item.lease, &run, lock)?
        }
        Outcome::Interrupted(why) => {
            running::interrupt(tx, work, pipeline, stage, &item.lease, &run, why)?
        }
        Outcome::GivenBack => {
            let run = Run { started: false, ..run };
            running::interrupt(
                tx,
                work,
                pipeline,
                stage,
                &item.lease,
                &run,
                "its worker did not get to it",
            )?
        }
        Outcome::Cancelled => {
            let (who, why) = run
                .cancel
                .clone()
                .unwrap_or((work.who.clone(), "stopped by its worker".to_string()));
            running::cancel(tx, work, pipeline, &item.lease, &run, &who, &why)?
        }
    };
    Ok(Some(Settled::Now(status)))
}

/// A run that names a stage which its job may not go to is in error, and a person looks at the job.
fn wrong_way(stage: &Stage, why: &Error) -> Outcome {
    Outcome::Permanent(JobError::new(
        ErrorCode::BadNextStage,
        format!(
            "{} sent the job on to a stage that it may not go to: {why}; report this as a defect",
            stage.name
        ),
    ))
}

/// At the end of its pipeline.
fn succeed(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    stage: &Stage,
    lease: &Lease,
    why: Option<String>,
) -> Result<Status> {
    running::release(tx, work, lease)?;
    work.forget_hold(tx, lease.job)?;
    let end = EndRow { job: lease.job, stage: stage.id, why, token: Some(lease.token) };
    ending::succeed(tx, work, &[end])?;
    work.counts.moved(lease.batch, Some(Status::Running), Status::Succeeded);
    resolve(tx, work, &[(lease.job, stage.pipeline)])?;
    Ok(Status::Succeeded)
}

fn transient(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    pipeline: &Pipeline,
    stage: &Stage,
    lease: &Lease,
    run: &Run,
    error: &JobError,
) -> Result<Status> {
    work.minutes.entry(stage.id).or_default().1 += 1;
    let down = breaker::failed(tx, work, run, error)?;
    let is_down =
        down == breaker::Outage::Already || (error.down && down == breaker::Outage::Opened);
    if run.probe.is_some() || is_down {
        // A probe counts no attempt, nor does an error at a target that is known to be down.
        let target = error.target.clone().filter(|_| down != breaker::Outage::No);
        let back = Return {
            due: work.now,
            event: "error",
            why: &error.message,
            error: Some(error),
            blocked_on: target,
        };
        return running::back_to_queue(tx, work, pipeline, stage, lease, run, &back);
    }
    let attempts = count_attempt(tx, lease.job, stage)?;
    if attempts >= stage.settings.max_attempts {
        let note = format!("gave up after {attempts} attempts (max_attempts of {})", stage.name);
        let verdict = Verdict { error, note: &note, recoverable: true };
        return running::fail(tx, work, pipeline, lease, run, &verdict);
    }
    let due = work.now + backoff(stage, lease.job, attempts);
    let back =
        Return { due, event: "error", why: &error.message, error: Some(error), blocked_on: None };
    running::back_to_queue(tx, work, pipeline, stage, lease, run, &back)
}

/// Counts a run that ended in an error (I6); how many since the last requeue.
fn count_attempt(tx: &mut Tx<'_>, job: JobId, stage: &Stage) -> Result<i64> {
    const COUNT: Statement = statement!(settle::count_attempt);
    let (attempts,): (i64,) = tx.one(&COUNT, &db::params![job, stage.id])?;
    Ok(attempts)
}

/// Exponential, capped, and spread by a fifth either way. The spread comes from the job and the
/// attempt, so that a rule run again decides the same.
fn backoff(stage: &Stage, job: JobId, attempts: i64) -> Micros {
    let settings = &stage.settings;
    let doublings = u32::try_from((attempts - 1).clamp(0, 30)).unwrap_or(30);
    let seconds =
        settings.backoff_seconds.saturating_mul(1 << doublings).min(settings.backoff_seconds_max);
    let mixed =
        (job.number() as u64 ^ (attempts as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let per_mille = 800 + i64::try_from(mixed % 401).unwrap_or(200);
    seconds.saturating_mul(1_000_000).saturating_mul(per_mille) / 1000
}
