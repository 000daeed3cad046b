//! Hold and release: an administrative stop on a job, a batch or a collection.
//!
//! I9: nothing that is held is claimed, at whatever stage it is, until it is released. A run under way
//! finishes its stage, and then its job is held. From the forward-only stage on a job goes forward
//! whatever is held; a job that is held before it begins that stage waits there.
//!
//! Holds of batches and collections are rows. A job is held by its state while it waits; while it runs,
//! a row holds it, which is taken away when the run ends.

mod groups;

pub use groups::{flip_held, flip_released, hold_group, keep_held, release_group};

use crate::id::{BatchId, JobId, StageId, WorkerId};
use groups::{let_go, note};

use super::{Actor, JobRow, find, stop_claims};
use crate::catalog::{Catalog, Pipeline, Stage};
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::job::{Lease, Outcome, Settled, Settlement};
use crate::rules::line;
use crate::rules::settle;
use db::{Micros, Statement, Tx, statement};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Names of held batches and collections.
#[derive(Debug, Default)]
pub struct HeldNames {
    /// Jobs that run, and are held when their runs end.
    jobs: HashSet<JobId>,
    batches: HashSet<String>,
    collections: HashSet<String>,
}

impl HeldNames {
    /// Returns whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.batches.is_empty() && self.collections.is_empty()
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

    /// Whether the job itself is held.
    pub(crate) fn has_job(&self, job: JobId) -> bool {
        self.jobs.contains(&job)
    }

    /// Which group holds a job of this batch and collection.
    pub fn of(&self, batch: Option<BatchId>, collection: Option<&str>) -> Option<&'static str> {
        if batch.is_some_and(|b| self.batches.contains(&b.to_string())) {
            return Some("batch");
        }
        collection.is_some_and(|c| self.collections.contains(c)).then_some("collection")
    }
}

/// Reads what is held.
pub fn held_names(tx: &mut Tx<'_>) -> Result<HeldNames> {
    const NAMES: Statement = statement!(hold::held_names);
    read_names(tx, &NAMES)
}

/// As [`held_names`], and none of them is released before the transaction ends: a job held by one
/// would be forgotten by its release.
pub(crate) fn held_names_locked(tx: &mut Tx<'_>) -> Result<HeldNames> {
    const NAMES: Statement = statement!(hold::held_names_locked);
    read_names(tx, &NAMES)
}

fn read_names(tx: &mut Tx<'_>, names: &Statement) -> Result<HeldNames> {
    let mut held = HeldNames::default();
    for (kind, name) in tx.query::<(String, String)>(names, &[])? {
        match kind.as_str() {
            "batch" => held.batches.insert(name),
            "job" => name.parse().is_ok_and(|job| held.jobs.insert(job)),
            _ => held.collections.insert(name),
        };
    }
    Ok(held)
}

/// A batch or a collection, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group<'a> {
    /// All jobs of a batch.
    Batch(BatchId),
    /// All jobs of a collection.
    Collection(&'a str),
}

impl<'a> Group<'a> {
    /// As a job has them: its batch or its collection.
    fn columns(self) -> (Option<BatchId>, Option<&'a str>) {
        match self {
            Group::Batch(id) => (Some(id), None),
            Group::Collection(name) => (None, Some(name)),
        }
    }

    fn parts(self) -> (&'static str, String) {
        match self {
            Group::Batch(id) => ("batch", id.to_string()),
            Group::Collection(name) => ("collection", name.to_string()),
        }
    }
}

/// Returns who holds it, since when and why; `None` if it is not held.
pub fn find_group(tx: &mut Tx<'_>, group: Group<'_>) -> Result<Option<(String, Micros, String)>> {
    const HOLD: Statement = statement!(hold::find_hold);
    let (kind, name) = group.parts();
    Ok(tx.first(&HOLD, &db::params![kind, &name])?)
}

/// Whether a hold keeps back a job that waits in a stage: from the forward-only stage on, jobs that
/// have begun go forward.
pub(crate) fn may_be_held(pipeline: &Pipeline, stage: &Stage, begun: bool) -> bool {
    !pipeline.is_forward_only(stage) || (!begun && stage.position == 0)
}

/// Takes away the hold of a running job: who held it and why, if it is still held.
pub(crate) fn take_job_hold(tx: &mut Tx<'_>, job: JobId) -> Result<Option<(String, String)>> {
    const TAKE: Statement = statement!(hold::take_job_hold);
    Ok(tx.first(&TAKE, &db::params![&job.to_string()])?)
}

/// When a hold of a job has its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobHold {
    /// It is held.
    Now,
    /// It runs, and is held when that run of its stage ends.
    AfterRun,
}

