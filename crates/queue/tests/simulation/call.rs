//! One call of the rules: what is asked, how it is done, and what came back.

use db::{Statement, Tx};
use queue::rules::moving::FreeSlots;
use queue::rules::operator::hold::Group;
use queue::rules::operator::retry::{self, Filter, Retried};
use queue::rules::operator::{Actor, cancel, discard, hold, pause, requeue, review};
use queue::rules::{
    add, batch, budget, claim, clock, lease, pipelines, preparing, report, running, settle,
};
use queue::{
    Added, BatchId, Catalog, Claimed, Error, JobError, JobId, Lease, NewJob, Outcome, Records,
    Result, Settled, Settlement, StageId, WorkerId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const PERSON: Actor<'static> = Actor { who: "ann", reason: "to see" };

/// A batch or a collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    Batch(BatchId),
    Collection(String),
}

impl Whose {
    fn group(&self) -> Group<'_> {
        match self {
            Whose::Batch(id) => Group::Batch(*id),
            Whose::Collection(name) => Group::Collection(name),
        }
    }
}

/// One settlement; `recorded` says whether it brings a record, and whether that can be written.
#[derive(Debug, Clone)]
pub struct Item {
    pub lease: Lease,
    pub outcome: Outcome,
    pub recorded: Option<bool>,
}

#[derive(Debug, Clone)]
pub enum Call {
    Add {
        pipeline: usize,
        jobs: Vec<NewJob>,
    },
    AddFailed {
        pipeline: usize,
        job: NewJob,
    },
    Register {
        worker: lease::NewWorker,
    },
    Renew {
        worker: WorkerId,
    },
    Reap,
    /// Times written before the clock was set back are counted from now.
    FollowClock,
    Deregister {
        worker: WorkerId,
    },
    Claim {
        worker: WorkerId,
        stage: StageId,
        limit: usize,
        start: usize,
    },
    TakeOver {
        worker: WorkerId,
        stage: StageId,
        limit: usize,
    },
    Start {
        worker: WorkerId,
        leases: Vec<Lease>,
    },
    Progress {
        worker: WorkerId,
        lease: Lease,
    },
    ErrorSeen {
        worker: WorkerId,
        lease: Lease,
    },
    Checkpoint {
        worker: WorkerId,
        lease: Lease,
        key: String,
        value: String,
    },
    /// `places` are free at the worker, by stage.
    Settle {
        worker: WorkerId,
        items: Vec<Item>,
        places: FreeSlots,
    },
    HoldJob {
        job: JobId,
    },
    ReleaseJob {
        job: JobId,
    },
    Hold {
        whose: Whose,
    },
    Release {
        whose: Whose,
    },
    FlipHeld {
        whose: Whose,
        after: JobId,
        limit: i64,
    },
    FlipReleased {
        whose: Whose,
        after: JobId,
        limit: i64,
    },
    KeepHeld {
        whose: Whose,
        after: JobId,
        limit: i64,
    },
    Pause {
        scope: pause::Scope,
    },
    Unpause {
        scope: pause::Scope,
    },
    Requeue {
        job: JobId,
        to: Option<String>,
    },
    /// The janitor, or a person, gives up the data of a failed job.
    Discard {
        job: JobId,
    },
    Cancel {
        job: JobId,
    },
    Empty {
        stage: StageId,
        limit: i64,
    },
    Retry {
        filter: Filter,
        dry_run: bool,
        after: JobId,
        limit: i64,
    },
    Seen {
        job: JobId,
    },
    SetTotal {
        resource: String,
        total: Option<i64>,
    },
    Set {
        pipeline: String,
        stage: String,
        name: String,
        value: i64,
    },
    BatchCreate {
        pipeline: usize,
        collection: Option<String>,
        priority: Option<i64>,
        /// A job fills and accepts it; else a command does.
        prepared: bool,
    },
    BatchFill {
        batch: BatchId,
        entries: Vec<batch::Entry>,
    },
    BatchAccept {
        batch: BatchId,
    },
    BatchFail {
        batch: BatchId,
    },
    BatchMove {
        limit: i64,
    },
    BatchCancel {
        batch: BatchId,
        after: JobId,
        limit: i64,
    },
    BatchDelete {
        batch: BatchId,
    },
    Report,
    ReportAgain {
        batch: BatchId,
    },
}

#[derive(Debug, Clone)]
pub enum Answer {
    Done,
    Added(Vec<Added>),
    Failed(JobId),
    Registered(WorkerId),
    Reaped(Option<WorkerId>),
    /// The last job that was looked at, to go on after it.
    Last(Option<JobId>),
    /// What was claimed, and which of them are probes of what.
    Claimed(Vec<Claimed>, BTreeMap<JobId, String>),
    Ids(Vec<JobId>),
    Yes(bool),
    Settled(Vec<Settled>),
    Holdings(Vec<lease::HeldLease>),
    Requeued(requeue::Requeued),
    Cancelled(cancel::Cancelled),
    Count(i64),
    Retried(Retried),
    /// How many entries were moved, and the jobs that are new.
    Moved(i64, Vec<JobId>),
    Reported(Option<Box<report::Report>>),
    /// A batch, and the job that prepares it.
    Created(BatchId, Option<JobId>),
}

