//! What people do: every action takes who and why, is refused with a reason or done whole, and is
//! kept in history.

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
use crate::error::{Error, Result};
use db::{FromRow, Micros, Row, Statement, Tx, statement};

/// Someone who acts, and why.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    pub who: &'a str,
    pub reason: &'a str,
}

/// A job wherever it is: waiting, started, failed or ended.
#[derive(Debug, Clone)]
pub struct Whole {
    pub id: i64,
    pub pipeline: i64,
    pub subject: String,
    pub lock: String,
    pub batch: Option<i64>,
    pub collection: Option<String>,
    pub priority: i64,
    recorded: Status,
    ended_stage: i64,
    pub waiting: Option<State>,
    waiting_stage: Option<i64>,
    pub begun: bool,
    pub due: Option<Micros>,
    pub blocked_on: Option<String>,
    /// Owns its lock.
    pub owns: bool,
    pub worker: Option<i64>,
    started_stage: Option<i64>,
    pub cancel_requested: bool,
}

impl FromRow for Whole {
    fn from_row(row: &Row<'_>) -> db::Result<Whole> {
        let state: Option<i64> = row.get(9)?;
        Ok(Whole {
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
            owns: row.get::<Option<i64>>(14)?.is_some(),
            worker: row.get(15)?,
            started_stage: row.get(14)?,
            cancel_requested: row.get::<Option<String>>(16)?.is_some(),
        })
    }
}

impl Whole {
    pub fn status(&self) -> Status {
        match (self.recorded, self.waiting, self.worker) {
            (Status::Queued, Some(State::Held), _) => Status::Held,
            (Status::Queued, _, Some(_)) => Status::Running,
            (recorded, ..) => recorded,
        }
    }

    pub fn stage_id(&self) -> i64 {
        self.waiting_stage.or(self.started_stage).unwrap_or(self.ended_stage)
    }

    pub fn place<'c>(&self, catalog: &'c Catalog) -> Result<(&'c Pipeline, &'c Stage)> {
        catalog.stage(self.stage_id())
    }
}

/// Finds a job and locks where it is, so that what is decided about it stays true.
pub fn find(tx: &mut Tx<'_>, job: i64) -> Result<Whole> {
    engine::of(tx).find_job(tx, job)
}

/// Looks a job up without locking anything.
pub fn look(tx: &mut Tx<'_>, job: i64) -> Result<Whole> {
    const FIND: Statement = statement!(operator::find_job);
    let hint = "`accession jobs list` shows the jobs there are";
    tx.first(&FIND, &db::params![job])?.ok_or_else(|| Error::unknown("job", job, hint))
}

/// Waits for claims under way, and keeps others out until the transaction ends (I9).
fn stop_claims(tx: &mut Tx<'_>) -> Result<()> {
    engine::of(tx).stop_claims(tx)
}
