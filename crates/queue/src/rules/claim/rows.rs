//! What a claim reads: its context, and the rows of ready jobs.

use super::Request;
use crate::error::{Error, Result};
use crate::id::{BatchId, JobId};
use crate::job::Amounts;
use db::{FromRow, Micros, Row};

/// What the claim finds when it begins.
pub(crate) struct Context {
    /// When its lease runs out.
    pub lease_until: Micros,
    pub ended: bool,
    /// What the worker has of each resource.
    pub capacity: Amounts,
    /// Work spaces that it reaches.
    pub workspaces: Vec<String>,
    /// Whether the stage is paused.
    pub paused: bool,
    /// Whether anything is held.
    pub holds: bool,
    /// Outside things that it is known to need.
    pub targets: bool,
    /// When it may be claimed.
    pub due: bool,
    /// Failed jobs, by pipeline and code.
    pub failures: bool,
    pub budgets: bool,
    /// When the first delayed job is due.
    pub next_due: Option<Micros>,
}

impl FromRow for Context {
    fn from_row(row: &Row<'_>) -> db::Result<Context> {
        let broken =
            |e: serde_json::Error| db::Error::Other("a worker's row".to_string(), e.to_string());
        let (capacity, workspaces): (String, String) = (row.get(2)?, row.get(3)?);
        Ok(Context {
            lease_until: row.get(0)?,
            ended: row.get(1)?,
            capacity: serde_json::from_str(&capacity).map_err(broken)?,
            workspaces: serde_json::from_str(&workspaces).map_err(broken)?,
            paused: row.get(4)?,
            holds: row.get(5)?,
            targets: row.get(6)?,
            due: row.get(7)?,
            failures: row.get(8)?,
            budgets: row.get(9)?,
            next_due: row.get(10)?,
        })
    }
}

/// A ready row.
#[derive(Debug, Clone)]
pub(crate) struct ReadyJob {
    /// Its id.
    pub id: JobId,
    /// From 0 (first) to 99 (last).
    pub priority: i64,
    /// When it may be claimed.
    pub due: Micros,
    /// What no two jobs may own at the same time.
    pub lock: String,
    /// Whether it has run before.
    pub begun: bool,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// Outside things that it is known to need.
    pub targets: Option<String>,
    /// The work space where its bytes are; only workers that reach it claim it.
    pub workspace: Option<String>,
    /// Resources that it needs beyond those of its stage.
    pub needs: Option<String>,
    /// None if its record is gone.
    pub subject: Option<String>,
    /// What the job carries, at most `payload_bytes_max` bytes.
    pub payload: Option<Vec<u8>>,
    /// When it was added.
    pub added_at: Option<Micros>,
    /// Runs that ended in an error since the last requeue.
    pub attempts: Option<i64>,
    /// The first of the tokens for the leases to be, where the engine gives them out with the page.
    pub first_token: Option<i64>,
    /// That of its last run.
    pub token_before: Option<i64>,
    pub probe: Option<String>,
}

impl FromRow for ReadyJob {
    fn from_row(row: &Row<'_>) -> db::Result<ReadyJob> {
        Ok(ReadyJob {
            id: row.get(0)?,
            priority: row.get(1)?,
            due: row.get(2)?,
            lock: row.get(3)?,
            begun: row.get(4)?,
            batch: row.get(5)?,
            collection: row.get(6)?,
            targets: row.get(7)?,
            workspace: row.get(8)?,
            needs: row.get(9)?,
            subject: row.get(10)?,
            payload: row.get(11)?,
            added_at: row.get(12)?,
            attempts: row.get(13)?,
            first_token: row.get(14)?,
            token_before: row.get(15)?,
            probe: None,
        })
    }
}

impl Context {
    /// None if nothing is handed out.
    pub fn admit(self, now: Micros, request: Request<'_>) -> Result<Option<Context>> {
        if self.ended || self.lease_until < now {
            return Err(Error::LeaseLost(request.worker));
        }
        Ok((!self.paused && request.limit > 0).then_some(self))
    }
}