/// The name of a worker, as history has it.
pub fn worker_name(worker: WorkerId) -> String {
    format!("worker {worker}")
}

/// Does what a call asks for.
pub fn perform(tx: &mut Tx<'_>, now: i64, catalog: &Catalog, call: &Call) -> Result<Answer> {
    const PROBES: Statement = Statement {
        name: "simulation/probes",
        sqlite: "select id, probe from leases where probe is not null",
        postgres: "",
    };
    let who = worker_name;
    Ok(match call {
        Call::Add { pipeline, jobs } => {
            Answer::Added(add::add(tx, now, by_index(catalog, *pipeline)?, "ann", jobs)?)
        }
        Call::AddFailed { pipeline, job } => {
            let error = JobError::new("bad_digest", "its digest is wrong");
            let pipeline = by_index(catalog, *pipeline)?;
            Answer::Failed(add::add_failed(tx, now, pipeline, "ann", job, &error)?)
        }
        Call::Register { worker } => {
            Answer::Registered(lease::register(tx, now, worker, crate::world::LEASE)?)
        }
        Call::Renew { worker } => {
            Answer::Holdings(lease::renew(tx, now, *worker, crate::world::LEASE)?)
        }
        Call::FollowClock => {
            clock::follow(tx, now)?;
            Answer::Done
        }
        Call::Reap => Answer::Reaped(lease::reap(tx, now, catalog, None)?),
        Call::Deregister { worker } => {
            lease::deregister(tx, now, catalog, *worker, &who(*worker))?;
            Answer::Done
        }
        Call::Claim { worker, stage, limit, start } => {
            let name = who(*worker);
            let request = claim::Request {
                worker: *worker,
                who: &name,
                stage: *stage,
                limit: *limit,
                start: *start,
            };
            let claimed = claim::claim(tx, now, catalog, request)?;
            let probes: Vec<(JobId, String)> = tx.query(&PROBES, &[])?;
            Answer::Claimed(claimed, probes.into_iter().collect())
        }
        Call::TakeOver { worker, stage, limit } => {
            let name = who(*worker);
            let request = claim::Request {
                worker: *worker,
                who: &name,
                stage: *stage,
                limit: *limit,
                start: *limit,
            };
            Answer::Claimed(lease::take_over(tx, now, catalog, request)?, BTreeMap::new())
        }
        Call::Start { worker, leases } => Answer::Ids(running::start(tx, now, *worker, leases)?),
        Call::Progress { worker, lease } => {
            Answer::Yes(running::progress(tx, *worker, lease, "half")?)
        }
        Call::ErrorSeen { worker, lease } => {
            let error = JobError::new("seen", "seen");
            Answer::Yes(running::error_seen(
                tx,
                now,
                catalog,
                *worker,
                &who(*worker),
                lease,
                &error,
            )?)
        }
        Call::Checkpoint { worker, lease, key, value } => {
            Answer::Yes(running::checkpoint(tx, now, *worker, lease, key, value)?)
        }
        Call::Settle { worker, items, places } => {
            let items: Vec<Settlement> = items.iter().map(settlement).collect();
            let who = who(*worker);
            let settled =
                settle::settle_and_carry(tx, now, catalog, *worker, &who, &items, places)?;
            Answer::Settled(settled)
        }
        _ => return perform_for_people(tx, now, catalog, call),
    })
}

fn perform_for_people(tx: &mut Tx<'_>, now: i64, catalog: &Catalog, call: &Call) -> Result<Answer> {
    match call {
        Call::HoldJob { job } => drop(hold::hold_job(tx, now, catalog, PERSON, *job)?),
        Call::ReleaseJob { job } => hold::release_job(tx, now, catalog, PERSON, *job)?,
        Call::Hold { whose: Whose::Batch(id) } => batch::hold(tx, now, PERSON, *id)?,
        Call::Hold { whose } => hold::hold_group(tx, now, PERSON, whose.group())?,
        Call::Release { whose: Whose::Batch(id) } => batch::release(tx, now, *id)?,
        Call::Release { whose } => hold::release_group(tx, whose.group())?,
        Call::FlipHeld { whose, after, limit } => {
            let group = whose.group();
            let last = hold::flip_held(tx, now, catalog, PERSON, group, *after, *limit)?;
            return Ok(Answer::Last(last));
        }
        Call::FlipReleased { whose, after, limit } => {
            let group = whose.group();
            let last = hold::flip_released(tx, now, catalog, PERSON, group, *after, *limit)?;
            return Ok(Answer::Last(last));
        }
        Call::KeepHeld { whose, after, limit } => {
            let last = hold::keep_held(tx, now, whose.group(), *after, *limit)?;
            return Ok(Answer::Last(last));
        }
        Call::Pause { scope } => pause::pause(tx, now, catalog, PERSON, *scope)?,
        Call::Unpause { scope } => pause::unpause(tx, catalog, *scope)?,
        Call::Requeue { job, to } => {
            let done = requeue::requeue(tx, now, catalog, PERSON, *job, to.as_deref())?;
            return Ok(Answer::Requeued(done));
        }
        Call::Discard { job } => {
            return Ok(Answer::Yes(discard::discard(tx, now, catalog, PERSON, *job)?));
        }
        Call::Cancel { job } => {
            return Ok(Answer::Cancelled(cancel::cancel(tx, now, catalog, PERSON, *job)?));
        }
        Call::Empty { stage, limit } => {
            return Ok(Answer::Count(cancel::empty(tx, now, catalog, PERSON, *stage, *limit)?));
        }
        Call::Retry { filter, dry_run, after, limit } => {
            let done = retry::retry(tx, now, catalog, PERSON, filter, *dry_run, *after, *limit)?;
            return Ok(Answer::Retried(done));
        }
        Call::Seen { job } => review::seen(tx, now, catalog, PERSON, *job)?,
        Call::SetTotal { resource, total } => budget::set_total(tx, now, resource, *total)?,
        Call::Set { pipeline, stage, name, value } => {
            let change = [(name.clone(), value.to_string())];
            pipelines::set(tx, catalog, pipeline, Some(stage), &change)?;
        }
        _ => return perform_for_batches(tx, now, catalog, call),
    }
    Ok(Answer::Done)
}

