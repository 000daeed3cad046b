//! The steps on PostgreSQL: concurrent transactions, and one round trip for as much as possible.

use super::{
    Claimant, Entered, INSERT_WAITING, LockRequest, Steps, lock_params, take_contested,
    waiting_rows,
};
use crate::catalog::{Pipeline, Stage};
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::id::{BatchId, JobId, PipelineId, StageId};
use crate::rules::draft::Draft;
use crate::rules::line;
use crate::rules::operator::{JobRow, look};
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeSet, HashMap};

/// How often a job that moves between two statements is looked up again.
const FIND_TRIES_MAX: usize = 8;

pub(super) struct Postgres;

impl Steps for Postgres {
    fn enter_pipeline(&self, tx: &mut Tx<'_>, pipeline: PipelineId) -> Result<()> {
        const ENTER: Statement = statement!(add::enter_pipeline);
        Ok(tx.send(&ENTER, &db::params![pipeline])?)
    }

    fn close_pipeline(&self, tx: &mut Tx<'_>, pipeline: PipelineId) -> Result<()> {
        const CLOSE: Statement = statement!(pipelines::close_pipeline);
        Ok(tx.send(&CLOSE, &db::params![pipeline])?)
    }

    fn enter_claims(&self, tx: &mut Tx<'_>) -> Result<()> {
        const ENTER: Statement = statement!(claim::enter_claims);
        Ok(tx.send(&ENTER, &[])?)
    }

    fn stop_claims(&self, tx: &mut Tx<'_>) -> Result<()> {
        const STOP: Statement = statement!(claim::stop_claims);
        Ok(tx.send(&STOP, &[])?)
    }

    /// Two claims at a time: claims of hundreds of jobs each would otherwise spend their time
    /// stepping over rows that the others have locked.
    fn enter_lane(&self, tx: &mut Tx<'_>, stage: StageId) -> Result<bool> {
        const LANE: Statement = statement!(claim::claim_lane);
        Ok(tx.one::<(bool,)>(&LANE, &db::params![stage])?.0)
    }

    fn lock_batches(&self, tx: &mut Tx<'_>, ids: &[BatchId]) -> Result<()> {
        const LOCK: Statement = statement!(batch::lock_batch);
        for id in ids {
            tx.send(&LOCK, &[Value::from(id)])?;
        }
        Ok(())
    }

    fn lock_resources(&self, tx: &mut Tx<'_>) -> Result<()> {
        const LOCK: Statement = statement!(budget::lock_resources);
        Ok(tx.send(&LOCK, &[])?)
    }

    fn find_job(&self, tx: &mut Tx<'_>, job: JobId) -> Result<JobRow> {
        const LOCK: Statement = statement!(operator::lock_job);
        // A job that moved between the two statements is looked up again.
        for _ in 0..FIND_TRIES_MAX {
            let locked: Vec<(String,)> = tx.query(&LOCK, &db::params![job])?;
            let found = look(tx, job)?;
            let has = |what: &str| locked.iter().any(|(l,)| l == what);
            if found.waiting.is_some() == has("waiting")
                && found.owns == has("lease")
                && (found.status() == Status::Failed) == has("failed")
            {
                return Ok(found);
            }
        }
        Err(Error::Db(db::Error::Collision(format!("job {job} keeps moving"))))
    }

    fn history_ids(&self, _: &mut Tx<'_>, count: usize) -> Result<Vec<Option<i64>>> {
        Ok(vec![None; count])
    }

    fn server_uptime(&self, tx: &mut Tx<'_>) -> Result<Micros> {
        const UPTIME: Statement = statement!(lease::server_uptime);
        Ok(tx.one::<(Micros,)>(&UPTIME, &[])?.0)
    }

