//! What a batch's report says, from what the registry and the queue know.

use crate::model::error::Result;
use crate::registry::ingest::Summary;
use crate::registry::restoring::{self, Delivery};
use crate::report::{
    self as told, BatchReport, CancelLine, ChangeLine, DEPOSIT_AGAIN, FailureLine, FormatCount,
    Head, ObjectLine, REQUEUE, ReviewLine, SUPERSEDED, UnfinishedLine,
};
use db::{Micros, Statement, Tx, statement};
use queue::rules::replacing::{self, Replacement};
use queue::rules::{batch, report};
use queue::view::show_time;
use queue::{BatchId, BatchState, Catalog, Content, JobId, WorkerId};
use std::collections::BTreeMap;

/// A page of the objects of a batch that are preserved, in the order of their jobs.
pub fn objects_after(
    tx: &mut Tx<'_>,
    batch: BatchId,
    after: JobId,
    limit: i64,
) -> Result<Vec<ObjectLine>> {
    const OBJECTS: Statement = statement!(reports::report_objects);
    let rows: Vec<(JobId, String, Option<i64>, Option<i64>, Option<String>)> =
        tx.query(&OBJECTS, &db::params![batch, after, limit])?;
    let Some(last) = rows.last().map(|row| row.0) else { return Ok(Vec::new()) };
    if restoring::find_request(tx, batch)?.is_some() {
        return deliveries(tx, batch, after, limit);
    }
    let mut replaced: BTreeMap<JobId, Vec<String>> = BTreeMap::new();
    for one in replacing::replaced_by(tx, batch, after..=last, i64::MAX)? {
        replaced.entry(one.by).or_default().push(one.replaces_sentence());
    }
    Ok(rows
        .into_iter()
        .map(|(job, subject, version, unchanged, summary)| {
            let summary: Summary =
                summary.and_then(|s| serde_json::from_str(&s).ok()).unwrap_or_default();
            let unchanged = unchanged == Some(1);
            ObjectLine {
                job,
                subject,
                identifier: summary.identifier,
                local_ids: summary.local_ids,
                version: version.unwrap_or(0) - i64::from(unchanged),
                state: if unchanged { "unchanged" } else { "new version" }.to_string(),
                files_new: summary.files_new,
                files_changed: summary.files_changed,
                files_unchanged: summary.files_unchanged,
                files_removed: summary.files_absent,
                bytes: summary.bytes,
                stores: summary.stores,
                warnings: summary.warnings,
                notes: replaced.remove(&job).unwrap_or_default(),
            }
        })
        .collect())
}

/// The same for a batch of restores: what was delivered where.
fn deliveries(
    tx: &mut Tx<'_>,
    batch: BatchId,
    after: JobId,
    limit: i64,
) -> Result<Vec<ObjectLine>> {
    let found = restoring::deliveries(tx, batch, after, limit)?;
    let line = |one: Delivery| {
        let mut notes = vec![format!("to {}", one.place)];
        if let (Some(bytes), Some(sha256)) = (one.package_bytes, &one.sha256) {
            notes.push(format!("{bytes} bytes, sha256 {sha256}"));
        }
        match (one.removed_at, one.kept_until) {
            (Some(at), _) => notes.push(format!("removed there {}", show_time(at))),
            (None, Some(until)) => notes.push(format!("kept there until {}", show_time(until))),
            (None, None) => {}
        }
        let missing = |file: &crate::delivery::feed::MissingFile| {
            format!("[file_missing] {} is not in it: {}", file.path, file.why)
        };
        ObjectLine {
            job: one.job,
            subject: one.subject,
            warnings: one.missing.iter().map(missing).collect(),
            identifier: one.identifier,
            version: one.version,
            state: "delivered".to_string(),
            bytes: i64::try_from(one.bytes).unwrap_or(i64::MAX),
            notes,
            ..ObjectLine::default()
        }
    };
    Ok(found.into_iter().map(line).collect())
}

/// Where a page of rows ended: jobs come first, then rows that are no jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    job: JobId,
    /// The last row that is no job; none while there are jobs.
    row: Option<i64>,
}

