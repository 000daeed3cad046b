//! Adding: an acknowledged add is never lost (I1), and with coalescing a subject that waits
//! already is one job, not two.

use crate::catalog::Pipeline;
use crate::codes::{State, Status};
use crate::engine::{self, Entered};
use crate::error::{Entity, Error, Result};
use crate::id::JobId;
use crate::job::{Added, JobError, NewJob};
use crate::rules::counts::Counts;
use crate::rules::draft::{Draft, DraftIndex, check, draft, draft_all};
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line::Ahead;
use crate::rules::operator::hold;
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{HashMap, HashSet};

/// Adds jobs to the first stage of a pipeline, all or none of them.
pub fn add(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    jobs: &[NewJob],
) -> Result<Vec<Added>> {
    Counts::lock(tx, jobs.iter().filter_map(|job| job.batch))?;
    let (added, counts) = insert(tx, now, pipeline, who, jobs)?;
    counts.write(tx, now)?;
    Ok(added)
}

/// As [`add`], for jobs that their batch has counted already.
pub(crate) fn add_counted(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    jobs: &[NewJob],
) -> Result<Vec<Added>> {
    Ok(insert(tx, now, pipeline, who, jobs)?.0)
}

fn insert(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    jobs: &[NewJob],
) -> Result<(Vec<Added>, Counts)> {
    for job in jobs {
        check(pipeline, job)?;
    }
    let (mut drafts, places) = draft_all(now, pipeline, jobs);
    let at_once = add_one(tx, now, pipeline, who, &mut drafts)?;
    let recorded = at_once.is_some();
    let merged = match at_once {
        Some(merged) => merged,
        None => line_up(tx, now, pipeline, &mut drafts)?,
    };
    let answers = places
        .into_iter()
        .map(|DraftIndex { draft, coalesced }| match merged.get(&drafts[draft].id) {
            Some(existing) => Added { job: *existing, coalesced: true },
            None => Added { job: drafts[draft].id, coalesced },
        })
        .collect();
    let new: Vec<&Draft<'_>> = drafts.iter().filter(|d| !merged.contains_key(&d.id)).collect();
    if !recorded {
        insert_jobs(tx, now, pipeline, who, &new)?;
    }
    renew_payloads(tx, &drafts, &merged)?;

    let (mut journal, mut counts) = (Journal::default(), Counts::default());
    for draft in new {
        let status = if draft.state == State::Held { Status::Held } else { Status::Queued };
        let event = Event::new(draft.id, now, who, "added").to(pipeline.first().id, status);
        journal.note(pipeline, Weight::Step, event);
        counts.moved(draft.job.batch, None, status);
    }
    for draft in drafts.iter().filter(|d| merged.contains_key(&d.id)) {
        let event = Event::new(merged[&draft.id], now, who, "added again")
            .why("the payload is now the newer one");
        journal.note(pipeline, Weight::Step, event);
    }
    journal.write(tx)?;
    tx.wake(pipeline.first().id);
    Ok((answers, counts))
}

/// Adds a job that is known to be bad: recorded and reported, and never requeued.
pub fn add_failed(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    job: &NewJob,
    error: &JobError,
) -> Result<JobId> {
    check(pipeline, job)?;
    Counts::lock(tx, job.batch.into_iter())?;
    let ids = tx.next_ids("job_ids", 1)?;
    let draft = Draft { id: ids[0], ..draft(now, pipeline, job) };
    insert_jobs(tx, now, pipeline, who, &[&draft])?;
    let place = crate::rules::ending::Ending {
        job: ids[0],
        stage: pipeline.first().id,
        from: Status::Queued,
        batch: None,
        subject: &job.subject,
        lock: &draft.lock,
    };
    let (mut journal, mut counts) = (Journal::default(), Counts::default());
    counts.moved(job.batch, None, Status::Failed);
    let verdict = crate::rules::ending::Verdict {
        error,
        note: "refused when it was added",
        recoverable: false,
    };
    crate::rules::ending::fail(
        tx,
        now,
        pipeline,
        who,
        &place,
        &verdict,
        &mut journal,
        &mut Counts::default(),
    )?;
    journal.write(tx)?;
    counts.write(tx, now)?;
    Ok(ids[0])
}

