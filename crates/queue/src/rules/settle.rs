//! Settling: what a run's outcome makes of its job, in the same transaction as what the run
//! recorded. Any mix of outcomes for any mix of jobs goes in one call.

use crate::catalog::{Catalog, Pipeline, Stage};
use crate::codes::Status;
use crate::error::{Error, Result};
use crate::job::{Handover, JobError, Lease, Outcome, Settled, Settlement};
use crate::rules::breaker::{self, Breakers};
use crate::rules::budget;
use crate::rules::counts::Counts;
use crate::rules::ending::{self, EndRow, Verdict};
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line;
use crate::rules::moving::{Moving, Places};
use crate::rules::people::hold::{self, Held};
use crate::rules::running::{self, Return, Run};
use crate::rules::state;
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What a rule gathers on its way and writes at its end, in the order of the locks.
pub(crate) struct Work<'c> {
    pub now: Micros,
    pub catalog: &'c Catalog,
    pub who: String,
    pub journal: Journal,
    pub counts: Counts,
    pub breakers: Breakers,
    pub freed: BTreeSet<String>,
    /// Runs that ended, by stage: succeeded and in error.
    pub minutes: BTreeMap<i64, (i64, i64)>,
    pub reservations: bool,
    pub failures: bool,
    /// A pending batch waits for the job that prepares it.
    pub preparing: bool,
    /// What is held, and stays so until the transaction ends.
    pub held: Held,
}

impl<'c> Work<'c> {
    pub fn begin(
        tx: &mut Tx<'_>,
        now: Micros,
        catalog: &'c Catalog,
        who: &str,
    ) -> Result<Work<'c>> {
        const CONTEXT: Statement = statement!(settle::settle_context);
        let (targets, failures, reservations, preparing, holds): (bool, bool, bool, bool, bool) =
            tx.one(&CONTEXT, &[])?;
        if reservations {
            budget::lock(tx)?;
        }
        Ok(Work {
            now,
            catalog,
            who: who.to_string(),
            journal: Journal::default(),
            counts: Counts::default(),
            breakers: if targets { Breakers::load(tx)? } else { Breakers::default() },
            freed: BTreeSet::new(),
            minutes: BTreeMap::new(),
            reservations,
            failures,
            preparing,
            held: if holds { hold::held_names_locked(tx)? } else { Held::default() },
        })
    }

    /// What holds a job whose run of a stage ends (I9), with who held it and why where that is known.
    pub fn take_hold(
        &self,
        tx: &mut Tx<'_>,
        (pipeline, stage): (&Pipeline, &Stage),
        job: i64,
        run: &Run,
    ) -> Result<Option<Hold>> {
        if self.held.is_empty() || !hold::may_be_held(pipeline, stage, true) {
            return Ok(None);
        }
        // The row goes: from now on the job's state says that it is held.
        if self.held.has_job(job)
            && let Some((who, reason)) = hold::take_job_hold(tx, job)?
        {
            return Ok(Some(Hold { by: "job", who, reason }));
        }
        let group = self.held.of(run.batch, run.collection.as_deref());
        Ok(group.map(|by| Hold {
            by,
            who: "rule".to_string(),
            reason: format!("its {by} is held"),
        }))
    }

    /// A job that ends is not held any more.
    pub fn forget_hold(&self, tx: &mut Tx<'_>, job: i64) -> Result<()> {
        if self.held.has_job(job) {
            hold::take_job_hold(tx, job)?;
        }
        Ok(())
    }

    pub fn note_held(&mut self, pipeline: &Pipeline, job: i64, stage: i64, hold: &Hold) {
        let event = Event::new(job, self.now, &hold.who, "held")
            .from(stage, Status::Queued)
            .to(stage, Status::Held);
        self.journal.note(pipeline, Weight::Always, event.why(hold.reason.as_str()));
    }

    /// Writes what was gathered. Locks are freed by now; only then is the next in line let through.
    pub fn end(self, tx: &mut Tx<'_>, worker: i64) -> Result<()> {
        const MINUTES: Statement = statement!(settle::count_minutes);
        self.journal.write(tx)?;
        self.counts.write(tx, self.now)?;
        let minutes: Vec<[Value<'_>; 3]> = self
            .minutes
            .iter()
            .map(|(stage, (succeeded, errors))| db::params![*stage, *succeeded, *errors])
            .collect();
        tx.send_each(&MINUTES, &db::params![self.now / 60_000_000, worker], &minutes)?;
        line::promote(tx, self.now, &self.freed)
    }
}

/// What holds a job whose run ends.
pub(crate) struct Hold {
    /// job, batch or collection.
    pub by: &'static str,
    pub who: String,
    pub reason: String,
}