/// A page of what was cancelled of a batch: jobs, then rows that had not become jobs.
pub fn cancellations_after(
    tx: &mut Tx<'_>,
    batch: BatchId,
    after: Cursor,
    limit: i64,
) -> Result<(Vec<CancelLine>, Cursor)> {
    const JOBS: Statement = statement!(reports::report_cancelled);
    const ROWS: Statement = statement!(reports::report_cancelled_rows);
    if after.row.is_none() {
        let rows: Vec<CancelledJob> = tx.query(&JOBS, &db::params![batch, after.job, limit])?;
        if let Some(last) = rows.last() {
            let cursor = Cursor { job: last.0, row: None };
            return Ok((rows.into_iter().map(|row| cancelled(batch, row)).collect(), cursor));
        }
    }
    let number = after.row.unwrap_or(0);
    let rows: Vec<(i64, String, String, String)> =
        tx.query(&ROWS, &db::params![batch, number, limit])?;
    let cursor = Cursor { row: rows.last().map(|row| row.0).or(after.row), ..after };
    let line = |(_, subject, by, reason)| {
        let state = "cancelled".to_string();
        CancelLine { job: None, subject, state, by, reason }
    };
    Ok((rows.into_iter().map(line).collect(), cursor))
}

/// The job, its subject, who ended it and why; the job that took its place, that job's batch, and how
/// their content compares.
type CancelledJob =
    (JobId, String, Option<String>, Option<String>, Option<JobId>, Option<BatchId>, Option<String>);

fn cancelled(
    batch: BatchId,
    (job, subject, by, why, by_job, by_batch, content): CancelledJob,
) -> CancelLine {
    let Some(by_job) = by_job else {
        let (by, reason) = (by.unwrap_or_default(), why.unwrap_or_default());
        return CancelLine { job: Some(job), subject, state: "cancelled".to_string(), by, reason };
    };
    let content = content.as_deref().and_then(Content::from_name);
    let replaced = Replacement {
        job,
        subject: subject.clone(),
        batch: Some(batch),
        by: by_job,
        by_batch,
        content,
    };
    CancelLine {
        job: Some(job),
        subject,
        state: SUPERSEDED.to_string(),
        by: String::new(),
        reason: replaced.replaced_sentence(),
    }
}

/// A page of the rows of a batch that are neither done nor failed: jobs, then rows that have not
/// become jobs. A batch whose rows are not known yet has one, which is the deposit itself.
pub fn unfinished_after(
    tx: &mut Tx<'_>,
    batch: &batch::Batch,
    after: Cursor,
    limit: i64,
) -> Result<(Vec<UnfinishedLine>, Cursor)> {
    const JOBS: Statement = statement!(reports::report_unfinished);
    const ENTRIES: Statement = statement!(reports::report_entries);
    let nothing = || Ok((Vec::new(), after));
    if batch.state == BatchState::Pending {
        let state = if batch.is_held() { "held" } else { "not begun" }.to_string();
        let line = UnfinishedLine { subject: batch.label.clone(), state, ..Default::default() };
        let cursor = Cursor { row: Some(i64::MAX), ..after };
        return if after.row.is_none() { Ok((vec![line], cursor)) } else { nothing() };
    }
    if batch.open == 0 {
        return nothing();
    }
    if after.row.is_none() {
        let rows: Vec<(JobId, String, Option<String>, Option<WorkerId>, String)> =
            tx.query(&JOBS, &db::params![batch.id, after.job, limit])?;
        if let Some(last) = rows.last() {
            let cursor = Cursor { job: last.0, row: None };
            return Ok((rows.into_iter().map(open_job).collect(), cursor));
        }
    }
    let number = after.row.unwrap_or(0);
    let rows: Vec<(i64, String)> = tx.query(&ENTRIES, &db::params![batch.id, number, limit])?;
    let cursor = Cursor { row: rows.last().map(|row| row.0).or(after.row), ..after };
    let line = |(_, subject)| UnfinishedLine {
        subject,
        state: "not begun".to_string(),
        ..Default::default()
    };
    Ok((rows.into_iter().map(line).collect(), cursor))
}

fn open_job(
    (job, subject, waiting, worker, stage): (
        JobId,
        String,
        Option<String>,
        Option<WorkerId>,
        String,
    ),
) -> UnfinishedLine {
    let held = waiting.as_deref() == Some(queue::State::Held.name());
    let state = match worker {
        Some(_) => "running",
        None if held => "held",
        None => "queued",
    };
    UnfinishedLine { job: Some(job), subject, state: state.to_string(), stage }
}

