//! Holding and releasing batches and collections, in steps.

use super::{Group, held_names, may_be_held, take_back};
use crate::catalog::Catalog;
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::id::{JobId, PipelineId, StageId};
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line::{self, Candidate};
use crate::rules::operator::{Actor, look, stop_claims};
use crate::rules::preparing;
use db::{Micros, Statement, Tx, statement};
use std::collections::BTreeSet;

/// Holds a batch or a collection. Waiting jobs are flipped by [`flip_held`]; claims refuse them from
/// now on all the same.
pub fn hold_group(tx: &mut Tx<'_>, now: Micros, actor: Actor<'_>, group: Group<'_>) -> Result<()> {
    const INSERT: Statement = statement!(hold::insert_hold);
    stop_claims(tx)?;
    let (kind, name) = group.parts();
    match tx.execute(&INSERT, &db::params![kind, &name, actor.who, now, actor.reason])? {
        0 => Err(Error::Refused(format!("{kind} {name} is held already"))),
        _ => Ok(()),
    }
}

/// Lifts the hold of a batch or collection. Its jobs are released by [`flip_released`], or stay
/// held for release one by one by [`keep_held`].
pub fn release_group(tx: &mut Tx<'_>, group: Group<'_>) -> Result<()> {
    const DELETE: Statement = statement!(hold::delete_hold);
    let (kind, name) = group.parts();
    match tx.execute(&DELETE, &db::params![kind, &name])? {
        0 => Err(Error::Refused(format!("{kind} {name} is not held"))),
        _ => Ok(()),
    }
}

/// Waiting row: id, stage, lock, due, begun.
type Row = (JobId, StageId, String, Micros, bool);

/// Turns up to `limit` waiting jobs of a held group after job `after` to held; the last one it looked
/// at, or None when there are no more, or when the group was released since. The first call takes
/// jobs that were claimed and have not started back from their workers.
pub fn flip_held(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    group: Group<'_>,
    after: JobId,
    limit: i64,
) -> Result<Option<JobId>> {
    const ASIDE: Statement = statement!(line::put_aside);
    if !held_names(tx)?.has(group) {
        return Ok(None);
    }
    if after == JobId::default() {
        take_back(tx, now, catalog, actor, Some(group), None)?;
    }
    let rows = members(tx, group, after, limit, false)?;
    let kind = group.parts().0;
    let mut freed = BTreeSet::new();
    for (id, stage, lock, _, begun) in &rows {
        let (pipeline, at) = catalog.stage(*stage)?;
        if !may_be_held(pipeline, at, *begun) {
            continue;
        }
        tx.send(&ASIDE, &db::params![*id, State::Held, kind, now])?;
        freed.insert(lock.clone());
        note(
            tx,
            now,
            catalog,
            actor,
            &[(*id, *stage)],
            "held",
            Status::Queued,
            Status::Held,
            pipeline.id,
        )?;
    }
    line::promote(tx, now, &freed)?;
    Ok(rows.last().map(|r| r.0))
}

/// Releases up to `limit` jobs that were held with a group; as [`flip_held`]. A job that another
/// group or a person still holds stays held.
pub fn flip_released(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    group: Group<'_>,
    after: JobId,
    limit: i64,
) -> Result<Option<JobId>> {
    const ASIDE: Statement = statement!(line::put_aside);
    let rows = members(tx, group, after, limit, true)?;
    let held = held_names(tx)?;
    for row in &rows {
        let whole = look(tx, row.0)?;
        let mut by = held.of(whole.batch, whole.collection.as_deref());
        if by.is_none() && preparing::prepares_held_batch(tx, row.0)? {
            // The release of the batch releases this one job.
            by = Some("job");
        }
        if let Some(by) = by {
            // Named by what holds it now, so that the release of that finds it.
            tx.send(&ASIDE, &db::params![row.0, State::Held, by, now])?;
            continue;
        }
        let_go(tx, now, std::slice::from_ref(row))?;
        note(
            tx,
            now,
            catalog,
            actor,
            &[(row.0, row.1)],
            "released",
            Status::Held,
            Status::Queued,
            whole.pipeline,
        )?;
    }
    Ok(rows.last().map(|r| r.0))
}

/// Leaves up to `limit` jobs of a released group held, each on its own; as [`flip_held`].
pub fn keep_held(
    tx: &mut Tx<'_>,
    now: Micros,
    group: Group<'_>,
    after: JobId,
    limit: i64,
) -> Result<Option<JobId>> {
    const ASIDE: Statement = statement!(line::put_aside);
    if held_names(tx)?.has(group) {
        return Ok(None);
    }
    let rows = members(tx, group, after, limit, true)?;
    for row in &rows {
        tx.send(&ASIDE, &db::params![row.0, State::Held, "job", now])?;
    }
    Ok(rows.last().map(|r| r.0))
}

fn members(
    tx: &mut Tx<'_>,
    group: Group<'_>,
    after: JobId,
    limit: i64,
    held: bool,
) -> Result<Vec<Row>> {
    const MEMBERS: Statement = statement!(hold::group_members);
    let (batch, collection) = group.columns();
    Ok(tx.query(&MEMBERS, &db::params![batch, collection, after, limit, held, group.parts().0])?)
}

/// Back into the line: ready, parked, or waiting for its time.
pub(super) fn let_go(tx: &mut Tx<'_>, now: Micros, rows: &[Row]) -> Result<()> {
    const DELAY: Statement = statement!(line::put_aside);
    let mut candidates = Vec::new();
    for (id, stage, lock, due, _) in rows {
        if *due > now {
            tx.send(&DELAY, &db::params![*id, State::Delayed, None::<&str>, now])?;
            tx.wake(*stage);
        } else {
            candidates.push(Candidate { id: *id, stage: *stage, lock: lock.clone() });
        }
    }
    line::make_ready(tx, now, &candidates)
}

pub(super) fn note(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    jobs: &[(JobId, StageId)],
    event: &str,
    from: Status,
    to: Status,
    pipeline: PipelineId,
) -> Result<()> {
    let mut journal = Journal::default();
    for (job, stage) in jobs {
        let event = Event::new(*job, now, actor.who, event)
            .from(*stage, from)
            .to(*stage, to)
            .why(actor.reason);
        journal.note(catalog.pipeline(pipeline)?, Weight::Always, event);
    }
    journal.write(tx)
}
