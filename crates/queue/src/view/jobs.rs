//! Jobs as a person sees them.

use crate::catalog::Catalog;
use crate::codes::{State, Status};
use crate::error::{Entity, Error, Result};
use crate::id::{BatchId, JobId, PipelineId, StageId};
use crate::job::JobState;
use crate::progress::Progress;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use serde::Serialize;

/// A job as people see it.
#[derive(Debug, Clone, Serialize)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// The name of the pipeline.
    pub queue: String,
    /// The stage.
    pub stage: String,
    /// What the job is about.
    pub subject: String,
    /// Its status.
    pub status: Status,
    /// For a waiting job: what it waits for.
    pub waiting: Option<State>,
    /// What no two jobs may own at the same time.
    pub lock: String,
    /// From 0 (first) to 99 (last).
    pub priority: i64,
    /// When it may be claimed.
    pub due: Option<Micros>,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// When it was added.
    pub added_at: Micros,
    /// Who added it.
    pub added_by: String,
    /// Since when.
    pub since: Option<Micros>,
    /// The name of the worker that runs it.
    pub worker: Option<String>,
    /// The fencing token: it grows with every claim (I4).
    pub token: Option<i64>,
    /// How far the run has come.
    pub progress: Option<String>,
    /// The same as numbers, where the run counts bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_bytes: Option<u64>,
    /// The bytes to do, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// The last error: of a failed job, or of a run that goes on.
    pub error: Option<String>,
    /// The code of the error.
    pub error_code: Option<String>,
    /// The target that the error names.
    pub target: Option<String>,
    /// A sentence about it, for people.
    pub note: Option<String>,
    /// Whether no one has reviewed the failure.
    pub needs_review: bool,
    /// Whether a requeue can help.
    pub recoverable: Option<bool>,
    /// Whether it has been asked to stop.
    pub cancel_requested: bool,
    /// When it ended.
    pub ended_at: Option<Micros>,
    /// Who or what ended it.
    pub ended_by: Option<String>,
    /// Why it ended.
    pub ended_why: Option<String>,
    /// The length of the payload.
    pub payload_bytes: i64,
    /// The id of the stage.
    #[serde(skip)]
    pub stage_id: StageId,
    /// The id of the pipeline.
    #[serde(skip)]
    pub pipeline_id: PipelineId,
}

impl FromRow for JobView {
    fn from_row(row: &Row<'_>) -> db::Result<JobView> {
        let recorded: Status = row.get(4)?;
        let waiting = row.get::<Option<i64>>(5)?.and_then(State::from_number);
        let worker: Option<String> = row.get(16)?;
        let progress = row.get::<Option<String>>(17)?.map(|text| Progress::parse(&text));
        let counted = progress.as_ref().filter(|progress| progress.counted);
        let status = match (recorded, waiting, row.get::<Option<i64>>(15)?) {
            (Status::Queued, Some(State::Held), _) => Status::Held,
            (Status::Queued, _, Some(_)) => Status::Running,
            (recorded, ..) => recorded,
        };
        Ok(JobView {
            id: row.get(0)?,
            pipeline_id: row.get(1)?,
            queue: String::new(),
            stage_id: row.get(2)?,
            stage: String::new(),
            subject: row.get(3)?,
            status,
            waiting,
            lock: row.get(6)?,
            priority: row.get(7)?,
            due: row.get(8)?,
            batch: row.get(9)?,
            collection: row.get(10)?,
            added_at: row.get(11)?,
            added_by: row.get(12)?,
            since: row.get(13)?,
            token: row.get(14)?,
            worker,
            done_bytes: counted.map(|progress| progress.done_bytes),
            total_bytes: counted.and_then(|progress| progress.total_bytes),
            progress: progress.map(|progress| progress.to_string()),
            error: row.get(18)?,
            error_code: row.get(19)?,
            target: row.get(20)?,
            note: row.get(21)?,
            needs_review: row.get::<Option<i64>>(22)?.is_some_and(|n| n != 0),
            recoverable: row.get::<Option<i64>>(23)?.map(|n| n != 0),
            cancel_requested: row.get::<Option<String>>(24)?.is_some(),
            ended_at: row.get(25)?,
            ended_by: row.get(26)?,
            ended_why: row.get(27)?,
            payload_bytes: row.get::<Option<i64>>(28)?.unwrap_or(0),
        })
    }
}

impl JobView {
    fn named(mut self, catalog: &Catalog) -> JobView {
        if let Ok((pipeline, stage)) = catalog.stage(self.stage_id) {
            (self.queue, self.stage) = (pipeline.name.clone(), stage.name.clone());
        }
        self
    }

    /// As seed 001 shows it: *Pending* before the first claim, then by its stage.
    pub fn shown_state(&self) -> String {
        match (self.status, self.waiting) {
            (Status::Queued, Some(State::Ready) | None) => "queued".to_string(),
            (Status::Queued, Some(state)) => format!("queued ({state})"),
            (Status::Running, _) if self.error.is_some() => "running (error seen)".to_string(),
            (Status::Running, _) if self.cancel_requested => "running (asked to stop)".to_string(),
            (status, _) => status.to_string(),
        }
    }
}