/// A page of the failed jobs of a batch.
pub fn failures_after(
    tx: &mut Tx<'_>,
    batch: BatchId,
    after: JobId,
    limit: i64,
) -> Result<Vec<FailureLine>> {
    const FAILURES: Statement = statement!(reports::report_failures);
    let rows: Vec<(JobId, String, String, String, String, bool, Option<String>)> =
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
            class: if recoverable { REQUEUE } else { DEPOSIT_AGAIN }.to_string(),
        })
        .collect())
}

/// A failed job, for those who look after them; `None` if it does not fail any more.
pub fn review(tx: &mut Tx<'_>, job: JobId) -> Result<Option<ReviewLine>> {
    const FAILURE: Statement = statement!(reports::report_failure);
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
pub fn head(tx: &mut Tx<'_>, id: BatchId) -> Result<(Head, Vec<ChangeLine>)> {
    const TOTALS: Statement = statement!(reports::report_totals);
    let batch = batch::load(tx, id)?;
    let catalog = Catalog::load(tx)?;
    let waits = super::waits::stopped(tx, &catalog, &batch)?;
    let held = batch.is_held();
    let (superseded, superseded_same) = match batch.cancelled {
        0 => (0, 0),
        _ => replacing::count(tx, id)?,
    };
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
            job: JobId::new(item["job"].as_i64().unwrap_or(0)),
            subject: item["subject"].as_str().unwrap_or_default().to_string(),
            before: "failed".to_string(),
            after: became(item),
        })
        .collect();
    let open = if batch.state == BatchState::Pending { 1 } else { batch.open };
    let is_restore = restoring::find_request(tx, id)?.is_some();
    let (delivered, incomplete) = match is_restore {
        true => restoring::delivered_totals(tx, id)?,
        false => (0, 0),
    };
    let head = Head {
        is_restore,
        incomplete,
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
        superseded,
        superseded_same,
        unchanged,
        bytes: bytes + delivered,
        problems: batch.error.as_deref().map(told::problems).unwrap_or_default(),
        error: batch.error,
        waits,
        held,
        created_at: batch.created_at,
        finished_at: finished.unwrap_or(batch.updated_at),
        formats: formats(tx, id)?,
        objects_total: batch.succeeded,
        failures_total: batch.failed,
        cancellations_total: batch.cancelled,
        changed_total: said("changed_count"),
        unfinished_total: open,
        ..Head::default()
    };
    Ok((head, changed))
}

/// What became of a job since the last report.
fn became(item: &serde_json::Value) -> String {
    let status = item["status"].as_str().unwrap_or_default();
    match (status, item["why"].as_str()) {
        ("succeeded", _) => "preserved".to_string(),
        ("cancelled", Some(why)) => format!("cancelled: {why}"),
        _ => status.to_string(),
    }
}

/// Formats of all files of the batch. Read page by page: a batch may have millions of objects.
fn formats(tx: &mut Tx<'_>, batch: BatchId) -> Result<Vec<FormatCount>> {
    const SUMMARIES: Statement = statement!(reports::report_summaries);
    let mut counts: BTreeMap<String, FormatCount> = BTreeMap::new();
    let mut after = JobId::default();
    loop {
        let page: Vec<(JobId, String)> = tx.query(&SUMMARIES, &db::params![batch, after, 1000])?;
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
pub fn short(tx: &mut Tx<'_>, _: &Catalog, id: BatchId, limit: i64) -> Result<BatchReport> {
    let (head, mut changed) = head(tx, id)?;
    changed.truncate(usize::try_from(limit).unwrap_or(0));
    let batch = batch::load(tx, id)?;
    Ok(BatchReport {
        head,
        failures: failures_after(tx, id, JobId::default(), limit)?,
        cancellations: first(limit, |after, room| cancellations_after(tx, id, after, room))?,
        changed,
        unfinished: first(limit, |after, room| unfinished_after(tx, &batch, after, room))?,
        objects: objects_after(tx, id, JobId::default(), limit)?,
    })
}

/// The first lines of a list, from as many pages as it takes.
fn first<L>(
    limit: i64,
    mut page: impl FnMut(Cursor, i64) -> Result<(Vec<L>, Cursor)>,
) -> Result<Vec<L>> {
    let (mut lines, mut cursor) = (Vec::new(), Cursor::default());
    loop {
        let room = limit - i64::try_from(lines.len()).unwrap_or(limit);
        if room <= 0 {
            return Ok(lines);
        }
        let (more, next) = page(cursor, room)?;
        if more.is_empty() {
            return Ok(lines);
        }
        lines.extend(more);
        cursor = next;
    }
}
