//! What an operator looks at first: who stopped what, what is down, what failed, and what takes
//! long. Counts come from the database, and of each kind only a few are listed.

use crate::catalog::Catalog;
use crate::codes::BatchState;
use crate::error::Result;
use crate::id::{JobId, PipelineId, StageId};
use crate::progress::Progress;
use crate::rules::batch::Batch;
use crate::rules::breaker::{self, Target};
use crate::rules::operator::pause::{self, Pause};
use crate::view::stats::{IdleHead, idle_heads};
use db::{FromRow, Micros, Row, Statement, Tx, statement};

/// A hold in force.
#[derive(Debug, Clone)]
pub struct Hold {
    /// batch, collection, or job: one that runs and is held when its run ends
    pub kind: String,
    /// What is held.
    pub name: String,
    /// Who acts or acted.
    pub who: String,
    /// When.
    pub at: Micros,
    /// Why.
    pub reason: String,
}

impl FromRow for Hold {
    fn from_row(row: &Row<'_>) -> db::Result<Hold> {
        Ok(Hold {
            kind: row.get(0)?,
            name: row.get(1)?,
            who: row.get(2)?,
            at: row.get(3)?,
            reason: row.get(4)?,
        })
    }
}

/// Jobs that wait for one thing: a target that is down, a resource, or a release.
#[derive(Debug, Clone)]
pub struct Blocked {
    /// What they wait for.
    pub on: String,
    /// How many jobs.
    pub jobs: i64,
    /// Since when the first of them has waited.
    pub since: Micros,
}

/// Failed jobs of one pipeline with one error code.
#[derive(Debug, Clone)]
pub struct FailureGroup {
    /// The pipeline that they share.
    pub queue: String,
    /// The error code that they share.
    pub code: String,
    /// How many jobs.
    pub jobs: i64,
    /// Those that no one has reviewed.
    pub unseen: i64,
    /// The earliest.
    pub first_at: Micros,
    /// The latest.
    pub last_at: Micros,
    /// One of them, to look at.
    pub newest: i64,
}

/// A run that takes long.
#[derive(Debug, Clone)]
pub struct LongRun {
    /// The id of the job.
    pub job: JobId,
    /// What the job is about.
    pub subject: String,
    /// The stage.
    pub stage: String,
    /// Since when.
    pub since: Micros,
    /// How far the run has come.
    pub progress: Option<String>,
    /// The name of the worker.
    pub worker: String,
}

/// Batches of one state.
#[derive(Debug, Clone)]
pub struct BatchCount {
    /// The state that they share.
    pub state: BatchState,
    /// How many batches.
    pub batches: i64,
    /// How many are held.
    pub held: i64,
    /// Their jobs that have not ended.
    pub open: i64,
    /// The earliest.
    pub first_at: Micros,
    /// The latest.
    pub last_at: Micros,
}

impl FromRow for BatchCount {
    fn from_row(row: &Row<'_>) -> db::Result<BatchCount> {
        Ok(BatchCount {
            state: row.get(0)?,
            batches: row.get(1)?,
            held: row.get(2)?,
            open: row.get(3)?,
            first_at: row.get(4)?,
            last_at: row.get(5)?,
        })
    }
}

/// A few of many.
#[derive(Debug, Clone, Default)]
pub struct Limited<T> {
    /// The first of them.
    pub shown: Vec<T>,
    /// How many there are.
    pub total: i64,
}

/// How much of each kind is listed, and from when on a run takes long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// What is held, newest first.
    pub holds: i64,
    /// How many groups of failures to return.
    pub failures: i64,
    /// Runs that take long.
    pub long_runs: i64,
    /// How many batches.
    pub batches: i64,
    /// From when on a run takes long.
    pub long_micros: Micros,
}

/// What needs attention.
#[derive(Debug, Clone)]
pub struct Overview {
    /// What is paused.
    pub pauses: Vec<Pause>,
    /// What is held, newest first.
    pub holds: Limited<Hold>,
    /// Targets that are down.
    pub targets_down: Vec<Target>,
    /// How many wait for a target that is down.
    pub blocked: Vec<Blocked>,
    /// How many groups of failures to return.
    pub failures: Limited<FailureGroup>,
    /// How many failed jobs there are.
    pub failed_jobs: i64,
    /// Runs that take long.
    pub long_runs: Limited<LongRun>,
    /// Stages with ready jobs where nothing runs, by name, and the first job of each.
    pub idle: Vec<(String, JobId)>,
    /// Of all states but *completed*.
    pub batch_counts: Vec<BatchCount>,
    /// Batches that have not ended.
    pub open_batches: Limited<Batch>,
    /// Batches that ended with failures.
    pub failed_batches: Limited<Batch>,
}

