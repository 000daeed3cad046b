//! What an operator does: every action takes who and why, is refused with a reason or done whole, and
//! is kept in history.

pub mod cancel;
pub mod discard;
pub mod hold;
pub mod pause;
pub mod requeue;
pub mod retry;
pub mod review;

use crate::catalog::{Catalog, Pipeline, Stage};
use crate::codes::{State, Status};
use crate::engine;
use crate::error::{Entity, Error, Result};
use crate::id::{BatchId, JobId, PipelineId, StageId, WorkerId};
use db::{FromRow, Micros, Row, Statement, Tx, statement};

/// Someone who acts, and why.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// Who acts or acted.
    pub who: &'a str,
    /// Why.
    pub reason: &'a str,
}

/// A job wherever it is: waiting, started, failed or ended.
#[derive(Debug, Clone)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// The id of its pipeline.
    pub pipeline: PipelineId,
    /// What the job is about.
    pub subject: String,
    /// What no two jobs may own at the same time.
    pub lock: String,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// From 0 (first) to 99 (last).
    pub priority: i64,
    recorded: Status,
    ended_stage: StageId,
    /// Why it waits; None if it does not.
    pub waiting: Option<State>,
    waiting_stage: Option<StageId>,
    /// Whether it has run before.
    pub begun: bool,
    /// When it may be claimed.
    pub due: Option<Micros>,
    /// What it waits for: a target, a resource or what holds it.
    pub blocked_on: Option<String>,
    /// Owns its lock.
    pub owns: bool,
    /// The id of the worker.
    pub worker: Option<WorkerId>,
    started_stage: Option<StageId>,
    /// Whether it has been asked to stop.
    pub cancel_requested: bool,
}

impl FromRow for JobRow {
    fn from_row(row: &Row<'_>) -> db::Result<JobRow> {
        let state: Option<i64> = row.get(9)?;
        Ok(JobRow {
            id: row.get(0)?,
            pipeline: row.get(1)?,
            subject: row.get(2)?,
            lock: row.get(3)?,
            batch: row.get(4)?,
            collection: row.get(5)?,
            priority: row.get(6)?,
            recorded: row.get(7)?,
            ended_stage: row.get(8)?,
            waiting: state.and_then(State::from_number),
            waiting_stage: row.get(10)?,
            begun: row.get::<Option<i64>>(11)?.is_some_and(|b| b != 0),
            due: row.get(12)?,
            blocked_on: row.get(13)?,
            owns: row.get::<Option<StageId>>(14)?.is_some(),
            worker: row.get(15)?,
            started_stage: row.get(14)?,
            cancel_requested: row.get::<Option<String>>(16)?.is_some(),
        })
    }
}

impl JobRow {
    /// Returns the status that people see.
    pub fn status(&self) -> Status {
        match (self.recorded, self.waiting, self.worker) {
            (Status::Queued, Some(State::Held), _) => Status::Held,
            (Status::Queued, _, Some(_)) => Status::Running,
            (recorded, ..) => recorded,
        }
    }

    /// Returns the stage where it is, or where it ended.
    pub fn stage_id(&self) -> StageId {
        self.waiting_stage.or(self.started_stage).unwrap_or(self.ended_stage)
    }

    /// Returns the pipeline and stage where it is.
    pub fn place<'c>(&self, catalog: &'c Catalog) -> Result<(&'c Pipeline, &'c Stage)> {
        catalog.stage(self.stage_id())
    }
}

/// Finds a job and locks where it is, so that what is decided about it stays true.
pub fn find(tx: &mut Tx<'_>, job: JobId) -> Result<JobRow> {
    engine::of(tx).find_job(tx, job)
}

/// Looks a job up without locking anything.
pub fn look(tx: &mut Tx<'_>, job: JobId) -> Result<JobRow> {
    const FIND: Statement = statement!(operator::find_job);
    let hint = "`accession jobs list` shows the jobs there are";
    tx.first(&FIND, &db::params![job])?.ok_or_else(|| Error::unknown(Entity::Job, job, hint))
}

/// Waits for claims under way, and keeps others out until the transaction ends (I9).
fn stop_claims(tx: &mut Tx<'_>) -> Result<()> {
    engine::of(tx).stop_claims(tx)
}
