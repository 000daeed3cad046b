//! A job in a worker's hands, and the ways out of them. Every write here needs the current token
//! and the worker it was given to (I4).

use crate::catalog::{Pipeline, Stage};
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::job::{JobError, Lease};
use crate::rules::breaker;
use crate::rules::draft;
use crate::rules::ending::{self, Ending, Verdict};
use crate::rules::history::{Event, Weight};
use crate::rules::line::{self, Hopeful};
use crate::rules::replacing;
use crate::rules::settle::Work;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use std::collections::HashMap;

/// What `started` and `jobs` say of a run.
#[derive(Debug, Clone)]
pub struct Run {
    pub stage: i64,
    pub started: bool,
    /// Who asked it to stop, and why.
    pub cancel: Option<(String, String)>,
    pub probe: Option<String>,
    pub subject: String,
    pub priority: i64,
    pub collection: Option<String>,
    pub targets: Option<String>,
    pub workspace: Option<String>,
    pub needs: Option<String>,
    pub batch: Option<i64>,
    pub payload: Option<Vec<u8>>,
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
struct Found(i64, Run);

impl FromRow for Found {
    fn from_row(row: &Row<'_>) -> db::Result<Found> {
        Ok(Found(row.get(0)?, Run::from_row(row)?))
    }
}

/// The runs of leases that are still good, by token, each lease with the stage that may follow;
/// locked until the transaction ends.
pub(crate) fn find_all<'l>(
    tx: &mut Tx<'_>,
    worker: i64,
    leases: impl Iterator<Item = (&'l Lease, Option<i64>)>,
) -> Result<HashMap<i64, Run>> {
    const FIND: Statement = statement!(running::find_runs);
    let mut rows: Vec<(&Lease, Option<i64>)> = leases.collect();
    // One order for everyone, so that no two of them deadlock.
    rows.sort_unstable_by(|a, b| a.0.lock.cmp(&b.0.lock));
    let rows: Vec<[db::Value<'_>; 4]> = rows
        .iter()
        .map(|(lease, next)| db::params![&lease.lock, lease.job, lease.token, *next])
        .collect();
    let found = tx.each::<Found, 4>(&FIND, &db::params![worker], &rows)?;
    Ok(found.into_iter().map(|Found(token, run)| (token, run)).collect())
}

/// The run of a lease, if the lease is still good; locked until the transaction ends.
pub fn find(tx: &mut Tx<'_>, worker: i64, lease: &Lease) -> Result<Option<Run>> {
    Ok(find_all(tx, worker, std::iter::once((lease, None)))?.remove(&lease.token))
}

/// Starts claimed jobs: those whose lease is no longer good are not in the answer.
pub fn start(tx: &mut Tx<'_>, now: Micros, worker: i64, leases: &[Lease]) -> Result<Vec<i64>> {
    const START: Statement = statement!(running::start_runs);
    let rows: Vec<[db::Value<'_>; 3]> =
        leases.iter().map(|l| db::params![&l.lock, l.job, l.token]).collect();
    Ok(tx
        .each::<(i64,), 3>(&START, &db::params![now, worker], &rows)?
        .into_iter()
        .map(|r| r.0)
        .collect())
}

/// Says how far a run has come; false if the lease is gone.
pub fn progress(tx: &mut Tx<'_>, worker: i64, lease: &Lease, text: &str) -> Result<bool> {
    const PROGRESS: Statement = statement!(running::set_progress);
    Ok(tx.execute(&PROGRESS, &db::params![&lease.lock, lease.job, lease.token, worker, text])? == 1)
}

/// Says that a run saw an error and goes on, cleaning up; false if the lease is gone.
pub fn error_seen(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &crate::Catalog,
    worker: i64,
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

/// Keeps a durable mark of what a run has done; false if the lease is gone.
pub fn checkpoint(
    tx: &mut Tx<'_>,
    now: Micros,
    worker: i64,
    lease: &Lease,
    key: &str,
    value: &str,
) -> Result<bool> {
    let Some(run) = find(tx, worker, lease)? else { return Ok(false) };
    mark(tx, now, lease.job, run.stage, key, value)?;
    Ok(true)
}

/// The mark itself, for who knows that the lease is good.
pub(crate) fn mark(
    tx: &mut Tx<'_>,
    now: Micros,
    job: i64,
    stage: i64,
    key: &str,
    value: &str,
) -> Result<()> {
    const MARK: Statement = statement!(running::set_checkpoint);
    tx.send(&MARK, &db::params![job, stage, key, value, now])?;
    Ok(())
}

/// The marks an earlier run of the stage left.
pub fn checkpoints(tx: &mut Tx<'_>, job: i64, stage: i64) -> Result<Vec<(String, String)>> {
    const MARKS: Statement = statement!(running::job_checkpoints);
    Ok(tx.query(&MARKS, &db::params![job, stage])?)
}

/// Gives the lock up; the next in line is let through when the transaction's work is written.
pub(crate) fn release(tx: &mut Tx<'_>, work: &mut Work<'_>, lease: &Lease) -> Result<()> {
    const DELETE: Statement = statement!(running::release_lock);
    tx.send(&DELETE, &db::params![&lease.lock, lease.job])?;
    work.freed.insert(lease.lock.clone());
    Ok(())
}

pub(crate) fn fail(
    tx: &mut Tx<'_>,
    work: &mut Work<'_>,
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
    work: &mut Work<'_>,
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

/// How a run goes back to the queue.
pub(crate) struct Return<'a> {
    pub due: Micros,
    pub event: &'a str,
    pub why: &'a str,
    pub error: Option<&'a JobError>,
    pub blocked_on: Option<String>,
}

/// Back to waiting in the same stage. The job keeps its lock, unless it was asked to stop, or it
/// is in its first stage, of no batch, and was added again since: then the newer one goes instead.
pub(crate) fn back_to_queue(
    tx: &mut Tx<'_>,
    work: &mut Work<'_>,
    pipeline: &Pipeline,
    stage: &Stage,
    lease: &Lease,
    run: &Run,
    back: &Return<'_>,
) -> Result<Status> {
    const NEWER: Statement = statement!(line::waiting_of_key);
    const FREE: Statement = statement!(running::free_runs);
    if let Some((who, why)) = &run.cancel {
        return cancel(tx, work, pipeline, lease, run, who, why);
    }
    // Rows of one batch never supersede one another, and no other batch has the same key.
    let key = match run.batch {
        None => draft::coalesce_key(pipeline, &run.subject, &lease.lock, None),
        Some(_) => None,
    };
    if let Some(key) = key.filter(|_| stage.position == 0)
        && let Some((newer,)) = tx.first::<(i64,)>(&NEWER, &db::params![&lease.lock, &key])?
    {
        note_return(work, pipeline, stage, lease, back, Status::Cancelled);
        let (who, why) =
            (work.who.clone(), format!("superseded by job {newer}, which was added meanwhile"));
        let cancelled = cancel(tx, work, pipeline, lease, run, &who, &why)?;
        replacing::replaced(tx, work.now, lease.job, newer)?;
        return Ok(cancelled);
    }
    tx.send_each(&FREE, &[], &[db::params![&lease.lock, lease.job, stage.id]])?;
    let mut targets = run.targets.clone();
    if let Some(target) = back.error.and_then(|e| e.target.clone())
        && !targets.as_deref().unwrap_or_default().lines().any(|t| t == target)
    {
        // Known to need it from now on: its last error said so.
        let known = targets.filter(|t| !t.is_empty());
        targets = Some(known.map_or(target.clone(), |t| format!("{t}\n{target}")));
        remember_targets(tx, lease.job, targets.as_deref())?;
    }
    let hold = work.take_hold(tx, (pipeline, stage), lease.job, run)?;
    let state = match (&hold, &back.blocked_on, back.due > work.now) {
        (Some(_), ..) => State::Held,
        (None, Some(_), _) => State::Blocked,
        (None, None, true) => State::Delayed,
        (None, None, false) => State::Ready,
    };
    let row = WaitingRow {
        stage: stage.id,
        state,
        due: back.due,
        lock: &lease.lock,
        targets: targets.as_deref(),
        blocked_on: hold.as_ref().map(|h| h.by).or(back.blocked_on.as_deref()),
        why: Some(back.why),
    };
    insert_begun(tx, work.now, lease.job, run, &row)?;
    note_return(work, pipeline, stage, lease, back, Status::Queued);
    if let Some(hold) = hold {
        work.note_held(pipeline, lease.job, stage.id, &hold);
        return Ok(Status::Held);
    }
    tx.wake(stage.id);
    Ok(Status::Queued)
}

fn note_return(
    work: &mut Work<'_>,
    pipeline: &Pipeline,
    stage: &Stage,
    lease: &Lease,
    back: &Return<'_>,
    to: Status,
) {
    let event = Event::new(lease.job, work.now, &work.who, back.event)
        .from(stage.id, Status::Running)
        .token(lease.token);
    let event = if to == Status::Queued { event.to(stage.id, to) } else { event };
    match back.error {
        Some(error) => work.journal.note(pipeline, Weight::Always, event.error(error)),
        None => work.journal.note(pipeline, Weight::Step, event.why(back.why)),
    }
}

fn remember_targets(tx: &mut Tx<'_>, job: i64, targets: Option<&str>) -> Result<()> {
    const TARGETS: Statement = statement!(running::set_targets);
    tx.send(&TARGETS, &db::params![job, targets])?;
    Ok(())
}

pub(crate) struct WaitingRow<'a> {
    pub stage: i64,
    pub state: State,
    pub due: Micros,
    pub lock: &'a str,
    pub targets: Option<&'a str>,
    pub blocked_on: Option<&'a str>,
    pub why: Option<&'a str>,
}

fn insert_begun(
    tx: &mut Tx<'_>,
    now: Micros,
    job: i64,
    run: &Run,
    row: &WaitingRow<'_>,
) -> Result<()> {
    const INSERT: Statement = statement!(running::insert_begun);
    tx.send(
        &INSERT,
        &db::params![
            job,
            row.stage,
            row.state,
            run.priority,
            row.due,
            row.lock,
            run.batch,
            &run.collection,
            row.targets,
            &run.workspace,
            &run.needs,
            row.blocked_on,
            row.why,
            now
        ],
    )?;
    Ok(())
}

/// The run was cut short: counted on its own, and queued at once unless it keeps happening.
pub(crate) fn interrupt(
    tx: &mut Tx<'_>,
    work: &mut Work<'_>,
    pipeline: &Pipeline,
    stage: &Stage,
    lease: &Lease,
    run: &Run,
    why: &str,
) -> Result<Status> {
    const COUNT: Statement = statement!(running::count_interruption);
    breaker::probe_over(tx, work, run, None)?;
    let back = Return { due: work.now, event: "interrupted", why, error: None, blocked_on: None };
    if !run.started {
        // It never began, so nothing was interrupted.
        let back = Return { event: "given back", ..back };
        return back_to_queue(tx, work, pipeline, stage, lease, run, &back);
    }
    let (interruptions,): (i64,) = tx.one(&COUNT, &db::params![lease.job, stage.id])?;
    if interruptions > stage.settings.max_interruptions && run.cancel.is_none() {
        let error = JobError::new(
            "interrupted_too_often",
            format!(
                "its run was cut short {interruptions} times, last because {why}; see whether it is what kills its workers"
            ),
        );
        let verdict = Verdict {
            error: &error,
            note: "interrupted too often (max_interruptions)",
            recoverable: true,
        };
        return fail(tx, work, pipeline, lease, run, &verdict);
    }
    back_to_queue(tx, work, pipeline, stage, lease, run, &back)
}

/// On with another lock: at once if it is free, in line for it if not. The old one is given up.
pub(crate) fn relock(
    tx: &mut Tx<'_>,
    work: &mut Work<'_>,
    pipeline: &Pipeline,
    stage: &Stage,
    lease: &Lease,
    run: &Run,
    lock: &str,
) -> Result<Status> {
    const LOCK: Statement = statement!(running::set_lock);
    if lock.is_empty() || lock == lease.lock {
        return Err(Error::BadInput(format!("job {} cannot move to the lock `{lock}`", lease.job)));
    }
    if let Some((who, why)) = &run.cancel {
        return cancel(tx, work, pipeline, lease, run, who, why);
    }
    breaker::probe_over(tx, work, run, None)?;
    let hold = work.take_hold(tx, (pipeline, stage), lease.job, run)?;
    release(tx, work, lease)?;
    tx.send(&LOCK, &db::params![lease.job, lock])?;
    let row = WaitingRow {
        stage: stage.id,
        state: if hold.is_some() { State::Held } else { State::Parked },
        due: work.now,
        lock,
        targets: run.targets.as_deref(),
        blocked_on: hold.as_ref().map(|h| h.by),
        why: None,
    };
    insert_begun(tx, work.now, lease.job, run, &row)?;
    if hold.is_none() {
        let hopeful = Hopeful { id: lease.job, stage: stage.id, lock: lock.to_string() };
        line::make_ready(tx, work.now, &[hopeful])?;
    }
    let event = Event::new(lease.job, work.now, &work.who, "moved to another lock")
        .from(stage.id, Status::Running)
        .to(stage.id, Status::Queued);
    work.journal.note(
        pipeline,
        Weight::Always,
        event.token(lease.token).why(format!("from {} to {lock}", lease.lock)),
    );
    if let Some(hold) = hold {
        work.note_held(pipeline, lease.job, stage.id, &hold);
        return Ok(Status::Held);
    }
    Ok(Status::Queued)
}
