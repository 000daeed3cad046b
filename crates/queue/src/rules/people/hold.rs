//! Hold and release: an administrative stop on a job, a batch or a collection.

use super::{Actor, find, stop_claims};
use crate::catalog::Catalog;
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line::{self, Hopeful};
use db::{Micros, Statement, Tx, statement};
use std::collections::{BTreeSet, HashSet};

/// Names of held batches and collections.
#[derive(Debug, Default)]
pub struct Held {
    batches: HashSet<String>,
    collections: HashSet<String>,
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.collections.is_empty()
    }

    /// The names of held collections.
    pub fn collections(&self) -> impl Iterator<Item = &str> {
        self.collections.iter().map(String::as_str)
    }

    fn has(&self, group: Group<'_>) -> bool {
        match group {
            Group::Batch(id) => self.batches.contains(&id.to_string()),
            Group::Collection(name) => self.collections.contains(name),
        }
    }

    /// What holds a job that has not begun.
    pub fn of(&self, batch: Option<i64>, collection: Option<&str>) -> Option<&'static str> {
        if batch.is_some_and(|b| self.batches.contains(&b.to_string())) {
            return Some("batch");
        }
        collection.is_some_and(|c| self.collections.contains(c)).then_some("collection")
    }
}

pub fn held_names(tx: &mut Tx<'_>) -> Result<Held> {
    const NAMES: Statement = statement!("sql/held_names");
    read_names(tx, &NAMES)
}

/// As [`held_names`], and none of them is released before the transaction ends: a job held by one
/// would be forgotten by its release.
pub(crate) fn held_names_locked(tx: &mut Tx<'_>) -> Result<Held> {
    const NAMES: Statement = statement!("sql/held_names_locked", per engine);
    read_names(tx, &NAMES)
}

fn read_names(tx: &mut Tx<'_>, names: &Statement) -> Result<Held> {
    let mut held = Held::default();
    for (kind, name) in tx.query::<(String, String)>(names, &[])? {
        match kind.as_str() {
            "batch" => held.batches.insert(name),
            _ => held.collections.insert(name),
        };
    }
    Ok(held)
}

/// A batch or a collection, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group<'a> {
    Batch(i64),
    Collection(&'a str),
}

impl Group<'_> {
    fn parts(self) -> (&'static str, String) {
        match self {
            Group::Batch(id) => ("batch", id.to_string()),
            Group::Collection(name) => ("collection", name.to_string()),
        }
    }
}

/// Who holds it, since when and why; `None` if nobody does.
pub fn find_group(tx: &mut Tx<'_>, group: Group<'_>) -> Result<Option<(String, Micros, String)>> {
    const HOLD: Statement = statement!("sql/find_hold");
    let (kind, name) = group.parts();
    Ok(tx.first(&HOLD, &db::params![kind, &name])?)
}

/// Holds one job that waits.
pub fn hold_job(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: i64,
) -> Result<()> {
    const ASIDE: Statement = statement!("sql/put_aside");
    let found = find(tx, job)?;
    let (pipeline, stage) = found.place(catalog)?;
    match found.status() {
        Status::Queued => {}
        Status::Held => return Err(Error::Refused(format!("job {job} is held already"))),
        Status::Running => {
            return Err(Error::Refused(format!(
                "job {job} is running {}; only a waiting job can be held, and cancel asks it to stop",
                stage.name
            )));
        }
        ended => {
            return Err(Error::Refused(format!(
                "job {job} has {ended}; only a waiting job can be held"
            )));
        }
    }
    tx.send(&ASIDE, &db::params![job, State::Held, "job", now])?;
    note(
        tx,
        now,
        catalog,
        actor,
        &[(job, stage.id)],
        "held",
        Status::Queued,
        Status::Held,
        pipeline.id,
    )?;
    line::promote(tx, now, &BTreeSet::from([found.lock]))
}

