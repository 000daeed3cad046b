//! Running jobs, and the ways in which a run leaves its worker. Every write here needs the current token
//! and its worker (I4).

mod returning;

pub(crate) use returning::{Return, back_to_queue, interrupt, relock};

use crate::catalog::Pipeline;
use crate::codes::Status;
use crate::error::Result;
use crate::id::{BatchId, JobId, StageId, WorkerId};
use crate::job::{JobError, Lease};
use crate::rules::breaker;
use crate::rules::ending::{self, Ending, Verdict};
use crate::rules::history::{Event, Weight};
use crate::rules::settle::SettleBatch;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use std::collections::HashMap;

/// A run, from `leases` and `job_records`.
#[derive(Debug, Clone)]
pub struct Run {
    /// The id of the stage.
    pub stage: StageId,
    /// Whether the run has begun; otherwise it is in a buffer.
    pub started: bool,
    /// Who asked it to stop, and why.
    pub cancel: Option<(String, String)>,
    /// The target that it probes.
    pub probe: Option<String>,
    /// What the job is about.
    pub subject: String,
    /// From 0 (first) to 99 (last).
    pub priority: i64,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// Outside things that it is known to need.
    pub targets: Option<String>,
    /// The work space where its bytes are; only workers that reach it claim it.
    pub workspace: Option<String>,
    /// Resources that it needs beyond those of its stage.
    pub needs: Option<String>,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// What the job carries, at most `payload_bytes_max` bytes.
    pub payload: Option<Vec<u8>>,
    /// When it was added.
    pub added_at: Micros,
    /// How often the stage after this one has been tried since the last requeue.
    pub attempts_next: i64,
    /// The token of the lease that may follow, where the engine gives it out with the row.
    pub token_next: Option<i64>,
}

impl FromRow for Run {
    fn from_row(row: &Row<'_>) -> db::Result<Run> {
        let (by, why): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
        Ok(Run {
            stage: row.get(1)?,
            started: row.get(2)?,
            cancel: by.map(|by| (by, why.unwrap_or_default())),
            probe: row.get(5)?,
            subject: row.get(6)?,
            priority: row.get(7)?,
            collection: row.get(8)?,
            targets: row.get(9)?,
            workspace: row.get(10)?,
            needs: row.get(11)?,
            batch: row.get(12)?,
            payload: row.get(13)?,
            added_at: row.get(14)?,
            attempts_next: row.get::<Option<i64>>(15)?.unwrap_or(0),
            token_next: row.get(16)?,
        })
    }
}

/// A run and its token.
struct FoundRun(i64, Run);

impl FromRow for FoundRun {
    fn from_row(row: &Row<'_>) -> db::Result<FoundRun> {
        Ok(FoundRun(row.get(0)?, Run::from_row(row)?))
    }
}