fn perform_for_batches(
    tx: &mut Tx<'_>,
    now: i64,
    catalog: &Catalog,
    call: &Call,
) -> Result<Answer> {
    const NEWER: Statement = Statement {
        name: "simulation/newer_jobs",
        sqlite: "select id from jobs where id > $1 order by id",
        postgres: "",
    };
    const NEWEST: Statement = Statement {
        name: "simulation/newest_job",
        sqlite: "select coalesce(max(id), 0) from jobs",
        postgres: "",
    };
    match call {
        Call::BatchCreate { pipeline, collection, priority, prepared } => {
            let new = batch::NewBatch {
                label: "box",
                pipeline: by_index(catalog, *pipeline)?.id,
                collection: collection.as_deref(),
                submitter: "ann",
                mode: "either",
                priority: *priority,
            };
            let id = batch::create(tx, now, &new)?;
            if !prepared {
                return Ok(Answer::Created(id, None));
            }
            let pipeline = by_index(catalog, crate::world::PREPARING)?;
            let added = add::add(tx, now, pipeline, "ann", &[preparer(id, collection)])?;
            preparing::prepare(tx, id, added[0].job)?;
            return Ok(Answer::Created(id, Some(added[0].job)));
        }
        Call::BatchFill { batch, entries } => batch::fill(tx, catalog, *batch, entries)?,
        Call::BatchAccept { batch } => drop(batch::accept(tx, now, *batch)?),
        Call::BatchFail { batch } => drop(batch::fail(tx, now, *batch, "it cannot be read")?),
        Call::BatchMove { limit } => {
            let (newest,): (JobId,) = tx.one(&NEWEST, &[])?;
            let moved = batch::move_entries(tx, now, catalog, *limit)?;
            let new: Vec<(JobId,)> = tx.query(&NEWER, &db::params![newest])?;
            return Ok(Answer::Moved(moved, new.into_iter().map(|r| r.0).collect()));
        }
        Call::BatchCancel { batch, after, limit } => {
            let last = batch::cancel_some(tx, now, catalog, PERSON, *batch, *after, *limit)?;
            return Ok(Answer::Last(last));
        }
        Call::BatchDelete { batch } => {
            batch::refuse_delete(&batch::load(tx, *batch)?)?;
            let mut after = JobId::default();
            while let Some(last) = batch::cancel_some(tx, now, catalog, PERSON, *batch, after, 2)? {
                after = last;
            }
            batch::delete(tx, now, *batch)?;
        }
        Call::Report => {
            let report = report::write_next(tx, now, catalog)?;
            return Ok(Answer::Reported(report.map(Box::new)));
        }
        Call::ReportAgain { batch } => batch::report_again(tx, now, *batch)?,
        other => return Err(Error::BadInput(format!("nobody performs {other:?}"))),
    }
    Ok(Answer::Done)
}

/// The job that prepares a batch.
pub fn preparer(batch: BatchId, collection: &Option<String>) -> NewJob {
    let (lock, collection) = (Some(format!("batch/{batch}")), collection.clone());
    NewJob { subject: format!("batch {batch}"), lock, collection, ..NewJob::default() }
}

fn by_index(catalog: &Catalog, index: usize) -> Result<&queue::Pipeline> {
    catalog.named(&crate::world::specs()[index].name)
}

fn settlement(item: &Item) -> Settlement {
    let records = item.recorded.map(|good| -> Records {
        Arc::new(move |_: &mut Tx<'_>| match good {
            true => Ok(()),
            false => Err(Error::BadInput("no room on the shelf".to_string())),
        })
    });
    Settlement { records, ..Settlement::new(item.lease.clone(), item.outcome.clone()) }
}
