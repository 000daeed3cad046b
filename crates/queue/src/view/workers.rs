//! Registered workers: what each is doing, and which are dead.

use crate::error::Result;
use crate::id::{JobId, WorkerId};
use crate::progress::Progress;
use crate::rules::lease;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use serde::Serialize;
use std::collections::BTreeSet;

/// A worker as people see it.
#[derive(Debug, Clone, Serialize)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its name.
    pub name: String,
    /// The machine that it runs on.
    pub host: String,
    /// Its process id.
    pub pid: i64,
    /// The stages that it serves, as `pipeline/stage`.
    pub stages: Vec<String>,
    /// When it started.
    pub started_at: Micros,
    /// When it last renewed its lease.
    pub seen_at: Micros,
    /// When its lease runs out.
    pub lease_until: Micros,
    /// When it ended.
    pub ended_at: Option<Micros>,
    /// Why it ended.
    pub ended_why: Option<String>,
    /// live, late (its lease has run out), stopped or dead.
    pub state: &'static str,
    /// Running and buffered jobs.
    pub jobs: Vec<WorkerJob>,
}

/// A job of a worker.
#[derive(Debug, Clone, Serialize)]
pub struct WorkerJob {
    /// The id of the job.
    #[serde(rename = "id")]
    pub job: JobId,
    /// What the job is about.
    pub subject: String,
    /// Since when.
    pub since: Micros,
    /// Whether the run has begun; otherwise it is in a buffer.
    pub started: bool,
    /// How far the run has come.
    pub progress: Option<String>,
}

struct WorkerRow(WorkerView);

impl FromRow for WorkerRow {
    fn from_row(row: &Row<'_>) -> db::Result<WorkerRow> {
        let stages: String = row.get(4)?;
        Ok(WorkerRow(WorkerView {
            id: row.get(0)?,
            name: row.get(1)?,
            host: row.get(2)?,
            pid: row.get(3)?,
            stages: serde_json::from_str(&stages).unwrap_or_default(),
            started_at: row.get(5)?,
            seen_at: row.get(6)?,
            lease_until: row.get(7)?,
            ended_at: row.get(8)?,
            ended_why: row.get(9)?,
            state: "",
            jobs: Vec::new(),
        }))
    }
}

/// What live workers work on, as `queue/stage`.
pub fn served(tx: &mut Tx<'_>, now: Micros) -> Result<BTreeSet<String>> {
    const LIVE: Statement = statement!(workers::live_worker_stages);
    let live: Vec<(String, String)> = tx.query(&LIVE, &db::params![now])?;
    let stages = live.iter().map(|(stages, _)| serde_json::from_str(stages).unwrap_or_default());
    Ok(stages.flat_map(|stages: Vec<String>| stages).collect())
}

/// Live workers, and those that ended since `since`; newest first.
pub fn workers(tx: &mut Tx<'_>, now: Micros, since: Micros) -> Result<Vec<WorkerView>> {
    const WORKERS: Statement = statement!(workers::list_workers);
    const JOBS: Statement = statement!(workers::worker_jobs);
    let rows: Vec<WorkerRow> = tx.query(&WORKERS, &db::params![since])?;
    let mut views = Vec::with_capacity(rows.len());
    for WorkerRow(mut view) in rows {
        view.state = match (&view.ended_why, view.ended_at) {
            (Some(why), Some(_)) if why == lease::STOPPED => "stopped",
            (_, Some(_)) => "dead",
            _ if view.lease_until < now => "late",
            _ => "live",
        };
        if view.ended_at.is_none() {
            let jobs: Vec<(JobId, String, Micros, bool, Option<String>)> =
                tx.query(&JOBS, &db::params![view.id])?;
            view.jobs = jobs
                .into_iter()
                .map(|(job, subject, since, started, progress)| WorkerJob {
                    job,
                    subject,
                    since,
                    started,
                    progress: progress.map(|text| Progress::parse(&text).to_string()),
                })
                .collect();
        }
        views.push(view);
    }
    Ok(views)
}
