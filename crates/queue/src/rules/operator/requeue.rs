//! Requeue: a person sends a job again, to the stage it failed in or an earlier one.

use super::{Actor, JobRow, find};
use crate::catalog::{Catalog, Pipeline, Stage};
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::id::{JobId, StageId};
use crate::rules::counts::Counts;
use crate::rules::draft;
use crate::rules::ending;
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line::{self, Candidate};
use crate::rules::operator::hold;
use crate::rules::preparing;
use crate::rules::state;
use db::{Micros, Statement, Tx, statement};

/// Where a requeued job is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeued {
    /// The id of the job.
    pub job: JobId,
    /// The stage that it resumes at.
    pub stage: StageId,
    /// Its new status.
    pub status: Status,
}

/// A failure that may be requeued.
struct Failure {
    stage: StageId,
    recoverable: bool,
    overtaken: bool,
    /// What it had gathered is gone; see [`super::discard`].
    discarded: bool,
}

/// Sends a job back to `to`, or to the stage it failed in.
pub fn requeue(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
    to: Option<&str>,
) -> Result<Requeued> {
    let found = find(tx, job)?;
    let refused = |why: String| Err(Error::Refused(format!("job {job} cannot be requeued: {why}")));
    match found.status() {
        Status::Failed => requeue_failed(tx, now, catalog, actor, &found, to),
        Status::Queued | Status::Held if found.begun => {
            send_back(tx, now, catalog, actor, &found, to)
        }
        Status::Queued | Status::Held => {
            refused("it has not been started, so it is queued already".to_string())
        }
        Status::Running => refused("it is running; cancel it or let it finish first".to_string()),
        Status::Succeeded => {
            refused("it has succeeded; add the subject again for a new job".to_string())
        }
        Status::Cancelled => {
            refused("it was cancelled; add the subject again for a new job".to_string())
        }
    }
}

fn requeue_failed(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    found: &JobRow,
    to: Option<&str>,
) -> Result<Requeued> {
    const FAILURE: Statement = statement!(operator::take_failure);
    let refused =
        |why: String| Err(Error::Refused(format!("job {} cannot be requeued: {why}", found.id)));
    let (stage, recoverable, overtaken, discarded): (StageId, bool, bool, bool) =
        tx.one(&FAILURE, &db::params![found.id])?;
    let failure = Failure { stage, recoverable, overtaken, discarded };
    if !failure.recoverable {
        return refused(
            "what was submitted is bad and nothing can change that; submit a corrected one"
                .to_string(),
        );
    }
    let (pipeline, failed_in) = catalog.stage(failure.stage)?;
    let stage = target(pipeline, failed_in, to, &failure)?;
    let key = draft::coalesce_key(pipeline, &found.subject, &found.lock, found.batch)
        .filter(|_| stage.position == 0);
    if pipeline.coalesces {
        let waiting_key = draft::coalesce_key(pipeline, &found.subject, &found.lock, found.batch);
        if let Some(newer) = newer_waiting(tx, &found.lock, waiting_key.as_deref())? {
            return refused(format!(
                "job {newer} waits for the same subject already; requeue this one when it has ended"
            ));
        }
    }
    ending::forget(tx, found.id)?;
    forget_from(tx, pipeline, stage, failed_in, found.id)?;
    count(tx, found.id, stage)?;
    let held = hold::held_names_locked(tx)?
        .of(found.batch, found.collection.as_deref())
        .filter(|_| hold::may_be_held(pipeline, stage, false));
    let status = insert(tx, now, found, stage, key.as_deref(), held)?;
    preparing::reopen(tx, now, found.id)?;

    let (mut journal, mut counts) = (Journal::default(), Counts::default());
    let event = Event::new(found.id, now, actor.who, "requeued")
        .from(failed_in.id, Status::Failed)
        .to(stage.id, status);
    journal.note(pipeline, Weight::Always, event.why(actor.reason));
    journal.write(tx)?;
    counts.moved(found.batch, Some(Status::Failed), status);
    counts.write(tx, now)?;
    Ok(Requeued { job: found.id, stage: stage.id, status })
}

