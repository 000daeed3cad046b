//! The steps on SQLite: one writer at a time, no round trips, statements run row by row.

use super::{Claimant, Entered, INSERT_WAITING, LockRequest, Steps, take_contested, waiting_rows};
use crate::catalog::{Pipeline, Stage};
use crate::error::Result;
use crate::id::{BatchId, JobId, PipelineId, StageId};
use crate::rules::draft::Draft;
use crate::rules::line;
use crate::rules::operator::{JobRow, look};
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeSet, HashMap};

pub(super) struct Sqlite;

impl Steps for Sqlite {
    fn enter_pipeline(&self, _: &mut Tx<'_>, _: PipelineId) -> Result<()> {
        Ok(())
    }

    fn close_pipeline(&self, _: &mut Tx<'_>, _: PipelineId) -> Result<()> {
        Ok(())
    }

    fn enter_claims(&self, _: &mut Tx<'_>) -> Result<()> {
        Ok(())
    }

    fn stop_claims(&self, _: &mut Tx<'_>) -> Result<()> {
        Ok(())
    }

    fn enter_lane(&self, _: &mut Tx<'_>, _: StageId) -> Result<bool> {
        Ok(true)
    }

    fn lock_batches(&self, _: &mut Tx<'_>, _: &[BatchId]) -> Result<()> {
        Ok(())
    }

    fn lock_resources(&self, _: &mut Tx<'_>) -> Result<()> {
        Ok(())
    }

    fn find_job(&self, tx: &mut Tx<'_>, job: JobId) -> Result<JobRow> {
        look(tx, job)
    }

    fn history_ids(&self, tx: &mut Tx<'_>, count: usize) -> Result<Vec<Option<i64>>> {
        Ok(tx.next_ids("history_ids", count)?.into_iter().map(Some).collect())
    }

    fn server_uptime(&self, _: &mut Tx<'_>) -> Result<Micros> {
        Ok(Micros::MAX)
    }

    fn promote(&self, tx: &mut Tx<'_>, now: Micros, locks: &BTreeSet<String>) -> Result<()> {
        const ANY_PARKED: Statement = statement!(line::anybody_parked);
        const WANTED: Statement = statement!(line::wanted_locks);
        const PROMOTE: Statement = statement!(line::promote);
        if tx.first::<(i64,)>(&ANY_PARKED, &[])?.is_none() {
            return Ok(());
        }
        // Most freed locks have no job behind them, and a read is cheaper than an update.
        let rows: Vec<[Value<'_>; 1]> = locks.iter().map(|lock| [Value::from(lock)]).collect();
        let wanted: Vec<(String,)> = tx.each(&WANTED, &[], &rows)?;
        let rows: Vec<[Value<'_>; 1]> = wanted.iter().map(|(lock,)| [Value::from(lock)]).collect();
        for (stage,) in tx.each::<(StageId,), 1>(&PROMOTE, &[Value::Int(now)], &rows)? {
            tx.wake(stage);
        }
        Ok(())
    }

    /// There is no round trip to save.
    fn add_one(
        &self,
        _: &mut Tx<'_>,
        _: Micros,
        _: &Pipeline,
        _: &str,
        _: &Draft<'_>,
    ) -> Result<Option<(JobId, JobId)>> {
        Ok(None)
    }

    fn enter_adds(
        &self,
        tx: &mut Tx<'_>,
        pipeline: &Pipeline,
        drafts: &[Draft<'_>],
    ) -> Result<Option<Entered>> {
        const ADDS: Statement = statement!(add::enter_adds);
        let Some((holds,)) = tx.first::<(bool,)>(&ADDS, &db::params![pipeline.id])? else {
            return Ok(None);
        };
        let locks = drafts.iter().filter_map(Draft::lock_wanted).collect();
        let ahead = line::ahead(tx, &locks, !pipeline.coalesces)?;
        Ok(Some(Entered { ids: tx.next_ids("job_ids", drafts.len())?, holds, ahead }))
    }

    /// In the order of their ids, which fills pages from the end.
    fn insert_waiting(
        &self,
        tx: &mut Tx<'_>,
        now: Micros,
        stage: &Stage,
        drafts: &[Draft<'_>],
    ) -> Result<HashMap<JobId, JobId>> {
        let order: Vec<&Draft<'_>> = drafts.iter().collect();
        let new =
            tx.each_hit(&INSERT_WAITING, &db::params![now, stage.id], &waiting_rows(&order), 0)?;
        let met = order.iter().zip(new).filter(|(_, new)| !new);
        met.map(|(draft, _)| Ok((draft.id, merge(tx, draft)?))).collect()
    }

    fn take_locks(
        &self,
        tx: &mut Tx<'_>,
        claimant: Claimant,
        wanted: &[LockRequest<'_>],
    ) -> Result<Vec<bool>> {
        take_contested(tx, claimant, wanted)
    }
}

/// Merges a job into the waiting one of its key: the more urgent priority, the earlier due time.
fn merge(tx: &mut Tx<'_>, draft: &Draft<'_>) -> Result<JobId> {
    const MERGE: Statement = statement!(add::merge_waiting);
    let params = db::params![&draft.lock, &draft.key, draft.priority, draft.due];
    Ok(tx.one::<(JobId,)>(&MERGE, &params)?.0)
}
