//! Cancel: waiting and failed jobs end at once, a running one is asked to stop.

use super::{Actor, JobRow, find};
use crate::catalog::Catalog;
use crate::codes::Status;
use crate::error::{Error, Result};
use crate::id::{JobId, StageId, WorkerId};
use crate::rules::counts::Counts;
use crate::rules::ending::{self, Ending};
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line;
use db::{Micros, Statement, Tx, statement};
use std::collections::BTreeSet;

/// When a job is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It has ended.
    Now,
    /// It runs; it stops at its next checkpoint.
    Requested,
}

/// Cancels a waiting or failed job at once, and asks a running one to stop.
pub fn cancel(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
) -> Result<Cancelled> {
    let found = find(tx, job)?;
    refuse_if_too_late(catalog, &found)?;
    match found.status() {
        Status::Running => request(tx, now, catalog, actor, &found),
        Status::Succeeded => Err(Error::Refused(format!("job {job} has succeeded already"))),
        Status::Cancelled => Err(Error::Refused(format!("job {job} was cancelled already"))),
        _ => cancel_found(tx, now, catalog, actor, &found).map(|()| Cancelled::Now),
    }
}

/// An ingest that has begun recording can only go forward.
pub(super) fn refuse_if_too_late(catalog: &Catalog, found: &JobRow) -> Result<()> {
    let (pipeline, stage) = found.place(catalog)?;
    let Some(forward) = &pipeline.settings.forward_from else { return Ok(()) };
    let from = pipeline.stage_named(forward)?;
    let begun = found.owns || found.status() == Status::Failed;
    // A job that is held there was held before it began that stage.
    let at_the_door = found.status() == Status::Held && stage.position == from.position;
    if begun
        && !at_the_door
        && stage.position >= from.position
        && !matches!(found.status(), Status::Succeeded | Status::Cancelled)
    {
        return Err(Error::Refused(format!(
            "job {} is in {}, and from {} on it can only go forward",
            found.id, stage.name, from.name
        )));
    }
    Ok(())
}

fn request(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    found: &JobRow,
) -> Result<Cancelled> {
    const REQUEST: Statement = statement!(operator::request_cancel);
    if found.cancel_requested {
        return Err(Error::Refused(format!("job {} has been asked to stop already", found.id)));
    }
    tx.send(&REQUEST, &db::params![&found.lock, found.id, actor.who, actor.reason])?;
    let (pipeline, stage) = found.place(catalog)?;
    let mut journal = Journal::default();
    let event = Event::new(found.id, now, actor.who, "cancel requested")
        .from(stage.id, Status::Running)
        .to(stage.id, Status::Running);
    journal.note(pipeline, Weight::Always, event.why(actor.reason));
    journal.write(tx)?;
    if let Some(worker) = found.worker {
        tx.wake(worker_topic(worker));
    }
    Ok(Cancelled::Requested)
}

/// What a worker listens to for news about its own jobs.
pub fn worker_topic(worker: WorkerId) -> i64 {
    -worker.number()
}

/// Ends a job that is not running.
pub(crate) fn cancel_found(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    found: &JobRow,
) -> Result<()> {
    const LEAVE: Statement = statement!(operator::cancel_waiting);
    const RELEASE: Statement = statement!(running::release_lock);
    const UNFAIL: Statement = statement!(operator::delete_failure);
    let (pipeline, stage) = found.place(catalog)?;
    tx.send(&LEAVE, &db::params![found.id])?;
    tx.send(&RELEASE, &db::params![&found.lock, found.id])?;
    tx.send(&UNFAIL, &db::params![found.id])?;
    let (mut journal, mut counts) = (Journal::default(), Counts::default());
    let ending = Ending {
        job: found.id,
        stage: stage.id,
        from: found.status(),
        batch: found.batch,
        subject: &found.subject,
        lock: &found.lock,
    };
    ending::cancel(tx, now, pipeline, actor.who, actor.reason, &ending, &mut journal, &mut counts)?;
    journal.write(tx)?;
    counts.write(tx, now)?;
    line::promote(tx, now, &BTreeSet::from([found.lock.clone()]))
}

/// Cancels up to `limit` waiting jobs of a stage; how many there were.
pub fn empty(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    stage: StageId,
    limit: i64,
) -> Result<i64> {
    const IDS: Statement = statement!(operator::waiting_ids);
    let ids: Vec<(JobId,)> = tx.query(&IDS, &db::params![stage, limit])?;
    let mut done = 0;
    for (id,) in ids {
        let found = find(tx, id)?;
        // A job that a worker has claimed since goes on, and so does one that can only go forward.
        if refuse_if_too_late(catalog, &found).is_ok()
            && matches!(found.status(), Status::Queued | Status::Held)
            && found.waiting.is_some()
        {
            cancel_found(tx, now, catalog, actor, &found)?;
            done += 1;
        }
    }
    Ok(done)
}