    /// The first of each line is locked before it is decided about, waiting for the transaction that
    /// has it: two transactions that each take a row out of one line would otherwise both leave the
    /// next one to the other, or promote a row that is just being cancelled.
    fn promote(&self, tx: &mut Tx<'_>, now: Micros, locks: &BTreeSet<String>) -> Result<()> {
        const WANTED: Statement = statement!(line::wanted_locks);
        const PROMOTE: Statement = statement!(line::promote);
        const STATE: Statement = statement!(line::set_state);
        // Most freed locks have no job behind them, and a read is cheaper than a lock.
        let rows: Vec<[Value<'_>; 1]> = locks.iter().map(|lock| [Value::from(lock)]).collect();
        let wanted: Vec<(String,)> = tx.each(&WANTED, &[], &rows)?;
        let rows: Vec<[Value<'_>; 1]> = wanted.iter().map(|(lock,)| [Value::from(lock)]).collect();
        let mut promoted: Vec<[Value<'_>; 2]> = Vec::new();
        for (id, stage, state) in tx.each::<(JobId, StageId, State), 1>(&PROMOTE, &[], &rows)? {
            // A claim may have skipped a ready row while it was locked, so its stage is woken too.
            tx.wake(stage);
            if state == State::Parked {
                promoted.push([Value::from(id), Value::from(State::Ready)]);
            }
        }
        Ok(tx.send_each(&STATE, &[Value::Int(now)], &promoted)?)
    }

    fn add_one(
        &self,
        tx: &mut Tx<'_>,
        now: Micros,
        pipeline: &Pipeline,
        who: &str,
        draft: &Draft<'_>,
    ) -> Result<Option<(JobId, JobId)>> {
        const ADD: Statement = statement!(add::add_at_once);
        self.enter_pipeline(tx, pipeline.id)?;
        let params = db::params![
            now,
            pipeline.first().id,
            pipeline.id,
            draft.state,
            draft.priority,
            draft.due,
            &draft.lock,
            &draft.key,
            draft.job.batch,
            &draft.job.collection,
            &draft.targets,
            &draft.job.workspace,
            &draft.needs,
            &draft.job.subject,
            draft.payload,
            who
        ];
        Ok(tx.first(&ADD, &params)?)
    }

    fn enter_adds(
        &self,
        tx: &mut Tx<'_>,
        pipeline: &Pipeline,
        drafts: &[Draft<'_>],
    ) -> Result<Option<Entered>> {
        const ADDS: Statement = statement!(add::enter_adds);
        self.enter_pipeline(tx, pipeline.id)?;
        let rows: Vec<[Value<'_>; 1]> =
            drafts.iter().map(|d| [Value::from(d.lock_wanted())]).collect();
        let common = db::params![pipeline.id, !pipeline.coalesces];
        let (mut ids, mut in_line, mut holds) =
            (Vec::with_capacity(drafts.len()), Vec::new(), false);
        for (id, held, lock, owns) in
            tx.each::<(JobId, bool, Option<String>, bool), 1>(&ADDS, &common, &rows)?
        {
            match lock {
                Some(lock) => in_line.push((lock, id, owns)),
                None => ids.push(id),
            }
            holds |= held;
        }
        if ids.len() < drafts.len() {
            return Ok(None);
        }
        ids.sort_unstable();
        Ok(Some(Entered { ids, holds, ahead: line::in_line(in_line) }))
    }

    /// In one order for all transactions, so that two bulk adds of the same subjects cannot deadlock.
    fn insert_waiting(
        &self,
        tx: &mut Tx<'_>,
        now: Micros,
        stage: &Stage,
        drafts: &[Draft<'_>],
    ) -> Result<HashMap<JobId, JobId>> {
        let mut order: Vec<&Draft<'_>> = drafts.iter().collect();
        order.sort_by(|a, b| (&a.lock, &a.key, a.id).cmp(&(&b.lock, &b.key, b.id)));
        let common = db::params![now, stage.id];
        let ids: Vec<(JobId, String, Option<String>)> =
            tx.each(&INSERT_WAITING, &common, &waiting_rows(&order))?;
        let waiting: HashMap<(&str, &str), JobId> = ids
            .iter()
            .filter_map(|(id, lock, key)| Some(((lock.as_str(), key.as_deref()?), *id)))
            .collect();
        let merged = |d: &Draft<'_>| {
            let id = *waiting.get(&(d.lock.as_str(), d.key.as_deref()?))?;
            (id != d.id).then_some((d.id, id))
        };
        Ok(drafts.iter().filter_map(merged).collect())
    }

    /// Jobs that own no lock yet take theirs in one statement that fails as a whole if one of the
    /// locks is taken; then the closure runs again, and takes them one by one.
    fn take_locks(
        &self,
        tx: &mut Tx<'_>,
        claimant: Claimant,
        wanted: &[LockRequest<'_>],
    ) -> Result<Vec<bool>> {
        const TAKE_NEW: Statement = statement!(claim::take_new_locks);
        if tx.has_met_duplicate() || wanted.iter().any(|w| w.begun) {
            return take_contested(tx, claimant, wanted);
        }
        let (common, rows) = lock_params(claimant, wanted);
        tx.send_each(&TAKE_NEW, &common, &rows)?;
        Ok(vec![true; wanted.len()])
    }
}
