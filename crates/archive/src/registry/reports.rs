//! What a batch's report says, from what the registry and the queue know.

use crate::error::Result;
use crate::ingest::Summary;
use crate::report::{
    BatchReport, ChangeLine, FailureLine, FormatCount, Head, ObjectLine, ReviewLine,
};
use db::{Micros, Statement, Tx, statement};
use queue::rules::{batch, report};
use queue::{Catalog, Status};
use std::collections::BTreeMap;

/// A page of the objects of a batch that were preserved or cancelled, in the order of their jobs.
pub fn objects_after(
    tx: &mut Tx<'_>,
    batch: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<ObjectLine>> {
    const OBJECTS: Statement = statement!("sql/report_objects");
    let rows: Vec<(i64, String, Status, Option<i64>, Option<i64>, Option<String>)> =
        tx.query(&OBJECTS, &db::params![batch, after, limit])?;
    Ok(rows
        .into_iter()
        .map(|(job, subject, status, version, unchanged, summary)| {
            let summary: Summary =
                summary.and_then(|s| serde_json::from_str(&s).ok()).unwrap_or_default();
            let unchanged = unchanged == Some(1);
            let state = match status {
                Status::Cancelled => "cancelled",
                _ if unchanged => "unchanged",
                _ => "new version",
            };
            ObjectLine {
                job,
                subject,
                identifier: summary.identifier,
                local_ids: summary.local_ids,
                version: version.unwrap_or(0) - i64::from(unchanged),
                state: state.to_string(),
                files_new: summary.files_new,
                files_changed: summary.files_changed,
                files_unchanged: summary.files_unchanged,
                files_removed: summary.files_absent,
                bytes: summary.bytes,
                stores: summary.stores,
                warnings: summary.warnings,
            }
        })
        .collect())
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
        unchanged,
        bytes,
        error: batch.error,
        waits,
        held: batch.held,
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
