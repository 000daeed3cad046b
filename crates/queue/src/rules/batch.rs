//! Batches: everything one depositor submitted in one go.
//!
//! `pending → processing → reporting → completed | failed`, `failed → update-reporting → completed
//! | failed`, `held | failed → deleted`. A batch is filled entry by entry while it is pending; one
//! update accepts all of them, and a mover turns them into jobs in small steps. A batch that failed
//! with the job that prepares it is pending again when that job is requeued: see
//! [`crate::rules::preparing`].

mod entries;

pub use entries::{Entry, check_entries, fill, move_entries};

use crate::catalog::Catalog;
use crate::codes::BatchState;
use crate::engine;
use crate::error::{Entity, Error, Result};
use crate::id::{BatchId, JobId, PipelineId};
use crate::rules::operator::hold::{self, Group};
use crate::rules::operator::{Actor, cancel};
use crate::rules::preparing;
use db::{FromRow, Micros, Row, Statement, Tx, statement};

/// The wake-up topic of the mover and the reporter.
pub const TOPIC: i64 = i64::MAX - 1;

/// A batch to be made.
#[derive(Debug, Clone)]
pub struct NewBatch<'a> {
    /// What people call it.
    pub label: &'a str,
    /// The pipeline that its jobs are added to.
    pub pipeline: PipelineId,
    /// The collection that it belongs to.
    pub collection: Option<&'a str>,
    /// Who submitted it.
    pub submitter: &'a str,
    /// new, update or either.
    pub mode: &'a str,
    /// The priority of its jobs; None for the rule by size.
    pub priority: Option<i64>,
}

/// A batch and its counts.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// What people call it.
    pub label: String,
    /// The pipeline that its jobs are added to.
    pub pipeline: PipelineId,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// Who submitted it.
    pub submitter: String,
    /// What kind of deposit it is, for the archive.
    pub mode: String,
    /// Its state.
    pub state: BatchState,
    /// A person holds the batch itself; see [`Batch::is_held`].
    pub held: bool,
    /// A person holds its collection while it is pending or processing.
    pub collection_held: bool,
    /// The priority of its jobs; None for the rule by size.
    pub priority: Option<i64>,
    /// How many jobs it has.
    pub total: i64,
    /// How many of its jobs have not ended.
    pub open: i64,
    /// How many succeeded.
    pub succeeded: i64,
    /// How many failed.
    pub failed: i64,
    /// How many were cancelled.
    pub cancelled: i64,
    /// How many entries have become jobs.
    pub moved: i64,
    /// When it was submitted.
    pub created_at: Micros,
    /// When it last changed.
    pub updated_at: Micros,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

impl FromRow for Batch {
    fn from_row(row: &Row<'_>) -> db::Result<Batch> {
        Ok(Batch {
            id: row.get(0)?,
            label: row.get(1)?,
            pipeline: row.get(2)?,
            collection: row.get(3)?,
            submitter: row.get(4)?,
            mode: row.get(5)?,
            state: row.get(6)?,
            held: row.get(7)?,
            priority: row.get(8)?,
            total: row.get(9)?,
            open: row.get(10)?,
            succeeded: row.get(11)?,
            failed: row.get(12)?,
            cancelled: row.get(13)?,
            moved: row.get(14)?,
            created_at: row.get(15)?,
            updated_at: row.get(16)?,
            error: row.get(17)?,
            collection_held: row.get(18)?,
        })
    }
}

impl Batch {
    /// Whether none of it is handed out: it or its collection is held.
    pub fn is_held(&self) -> bool {
        self.held || self.collection_held
    }
}

/// Opens a batch; it is pending, and none of it is worked on, until [`accept`].
pub fn create(tx: &mut Tx<'_>, now: Micros, batch: &NewBatch<'_>) -> Result<BatchId> {
    const INSERT: Statement = statement!(batch::insert_batch);
    if batch.priority.is_some_and(|p| !(0..=99).contains(&p)) {
        return Err(Error::BadInput(
            "a batch's priority must be from 0 (first) to 99 (last)".to_string(),
        ));
    }
    let id = tx.next_ids("batch_ids", 1)?[0];
    tx.send(
        &INSERT,
        &db::params![
            id,
            batch.label,
            batch.pipeline,
            batch.collection,
            batch.submitter,
            batch.mode,
            batch.priority,
            now
        ],
    )?;
    Ok(id)
}