/// Holds one job: at once if it waits, after its run if it runs.
pub fn hold_job(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
) -> Result<JobHold> {
    const ASIDE: Statement = statement!(line::put_aside);
    if super::look(tx, job)?.status() == Status::Running {
        // Before any row is locked, as a claim does it.
        stop_claims(tx)?;
    }
    let found = find(tx, job)?;
    let (pipeline, stage) = found.place(catalog)?;
    let refused = |why: String| Err(Error::Refused(format!("job {job} {why}")));
    match found.status() {
        Status::Queued | Status::Running => {}
        Status::Held => return refused("is held already".to_string()),
        ended => return refused(format!("has {ended}; only an unfinished job can be held")),
    }
    let running = found.status() == Status::Running;
    if !may_be_held(pipeline, stage, found.begun || running) {
        return refused(format!("is in {}, and from there on it can only go forward", stage.name));
    }
    if running {
        return hold_running(tx, now, catalog, actor, &found);
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
    line::promote(tx, now, &BTreeSet::from([found.lock]))?;
    Ok(JobHold::Now)
}

/// A run finishes its stage; one that is only claimed does not begin.
fn hold_running(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    found: &JobRow,
) -> Result<JobHold> {
    const INSERT: Statement = statement!(hold::insert_hold);
    let job = found.id;
    if found.cancel_requested {
        return Err(Error::Refused(format!("job {job} has been asked to stop")));
    }
    let name = job.to_string();
    if tx.execute(&INSERT, &db::params!["job", &name, actor.who, now, actor.reason])? == 0 {
        return Err(Error::Refused(format!(
            "job {job} is held already; its run may finish its stage"
        )));
    }
    if take_back(tx, now, catalog, actor, None, Some(job))? > 0 {
        return Ok(JobHold::Now);
    }
    note_running(tx, now, catalog, actor, found, "hold requested")?;
    Ok(JobHold::AfterRun)
}

/// Takes claimed jobs that have not started out of their workers' buffers: they wait, held.
fn take_back(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    group: Option<Group<'_>>,
    job: Option<JobId>,
) -> Result<usize> {
    const BUFFERED: Statement = statement!(hold::buffered_runs);
    let (batch, collection) = group.map_or((None, None), Group::columns);
    let mut by_worker: BTreeMap<WorkerId, Vec<Settlement>> = BTreeMap::new();
    for (lock, id, token, worker, stage, of) in
        tx.query::<(String, JobId, i64, WorkerId, StageId, Option<BatchId>)>(
            &BUFFERED,
            &db::params![batch, collection, job],
        )?
    {
        let (pipeline, at) = catalog.stage(stage)?;
        if may_be_held(pipeline, at, true) {
            let lease = Lease { job: id, lock, token, batch: of, stage, probe: false };
            let outcome = Outcome::Interrupted("it was held before it began".to_string());
            by_worker.entry(worker).or_default().push(Settlement::new(lease, outcome));
        }
    }
    let mut taken = 0;
    for (worker, items) in by_worker {
        let settled = settle::settle(tx, now, catalog, worker, actor.who, &items)?;
        taken += settled.iter().filter(|one| **one != Settled::Stale).count();
    }
    Ok(taken)
}

fn note_running(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    found: &JobRow,
    event: &str,
) -> Result<()> {
    let (pipeline, stage) = found.place(catalog)?;
    let (job, running) = ([(found.id, stage.id)], Status::Running);
    note(tx, now, catalog, actor, &job, event, running, running, pipeline.id)
}

/// Releases one held job.
pub fn release_job(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
) -> Result<()> {
    let found = find(tx, job)?;
    let (pipeline, stage) = found.place(catalog)?;
    if found.status() == Status::Running && take_job_hold(tx, job)?.is_some() {
        return note_running(tx, now, catalog, actor, &found, "released");
    }
    if found.status() != Status::Held {
        return Err(Error::Refused(format!("job {job} is {}, not held", found.status())));
    }
    if let Some(by) = held_names(tx)?.of(found.batch, found.collection.as_deref()) {
        let name = found
            .batch
            .filter(|_| by == "batch")
            .map_or(found.collection.clone().unwrap_or_default(), |b| b.to_string());
        return Err(Error::Refused(format!(
            "job {job} is held with its {by} {name}; release that first"
        )));
    }
    let due = found.due.unwrap_or(now);
    let_go(tx, now, &[(job, stage.id, found.lock.clone(), due, found.begun)])?;
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

/// A held job of a held collection that is no longer held in another way: the release of the collection
/// finds it.
pub(crate) fn leave_to_collection(tx: &mut Tx<'_>, now: Micros, job: JobId) -> Result<()> {
    const ASIDE: Statement = statement!(line::put_aside);
    let found = super::look(tx, job)?;
    let by = held_names(tx)?.of(found.batch, found.collection.as_deref());
    if let (Status::Held, Some(by)) = (found.status(), by) {
        tx.send(&ASIDE, &db::params![job, State::Held, by, now])?;
    }
    Ok(())
}