/// Gathers what needs attention.
pub fn overview(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    limits: &Limits,
) -> Result<Overview> {
    let counts = batch_counts(tx)?;
    let count = |wanted: &dyn Fn(BatchState) -> bool| {
        counts.iter().filter(|count| wanted(count.state)).map(|count| count.batches).sum()
    };
    let open = count(&|state| !matches!(state, BatchState::Failed | BatchState::Deleted));
    let failed = count(&|state| state == BatchState::Failed);
    let (failures, failed_jobs) = failures(tx, catalog, limits.failures)?;
    let targets = breaker::all(tx)?;
    Ok(Overview {
        pauses: pause::all(tx)?,
        holds: holds(tx, limits.holds)?,
        targets_down: targets.into_iter().filter(|t| t.opened_at.is_some()).collect(),
        blocked: blocked(tx)?,
        failures,
        failed_jobs,
        long_runs: long_runs(tx, catalog, now - limits.long_micros, limits.long_runs)?,
        idle: idle_heads(tx, catalog)?
            .into_iter()
            .map(|IdleHead { name, job, .. }| (name, job))
            .collect(),
        batch_counts: counts,
        open_batches: Limited { shown: open_batches(tx, limits.batches)?, total: open },
        failed_batches: Limited { shown: failed_batches(tx, limits.batches)?, total: failed },
    })
}

fn holds(tx: &mut Tx<'_>, limit: i64) -> Result<Limited<Hold>> {
    const ALL: Statement = statement!(hold::all_holds);
    const COUNT: Statement = statement!(hold::count_holds);
    let (total,): (i64,) = tx.one(&COUNT, &[])?;
    Ok(Limited { shown: tx.query(&ALL, &db::params![limit])?, total })
}

fn blocked(tx: &mut Tx<'_>) -> Result<Vec<Blocked>> {
    const BLOCKED: Statement = statement!(overview::count_blocked);
    let rows: Vec<(String, i64, Micros)> = tx.query(&BLOCKED, &[])?;
    Ok(rows.into_iter().map(|(on, jobs, since)| Blocked { on, jobs, since }).collect())
}

fn failures(
    tx: &mut Tx<'_>,
    catalog: &Catalog,
    limit: i64,
) -> Result<(Limited<FailureGroup>, i64)> {
    const GROUPS: Statement = statement!(overview::failure_groups);
    const COUNT: Statement = statement!(overview::count_failure_groups);
    type Group = (PipelineId, String, i64, i64, Micros, Micros, i64);
    let (total, jobs): (i64, i64) = tx.one(&COUNT, &[])?;
    let rows: Vec<Group> = tx.query(&GROUPS, &db::params![limit])?;
    let shown = rows.into_iter().map(|(id, code, jobs, unseen, first_at, last_at, newest)| {
        let queue = catalog.pipeline(id).map_or_else(|_| id.to_string(), |p| p.name.clone());
        FailureGroup { queue, code, jobs, unseen, first_at, last_at, newest }
    });
    Ok((Limited { shown: shown.collect(), total }, jobs))
}

fn long_runs(
    tx: &mut Tx<'_>,
    catalog: &Catalog,
    before: Micros,
    limit: i64,
) -> Result<Limited<LongRun>> {
    const RUNS: Statement = statement!(overview::long_runs);
    const COUNT: Statement = statement!(overview::count_long_runs);
    type Run = (JobId, String, StageId, Micros, Option<String>, Option<String>);
    let (total,): (i64,) = tx.one(&COUNT, &db::params![before])?;
    let rows: Vec<Run> = tx.query(&RUNS, &db::params![before, limit])?;
    let shown = rows.into_iter().map(|(job, subject, stage, since, progress, worker)| LongRun {
        job,
        subject,
        stage: catalog.stage_name(stage),
        since,
        progress: progress.map(|text| Progress::parse(&text).to_string()),
        worker: worker.unwrap_or_default(),
    });
    Ok(Limited { shown: shown.collect(), total })
}

fn batch_counts(tx: &mut Tx<'_>) -> Result<Vec<BatchCount>> {
    const COUNT: Statement = statement!(overview::count_batches);
    Ok(tx.query(&COUNT, &[])?)
}

fn open_batches(tx: &mut Tx<'_>, limit: i64) -> Result<Vec<Batch>> {
    const OPEN: Statement = statement!(overview::open_batches);
    Ok(tx.query(&OPEN, &db::params![limit])?)
}

fn failed_batches(tx: &mut Tx<'_>, limit: i64) -> Result<Vec<Batch>> {
    const FAILED: Statement = statement!(overview::failed_batches);
    Ok(tx.query(&FAILED, &db::params![limit])?)
}
