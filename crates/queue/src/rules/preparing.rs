//! The job that prepares a batch: it fills a pending batch and accepts it.
//!
//! A pending batch that has such a job ends with that job: a job that ends in any way and leaves its
//! batch pending makes the batch fail, and the batch is reported. So no batch waits for a job that
//! will never run. A requeue of a failed job opens its batch again.

use crate::catalog::Catalog;
use crate::codes::{BatchState, Status};
use crate::error::{Error, Result};
use crate::id::{BatchId, JobId};
use crate::rules::batch;
use crate::rules::ending::EndRow;
use crate::rules::operator::{Actor, hold};
use db::{Micros, Statement, Tx, Value, statement};

/// Names the job that fills a pending batch and accepts it. Call it in the transaction that creates
/// the batch and adds the job.
pub fn prepare(tx: &mut Tx<'_>, batch: BatchId, job: JobId) -> Result<()> {
    set_preparer(tx, batch, Some(job))
}

/// The batch no longer depends on the job that prepared it: a requeue of the job leaves it alone.
pub(crate) fn unlink(tx: &mut Tx<'_>, batch: BatchId) -> Result<()> {
    set_preparer(tx, batch, None)
}

fn set_preparer(tx: &mut Tx<'_>, batch: BatchId, job: Option<JobId>) -> Result<()> {
    const SET: Statement = statement!(preparing::set_preparer);
    tx.send(&SET, &db::params![batch, job])?;
    Ok(())
}

/// Holds the job that prepares a batch with the batch: nothing of a held batch goes on.
pub(crate) fn hold(tx: &mut Tx<'_>, now: Micros, actor: Actor<'_>, batch: BatchId) -> Result<()> {
    let Some(job) = preparer(tx, batch)? else { return Ok(()) };
    let catalog = Catalog::load(tx)?;
    unless_refused(hold::hold_job(tx, now, &catalog, actor, job).map(|_| ()))
}

/// Lets the job that prepares a batch go on, if it was held and its collection is not.
pub(crate) fn release(tx: &mut Tx<'_>, now: Micros, batch: BatchId, reason: &str) -> Result<()> {
    let Some(job) = preparer(tx, batch)? else { return Ok(()) };
    let catalog = Catalog::load(tx)?;
    let actor = Actor { who: "rule", reason };
    match hold::release_job(tx, now, &catalog, actor, job) {
        Err(Error::Refused(_)) => hold::leave_to_collection(tx, now, job),
        done => done,
    }
}

/// Whether a job prepares a batch that is held: then it is not released with its collection.
pub(crate) fn prepares_held_batch(tx: &mut Tx<'_>, job: JobId) -> Result<bool> {
    const HELD: Statement = statement!(preparing::prepares_held_batch);
    Ok(tx.first::<(i64,)>(&HELD, &db::params![job])?.is_some())
}

fn preparer(tx: &mut Tx<'_>, batch: BatchId) -> Result<Option<JobId>> {
    const PREPARER: Statement = statement!(preparing::batch_preparer);
    Ok(tx.first::<(Option<JobId>,)>(&PREPARER, &db::params![batch])?.and_then(|row| row.0))
}

/// It has ended, or is not held, or is held already: then there is nothing to do.
fn unless_refused(done: Result<()>) -> Result<()> {
    match done {
        Err(Error::Refused(_)) => Ok(()),
        done => done,
    }
}

/// Ends the batches that wait for jobs which have just ended.
pub(crate) fn jobs_ended(
    tx: &mut Tx<'_>,
    now: Micros,
    who: &str,
    status: Status,
    ended: &[EndRow],
) -> Result<()> {
    const PREPARED: Statement = statement!(preparing::prepared_batches);
    let rows: Vec<[Value<'_>; 1]> = ended.iter().map(|end| db::params![end.job]).collect();
    let found: Vec<(BatchId, JobId)> = tx.each(&PREPARED, &[], &rows)?;
    for (id, job) in found {
        let why = ended.iter().find(|end| end.job == job).and_then(|end| end.why.as_deref());
        if batch::lock(tx, id)?.state == BatchState::Pending {
            batch::fail_with_its_job(tx, now, id, &sentence(job, who, status, why))?;
        }
        if status != Status::Failed {
            // Only a failed job can be requeued.
            unlink(tx, id)?;
        }
    }
    Ok(())
}

/// What the report says: what ended, and what to do.
fn sentence(job: JobId, who: &str, status: Status, why: Option<&str>) -> String {
    let why = why.unwrap_or("no reason was given");
    match status {
        Status::Failed => format!(
            "job {job}, which prepares the batch, failed: {why}. Remove the cause, then requeue the job with `accession jobs requeue {job}`: the batch goes on with it"
        ),
        Status::Cancelled => format!(
            "job {job}, which prepares the batch, was cancelled by {who}: {why}. Submit the batch again if it is still wanted"
        ),
        _ => format!(
            "job {job}, which prepares the batch, ended without accepting the batch: {why}. Submit the batch again"
        ),
    }
}

/// Opens the batch again that failed with this job. The caller requeues the job.
pub(crate) fn reopen(tx: &mut Tx<'_>, now: Micros, job: JobId) -> Result<()> {
    const REOPEN: Statement = statement!(preparing::reopen_batch);
    tx.send(&REOPEN, &db::params![job, now])?;
    tx.wake(batch::TOPIC);
    Ok(())
}