/// Which jobs, newest first.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only jobs of this pipeline.
    pub pipeline: Option<PipelineId>,
    /// The stage.
    pub stage: Option<StageId>,
    /// Its status.
    pub status: Option<Status>,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// What the job is about.
    pub subject: Option<String>,
    /// Only jobs with smaller ids: how a list is paged.
    pub before: Option<JobId>,
    /// At most this many.
    pub limit: i64,
}

/// Lists jobs, newest first.
pub fn list(tx: &mut Tx<'_>, catalog: &Catalog, filter: &ListFilter) -> Result<Vec<JobView>> {
    const WAITING: Statement = statement!(jobs::list_waiting);
    const STARTED: Statement = statement!(jobs::list_started);
    const FAILED: Statement = statement!(jobs::list_failed);
    const JOBS: Statement = statement!(jobs::list_jobs);
    // Each kind is read from the table that holds it, which is small where the record is large.
    let statement = match filter.status {
        Some(Status::Queued | Status::Held) => &WAITING,
        Some(Status::Running) => &STARTED,
        Some(Status::Failed) => &FAILED,
        _ => &JOBS,
    };
    let held = filter.status.map(|s| i64::from(s == Status::Held));
    let ended = filter.status.filter(|s| matches!(s, Status::Succeeded | Status::Cancelled));
    let before = filter.before.unwrap_or(JobId::new(i64::MAX));
    let params = db::params![
        filter.pipeline,
        before,
        filter.limit.clamp(1, 10_000),
        filter.batch,
        &filter.collection,
        &filter.subject,
        held,
        ended,
        filter.stage
    ];
    let rows: Vec<JobView> = tx.query(statement, &params)?;
    Ok(rows.into_iter().map(|row| row.named(catalog)).collect())
}

/// Failed jobs; with `review`, those that a person has not looked at.
pub fn failed(
    tx: &mut Tx<'_>,
    catalog: &Catalog,
    (pipeline, stage): (Option<PipelineId>, Option<StageId>),
    review: bool,
    before: Option<JobId>,
    limit: i64,
) -> Result<Vec<JobView>> {
    let mut filter = ListFilter {
        pipeline,
        stage,
        status: Some(Status::Failed),
        before,
        limit,
        ..ListFilter::default()
    };
    let mut found = Vec::new();
    loop {
        // Those that were seen are skipped, however many they are.
        let page = list(tx, catalog, &filter)?;
        filter.before = page.last().map(|job| job.id);
        found.extend(page.into_iter().filter(|job| !review || job.needs_review));
        let enough = usize::try_from(limit.max(1)).is_ok_and(|limit| found.len() >= limit);
        if filter.before.is_none() || enough {
            found.truncate(usize::try_from(limit.max(1)).unwrap_or(usize::MAX));
            return Ok(found);
        }
    }
}

/// Returns one job.
pub fn show(tx: &mut Tx<'_>, catalog: &Catalog, job: JobId) -> Result<JobView> {
    const SHOW: Statement = statement!(jobs::show_job);
    let hint = "`accession jobs list` shows the jobs there are";
    let found: Option<JobView> = tx.first(&SHOW, &db::params![job])?;
    found.map(|row| row.named(catalog)).ok_or_else(|| Error::unknown(Entity::Job, job, hint))
}

/// I6: what a stage cost a job.
#[derive(Debug, Clone, Serialize)]
pub struct TriesView {
    /// The stage.
    pub stage: String,
    /// Runs that ended in an error since the last requeue.
    pub attempts: i64,
    /// Runs that ended in an error.
    pub attempts_ever: i64,
    /// Runs that were cut short since the last requeue.
    pub interruptions: i64,
    /// Runs that were cut short.
    pub interruptions_ever: i64,
    /// How often it was requeued.
    pub requeues: i64,
}

/// Returns how often a job was tried in each stage.
pub fn tries(tx: &mut Tx<'_>, catalog: &Catalog, job: JobId) -> Result<Vec<TriesView>> {
    const TRIES: Statement = statement!(jobs::job_tries);
    let rows: Vec<(StageId, i64, i64, i64, i64, i64)> = tx.query(&TRIES, &db::params![job])?;
    Ok(rows
        .into_iter()
        .map(|(stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues)| {
            TriesView {
                stage: catalog.stage_name(stage),
                attempts,
                attempts_ever,
                interruptions,
                interruptions_ever,
                requeues,
            }
        })
        .collect())
}

/// What a stage left of a job for those that follow.
#[derive(Debug, Clone, Serialize)]
pub struct StateView {
    /// The stage.
    pub stage: String,
    /// When.
    pub at: Micros,
    /// What the stage left.
    pub state: JobState,
}

/// Returns what each stage left of a job.
pub fn states(tx: &mut Tx<'_>, catalog: &Catalog, job: JobId) -> Result<Vec<StateView>> {
    let left = crate::rules::state::all(tx, job)?;
    let named = |(stage, at, state)| StateView { stage: catalog.stage_name(stage), at, state };
    Ok(left.into_iter().map(named).collect())
}