/// Settles finished runs of one worker. Stale ones change nothing and say so (I4).
pub fn settle(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    worker: i64,
    who: &str,
    items: &[Settlement],
) -> Result<Vec<Settled>> {
    settle_and_carry(tx, now, catalog, worker, who, items, &Places::new())
}

/// As [`settle`] for a worker that has places free in the stages that follow: jobs that may take one
/// come back claimed and started.
pub fn settle_and_carry<'i>(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &'i Catalog,
    worker: i64,
    who: &str,
    items: &'i [Settlement],
    places: &Places,
) -> Result<Vec<Settled>> {
    let mut moving = Moving::begin(tx, now, worker, places)?;
    // What moves on changes no count; one that turns out to be cancelled is rare enough to wait.
    let ending = items.iter().filter(|item| item.next_stage(catalog).is_none());
    Counts::lock(tx, ending.filter_map(|item| item.lease.batch))?;
    let mut work = Work::begin(tx, now, catalog, who)?;
    let mut answers: Vec<Option<Settled>> = vec![None; items.len()];
    settle_plain(tx, &mut work, worker, items, &mut answers)?;
    let rest = || items.iter().enumerate().filter(|(index, _)| answers[*index].is_none());
    let leases = rest().map(|(_, item)| (&item.lease, item.next_stage(catalog)));
    let mut runs = running::find_all(tx, worker, leases)?;
    // Taken out: a lease ends once, however often it is in the call.
    let found = |(index, item): (usize, &'i Settlement)| {
        Some((index, item, runs.remove(&item.lease.token)?))
    };
    let found: Vec<(usize, &Settlement, Run)> = rest().filter_map(found).collect();
    let outcomes = record_all(tx, &found)?;
    for ((index, item, run), outcome) in found.into_iter().zip(outcomes) {
        answers[index] = settle_one(tx, &mut work, &mut moving, (index, item, run), &outcome)?;
    }
    moving.end(tx, &mut work, &mut answers)?;
    work.end(tx, worker)?;
    Ok(answers.into_iter().map(|a| a.unwrap_or(Settled::Stale)).collect())
}

/// The way most jobs go, set-based: succeeded at the last stage, with nothing to record.
fn settle_plain(
    tx: &mut Tx<'_>,
    work: &mut Work<'_>,
    worker: i64,
    items: &[Settlement],
    answers: &mut [Option<Settled>],
) -> Result<()> {
    const RELEASE: Statement = statement!(settle::release_finished);
    let mut plain: Vec<(usize, &Settlement)> =
        items.iter().enumerate().filter(|(_, item)| is_plain(work.catalog, item)).collect();
    // PostgreSQL looks tokens up by halving.
    plain.sort_unstable_by_key(|(_, item)| item.lease.token);
    let rows: Vec<[Value<'_>; 3]> = plain
        .iter()
        .map(|(_, item)| db::params![&item.lease.lock, item.lease.job, item.lease.token])
        .collect();
    let released = tx.each_hit(&RELEASE, &db::params![worker], &rows, 2)?;
    let mut ended = Vec::with_capacity(plain.len());
    let mut failing: Vec<(i64, i64)> = Vec::new();
    let mut tokens = HashSet::with_capacity(plain.len());
    for ((index, item), hit) in plain.into_iter().zip(released) {
        // I4: a lease ends once, whatever else of its job is in the same call.
        if !hit || !tokens.insert(item.lease.token) {
            continue;
        }
        let stage = item.lease.stage;
        let (pipeline, _) = work.catalog.stage(stage)?;
        let why = match &item.outcome {
            Outcome::Skip(why) => Some(why.clone()),
            Outcome::Success(handover) => handover.note.clone(),
            _ => None,
        };
        ended.push(EndRow { job: item.lease.job, stage, why, token: Some(item.lease.token) });
        work.counts.moved(item.lease.batch, Some(Status::Running), Status::Succeeded);
        work.minutes.entry(stage).or_default().0 += 1;
        work.freed.insert(item.lease.lock.clone());
        failing.push((item.lease.job, pipeline.id));
        work.forget_hold(tx, item.lease.job)?;
        breaker::succeeded(tx, work, item.lease.job, None)?;
        answers[index] = Some(Settled::Now(Status::Succeeded));
    }
    ending::succeed(tx, work, &ended)?;
    if work.reservations {
        budget::release(tx, work.now, failing.iter().map(|f| f.0))?;
    }
    resolve(tx, work, &failing)
}

/// At its last stage, with nothing to record and nothing to look after.
fn is_plain(catalog: &Catalog, item: &Settlement) -> bool {
    let last = || {
        catalog
            .stage(item.lease.stage)
            .is_ok_and(|(pipeline, stage)| pipeline.after(stage).is_none())
    };
    let done = matches!(item.outcome, Outcome::Success(_) | Outcome::Skip(_))
        && item.outcome.next_stage().is_none()
        && item.outcome.state().is_none();
    done && item.records.is_none() && !item.lease.probe && last()
}

/// Earlier failures of subjects that now succeeded.
fn resolve(tx: &mut Tx<'_>, work: &mut Work<'_>, jobs: &[(i64, i64)]) -> Result<()> {
    const SUBJECT: Statement = statement!(settle::job_subject);
    if !work.failures || jobs.is_empty() {
        return Ok(());
    }
    let mut subjects = Vec::with_capacity(jobs.len());
    for (job, pipeline) in jobs {
        let (subject,): (String,) = tx.one(&SUBJECT, &db::params![job])?;
        subjects.push((*job, *pipeline, subject));
    }
    let succeeded: Vec<(i64, i64, &str)> =
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
fn settle_one<'w>(
    tx: &mut Tx<'_>,
    work: &mut Work<'w>,
    moving: &mut Moving<'w>,
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
        "bad_next_stage",
        format!(
            "{} sent the job on to a stage that it may not go to: {why}; report this as a defect",
            stage.name
        ),
    ))
}