/// The stage to resume at. If another job of the lock has started since, no later than the
/// pipeline's restart stage: what was compared with the object then may be wrong now. If its data
/// were discarded, only the first stage is left: every later one would work on nothing.
fn target<'p>(
    pipeline: &'p Pipeline,
    failed_in: &'p Stage,
    to: Option<&str>,
    failure: &Failure,
) -> Result<&'p Stage> {
    let wanted = to.map_or(Ok(failed_in), |name| pipeline.stage_named(name))?;
    if wanted.position > failed_in.position {
        return Err(Error::Refused(format!(
            "it failed in {}, and {} comes later; choose {} or an earlier stage",
            failed_in.name, wanted.name, failed_in.name
        )));
    }
    let first = pipeline.first();
    if failure.discarded && to.is_some() && wanted.position > first.position {
        return Err(Error::Refused(format!(
            "its data were discarded, so it cannot resume in {}; requeue it without naming a stage, and it starts again in {}",
            wanted.name, first.name
        )));
    }
    if failure.discarded {
        return Ok(first);
    }
    let latest = if failure.overtaken { pipeline.restart_position } else { wanted.position };
    Ok(pipeline.stages.iter().find(|s| s.position == wanted.position.min(latest)).unwrap_or(wanted))
}

fn newer_waiting(tx: &mut Tx<'_>, lock: &str, key: Option<&str>) -> Result<Option<JobId>> {
    const NEWER: Statement = statement!(line::waiting_of_key);
    Ok(tx.first::<(JobId,)>(&NEWER, &db::params![lock, key])?.map(|r| r.0))
}

/// Going back discards the checkpoints and states of the stages that will run again, and their counts begin
/// anew; requeueing to the stage it failed in keeps its checkpoints, so that it resumes there.
fn forget_from(
    tx: &mut Tx<'_>,
    pipeline: &Pipeline,
    stage: &Stage,
    was_in: &Stage,
    job: JobId,
) -> Result<()> {
    const FORGET: Statement = statement!(operator::forget_checkpoints);
    const RESET: Statement = statement!(operator::reset_tries);
    for again in pipeline.stages.iter().filter(|s| s.position >= stage.position) {
        tx.send(&RESET, &db::params![job, again.id])?;
        state::forget(tx, job, again)?;
        if stage.position < was_in.position {
            tx.send(&FORGET, &db::params![job, again.id])?;
        }
    }
    Ok(())
}

fn count(tx: &mut Tx<'_>, job: JobId, stage: &Stage) -> Result<()> {
    const COUNT: Statement = statement!(operator::count_requeue);
    tx.send(&COUNT, &db::params![job, stage.id])?;
    Ok(())
}

fn insert(
    tx: &mut Tx<'_>,
    now: Micros,
    found: &JobRow,
    stage: &Stage,
    key: Option<&str>,
    held: Option<&str>,
) -> Result<Status> {
    const INSERT: Statement = statement!(operator::insert_requeued);
    let state = if held.is_some() { State::Held } else { State::Parked };
    tx.send(&INSERT, &db::params![found.id, stage.id, state, now, key, held])?;
    if held.is_some() {
        return Ok(Status::Held);
    }
    line::make_ready(
        tx,
        now,
        &[Candidate { id: found.id, stage: stage.id, lock: found.lock.clone() }],
    )?;
    Ok(Status::Queued)
}

/// A queued job that has been started goes back to an earlier stage, and keeps its lock.
fn send_back(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    found: &JobRow,
    to: Option<&str>,
) -> Result<Requeued> {
    const BACK: Statement = statement!(operator::send_back);
    const BACK_LOCK: Statement = statement!(operator::send_back_lock);
    let (pipeline, current) = found.place(catalog)?;
    let stage = match to {
        Some(name) => pipeline.stage_named(name)?,
        None => {
            let why = format!(
                "it waits in {} already; name an earlier stage to send it back",
                current.name
            );
            return Err(Error::Refused(format!("job {} cannot be requeued: {why}", found.id)));
        }
    };
    if stage.position >= current.position {
        return Err(Error::Refused(format!(
            "job {} waits in {}; it can only be sent back to an earlier stage, and {} is not",
            found.id, current.name, stage.name
        )));
    }
    forget_from(tx, pipeline, stage, current, found.id)?;
    count(tx, found.id, stage)?;
    tx.send(&BACK, &db::params![found.id, stage.id, now])?;
    tx.send(&BACK_LOCK, &db::params![&found.lock, found.id, stage.id])?;
    if matches!(found.waiting, Some(State::Blocked | State::Starved)) {
        // What it lacked in the later stage it may not need in this one.
        let hopeful = Candidate { id: found.id, stage: stage.id, lock: found.lock.clone() };
        line::make_ready(tx, now, &[hopeful])?;
    }
    let mut journal = Journal::default();
    let event = Event::new(found.id, now, actor.who, "requeued")
        .from(current.id, found.status())
        .to(stage.id, found.status());
    journal.note(pipeline, Weight::Always, event.why(actor.reason));
    journal.write(tx)?;
    tx.wake(stage.id);
    Ok(Requeued { job: found.id, stage: stage.id, status: found.status() })
}
