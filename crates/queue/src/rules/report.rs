//! A batch's report: written when its last job has ended, in versions, and complete.

use crate::catalog::Catalog;
use crate::codes::{BatchState, Status};
use crate::error::Result;
use crate::id::{BatchId, JobId, StageId};
use crate::rules::batch::{self, Batch};
use crate::rules::replacing::{self, Replacement};
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use serde::Serialize;

/// Problems and changes that a report lists in full; past that it says how many more there are.
const LISTED_MAX: i64 = 100;

/// A version of the report on a batch.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The batch that it belongs to.
    pub batch: BatchId,
    /// What people call it.
    pub label: String,
    /// Who submitted it.
    pub submitter: String,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// The version of the report, from 1.
    pub version: i64,
    /// Its state.
    pub state: BatchState,
    /// How many jobs were submitted.
    pub submitted: i64,
    /// How many succeeded.
    pub succeeded: i64,
    /// How many failed.
    pub failed: i64,
    /// By a person, and superseded ones.
    pub cancelled: i64,
    /// Of those cancelled, how many a later job took the place of.
    pub superseded: i64,
    /// Of those superseded, how many have the same content, which is preserved.
    pub superseded_same: i64,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// The first failures; `failed` says how many there are.
    pub failures: Vec<Item>,
    /// The first that a person cancelled, with who and why.
    pub cancellations: Vec<Item>,
    /// The first rows of this batch that were superseded.
    pub replaced: Vec<Replacement>,
    /// The first jobs that rows of this batch have superseded.
    pub replaces: Vec<Replacement>,
    /// What ended since the last version, with how; empty in the first.
    pub changed: Vec<Item>,
    /// How many ended since the last version.
    pub changed_count: i64,
}

/// A job that a report lists.
#[derive(Debug, Clone, Serialize)]
pub struct Item {
    /// The id of the job.
    pub job: JobId,
    /// What the job is about.
    pub subject: String,
    /// Its status.
    pub status: Status,
    /// The stage in which it ended.
    pub stage: String,
    /// The error code.
    pub code: Option<String>,
    /// Why, in a sentence.
    pub why: Option<String>,
    /// Who ended it.
    pub by: Option<String>,
    #[serde(skip)]
    stage_id: StageId,
}

impl FromRow for Item {
    fn from_row(row: &Row<'_>) -> db::Result<Item> {
        Ok(Item {
            job: row.get(0)?,
            subject: row.get(1)?,
            status: row.get(2)?,
            stage: String::new(),
            stage_id: row.get(3)?,
            code: row.get(4)?,
            why: row.get(5)?,
            by: row.get(6)?,
        })
    }
}

/// Writes the report of one batch that is due for it and moves the batch on; None if none is due.
pub fn write_next(tx: &mut Tx<'_>, now: Micros, catalog: &Catalog) -> Result<Option<Report>> {
    const DUE: Statement = statement!(report::reporting_batch);
    const KEEP: Statement = statement!(report::insert_report);
    const MOVE: Statement = statement!(batch::batch_to_reporting);
    let Some((id,)) = tx.first::<(BatchId,)>(&DUE, &[])? else { return Ok(None) };
    let batch = batch::load(tx, id)?;
    let report = compose(tx, catalog, &batch)?;
    tx.send(&KEEP, &db::params![id, report.version, now, &serde_json::json!(report).to_string()])?;
    tx.send(&MOVE, &db::params![id, report.state, now])?;
    // For those that wait for the end of the batch.
    tx.wake(batch::TOPIC);
    Ok(Some(report))
}

/// Records that the versions of a batch's report up to `version` were announced.
pub fn announce(tx: &mut Tx<'_>, batch: BatchId, version: i64) -> Result<()> {
    const ANNOUNCE: Statement = statement!(report::announce);
    tx.send(&ANNOUNCE, &db::params![batch, version])?;
    Ok(())
}

fn compose(tx: &mut Tx<'_>, catalog: &Catalog, batch: &Batch) -> Result<Report> {
    const LAST: Statement = statement!(report::last_report);
    const FAILURES: Statement = statement!(report::batch_failures);
    const CANCELLED: Statement = statement!(report::batch_cancelled);
    const CHANGED: Statement = statement!(report::batch_changed);
    const CHANGED_COUNT: Statement = statement!(report::batch_changed_count);
    let (last, at): (i64, Micros) = tx.one(&LAST, &db::params![batch.id])?;
    let mut failures: Vec<Item> = tx.query(&FAILURES, &db::params![batch.id, LISTED_MAX])?;
    let (mut changed, mut changed_count) = (Vec::new(), 0);
    if last > 0 {
        changed = tx.query(&CHANGED, &db::params![batch.id, at, LISTED_MAX])?;
        (changed_count,) = tx.one(&CHANGED_COUNT, &db::params![batch.id, at])?;
    }
    let (mut cancellations, mut replaced) = (Vec::new(), Vec::new());
    let (mut superseded, mut same) = (0, 0);
    if batch.cancelled > 0 {
        cancellations = tx.query(&CANCELLED, &db::params![batch.id, LISTED_MAX])?;
        replaced = replacing::replaced_in(tx, batch.id, JobId::default(), LISTED_MAX)?;
        (superseded, same) = replacing::count(tx, batch.id)?;
    }
    for item in failures.iter_mut().chain(&mut changed).chain(&mut cancellations) {
        item.stage = catalog.stage_name(item.stage_id);
    }
    // Everything that was submitted is preserved, or was cancelled by a person.
    let good = batch.error.is_none()
        && batch.failed == 0
        && superseded == same
        && batch.succeeded + same > 0;
    Ok(Report {
        batch: batch.id,
        label: batch.label.clone(),
        submitter: batch.submitter.clone(),
        collection: batch.collection.clone(),
        version: last + 1,
        state: if good { BatchState::Completed } else { BatchState::Failed },
        submitted: batch.total,
        succeeded: batch.succeeded,
        failed: batch.failed,
        cancelled: batch.cancelled,
        superseded,
        superseded_same: same,
        error: batch.error.clone(),
        failures,
        cancellations,
        replaced,
        replaces: replacing::replaced_by(
            tx,
            batch.id,
            JobId::default()..=JobId::new(i64::MAX),
            LISTED_MAX,
        )?,
        changed,
        changed_count,
    })
}

/// The newest report of a batch, as JSON.
pub fn newest(tx: &mut Tx<'_>, batch: BatchId) -> Result<Option<String>> {
    const NEWEST: Statement = statement!(report::newest_report);
    Ok(tx.first::<(String,)>(&NEWEST, &db::params![batch])?.map(|r| r.0))
}