/// Writes what the runs recorded: together, as it nearly always goes well; else each by itself.
fn record_all(tx: &mut Tx<'_>, found: &[(usize, &Settlement, Run)]) -> Result<Vec<Outcome>> {
    let records = || found.iter().filter_map(|(_, item, _)| item.records.as_ref());
    if records().count() > 1 {
        match tx.savepoint(|tx| records().try_for_each(|write| write(tx))) {
            Ok(()) => return Ok(found.iter().map(|(_, item, _)| item.outcome.clone()).collect()),
            Err(error) if is_of_the_transaction(tx, &error) => return Err(error),
            Err(_) => {}
        }
    }
    found.iter().map(|(_, item, _)| recorded(tx, item)).collect()
}

/// Writes what the run recorded. A record that cannot be written makes the outcome an error; the
/// job is settled all the same.
fn recorded(tx: &mut Tx<'_>, item: &Settlement) -> Result<Outcome> {
    let Some(records) = &item.records else {
        return Ok(item.outcome.clone());
    };
    match tx.savepoint(|tx| records(tx)) {
        Ok(()) => Ok(item.outcome.clone()),
        Err(error) if is_of_the_transaction(tx, &error) => Err(error),
        Err(error) => Ok(Outcome::Permanent(JobError::new(
            "record_failed",
            format!("its results could not be recorded: {error}"),
        ))),
    }
}

/// Whether the closure as a whole runs again, or has to wait.
fn is_of_the_transaction(tx: &Tx<'_>, error: &Error) -> bool {
    use db::Error::{Collision, Duplicate, NoSpace, Unavailable};
    match error {
        Error::Db(Collision(_) | Unavailable(..) | NoSpace(_)) => true,
        Error::Db(Duplicate(_)) => !tx.is_last_try(),
        _ => false,
    }
}

/// At the end of its pipeline.
fn succeed(
    tx: &mut Tx<'_>,
    work: &mut Work<'_>,
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
    work: &mut Work<'_>,
    pipeline: &Pipeline,
    stage: &Stage,
    lease: &Lease,
    run: &Run,
    error: &JobError,
) -> Result<Status> {
    work.minutes.entry(stage.id).or_default().1 += 1;
    let down = breaker::failed(tx, work, run, error)?;
    let is_down = down == breaker::Down::Already || (error.down && down == breaker::Down::Opened);
    if run.probe.is_some() || is_down {
        // A probe counts no attempt, nor does an error at a target that is known to be down.
        let target = error.target.clone().filter(|_| down != breaker::Down::No);
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
fn count_attempt(tx: &mut Tx<'_>, job: i64, stage: &Stage) -> Result<i64> {
    const COUNT: Statement = statement!(settle::count_attempt);
    let (attempts,): (i64,) = tx.one(&COUNT, &db::params![job, stage.id])?;
    Ok(attempts)
}

/// Exponential, capped, and spread by a fifth either way. The spread comes from the job and the
/// attempt, so that a rule run again decides the same.
pub(crate) fn backoff(stage: &Stage, job: i64, attempts: i64) -> Micros {
    let settings = &stage.settings;
    let doublings = u32::try_from((attempts - 1).clamp(0, 30)).unwrap_or(30);
    let seconds =
        settings.backoff_seconds.saturating_mul(1 << doublings).min(settings.backoff_seconds_max);
    let mixed = (job as u64 ^ (attempts as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let per_mille = 800 + i64::try_from(mixed % 401).unwrap_or(200);
    seconds.saturating_mul(1_000_000).saturating_mul(per_mille) / 1000
}