/// Releases one held job.
pub fn release_job(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: i64,
) -> Result<()> {
    let found = find(tx, job)?;
    let (pipeline, stage) = found.place(catalog)?;
    if found.status() != Status::Held {
        return Err(Error::Refused(format!("job {job} is {}, not held", found.status())));
    }
    if !found.begun
        && let Some(by) = held_names(tx)?.of(found.batch, found.collection.as_deref())
    {
        let name = found
            .batch
            .filter(|_| by == "batch")
            .map_or(found.collection.clone().unwrap_or_default(), |b| b.to_string());
        return Err(Error::Refused(format!(
            "job {job} is held with its {by} {name}; release that first"
        )));
    }
    let due = found.due.unwrap_or(now);
    let_go(tx, now, &[(job, stage.id, found.lock.clone(), due)])?;
    note(
        tx,
        now,
        catalog,
        actor,
        &[(job, stage.id)],
        "released",
        Status::Held,
        Status::Queued,
        pipeline.id,
    )
}

/// Holds a batch or a collection. Jobs that have not begun are flipped by [`flip_held`]; claims
/// refuse them from now on all the same.
pub fn hold_group(tx: &mut Tx<'_>, now: Micros, actor: Actor<'_>, group: Group<'_>) -> Result<()> {
    const INSERT: Statement = statement!("sql/insert_hold");
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
    const DELETE: Statement = statement!("sql/delete_hold");
    let (kind, name) = group.parts();
    match tx.execute(&DELETE, &db::params![kind, &name])? {
        0 => Err(Error::Refused(format!("{kind} {name} is not held"))),
        _ => Ok(()),
    }
}

/// Waiting row: id, stage, lock, due.
type Row = (i64, i64, String, Micros);

/// Turns up to `limit` not yet begun jobs of a held group after job `after` to held; the last one,
/// or None when there are no more, or when the group was released meanwhile.
pub fn flip_held(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    group: Group<'_>,
    after: i64,
    limit: i64,
) -> Result<Option<i64>> {
    const ASIDE: Statement = statement!("sql/put_aside");
    if !held_names(tx)?.has(group) {
        return Ok(None);
    }
    let rows = members(tx, group, after, limit, false)?;
    let kind = group.parts().0;
    for (id, stage, ..) in &rows {
        tx.send(&ASIDE, &db::params![*id, State::Held, kind, now])?;
        let pipeline = catalog.stage(*stage)?.0.id;
        note(
            tx,
            now,
            catalog,
            actor,
            &[(*id, *stage)],
            "held",
            Status::Queued,
            Status::Held,
            pipeline,
        )?;
    }
    line::promote(tx, now, &rows.iter().map(|r| r.2.clone()).collect())?;
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
    after: i64,
    limit: i64,
) -> Result<Option<i64>> {
    const ASIDE: Statement = statement!("sql/put_aside");
    let rows = members(tx, group, after, limit, true)?;
    let held = held_names(tx)?;
    for row in &rows {
        let whole = super::look(tx, row.0)?;
        if let Some(by) = held.of(whole.batch, whole.collection.as_deref()) {
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
    after: i64,
    limit: i64,
) -> Result<Option<i64>> {
    const ASIDE: Statement = statement!("sql/put_aside");
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
    after: i64,
    limit: i64,
    held: bool,
) -> Result<Vec<Row>> {
    const MEMBERS: Statement = statement!("sql/group_members", per engine);
    let (batch, collection) = match group {
        Group::Batch(id) => (Some(id), None),
        Group::Collection(name) => (None, Some(name)),
    };
    Ok(tx.query(&MEMBERS, &db::params![batch, collection, after, limit, held, group.parts().0])?)
}

/// Back into the line: ready, parked, or waiting for its time.
fn let_go(tx: &mut Tx<'_>, now: Micros, rows: &[Row]) -> Result<()> {
    const DELAY: Statement = statement!("sql/put_aside");
    let mut hopefuls = Vec::new();
    for (id, stage, lock, due) in rows {
        if *due > now {
            tx.send(&DELAY, &db::params![*id, State::Delayed, None::<&str>, now])?;
            tx.wake(*stage);
        } else {
            hopefuls.push(Hopeful { id: *id, stage: *stage, lock: lock.clone() });
        }
    }
    line::make_ready(tx, now, &hopefuls)
}

fn note(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    jobs: &[(i64, i64)],
    event: &str,
    from: Status,
    to: Status,
    pipeline: i64,
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