/// Reads a batch.
pub fn load(tx: &mut Tx<'_>, batch: BatchId) -> Result<Batch> {
    const LOAD: Statement = statement!(batch::load_batch);
    let hint = "`accession batches list` shows those there are";
    tx.first(&LOAD, &db::params![batch])?.ok_or_else(|| Error::unknown(Entity::Batch, batch, hint))
}

/// Batches, newest first.
pub fn list(
    tx: &mut Tx<'_>,
    state: Option<BatchState>,
    before: Option<BatchId>,
    limit: i64,
) -> Result<Vec<Batch>> {
    const LIST: Statement = statement!(batch::list_batches);
    Ok(tx.query(&LIST, &db::params![before.unwrap_or(BatchId::new(i64::MAX)), state, limit])?)
}

/// Batches that are under way, and their jobs that have not ended.
pub fn count_open(tx: &mut Tx<'_>) -> Result<(i64, i64)> {
    const OPEN: Statement = statement!(batch::count_open_batches);
    Ok(tx.one(&OPEN, &[])?)
}

/// Locks a batch's row until the end of the transaction.
pub fn lock(tx: &mut Tx<'_>, batch: BatchId) -> Result<Batch> {
    engine::of(tx).lock_batches(tx, &[batch])?;
    load(tx, batch)
}

/// The all-or-nothing moment: from here every entry becomes a job.
pub fn accept(tx: &mut Tx<'_>, now: Micros, batch: BatchId) -> Result<Batch> {
    const ACCEPT: Statement = statement!(batch::accept_batch);
    const REPORT: Statement = statement!(batch::batch_to_reporting);
    let found = lock(tx, batch)?;
    if found.state != BatchState::Pending {
        return Err(Error::Refused(format!("batch {batch} is {} already", found.state)));
    }
    let (total, open): (i64, i64) = tx.one(&ACCEPT, &db::params![batch, now])?;
    if total == 0 {
        return mark_failed(tx, now, batch, "it is empty; submit it again with something in it");
    }
    let state = if open == 0 { BatchState::Reporting } else { BatchState::Processing };
    if state == BatchState::Reporting {
        tx.send(&REPORT, &db::params![batch, state, now])?;
    }
    tx.wake(TOPIC);
    Ok(Batch { state, total, open, updated_at: now, ..found })
}

/// A batch whose payload cannot be expanded: failed, and reported all the same.
pub fn fail(tx: &mut Tx<'_>, now: Micros, batch: BatchId, error: &str) -> Result<Batch> {
    let found = lock(tx, batch)?;
    if found.state != BatchState::Pending {
        return Err(Error::Refused(format!(
            "batch {batch} is {}; only a pending one can turn out not to be expandable",
            found.state
        )));
    }
    preparing::release(tx, now, batch, "its batch has failed")?;
    preparing::unlink(tx, batch)?;
    fail_with_its_job(tx, now, batch, error)
}

/// As [`fail`] for a pending batch that the caller has locked. A requeue of the job that prepares it
/// opens it again.
pub(crate) fn fail_with_its_job(
    tx: &mut Tx<'_>,
    now: Micros,
    batch: BatchId,
    error: &str,
) -> Result<Batch> {
    const DROP: Statement = statement!(batch::drop_entries);
    tx.send(&DROP, &db::params![batch])?;
    mark_failed(tx, now, batch, error)
}

fn mark_failed(tx: &mut Tx<'_>, now: Micros, batch: BatchId, error: &str) -> Result<Batch> {
    const FAIL: Statement = statement!(batch::fail_batch);
    tx.send(&FAIL, &db::params![batch, error, now])?;
    tx.wake(TOPIC);
    load(tx, batch)
}

/// Small deposits are not stuck behind huge ones: `min(99, floor(5 + 10·ln(jobs)))`.
pub fn priority_of_size(jobs: i64) -> i64 {
    // Truncation is the rule's floor: the value is between 5 and 99.
    (5.0 + 10.0 * (jobs.max(1) as f64).ln()).floor().min(99.0) as i64
}

/// Holds a pending or processing batch.
pub fn hold(tx: &mut Tx<'_>, now: Micros, actor: Actor<'_>, batch: BatchId) -> Result<()> {
    let found = lock(tx, batch)?;
    if !matches!(found.state, BatchState::Pending | BatchState::Processing) {
        return Err(Error::Refused(format!(
            "batch {batch} is {}; only a pending or processing one can be held",
            found.state
        )));
    }
    hold::hold_group(tx, now, actor, Group::Batch(batch))?;
    preparing::hold(tx, now, actor, batch)?;
    set_held(tx, now, batch, true)
}

