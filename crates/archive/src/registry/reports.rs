//! What a batch's report says, from what the registry and the queue know.

use crate::error::Result;
use crate::ingest::Summary;
use crate::report::{
    BatchReport, ChangeLine, FailureLine, FormatCount, Head, ObjectLine, ReviewLine,
};
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use queue::rules::replacing::{self, Replacement};
use queue::rules::{batch, report};
use queue::{Catalog, Content, Status};
use std::collections::BTreeMap;

/// A page of the objects of a batch that were preserved or cancelled, in the order of their jobs.
pub fn objects_after(
    tx: &mut Tx<'_>,
    batch: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<ObjectLine>> {
    const OBJECTS: Statement = statement!("sql/report_objects");
    let rows: Vec<ObjectRow> = tx.query(&OBJECTS, &db::params![batch, after, limit])?;
    let Some(last) = rows.last().map(|row| row.job) else { return Ok(Vec::new()) };
    let mut replaced: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for one in replacing::replaced_by(tx, batch, after..=last, i64::MAX)? {
        replaced.entry(one.by).or_default().push(one.replaces_sentence());
    }
    Ok(rows
        .into_iter()
        .map(|row| {
            let notes = replaced.remove(&row.job).unwrap_or_default();
            row.line(batch, notes)
        })
        .collect())
}

/// A job of a batch that succeeded or was cancelled.
struct ObjectRow {
    job: i64,
    subject: String,
    status: Status,
    version: Option<i64>,
    unchanged: bool,
    summary: Summary,
    ended_by: Option<String>,
    ended_why: Option<String>,
    /// The job that took its place, its batch, and how their content compares.
    by: Option<(i64, Option<i64>, Option<Content>)>,
}

impl FromRow for ObjectRow {
    fn from_row(row: &Row<'_>) -> db::Result<ObjectRow> {
        let summary: Option<String> = row.get(5)?;
        let (batch, content): (Option<i64>, Option<i64>) = (row.get(9)?, row.get(10)?);
        let content = content.and_then(Content::from_number);
        Ok(ObjectRow {
            job: row.get(0)?,
            subject: row.get(1)?,
            status: row.get(2)?,
            version: row.get(3)?,
            unchanged: row.get::<Option<i64>>(4)? == Some(1),
            summary: summary.and_then(|s| serde_json::from_str(&s).ok()).unwrap_or_default(),
            ended_by: row.get(6)?,
            ended_why: row.get(7)?,
            by: row.get::<Option<i64>>(8)?.map(|by| (by, batch, content)),
        })
    }
}

impl ObjectRow {
    fn line(self, batch: i64, mut notes: Vec<String>) -> ObjectLine {
        let ObjectRow { job, subject, status, unchanged, summary, .. } = self;
        let state = match (status, self.by) {
            (Status::Cancelled, Some((by, by_batch, content))) => {
                let batch = Some(batch);
                let replaced =
                    Replacement { job, subject: subject.clone(), batch, by, by_batch, content };
                notes.push(replaced.replaced_sentence());
                "superseded"
            }
            (Status::Cancelled, None) => {
                let (who, why) =
                    (self.ended_by.unwrap_or_default(), self.ended_why.unwrap_or_default());
                notes.push(format!("cancelled by {who}: {why}"));
                "cancelled"
            }
            _ if unchanged => "unchanged",
            _ => "new version",
        };
        ObjectLine {
            job,
            subject,
            identifier: summary.identifier,
            local_ids: summary.local_ids,
            version: self.version.unwrap_or(0) - i64::from(unchanged),
            state: state.to_string(),
            files_new: summary.files_new,
            files_changed: summary.files_changed,
            files_unchanged: summary.files_unchanged,
            files_removed: summary.files_absent,
            bytes: summary.bytes,
            stores: summary.stores,
            warnings: summary.warnings,
            notes,
        }
    }
}

/// A page of the failed jobs of a batch.
pub fn failures_after(
    tx: &mut Tx<'_>,
    batch: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<FailureLine>> {
    const FAILURES: Statement = statement!("sql/report_failures");
    let rows: Vec<(i64, String, String, String, String, bool, Option<String>)> =
        tx.query(&FAILURES, &db::params![batch, after, limit])?;
    Ok(rows
        .into_iter()
        .map(|(job, subject, stage, code, message, recoverable, file)| FailureLine {
            job,
            subject,
            stage,
            code,
            message,
            file,
            class: if recoverable { "requeue after mending the cause" } else { "deposit again" }
                .to_string(),
        })
        .collect())
}

/// A failed job, for those who look after them; `None` if it has been mended meanwhile.
pub fn review(tx: &mut Tx<'_>, job: i64) -> Result<Option<ReviewLine>> {
    const FAILURE: Statement = statement!("sql/report_failure");
    let found: Option<(String, String, String, Option<String>, String, String, Micros)> =
        tx.first(&FAILURE, &db::params![job])?;
    Ok(found.map(|(pipeline, stage, subject, collection, code, message, at)| ReviewLine {
        job,
        pipeline,
        stage,
        subject,
        collection,
        code,
        message,
        at,
    }))
}

/// Everything about a batch but its lists.
pub fn head(tx: &mut Tx<'_>, id: i64) -> Result<(Head, Vec<ChangeLine>)> {
    const TOTALS: Statement = statement!("sql/report_totals");
    let batch = batch::load(tx, id)?;
    let catalog = Catalog::load(tx)?;
    let waits = super::waits::stopped(tx, &catalog, &batch)?;
    let held = batch.is_held();
    let newest: Option<serde_json::Value> =
        report::newest(tx, id)?.and_then(|text| serde_json::from_str(&text).ok());
    let said = |key: &str| newest.as_ref().and_then(|n| n[key].as_i64()).unwrap_or(0);
    let (unchanged, bytes, finished): (i64, i64, Option<Micros>) =
        tx.one(&TOTALS, &db::params![id])?;
    let changed: Vec<ChangeLine> = newest
        .as_ref()
        .and_then(|n| n["changed"].as_array())
        .into_iter()
        .flatten()
        .map(|item| ChangeLine {
            job: item["job"].as_i64().unwrap_or(0),
            subject: item["subject"].as_str().unwrap_or_default().to_string(),
            before: "failed".to_string(),
            after: item["status"].as_str().unwrap_or_default().to_string(),
        })
        .collect();
    let head = Head {
        batch: id,
        label: batch.label,
        collection: batch.collection,
        submitter: batch.submitter,
        version: said("version"),
        state: batch.state.to_string(),
        submitted: batch.total,
        succeeded: batch.succeeded,
        failed: batch.failed,
        cancelled: batch.cancelled,
        superseded: match batch.cancelled {
            0 => 0,
            _ => replacing::count(tx, id)?.0,
        },
        unchanged,
        bytes,
        error: batch.error,
        waits,
        held,
        created_at: batch.created_at,
        finished_at: finished.unwrap_or(batch.updated_at),
        formats: formats(tx, id)?,
        objects_total: batch.succeeded + batch.cancelled,
        failures_total: batch.failed,
        changed_total: said("changed_count"),
    };
    Ok((head, changed))
}

/// Formats of all files of the batch. Read page by page: a batch may have millions of objects.
fn formats(tx: &mut Tx<'_>, batch: i64) -> Result<Vec<FormatCount>> {
    const SUMMARIES: Statement = statement!("sql/report_summaries");
    let mut counts: BTreeMap<String, FormatCount> = BTreeMap::new();
    let mut after = 0;
    loop {
        let page: Vec<(i64, String)> = tx.query(&SUMMARIES, &db::params![batch, after, 1000])?;
        let Some(last) = page.last().map(|r| r.0) else { break };
        for (_, text) in page {
            let mut summary: Summary = serde_json::from_str(&text).unwrap_or_default();
            for (puid, (files, bytes)) in summary.formats {
                let name = summary.format_names.remove(&puid).unwrap_or_default();
                let count = counts.entry(puid.clone()).or_insert_with(|| FormatCount {
                    puid,
                    name,
                    ..FormatCount::default()
                });
                count.files += files;
                count.bytes += bytes;
            }
        }
        after = last;
    }
    Ok(counts.into_values().collect())
}

/// A report with its lists cut.
pub fn short(tx: &mut Tx<'_>, _: &Catalog, batch: i64, limit: i64) -> Result<BatchReport> {
    let (head, changed) = head(tx, batch)?;
    let objects = objects_after(tx, batch, 0, limit)?;
    let failures = failures_after(tx, batch, 0, limit)?;
    Ok(BatchReport { head, changed, failures, objects })
}