/// The runs of leases that are still good, by token, each lease with the stage that may follow;
/// locked until the transaction ends.
pub(crate) fn find_all<'l>(
    tx: &mut Tx<'_>,
    worker: WorkerId,
    leases: impl Iterator<Item = (&'l Lease, Option<StageId>)>,
) -> Result<HashMap<i64, Run>> {
    const FIND: Statement = statement!(running::find_runs);
    let mut rows: Vec<(&Lease, Option<StageId>)> = leases.collect();
    // One order for all transactions, so that two cannot deadlock.
    rows.sort_unstable_by(|a, b| a.0.lock.cmp(&b.0.lock));
    let rows: Vec<[db::Value<'_>; 4]> = rows
        .iter()
        .map(|(lease, next)| db::params![&lease.lock, lease.job, lease.token, *next])
        .collect();
    let found = tx.each::<FoundRun, 4>(&FIND, &db::params![worker], &rows)?;
    Ok(found.into_iter().map(|FoundRun(token, run)| (token, run)).collect())
}

/// The run of a lease, if the lease is still good; locked until the transaction ends.
pub fn find(tx: &mut Tx<'_>, worker: WorkerId, lease: &Lease) -> Result<Option<Run>> {
    Ok(find_all(tx, worker, std::iter::once((lease, None)))?.remove(&lease.token))
}

/// Starts claimed jobs: those whose lease is no longer good are not in the answer.
pub fn start(
    tx: &mut Tx<'_>,
    now: Micros,
    worker: WorkerId,
    leases: &[Lease],
) -> Result<Vec<JobId>> {
    const START: Statement = statement!(running::start_runs);
    let rows: Vec<[db::Value<'_>; 3]> =
        leases.iter().map(|l| db::params![&l.lock, l.job, l.token]).collect();
    Ok(tx
        .each::<(JobId,), 3>(&START, &db::params![now, worker], &rows)?
        .into_iter()
        .map(|r| r.0)
        .collect())
}

/// Says how far a run has come; false if the lease is gone.
pub fn progress(tx: &mut Tx<'_>, worker: WorkerId, lease: &Lease, text: &str) -> Result<bool> {
    const PROGRESS: Statement = statement!(running::set_progress);
    Ok(tx.execute(&PROGRESS, &db::params![&lease.lock, lease.job, lease.token, worker, text])? == 1)
}

/// Says that a run saw an error and goes on, cleaning up; false if the lease is gone.
pub fn error_seen(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &crate::Catalog,
    worker: WorkerId,
    who: &str,
    lease: &Lease,
    error: &JobError,
) -> Result<bool> {
    const SEEN: Statement = statement!(running::set_error_seen);
    let Some(run) = find(tx, worker, lease)? else { return Ok(false) };
    let (pipeline, stage) = catalog.stage(run.stage)?;
    tx.send(&SEEN, &db::params![&lease.lock, lease.job, lease.token, worker, &error.message])?;
    let mut journal = crate::rules::history::Journal::default();
    let event = Event::new(lease.job, now, who, "error seen, still working")
        .from(stage.id, Status::Running)
        .to(stage.id, Status::Running);
    journal.note(pipeline, Weight::Always, event.error(error).token(lease.token));
    journal.write(tx)?;
    Ok(true)
}

/// Writes a checkpoint of a run; returns false if the lease is gone.
pub fn checkpoint(
    tx: &mut Tx<'_>,
    now: Micros,
    worker: WorkerId,
    lease: &Lease,
    key: &str,
    value: &str,
) -> Result<bool> {
    let Some(run) = find(tx, worker, lease)? else { return Ok(false) };
    mark(tx, now, lease.job, run.stage, key, value)?;
    Ok(true)
}

/// Writes the checkpoint for a caller that knows that the lease is good.
pub(crate) fn mark(
    tx: &mut Tx<'_>,
    now: Micros,
    job: JobId,
    stage: StageId,
    key: &str,
    value: &str,
) -> Result<()> {
    const MARK: Statement = statement!(running::set_checkpoint);
    tx.send(&MARK, &db::params![job, stage, key, value, now])?;
    Ok(())
}

/// Returns the checkpoints of earlier runs of the stage.
pub fn checkpoints(tx: &mut Tx<'_>, job: JobId, stage: StageId) -> Result<Vec<(String, String)>> {
    const MARKS: Statement = statement!(running::job_checkpoints);
    Ok(tx.query(&MARKS, &db::params![job, stage])?)
}

/// Gives the lock up; the next in line is let through when the transaction's work is written.
pub(crate) fn release(tx: &mut Tx<'_>, work: &mut SettleBatch<'_>, lease: &Lease) -> Result<()> {
    const DELETE: Statement = statement!(running::release_lock);
    tx.send(&DELETE, &db::params![&lease.lock, lease.job])?;
    work.freed.insert(lease.lock.clone());
    Ok(())
}

pub(crate) fn fail(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    pipeline: &Pipeline,
    lease: &Lease,
    run: &Run,
    verdict: &Verdict<'_>,
) -> Result<Status> {
    if let Some((who, why)) = &run.cancel {
        return cancel(
            tx,
            work,
            pipeline,
            lease,
            run,
            who,
            &format!("{why}; it had failed: {}", verdict.error.message),
        );
    }
    release(tx, work, lease)?;
    work.forget_hold(tx, lease.job)?;
    let ending = ending_of(lease, run);
    let who = work.who.clone();
    ending::fail(
        tx,
        work.now,
        pipeline,
        &who,
        &ending,
        verdict,
        &mut work.journal,
        &mut work.counts,
    )?;
    work.failures = true;
    Ok(Status::Failed)
}

pub(crate) fn cancel(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    pipeline: &Pipeline,
    lease: &Lease,
    run: &Run,
    who: &str,
    why: &str,
) -> Result<Status> {
    breaker::probe_over(tx, work, run, None)?;
    release(tx, work, lease)?;
    work.forget_hold(tx, lease.job)?;
    ending::cancel(
        tx,
        work.now,
        pipeline,
        who,
        why,
        &ending_of(lease, run),
        &mut work.journal,
        &mut work.counts,
    )?;
    Ok(Status::Cancelled)
}

fn ending_of<'a>(lease: &'a Lease, run: &'a Run) -> Ending<'a> {
    Ending {
        job: lease.job,
        stage: run.stage,
        from: Status::Running,
        batch: run.batch,
        subject: &run.subject,
        lock: &lease.lock,
    }
}
