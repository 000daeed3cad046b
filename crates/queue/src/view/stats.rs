//! How the queue is doing: depths, ages, rates, failures by error, and what is stuck.

use crate::catalog::{Catalog, Pipeline, Stage};
use crate::codes::State;
use crate::error::Result;
use crate::id::{JobId, PipelineId, StageId};
use crate::rules::operator::pause::{self, Pause, Scope};
use crate::view::why::why;
use db::{Micros, Statement, Tx, statement};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of a stage.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StageStats {
    /// The name of the pipeline.
    pub queue: String,
    /// The stage.
    pub stage: String,
    /// Whether the stage is paused.
    pub paused: bool,
    /// How many can be claimed.
    pub ready: i64,
    /// How many wait for their lock.
    pub parked: i64,
    /// How many are not due yet.
    pub delayed: i64,
    /// How many are held.
    pub held: i64,
    /// How many wait for a target that is down.
    pub blocked: i64,
    /// How many wait for a resource.
    pub starved: i64,
    /// How many run.
    pub running: i64,
    /// Claimed by a worker, and not started yet.
    pub claimed: i64,
    /// How many failed and were not sent again.
    pub failed: i64,
    /// When the oldest waiting job was added.
    pub oldest_at: Option<Micros>,
    /// Runs that succeeded and that ended in an error in the last hour.
    pub succeeded_last_hour: i64,
    /// Errors in the last hour.
    pub errors_last_hour: i64,
    /// Successes per second, over the last full minutes.
    pub succeeded_per_second: f64,
}

/// How many jobs failed with a code.
#[derive(Debug, Clone, Serialize)]
pub struct FailureCount {
    /// The name of the pipeline.
    pub queue: String,
    /// The error code.
    pub code: String,
    /// How many.
    pub count: i64,
}

/// The figures of all queues.
#[derive(Debug, Clone, Serialize)]
pub struct Stats {
    /// Each stage of each pipeline.
    pub stages: Vec<StageStats>,
    /// Failed jobs by code, the most frequent first.
    pub failures: Vec<FailureCount>,
    /// Targets that are down.
    pub targets_down: Vec<String>,
}

/// The rate is over this many whole minutes.
const RATE_MINUTES: i64 = 5;

fn is_paused(pauses: &[Pause], pipeline: &Pipeline, stage: &Stage) -> bool {
    pauses.iter().any(|pause| match pause.scope {
        Scope::Everything => true,
        Scope::Pipeline(id) => id == pipeline.id,
        Scope::Stage(id) => id == stage.id,
    })
}

/// A stage with a ready job and no worker that claims it.
pub(crate) struct IdleHead {
    /// The stage.
    pub stage: StageId,
    /// Queue and stage, for people.
    pub name: String,
    /// The id of the job.
    pub job: JobId,
}

/// The first ready job of each stage that is not paused and where nothing runs. A look at the head
/// of each line, however long it is.
pub(crate) fn idle_heads(tx: &mut Tx<'_>, catalog: &Catalog) -> Result<Vec<IdleHead>> {
    const HEAD: Statement = statement!(stats::head_of_line);
    let pauses = pause::all(tx)?;
    let mut heads = Vec::new();
    for pipeline in catalog.pipelines() {
        for stage in &pipeline.stages {
            if is_paused(&pauses, pipeline, stage) {
                continue;
            }
            if let Some((job,)) = tx.first(&HEAD, &db::params![stage.id])? {
                let name = format!("{}/{}", pipeline.name, stage.name);
                heads.push(IdleHead { stage: stage.id, name, job });
            }
        }
    }
    Ok(heads)
}

