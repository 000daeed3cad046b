//! Registered workers: what each is doing, and which are dead.

use crate::error::Result;
use crate::progress::Progress;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Serialize)]
pub struct WorkerView {
    pub id: i64,
    pub name: String,
    pub host: String,
    pub pid: i64,
    pub stages: Vec<String>,
    pub started_at: Micros,
    pub seen_at: Micros,
    pub lease_until: Micros,
    pub ended_at: Option<Micros>,
    pub ended_why: Option<String>,
    /// live, late (its lease has run out), stopped or dead.
    pub state: &'static str,
    /// Running and buffered jobs.
    pub jobs: Vec<WorkerJob>,
}

#[derive(Debug, Clone, Serialize)]
pub struct WorkerJob {
    #[serde(rename = "id")]
    pub job: i64,
    pub subject: String,
    pub since: Micros,
    pub started: bool,
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
            (Some(why), Some(_)) if why == "stopped" => "stopped",
            (_, Some(_)) => "dead",
            _ if view.lease_until < now => "late",
            _ => "live",
        };
        if view.ended_at.is_none() {
            let jobs: Vec<(i64, String, Micros, bool, Option<String>)> =
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
