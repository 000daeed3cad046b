//! I7: a batch's counts equal the sum over its jobs. Changes are gathered by a rule and written in
//! one update per batch, under the batch row's lock, so that two finishers cannot both miss that
//! theirs was the last job.

use crate::codes::{BatchState, Status};
use crate::engine;
use crate::error::{Entity, Error, Result};
use crate::id::BatchId;
use db::{Micros, Statement, Tx, statement};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, Default)]
struct CountChange {
    total: i64,
    open: i64,
    succeeded: i64,
    failed: i64,
    cancelled: i64,
}

/// Changes to the counts of batches.
#[derive(Default)]
pub struct Counts {
    changes: BTreeMap<BatchId, CountChange>,
}

impl Counts {
    /// A job of the batch went from one status to another; None is "not there yet".
    pub fn moved(&mut self, batch: Option<BatchId>, from: Option<Status>, to: Status) {
        let Some(batch) = batch else { return };
        let change = self.changes.entry(batch).or_default();
        match from {
            Some(from) => *change.field(from) -= 1,
            None => change.total += 1,
        }
        *change.field(to) += 1;
    }

    /// Locks the batches' rows, lowest id first, before anything else of them is touched.
    pub fn lock(tx: &mut Tx<'_>, batches: impl Iterator<Item = BatchId>) -> Result<()> {
        let mut ids: Vec<BatchId> = batches.collect();
        ids.sort_unstable();
        ids.dedup();
        engine::of(tx).lock_batches(tx, &ids)
    }

    /// Writes the changes and moves batches whose last job ended on to reporting.
    pub fn write(self, tx: &mut Tx<'_>, now: Micros) -> Result<()> {
        const CHANGE: Statement = statement!(batch::change_counts);
        const REPORT: Statement = statement!(batch::batch_to_reporting);
        for (batch, c) in self.changes {
            let changed: Option<(i64, BatchState)> = tx.first(
                &CHANGE,
                &db::params![batch, c.total, c.open, c.succeeded, c.failed, c.cancelled, now],
            )?;
            let next = match changed {
                None if c.total > 0 => {
                    return Err(Error::unknown(
                        Entity::Batch,
                        batch,
                        "make it before jobs are added to it",
                    ));
                }
                Some((0, BatchState::Processing)) => BatchState::Reporting,
                // Re-run jobs of a failed batch have all finished.
                Some((0, BatchState::Failed)) => BatchState::UpdateReporting,
                // Its report waited for them.
                Some((0, BatchState::Reporting | BatchState::UpdateReporting)) => {
                    tx.wake(crate::rules::batch::TOPIC);
                    continue;
                }
                _ => continue,
            };
            tx.send(&REPORT, &db::params![batch, next, now])?;
            tx.wake(crate::rules::batch::TOPIC);
        }
        Ok(())
    }
}

impl CountChange {
    fn field(&mut self, status: Status) -> &mut i64 {
        match status {
            Status::Queued | Status::Running | Status::Held => &mut self.open,
            Status::Failed => &mut self.failed,
            Status::Succeeded => &mut self.succeeded,
            Status::Cancelled => &mut self.cancelled,
        }
    }
}
