//! Retention: ended jobs and their history go once they are old enough, in small steps.

use crate::catalog::Catalog;
use crate::codes::Status;
use crate::error::Result;
use crate::id::{JobId, PipelineId};
use db::{Micros, Statement, Tx, Value, statement};

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs that were deleted.
    pub jobs: i64,
    /// Where to go on; None at the end of what can be old enough.
    pub next: Option<JobId>,
}

/// Workers and rates are kept this long.
const TRACES_KEPT: Micros = 7 * 86_400_000_000;

/// Looks at up to `limit` jobs after job `after` and removes those past their queue's retention, or
/// that ended before `ended_before` if that is given.
pub fn prune(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    ended_before: Option<Micros>,
    after: JobId,
    limit: i64,
) -> Result<Pruned> {
    const OLDEST: Statement = statement!(prune::oldest_jobs);
    let rows: Vec<(JobId, PipelineId, Status, Option<Micros>, Micros)> =
        tx.query(&OLDEST, &db::params![after, limit])?;
    let mut gone: Vec<[Value<'_>; 1]> = Vec::new();
    let mut next = None;
    for (id, pipeline, status, ended_at, added_at) in &rows {
        let kept = catalog.pipeline(*pipeline).map_or(0, |p| p.settings.retention_seconds);
        let cutoff = match (ended_before, kept) {
            (Some(before), _) => before,
            (None, 0) => Micros::MIN,
            (None, seconds) => now - seconds * 1_000_000,
        };
        let ended = matches!(status, Status::Succeeded | Status::Cancelled);
        if ended && ended_at.is_some_and(|at| at < cutoff) {
            gone.push([Value::from(id)]);
        }
        // Ids are in order of adding: once jobs were added after the cutoff, none beyond is old.
        next = (*added_at < cutoff || cutoff == Micros::MIN).then_some(*id);
    }
    for statement in [
        statement!(prune::prune_history),
        statement!(prune::prune_tries),
        statement!(prune::prune_checkpoints),
        statement!(prune::prune_states),
        statement!(prune::prune_replacements),
        statement!(ending::forget_endings),
        statement!(prune::prune_jobs),
    ] {
        tx.send_each(&statement, &[], &gone)?;
    }
    let full = rows.len() as i64 == limit;
    Ok(Pruned { jobs: gone.len() as i64, next: next.filter(|_| full) })
}

/// Deletes workers and rates that are older than what views show.
pub fn prune_traces(tx: &mut Tx<'_>, now: Micros) -> Result<()> {
    const WORKERS: Statement = statement!(prune::prune_workers);
    const MINUTES: Statement = statement!(prune::prune_minutes);
    const JOB_HOLDS: Statement = statement!(prune::prune_job_holds);
    tx.send(&JOB_HOLDS, &[])?;
    tx.send(&WORKERS, &db::params![now - TRACES_KEPT])?;
    tx.send(&MINUTES, &db::params![(now - TRACES_KEPT) / 60_000_000])?;
    Ok(())
}
