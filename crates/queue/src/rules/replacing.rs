//! Superseding: which job took the place of which, and whether the content is the same.
//!
//! A job is superseded by a later success, or a later retry, of the same pipeline, collection and
//! subject, never by a row of its own batch. What it was about is preserved only if the content is
//! known to be the same, so a superseded row alone does not make its batch a success.

use crate::codes::Content;
use crate::error::Result;
use crate::id::{BatchId, JobId};
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use serde::Serialize;
use std::ops::RangeInclusive;

/// A superseded job and the one that took its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// The id of the job.
    pub job: JobId,
    /// What the job is about.
    pub subject: String,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The job that superseded it.
    pub by: JobId,
    /// The batch of that job.
    pub by_batch: Option<BatchId>,
    /// `None` if they were not compared.
    pub content: Option<Content>,
}

impl FromRow for Replacement {
    fn from_row(row: &Row<'_>) -> db::Result<Replacement> {
        Ok(Replacement {
            job: row.get(0)?,
            subject: row.get(1)?,
            batch: row.get(2)?,
            by: row.get(3)?,
            by_batch: row.get(4)?,
            content: row.get::<Option<i64>>(5)?.and_then(Content::from_number),
        })
    }
}

impl Replacement {
    /// What a report says of the superseded job.
    pub fn replaced_sentence(&self) -> String {
        format!("superseded by {}: {}", named(self.by, self.by_batch), self.compared())
    }

    /// What a report says of the job that took its place.
    pub fn replaces_sentence(&self) -> String {
        format!("replaces failed {}: {}", named(self.job, self.batch), self.compared())
    }

    fn compared(&self) -> &'static str {
        match self.content {
            Some(Content::Same) => "the content is the same",
            Some(Content::Different) => "the content is different",
            Some(Content::Unrelated) => "it is another thing of the same name",
            Some(Content::Unread) => "content not compared: it was never read",
            None => "content not compared",
        }
    }
}

fn named(job: JobId, batch: Option<BatchId>) -> String {
    batch.map_or_else(|| format!("job {job}"), |batch| format!("job {job} of batch {batch}"))
}

/// Notes how the content of a failed job compares with that of a later one, which supersedes it if it
/// succeeds, unless they are unrelated. Call it in the transaction that makes the later content safe.
pub fn compared(tx: &mut Tx<'_>, job: JobId, by: JobId, content: Option<Content>) -> Result<()> {
    const COMPARED: Statement = statement!(replacing::note_compared);
    tx.send(&COMPARED, &db::params![job, by, content.map(Content::number)])?;
    Ok(())
}

/// Notes that a job, which the caller cancels, is superseded.
pub(crate) fn replaced(tx: &mut Tx<'_>, now: Micros, job: JobId, by: JobId) -> Result<()> {
    const REPLACED: Statement = statement!(replacing::note_replaced);
    tx.send(&REPLACED, &db::params![job, by, now])?;
    Ok(())
}

/// Superseded rows of a batch, in the order of their jobs.
pub fn replaced_in(
    tx: &mut Tx<'_>,
    batch: BatchId,
    after: JobId,
    limit: i64,
) -> Result<Vec<Replacement>> {
    const REPLACED: Statement = statement!(replacing::batch_replaced);
    Ok(tx.query(&REPLACED, &db::params![batch, after, limit])?)
}

/// Jobs that rows of a batch have superseded; `rows` are the numbers of the rows' jobs.
pub fn replaced_by(
    tx: &mut Tx<'_>,
    batch: BatchId,
    rows: RangeInclusive<JobId>,
    limit: i64,
) -> Result<Vec<Replacement>> {
    const REPLACES: Statement = statement!(replacing::batch_replaces);
    Ok(tx.query(&REPLACES, &db::params![batch, *rows.start(), *rows.end(), limit])?)
}

/// How many rows of a batch were superseded, and of how many the content is known to be preserved.
pub fn count(tx: &mut Tx<'_>, batch: BatchId) -> Result<(i64, i64)> {
    const COUNT: Statement = statement!(replacing::batch_replaced_count);
    Ok(tx.one(&COUNT, &db::params![batch])?)
}

/// What took the place of a job, if something did.
pub fn of_job(tx: &mut Tx<'_>, job: JobId) -> Result<Option<Replacement>> {
    const OF_JOB: Statement = statement!(replacing::job_replacement);
    Ok(tx.first(&OF_JOB, &db::params![job])?)
}

/// What a job took the place of.
pub fn by_job(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<Replacement>> {
    const BY_JOB: Statement = statement!(replacing::job_replaces);
    Ok(tx.query(&BY_JOB, &db::params![job])?)
}