/// Counts the jobs of each stage.
pub fn stats(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    pipeline: Option<PipelineId>,
) -> Result<Stats> {
    const WAITING: Statement = statement!(stats::count_waiting);
    const RUNNING: Statement = statement!(stats::count_running);
    const FAILED: Statement = statement!(stats::count_failed);
    const RATES: Statement = statement!(stats::stage_rates);
    const CODES: Statement = statement!(stats::count_failures);
    let mut stages: BTreeMap<StageId, StageStats> = BTreeMap::new();
    let pauses = pause::all(tx)?;
    for p in catalog.pipelines().filter(|p| pipeline.is_none_or(|id| id == p.id)) {
        for s in &p.stages {
            let paused = is_paused(&pauses, p, s);
            stages.insert(
                s.id,
                StageStats {
                    queue: p.name.clone(),
                    stage: s.name.clone(),
                    paused,
                    ..StageStats::default()
                },
            );
        }
    }
    for (stage, state, count, oldest) in
        tx.query::<(StageId, State, i64, Option<i64>)>(&WAITING, &[])?
    {
        let Some(s) = stages.get_mut(&stage) else { continue };
        s.oldest_at = s.oldest_at.into_iter().chain(oldest).min();
        *match state {
            State::Ready => &mut s.ready,
            State::Parked => &mut s.parked,
            State::Delayed => &mut s.delayed,
            State::Held => &mut s.held,
            State::Blocked => &mut s.blocked,
            State::Starved => &mut s.starved,
        } = count;
    }
    for (stage, running, claimed) in tx.query::<(StageId, i64, i64)>(&RUNNING, &[])? {
        stages.entry(stage).and_modify(|s| (s.running, s.claimed) = (running, claimed));
    }
    for (stage, count) in tx.query::<(StageId, i64)>(&FAILED, &[])? {
        stages.entry(stage).and_modify(|s| s.failed = count);
    }
    let minute = now / 60_000_000;
    let rates: Vec<(StageId, i64, i64, i64)> =
        tx.query(&RATES, &db::params![minute - 60, minute - RATE_MINUTES, minute])?;
    for (stage, succeeded, errors, recent) in rates {
        stages.entry(stage).and_modify(|s| {
            (s.succeeded_last_hour, s.errors_last_hour) = (succeeded, errors);
            s.succeeded_per_second = recent as f64 / (RATE_MINUTES * 60) as f64;
        });
    }
    let codes: Vec<(PipelineId, String, i64)> = tx.query(&CODES, &db::params![pipeline])?;
    let failures = codes
        .into_iter()
        .map(|(id, code, count)| FailureCount {
            queue: catalog.pipeline(id).map_or_else(|_| id.to_string(), |p| p.name.clone()),
            code,
            count,
        })
        .collect();
    let down = crate::rules::breaker::all(tx)?
        .into_iter()
        .filter(|t| t.opened_at.is_some())
        .map(|t| t.name)
        .collect();
    let mut stages: Vec<StageStats> = stages.into_values().collect();
    stages.sort_by(|a, b| a.queue.cmp(&b.queue));
    Ok(Stats { stages, failures, targets_down: down })
}

/// A job that has not moved for long, and why.
#[derive(Debug, Clone, Serialize)]
pub struct Stuck {
    /// The id of the job.
    #[serde(rename = "id")]
    pub job: JobId,
    /// What the job is about.
    pub subject: String,
    /// The stage.
    pub stage: String,
    /// Since when it is in the stage.
    pub since: Micros,
    /// Why, in a sentence.
    pub why: String,
}

/// Jobs that have not moved since `before`, longest first.
pub fn stuck(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    pipeline: Option<PipelineId>,
    before: Micros,
    limit: i64,
) -> Result<Vec<Stuck>> {
    const STUCK: Statement = statement!(stats::stuck_jobs);
    let rows: Vec<(JobId, String, StageId, Micros)> =
        tx.query(&STUCK, &db::params![pipeline, before, limit])?;
    rows.into_iter()
        .map(|(job, subject, stage, since)| {
            Ok(Stuck {
                job,
                subject,
                stage: catalog.stage_name(stage),
                since,
                why: why(tx, now, catalog, job)?,
            })
        })
        .collect()
}
