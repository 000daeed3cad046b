//! Leases: a worker's right to all it holds, until a time. The lease is on the worker's row, so
//! that renewing it is one row however many jobs it runs.

use crate::catalog::Catalog;
use crate::engine;
use crate::error::{Error, Result};
use crate::id::{BatchId, JobId, StageId, WorkerId};
use crate::job::{Amounts, Carryover, Claimed, Lease};
use crate::rules::budget::Budgets;
use crate::rules::claim::{self, Request};
use crate::rules::counts::Counts;
use crate::rules::operator::hold::{self, HeldNames};
use crate::rules::running;
use crate::rules::settle::SettleBatch;
use db::{FromRow, Micros, Row, Statement, Tx, statement};

/// A job claimed by another worker and not started for this long may be taken over.
const IDLE_CLAIM: Micros = 1_000_000;

/// Why a worker ended that stopped in good order.
pub(crate) const STOPPED: &str = "stopped";

/// A process that wants to work.
#[derive(Debug, Clone, Default)]
pub struct NewWorker {
    /// How it is named in history.
    pub name: String,
    /// New at every start, so that two lives of one name are two workers.
    pub boot: String,
    /// The machine that it runs on.
    pub host: String,
    /// Its process id.
    pub pid: i64,
    /// The stages that it serves, as `pipeline/stage`.
    pub stages: Vec<String>,
    /// What there is of each resource in this process.
    pub capacity: Amounts,
    /// Work spaces it reaches.
    pub workspaces: Vec<String>,
}

/// Registers a worker and gives it its first lease.
pub fn register(
    tx: &mut Tx<'_>,
    now: Micros,
    worker: &NewWorker,
    lease: Micros,
) -> Result<WorkerId> {
    const INSERT: Statement = statement!(lease::insert_worker);
    let id = tx.next_ids("worker_ids", 1)?[0];
    tx.send(
        &INSERT,
        &db::params![
            id,
            &worker.name,
            &worker.boot,
            &worker.host,
            worker.pid,
            &serde_json::json!(worker.stages).to_string(),
            &serde_json::json!(worker.capacity).to_string(),
            &serde_json::json!(worker.workspaces).to_string(),
            now,
            now + lease
        ],
    )?;
    Ok(id)
}

/// Refuses while a worker has a lease: it would lose the jobs that it works on.
pub fn refuse_live(tx: &mut Tx<'_>, now: Micros) -> Result<()> {
    const LIVE: Statement = statement!(lease::live_workers);
    let live: Vec<(String, String, i64)> = tx.query(&LIVE, &db::params![now])?;
    if live.is_empty() {
        return Ok(());
    }
    let named = live.iter().map(|(name, host, pid)| format!("{name} (pid {pid} on {host})"));
    Err(Error::Refused(format!(
        "workers are at work: {}; stop them and try again. One that was killed counts until its lease has run out, within a minute",
        named.collect::<Vec<_>>().join(", ")
    )))
}

/// A job that the database says a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// The id of the job.
    pub job: JobId,
    /// The fencing token: it grows with every claim (I4).
    pub token: i64,
    /// Whether it has been asked to stop.
    pub cancel_requested: bool,
}

impl FromRow for HeldLease {
    fn from_row(row: &Row<'_>) -> db::Result<HeldLease> {
        Ok(HeldLease { job: row.get(0)?, token: row.get(1)?, cancel_requested: row.get(2)? })
    }
}

/// Renews a lease and says what the database thinks the worker holds.
pub fn renew(
    tx: &mut Tx<'_>,
    now: Micros,
    worker: WorkerId,
    lease: Micros,
) -> Result<Vec<HeldLease>> {
    const RENEW: Statement = statement!(lease::renew_lease);
    if tx.execute(&RENEW, &db::params![worker, now, now + lease])? == 0 {
        return Err(Error::LeaseLost(worker));
    }
    holdings(tx, worker)
}

/// Returns the leases that the database says a worker holds.
pub fn holdings(tx: &mut Tx<'_>, worker: WorkerId) -> Result<Vec<HeldLease>> {
    const HOLDINGS: Statement = statement!(lease::worker_holdings);
    Ok(tx.query(&HOLDINGS, &db::params![worker])?)
}

struct LostWorker {
    id: WorkerId,
    name: String,
    host: String,
    pid: i64,
}

impl FromRow for LostWorker {
    fn from_row(row: &Row<'_>) -> db::Result<LostWorker> {
        Ok(LostWorker { id: row.get(0)?, name: row.get(1)?, host: row.get(2)?, pid: row.get(3)? })
    }
}

/// Takes the jobs of one worker whose lease has run out and queues them again; None if there is no
/// such worker. `quiet` is how long the server must have been up: after an outage all
/// workers have missed a renewal, and get one full lease to renew.
pub fn reap(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    quiet: Option<Micros>,
) -> Result<Option<WorkerId>> {
    const EXPIRED: Statement = statement!(lease::expired_worker);
    if let Some(quiet) = quiet
        && engine::of(tx).server_uptime(tx)? < quiet
    {
        return Ok(None);
    }
    let Some(lost) = tx.first::<LostWorker>(&EXPIRED, &db::params![now])? else { return Ok(None) };
    let why = format!("worker {} (pid {} on {}) was lost", lost.name, lost.pid, lost.host);
    end(tx, now, catalog, lost.id, "rule", "lost: its lease ran out", &why)?;
    tracing::warn!(
        worker = lost.id.number(),
        name = lost.name,
        host = lost.host,
        pid = lost.pid,
        "worker lost; its jobs are queued again"
    );
    Ok(Some(lost.id))
}

