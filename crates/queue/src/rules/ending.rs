//! How jobs end: succeeded, failed or cancelled, each exactly once (I5).

use crate::catalog::{Catalog, Pipeline};
use crate::codes::Status;
use crate::error::Result;
use crate::id::{BatchId, JobId, PipelineId, StageId};
use crate::job::JobError;
use crate::rules::counts::Counts;
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::preparing;
use crate::rules::replacing;
use crate::rules::settle::SettleBatch;
use db::{Micros, Statement, Tx, Value, statement};

/// A job about to end. The caller has deleted its rows in `waiting` and `leases`.
#[derive(Debug, Clone)]
pub struct Ending<'a> {
    /// The id of the job.
    pub job: JobId,
    /// The id of the stage.
    pub stage: StageId,
    /// Where the job was before.
    pub from: Status,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// What the job is about.
    pub subject: &'a str,
    /// What no two jobs may own at the same time.
    pub lock: &'a str,
}

/// Why it failed and what a person can do about it.
pub struct Verdict<'a> {
    /// What went wrong, if something did.
    pub error: &'a JobError,
    /// A sentence about it, for people.
    pub note: &'a str,
    /// Whether a requeue can help.
    pub recoverable: bool,
}

/// Fails a job: it gives up its lock and waits for a person.
pub fn fail(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    job: &Ending<'_>,
    verdict: &Verdict<'_>,
    journal: &mut Journal,
    counts: &mut Counts,
) -> Result<()> {
    const INSERT: Statement = statement!(ending::insert_failure);
    let error = verdict.error;
    tx.send(
        &INSERT,
        &db::params![
            job.job,
            pipeline.id,
            job.subject,
            job.lock,
            job.stage,
            now,
            &error.code,
            &error.message,
            &error.target,
            verdict.note,
            verdict.recoverable
        ],
    )?;
    let why = Some(error.message.clone());
    let end = EndRow { job: job.job, stage: job.stage, why, token: None };
    end_rows(tx, now, who, Status::Failed, &[end], Batches { waiting: true })?;
    let event = Event::new(job.job, now, who, "failed")
        .from(job.stage, job.from)
        .to(job.stage, Status::Failed);
    journal.note(pipeline, Weight::Always, event.error(error));
    counts.moved(job.batch, Some(job.from), Status::Failed);
    Ok(())
}

/// Cancels a job; what it was is kept in history.
pub fn cancel(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    why: &str,
    job: &Ending<'_>,
    journal: &mut Journal,
    counts: &mut Counts,
) -> Result<()> {
    if job.from == Status::Failed {
        forget(tx, job.job)?;
    }
    let end = EndRow { job: job.job, stage: job.stage, why: Some(why.to_string()), token: None };
    end_rows(tx, now, who, Status::Cancelled, &[end], Batches { waiting: true })?;
    let event = Event::new(job.job, now, who, "cancelled")
        .from(job.stage, job.from)
        .to(job.stage, Status::Cancelled);
    journal.note(pipeline, Weight::Always, event.why(why));
    counts.moved(job.batch, Some(job.from), Status::Cancelled);
    Ok(())
}

/// How a job ended.
pub struct EndRow {
    /// The id of the job.
    pub job: JobId,
    /// The id of the stage.
    pub stage: StageId,
    /// Why, in a sentence.
    pub why: Option<String>,
    /// Of the run that it succeeded by. With it this row is that change's history (I8): no other is
    /// written. Failed and cancelled jobs may go on, so theirs are.
    pub token: Option<i64>,
}

/// Jobs that have come to the end of their pipelines.
pub(crate) fn succeed(tx: &mut Tx<'_>, work: &SettleBatch<'_>, ended: &[EndRow]) -> Result<()> {
    let batches = Batches { waiting: work.preparing };
    end_rows(tx, work.now, &work.who, Status::Succeeded, ended, batches)
}

/// Whether a pending batch may wait for a job that ends.
struct Batches {
    waiting: bool,
}

/// The one place where jobs end, and with them the batches that wait for them.
fn end_rows(
    tx: &mut Tx<'_>,
    now: Micros,
    who: &str,
    status: Status,
    ended: &[EndRow],
    batches: Batches,
) -> Result<()> {
    const END: Statement = statement!(ending::end_jobs);
    let rows: Vec<[Value<'_>; 4]> =
        ended.iter().map(|end| db::params![end.job, end.stage, &end.why, end.token]).collect();
    tx.send_each(&END, &db::params![now, status, who], &rows)?;
    if batches.waiting {
        preparing::jobs_ended(tx, now, who, status, ended)?;
    }
    Ok(())
}

/// A failed job that goes on, or ends another way: how it ended before is in its history.
pub(crate) fn forget(tx: &mut Tx<'_>, job: JobId) -> Result<()> {
    const FORGET: Statement = statement!(ending::forget_endings);
    tx.send_each(&FORGET, &[], &[db::params![job]])?;
    Ok(())
}

/// Once a subject succeeded, its earlier failures in the same collection are resolved, and kept in
/// history; rows of one batch never resolve one another.
pub fn resolve_failures(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    who: &str,
    succeeded: &[(JobId, PipelineId, &str)],
    journal: &mut Journal,
    counts: &mut Counts,
) -> Result<()> {
    const RESOLVE: Statement = statement!(ending::resolve_failures);
    let rows: Vec<[Value<'_>; 3]> = succeeded
        .iter()
        .map(|(job, pipeline, subject)| db::params![job, pipeline, *subject])
        .collect();
    // Failed job, its pipeline, stage and batch, and the job that made it moot.
    let resolved: Vec<(JobId, PipelineId, StageId, Option<BatchId>, JobId)> =
        tx.each(&RESOLVE, &[], &rows)?;
    for (job, pipeline, stage, batch, by) in resolved {
        let ending = Ending { job, stage, from: Status::Failed, batch, subject: "", lock: "" };
        let why = format!("superseded by job {by}, which succeeded");
        cancel(tx, now, catalog.pipeline(pipeline)?, who, &why, &ending, journal, counts)?;
        replacing::replaced(tx, now, job, by)?;
    }
    Ok(())
}
