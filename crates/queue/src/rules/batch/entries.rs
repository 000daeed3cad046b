//! Entries of batches, and turning them into jobs.

use super::{finish_if_done, load, lock, priority_of_size};
use crate::catalog::Catalog;
use crate::codes::BatchState;
use crate::error::{Entity, Error, Result};
use crate::id::{BatchId, PipelineId};
use crate::job::NewJob;
use crate::rules::add;
use db::{Micros, Statement, Tx, Value, statement};

/// A row of what was submitted.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its number in the batch, from 1.
    pub number: i64,
    /// The subject of the job to be.
    pub subject: String,
    /// The lock of the job to be, if not the default.
    pub lock: Option<String>,
    /// What the job carries, at most `payload_bytes_max` bytes.
    pub payload: Option<Vec<u8>>,
}

/// Writes entries of a pending batch. Writing one again changes nothing, so a filler that was cut
/// short begins again where it was.
pub fn fill(tx: &mut Tx<'_>, catalog: &Catalog, batch: BatchId, entries: &[Entry]) -> Result<()> {
    const INSERT: Statement = statement!(batch::insert_entries);
    // Locked: a batch that is cancelled at this moment gets no entries after its end.
    let found = lock(tx, batch)?;
    if found.state != BatchState::Pending {
        return Err(Error::Refused(format!(
            "batch {batch} is {} and takes no more entries",
            found.state
        )));
    }
    check_entries(catalog, found.pipeline, entries)?;
    let rows: Vec<[Value<'_>; 4]> =
        entries.iter().map(|e| db::params![e.number, &e.subject, &e.lock, &e.payload]).collect();
    tx.send_each(&INSERT, &db::params![batch], &rows)?;
    Ok(())
}

/// Whether entries can become jobs of a pipeline.
pub fn check_entries(catalog: &Catalog, pipeline: PipelineId, entries: &[Entry]) -> Result<()> {
    let most = catalog.pipeline(pipeline)?.settings.payload_bytes_max;
    for entry in entries {
        let bytes = entry.payload.as_ref().map_or(0, Vec::len);
        if entry.subject.is_empty() || i64::try_from(bytes).is_ok_and(|b| b > most) {
            return Err(Error::BadInput(format!(
                "entry {}: its subject must not be empty, and its payload not over {most} bytes",
                entry.number
            )));
        }
    }
    Ok(())
}

/// Turns up to `limit` entries of accepted batches into jobs; how many.
pub fn move_entries(tx: &mut Tx<'_>, now: Micros, catalog: &Catalog, limit: i64) -> Result<i64> {
    const MOVING: Statement = statement!(batch::moving_batch);
    const ENTRIES: Statement = statement!(batch::next_entries);
    const GONE: Statement = statement!(batch::delete_entries);
    const MOVED: Statement = statement!(batch::entries_moved);
    const CANCELLED: Statement = statement!(batch::entries_cancelled);
    let Some((id,)) = tx.first::<(BatchId,)>(&MOVING, &[])? else { return Ok(0) };
    let batch = load(tx, id)?;
    let rows: Vec<(i64, String, Option<String>, Option<Vec<u8>>)> =
        tx.query(&ENTRIES, &db::params![id, limit])?;
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let last = rows.last().map_or(0, |r| r.0);
    let pipeline = catalog.pipeline(batch.pipeline)?;
    let priority = batch.priority.unwrap_or_else(|| priority_of_size(batch.total));
    let jobs: Vec<NewJob> = rows
        .iter()
        .map(|(_, subject, lock, payload)| NewJob {
            subject: subject.clone(),
            lock: lock.clone(),
            payload: payload.clone(),
            priority: Some(priority),
            batch: Some(id),
            collection: batch.collection.clone(),
            ..NewJob::default()
        })
        .collect();
    let added = match add::add_counted(tx, now, pipeline, &batch.submitter, &jobs) {
        // Its queue was deleted: what waited there was cancelled, and so is what was still to come.
        Err(Error::Unknown { what: Entity::Queue, .. }) => {
            tx.send(&GONE, &db::params![id, last])?;
            tx.send(&CANCELLED, &db::params![id, count, now])?;
            finish_if_done(tx, now, id)?;
            return Ok(count);
        }
        added => added?,
    };
    // Entries that were merged (the same subject twice) make fewer jobs than were counted.
    let merged = i64::try_from(added.iter().filter(|a| a.coalesced).count()).unwrap_or(0);
    tx.send(&GONE, &db::params![id, last])?;
    tx.send(&MOVED, &db::params![id, count, merged, now])?;
    Ok(count)
}
