//! Retry all: every failed job that fits a filter goes again, the newest of each subject; rows of one
//! batch all go.

use super::requeue::requeue;
use super::{Actor, cancel, find};
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::id::{BatchId, JobId, PipelineId, StageId};
use crate::rules::replacing;
use db::{Micros, Statement, Tx, statement};

/// Which failed jobs; None fits all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only jobs of this pipeline.
    pub pipeline: Option<PipelineId>,
    /// Only jobs that failed in this stage.
    pub stage: Option<StageId>,
    /// Only jobs with this error code.
    pub code: Option<String>,
    /// Only jobs whose error names this target.
    pub target: Option<String>,
    /// Only jobs of this batch.
    pub batch: Option<BatchId>,
}

/// What a retry did, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retried {
    /// Jobs that were requeued.
    pub requeued: i64,
    /// Older failures of a subject whose newest goes, which is not of the same batch.
    pub superseded: i64,
    /// Not recoverable, or a newer job waits.
    pub refused: i64,
    /// Where to go on; None when all are done.
    pub next: Option<JobId>,
}

/// Requeues failed jobs after job `after`, at most `limit`; with `dry_run` only counts them.
pub fn retry(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    filter: &Filter,
    dry_run: bool,
    after: JobId,
    limit: i64,
) -> Result<Retried> {
    if !dry_run {
        return retry_chunk(tx, now, catalog, actor, filter, after, limit);
    }
    // A dry run is a real one that is undone, so it cannot say anything else.
    let mut done = Retried::default();
    let undone: Result<()> = tx.savepoint(|tx| {
        done = retry_chunk(tx, now, catalog, actor, filter, after, limit)?;
        Err(Error::Refused("it was a dry run".to_string()))
    });
    match undone {
        Ok(()) | Err(Error::Refused(_)) => Ok(done),
        Err(error) => Err(error),
    }
}

fn retry_chunk(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    filter: &Filter,
    after: JobId,
    limit: i64,
) -> Result<Retried> {
    const FAILED: Statement = statement!(operator::failed_jobs);
    let rows: Vec<(JobId, JobId, bool)> = tx.query(
        &FAILED,
        &db::params![
            filter.pipeline,
            filter.stage,
            &filter.code,
            &filter.target,
            filter.batch,
            after,
            limit
        ],
    )?;
    let mut done = Retried {
        next: rows.last().map(|r| r.0).filter(|_| rows.len() as i64 == limit),
        ..Retried::default()
    };
    for (job, newest, recoverable) in rows {
        if newest != job {
            done.superseded += 1;
            let found = find(tx, job)?;
            let why = format!("superseded by job {newest}, which is retried");
            let actor = Actor { who: actor.who, reason: &why };
            cancel::cancel_found(tx, now, catalog, actor, &found)?;
            replacing::replaced(tx, now, job, newest)?;
        } else if !recoverable {
            done.refused += 1;
        } else {
            // One that is refused is left as it was, and the others go on.
            match tx.savepoint(|tx| requeue(tx, now, catalog, actor, job, None)) {
                Ok(_) => done.requeued += 1,
                Err(Error::Refused(_)) => done.refused += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(done)
}
