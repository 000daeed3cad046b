//! Claiming: up to n jobs of a stage for one worker, each with its own token, in one transaction.
//! What cannot be claimed is skipped, and put where it is not met again until that changes.

mod claiming;
mod rows;

pub(crate) use rows::Context;

use crate::catalog::{Catalog, Pipeline, Stage};
use crate::engine;
use crate::error::{Error, Result};
use crate::id::{JobId, StageId, WorkerId};
use crate::job::Claimed;
use crate::rules::breaker::Breakers;
use crate::rules::budget::Budgets;
use crate::rules::history::Journal;
use crate::rules::line::{self, Candidate};
use crate::rules::operator::hold::{self, HeldNames};
use claiming::Claiming;
use db::{Micros, Statement, Tx, Value, statement};
use rows::ReadyJob;

/// Ready jobs on one page: as many as one range of tokens is enough for.
const PAGE_MAX: usize = 4096;
/// Rows that one claim makes ready because their time has come.
const DUE_MAX: i64 = 1000;

const CONTEXT: Statement = statement!(claim::claim_context);
const READY: Statement = statement!(claim::ready_jobs);

/// What a worker asks a claim for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The worker that claims.
    pub worker: WorkerId,
    /// How the worker is named in history.
    pub who: &'a str,
    /// The stage to claim from.
    pub stage: StageId,
    /// At most this many jobs.
    pub limit: usize,
    /// How many of them are started at once; the others lie in a buffer until they are.
    pub start: usize,
}

/// What a claim hands out.
#[derive(Debug, Default)]
pub struct Claims {
    /// The jobs, each with its lease.
    pub jobs: Vec<Claimed>,
    /// When the stage may have something to claim without a wake-up.
    pub next: Option<Micros>,
}

/// Claims jobs for a worker whose lease is good.
pub fn claim(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    request: Request<'_>,
) -> Result<Vec<Claimed>> {
    Ok(claim_and_look_ahead(tx, now, catalog, request)?.jobs)
}

/// As [`claim`], and says when to look again.
pub fn claim_and_look_ahead(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    request: Request<'_>,
) -> Result<Claims> {
    let (pipeline, stage) = catalog.stage(request.stage)?;
    let Some((context, page)) = look_round_and_ahead(tx, now, pipeline, stage, request)? else {
        return Ok(Claims::default());
    };
    // What is done before pages are looked through may change what is on the first.
    let page = Some(page).filter(|_| !context.due && !context.targets);
    let mut due = context.next_due;
    if context.due {
        wake_due(tx, now, stage)?;
        due = next_due(tx, stage)?;
    }
    let mut claiming = Claiming {
        held: if context.holds { hold::held_names_locked(tx)? } else { HeldNames::default() },
        breakers: if context.targets { Breakers::load(tx)? } else { Breakers::default() },
        budgets: Budgets::default(),
        journal: Journal::default(),
        taken: Vec::new(),
        started: 0,
        blocked: false,
        now,
        request,
        pipeline,
        stage,
        context,
    };
    if claiming.context.budgets || !claiming.context.capacity.is_empty() {
        claiming.budgets = Budgets::load(tx, request.worker, &claiming.context.capacity)?;
    }
    let next = [due, claiming.breakers.next_probe()].into_iter().flatten().min();
    claiming.probes(tx)?;
    claiming.pages(tx, page)?;
    if claiming.blocked {
        // Those just put aside may include the first that can look after a target.
        claiming.probes(tx)?;
    }
    Ok(Claims { jobs: claiming.finish(tx)?, next: next.map(|at| at.max(now)) })
}

/// Returns whether one more claim may look at a stage now.
pub fn enter_lane(tx: &mut Tx<'_>, stage: StageId) -> Result<bool> {
    engine::of(tx).enter_lane(tx, stage)
}

/// I9: a pause or a hold waits for claims under way, and claims that follow see it.
pub(crate) fn enter(tx: &mut Tx<'_>) -> Result<()> {
    engine::of(tx).enter_claims(tx)
}

/// What a worker whose lease is good finds at a stage; None if nothing is handed out there.
pub(crate) fn look_round(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    stage: &Stage,
    request: Request<'_>,
) -> Result<Option<Context>> {
    enter(tx)?;
    let params = db::params![request.worker, stage.id, pipeline.id, now];
    tx.first(&CONTEXT, &params)?
        .map_or(Err(Error::LeaseLost(request.worker)), |context: Context| {
            context.admit(now, request)
        })
}

/// As [`look_round`], with the first page of what is ready: most claims need nothing else.
fn look_round_and_ahead(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    stage: &Stage,
    request: Request<'_>,
) -> Result<Option<(Context, Vec<ReadyJob>)>> {
    enter(tx)?;
    let params = db::params![request.worker, stage.id, pipeline.id, now];
    let page = page_after(stage.id, START, request.limit.min(PAGE_MAX));
    let (found, page): (Vec<Context>, Vec<ReadyJob>) =
        tx.query_both((&CONTEXT, &params), (&READY, &page))?;
    let context = found.into_iter().next().ok_or(Error::LeaseLost(request.worker))?;
    Ok(context.admit(now, request)?.map(|context| (context, page)))
}

/// Before all that is ready: priority, due time, job.
const START: (i64, Micros, JobId) = (-1, 0, JobId::new(0));

fn page_after(stage: StageId, after: (i64, Micros, JobId), want: usize) -> [Value<'static>; 5] {
    db::params![stage, after.0, after.1, after.2, i64::try_from(want).unwrap_or(i64::MAX)]
}

/// Jobs whose time has come: ready, or parked if their lock is taken.
fn wake_due(tx: &mut Tx<'_>, now: Micros, stage: &Stage) -> Result<()> {
    const DUE: Statement = statement!(claim::due_jobs);
    let due: Vec<(JobId, String)> = tx.query(&DUE, &db::params![stage.id, now, DUE_MAX])?;
    let candidates: Vec<Candidate> =
        due.into_iter().map(|(id, lock)| Candidate { id, stage: stage.id, lock }).collect();
    line::make_ready(tx, now, &candidates)
}

/// Failed jobs of a lock that someone else has now begun to work on resume earlier if requeued.
pub(crate) fn mark_overtaken<'l>(
    tx: &mut Tx<'_>,
    locks: impl Iterator<Item = &'l str>,
) -> Result<()> {
    const OVERTAKE: Statement = statement!(claim::mark_overtaken);
    let rows: Vec<[Value<'_>; 1]> = locks.map(|lock| [Value::Text(lock)]).collect();
    tx.send_each(&OVERTAKE, &[], &rows)?;
    Ok(())
}

/// When the first delayed job of a stage is due.
fn next_due(tx: &mut Tx<'_>, stage: &Stage) -> Result<Option<Micros>> {
    const DUE: Statement = statement!(claim::next_due);
    Ok(tx.one::<(Option<Micros>,)>(&DUE, &db::params![stage.id])?.0)
}

/// Whether nothing but held jobs is left in a stage, and nothing can come from an earlier one or
/// from a batch.
pub fn is_empty(tx: &mut Tx<'_>, stage: StageId) -> Result<bool> {
    const LEFT: Statement = statement!(claim::anything_left);
    Ok(tx.first::<(i64,)>(&LEFT, &db::params![stage])?.is_none())
}

/// Where a waiting job's bytes are.
pub(crate) fn workspace_of(tx: &mut Tx<'_>, job: JobId) -> Result<Option<String>> {
    const WORKSPACE: Statement = statement!(claim::waiting_workspace);
    Ok(tx.first::<(Option<String>,)>(&WORKSPACE, &db::params![job])?.and_then(|r| r.0))
}
