//! Settling: what a run's outcome makes of its job, in the same transaction as what the run
//! recorded. Any mix of outcomes for any mix of jobs goes in one call.

mod batch;
mod outcome;

pub(crate) use batch::{Hold, SettleBatch};

use crate::catalog::Catalog;
use crate::codes::Status;
use crate::error::{Error, Result};
use crate::error_code::ErrorCode;
use crate::id::{JobId, PipelineId, WorkerId};
use crate::job::{JobError, Outcome, Settled, Settlement};
use crate::rules::breaker;
use crate::rules::budget;
use crate::rules::counts::Counts;
use crate::rules::ending::{self, EndRow};
use crate::rules::moving::{FreeSlots, StageMoves};
use crate::rules::running::{self, Run};
use db::{Micros, Statement, Tx, Value, statement};
use outcome::{resolve, settle_one};
use std::collections::HashSet;

/// Settles finished runs of one worker. Stale ones change nothing and say so (I4).
pub fn settle(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    worker: WorkerId,
    who: &str,
    items: &[Settlement],
) -> Result<Vec<Settled>> {
    settle_and_carry(tx, now, catalog, worker, who, items, &FreeSlots::new())
}

/// As [`settle`] for a worker that has places free in the stages that follow: jobs that may take one
/// come back claimed and started.
pub fn settle_and_carry<'i>(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &'i Catalog,
    worker: WorkerId,
    who: &str,
    items: &'i [Settlement],
    places: &FreeSlots,
) -> Result<Vec<Settled>> {
    let mut moving = StageMoves::begin(tx, now, worker, places)?;
    // What moves on changes no count; one that turns out to be cancelled is rare enough to wait.
    let ending = items.iter().filter(|item| item.next_stage(catalog).is_none());
    Counts::lock(tx, ending.filter_map(|item| item.lease.batch))?;
    let mut work = SettleBatch::begin(tx, now, catalog, who)?;
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
    work: &mut SettleBatch<'_>,
    worker: WorkerId,
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
    let mut failing: Vec<(JobId, PipelineId)> = Vec::new();
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
            ErrorCode::RecordFailed,
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