/// Lets a held batch go on.
pub fn release(tx: &mut Tx<'_>, now: Micros, batch: BatchId) -> Result<()> {
    lock(tx, batch)?;
    hold::release_group(tx, Group::Batch(batch))?;
    preparing::release(tx, now, batch, "its batch is released")?;
    set_held(tx, now, batch, false)
}

fn set_held(tx: &mut Tx<'_>, now: Micros, batch: BatchId, held: bool) -> Result<()> {
    const HELD: Statement = statement!(batch::set_batch_held);
    tx.send(&HELD, &db::params![batch, held, now])?;
    tx.wake(TOPIC);
    Ok(())
}

/// Cancels up to `limit` waiting jobs of a batch, and asks running ones to stop; how
/// many there were. Entries that have not become jobs never do.
pub fn cancel_some(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    batch: BatchId,
    after: JobId,
    limit: i64,
) -> Result<Option<JobId>> {
    const OPEN: Statement = statement!(batch::open_jobs_of_batch);
    const DROP: Statement = statement!(batch::drop_entries);
    const UNCOUNT: Statement = statement!(batch::uncount_entries);
    let found = lock(tx, batch)?;
    let entries = tx.execute(&DROP, &db::params![batch])?;
    if entries > 0 && found.state != BatchState::Pending {
        tx.send(&UNCOUNT, &db::params![batch, i64::try_from(entries).unwrap_or(0), now])?;
        finish_if_done(tx, now, batch)?;
    }
    let ids: Vec<(JobId,)> = tx.query(&OPEN, &db::params![batch, after, limit])?;
    for (id,) in &ids {
        // Refused: it has ended or been asked since, or it can only go forward.
        match cancel::cancel(tx, now, catalog, actor, *id) {
            Ok(_) | Err(Error::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ids.last().map(|r| r.0))
}

/// There may be nothing left to wait for.
fn finish_if_done(tx: &mut Tx<'_>, now: Micros, batch: BatchId) -> Result<()> {
    const REPORT: Statement = statement!(batch::batch_to_reporting);
    let found = load(tx, batch)?;
    if found.open == 0 && found.state == BatchState::Processing {
        tx.send(&REPORT, &db::params![batch, BatchState::Reporting, now])?;
        tx.wake(TOPIC);
    }
    Ok(())
}

/// Marks a held or failed batch deleted; its jobs are cancelled by [`cancel_some`] first, and its
/// reports are kept.
pub fn delete(tx: &mut Tx<'_>, now: Micros, batch: BatchId) -> Result<()> {
    const REPORT: Statement = statement!(batch::batch_to_reporting);
    let found = lock(tx, batch)?;
    refuse_delete(&found)?;
    tx.send(&REPORT, &db::params![batch, BatchState::Deleted, now])?;
    preparing::release(tx, now, batch, "its batch is deleted")?;
    preparing::unlink(tx, batch)?;
    if found.held {
        hold::release_group(tx, Group::Batch(batch))?;
        set_held(tx, now, batch, false)?;
    }
    Ok(())
}

/// Says whether a batch may be deleted.
pub fn refuse_delete(batch: &Batch) -> Result<()> {
    // Cancelling the jobs of a failed batch has it report again.
    let failed = matches!(batch.state, BatchState::Failed | BatchState::UpdateReporting);
    let may = batch.held || failed;
    match may && batch.state != BatchState::Deleted {
        true => Ok(()),
        false if batch.collection_held => Err(Error::Refused(format!(
            "batch {} is held with its collection; hold the batch itself to delete it",
            batch.id
        ))),
        false => Err(Error::Refused(format!(
            "batch {} is {}; only a held or failed one can be deleted: hold it first",
            batch.id, batch.state
        ))),
    }
}

/// Asks for a new report of a batch that has one.
pub fn report_again(tx: &mut Tx<'_>, now: Micros, batch: BatchId) -> Result<()> {
    const REPORT: Statement = statement!(batch::batch_to_reporting);
    let found = lock(tx, batch)?;
    if !matches!(found.state, BatchState::Completed | BatchState::Failed) || found.open > 0 {
        return Err(Error::Refused(format!(
            "batch {batch} is {} with {} jobs unfinished; it reports when they are",
            found.state, found.open
        )));
    }
    tx.send(&REPORT, &db::params![batch, BatchState::UpdateReporting, now])?;
    tx.wake(TOPIC);
    Ok(())
}
