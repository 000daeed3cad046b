//! Runs that end and leave their job in the queue: back to waiting, cut short, or on with another lock.

use super::{Run, cancel, fail, release};
use crate::catalog::{Pipeline, Stage};
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::error_code::ErrorCode;
use crate::id::{JobId, StageId};
use crate::job::{JobError, Lease};
use crate::rules::breaker;
use crate::rules::draft;
use crate::rules::ending::Verdict;
use crate::rules::history::{Event, Weight};
use crate::rules::line::{self, Candidate};
use crate::rules::replacing;
use crate::rules::settle::SettleBatch;
use db::{Micros, Statement, Tx, statement};

/// How a run goes back to the queue.
pub(crate) struct Return<'a> {
    /// When it may be claimed.
    pub due: Micros,
    /// What happened.
    pub event: &'a str,
    /// Why, in a sentence.
    pub why: &'a str,
    /// What went wrong, if something did.
    pub error: Option<&'a JobError>,
    /// What it waits for: a target, a resource or what holds it.
    pub blocked_on: Option<String>,
}

/// Back to waiting in the same stage. The job keeps its lock, unless it was asked to stop, or it
/// is in its first stage, of no batch, and was added again since: then the newer one goes instead.
pub(crate) fn back_to_queue(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
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
        && let Some((newer,)) = tx.first::<(JobId,)>(&NEWER, &db::params![&lease.lock, &key])?
    {
        note_return(work, pipeline, stage, lease, back, Status::Cancelled);
        let (who, why) =
            (work.who.clone(), format!("superseded by job {newer}, which was added since"));
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
    work: &mut SettleBatch<'_>,
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

fn remember_targets(tx: &mut Tx<'_>, job: JobId, targets: Option<&str>) -> Result<()> {
    const TARGETS: Statement = statement!(running::set_targets);
    tx.send(&TARGETS, &db::params![job, targets])?;
    Ok(())
}

struct WaitingRow<'a> {
    /// The id of the stage.
    pub stage: StageId,
    /// Its state.
    pub state: State,
    /// When it may be claimed.
    pub due: Micros,
    /// What no two jobs may own at the same time.
    pub lock: &'a str,
    /// Outside things that it is known to need.
    pub targets: Option<&'a str>,
    /// What it waits for: a target, a resource or what holds it.
    pub blocked_on: Option<&'a str>,
    /// Why, in a sentence.
    pub why: Option<&'a str>,
}

fn insert_begun(
    tx: &mut Tx<'_>,
    now: Micros,
    job: JobId,
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
    work: &mut SettleBatch<'_>,
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
            ErrorCode::InterruptedTooOften,
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
    work: &mut SettleBatch<'_>,
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
        let hopeful = Candidate { id: lease.job, stage: stage.id, lock: lock.to_string() };
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