/// Ends a worker that stops in good order; whatever it still holds is queued again.
pub fn deregister(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    worker: WorkerId,
    who: &str,
) -> Result<()> {
    end(tx, now, catalog, worker, who, STOPPED, "its worker stopped")
}

fn end(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    worker: WorkerId,
    who: &str,
    ended: &str,
    why: &str,
) -> Result<()> {
    const END: Statement = statement!(lease::end_worker);
    const LEASES: Statement = statement!(lease::worker_leases);
    // First, so that a claim under way is waited for and what it got is found here.
    tx.send(&END, &db::params![worker, now, ended])?;
    let held: Vec<(JobId, String, i64, Option<BatchId>)> =
        tx.query(&LEASES, &db::params![worker])?;
    let leases: Vec<Lease> = held
        .into_iter()
        .map(|(job, lock, token, batch)| Lease {
            job,
            lock,
            token,
            batch,
            stage: StageId::default(),
            probe: false,
        })
        .collect();
    Counts::lock(tx, leases.iter().filter_map(|l| l.batch))?;
    let mut work = SettleBatch::begin(tx, now, catalog, who)?;
    for lease in &leases {
        if let Some(run) = running::find(tx, worker, lease)? {
            if work.reservations {
                crate::rules::budget::release(tx, now, std::iter::once(lease.job))?;
            }
            let (pipeline, stage) = catalog.stage(run.stage)?;
            running::interrupt(tx, &mut work, pipeline, stage, lease, &run, why)?;
        }
    }
    work.end(tx, worker)
}

/// Batch, collection, targets, work space and priority of a job.
type Record = (Option<BatchId>, Option<String>, Option<String>, Option<String>, i64);

/// For a worker with nothing to do: takes jobs that lie in another's buffer. Safe, because starting
/// is a write that needs the token they had there. What a claim would skip is skipped here too: a
/// paused stage, a work space out of reach, more than the worker has.
pub fn take_over(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    request: Request<'_>,
) -> Result<Vec<Claimed>> {
    const IDLE: Statement = statement!(lease::idle_claims);
    const TAKE: Statement = statement!(lease::take_over);
    const DETAILS: Statement = statement!(lease::claimed_details);
    const RECORD: Statement = statement!(lease::job_record);
    const RESERVED: Statement = statement!(lease::job_reservations);
    const MOVE: Statement = statement!(lease::move_reservations);
    let (pipeline, stage) = catalog.stage(request.stage)?;
    let Some(context) = claim::look_round(tx, now, pipeline, stage, request)? else {
        return Ok(Vec::new());
    };
    let mut budgets = Budgets::load(tx, request.worker, &context.capacity)?;
    let held = if context.holds { hold::held_names_locked(tx)? } else { HeldNames::default() };
    // I9: a hold takes such jobs back, and until then they stay where they are.
    let is_held = |batch: Option<BatchId>, collection: Option<&str>| {
        hold::may_be_held(pipeline, stage, true) && held.of(batch, collection).is_some()
    };
    let limit = i64::try_from(request.limit).unwrap_or(i64::MAX);
    let idle: Vec<(JobId, String)> =
        tx.query(&IDLE, &db::params![stage.id, request.worker, now - IDLE_CLAIM, limit])?;
    let tokens = tx.next_range("tokens", idle.len())?;
    let mut claimed = Vec::new();
    for ((job, lock), token) in idle.into_iter().zip(tokens) {
        let reserved: Amounts = tx.query(&RESERVED, &db::params![job])?.into_iter().collect();
        let (batch, collection, _, workspace, _): Record = tx.one(&RECORD, &db::params![job])?;
        let reached = workspace.is_none_or(|w| context.workspaces.contains(&w));
        let stays = is_held(batch, collection.as_deref());
        if stays || !reached || !budgets.take_here(&reserved) {
            continue;
        }
        tx.send(&MOVE, &db::params![job, request.worker])?;
        tx.send(&TAKE, &db::params![&lock, job, request.worker, token, now])?;
        let rows: Vec<(JobId, String, Option<Vec<u8>>, Micros, i64)> =
            tx.each(&DETAILS, &db::params![stage.id], &[db::params![job]])?;
        let (batch, collection, targets, workspace, priority): Record =
            tx.one(&RECORD, &db::params![job])?;
        for (_, subject, payload, added_at, attempts) in rows {
            claimed.push(Claimed {
                lease: Lease {
                    job,
                    lock: lock.clone(),
                    token,
                    batch,
                    stage: stage.id,
                    probe: false,
                },
                pipeline: pipeline.id,
                stage: stage.id,
                subject,
                payload,
                collection: collection.clone(),
                targets: targets
                    .as_deref()
                    .map(|t| t.lines().map(str::to_string).collect())
                    .unwrap_or_default(),
                workspace: workspace.clone(),
                priority,
                added_at,
                attempt: attempts + 1,
                started: true,
                token_before: None,
                carryover: Carryover::default(),
            });
        }
    }
    Ok(claimed)
}