/// Adding to a held batch or collection is accepted, as held.
fn hold_back(tx: &mut Tx<'_>, drafts: &mut [Draft<'_>]) -> Result<()> {
    let held = hold::held_names_locked(tx)?;
    for draft in drafts {
        if let Some(by) = held.of(draft.job.batch, draft.job.collection.as_deref()) {
            draft.state = State::Held;
            draft.held_by = Some(by.to_string());
        }
    }
    Ok(())
}

/// Gives the jobs their ids and their places in the lines for their locks; those that met a waiting
/// job of their key are returned with its id.
fn line_up(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    drafts: &mut [Draft<'_>],
) -> Result<HashMap<JobId, JobId>> {
    let gone = || Error::unknown(Entity::Queue, &pipeline.name, "it was deleted; create it again");
    let entered = engine::of(tx).enter_adds(tx, pipeline, drafts)?;
    let Entered { ids, holds, ahead } = entered.ok_or_else(gone)?;
    drafts.iter_mut().zip(ids).for_each(|(draft, id)| draft.id = id);
    if holds {
        hold_back(tx, drafts)?;
    }
    park(pipeline, drafts, &ahead);
    engine::of(tx).insert_waiting(tx, now, pipeline.first(), drafts)
}

/// Adds one job in the engine's short way, if it has one; returns a merged job with the id of the
/// waiting one, as [`line_up`] does. None if nothing was added.
fn add_one(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    drafts: &mut [Draft<'_>],
) -> Result<Option<HashMap<JobId, JobId>>> {
    let [draft] = drafts else { return Ok(None) };
    if !pipeline.coalesces {
        return Ok(None);
    }
    let Some((id, new)) = engine::of(tx).add_one(tx, now, pipeline, who, draft)? else {
        return Ok(None);
    };
    draft.id = new;
    Ok(Some(HashMap::from_iter((id != new).then_some((new, id)))))
}

/// Parks jobs that must wait for their lock.
fn park(pipeline: &Pipeline, drafts: &mut [Draft<'_>], ahead: &HashMap<String, Ahead>) {
    let mut in_line: HashSet<String> = HashSet::new();
    for draft in drafts.iter_mut().filter(|d| d.state == State::Ready) {
        let busy = ahead.get(&draft.lock).is_some_and(|a| a.blocks(draft.id));
        let behind_earlier = !pipeline.coalesces && !in_line.insert(draft.lock.clone());
        if busy || behind_earlier {
            draft.state = State::Parked;
        }
    }
}

fn insert_jobs(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    drafts: &[&Draft<'_>],
) -> Result<()> {
    const INSERT: Statement = statement!(add::insert_jobs);
    let rows: Vec<[Value<'_>; 10]> = drafts
        .iter()
        .map(|d| {
            db::params![
                d.id,
                &d.job.subject,
                &d.lock,
                d.job.batch,
                &d.job.collection,
                d.priority,
                d.payload,
                &d.targets,
                &d.job.workspace,
                &d.needs
            ]
        })
        .collect();
    let common = db::params![now, pipeline.id, who];
    tx.send_each(&INSERT, &common, &rows)?;
    Ok(())
}

/// A job that was added again has the newer payload and the more urgent priority.
fn renew_payloads(
    tx: &mut Tx<'_>,
    drafts: &[Draft<'_>],
    merged: &HashMap<JobId, JobId>,
) -> Result<()> {
    const RENEW: Statement = statement!(add::renew_payload);
    for draft in drafts {
        if let Some(existing) = merged.get(&draft.id) {
            tx.send(&RENEW, &db::params![*existing, draft.payload, draft.priority])?;
        }
    }
    Ok(())
}
