//! Cancelling a batch.

use db::{Micros, Statement, Tx, statement};
use queue::rules::batch;
use queue::rules::operator::Actor;
use queue::{BatchId, BatchState, Catalog, JobId, Result};

/// As [`batch::cancel_some`]. Rows that were accepted and have not become jobs are kept with who
/// cancelled them and why, so that the report names them.
pub fn cancel_some(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    id: BatchId,
    after: JobId,
    limit: i64,
) -> Result<Option<JobId>> {
    const KEEP: Statement = statement!(deposit::keep_cancelled_rows);
    if batch::lock(tx, id)?.state != BatchState::Pending {
        tx.send(&KEEP, &db::params![id, actor.who, actor.reason, now])?;
    }
    batch::cancel_some(tx, now, catalog, actor, id, after, limit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Error;
    use crate::registry::reports;
    use db::{Address, Db, Options};

    /// A large manifest is cancelled while its rows become jobs.
    #[test]
    fn rows_that_never_became_jobs_are_in_the_report() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::sqlite(dir.path().join("a.db"));
        let db = Db::open(&address, crate::MIGRATIONS, &Options::default()).unwrap();
        let told = db.write_blocking::<_, Error, _>(|tx| {
            let catalog = crate::setup::prepare(tx, &crate::config::Config::default())?;
            let now = tx.now();
            let new = batch::NewBatch {
                label: "all.checkm",
                pipeline: catalog.named(crate::model::pipelines::INGEST)?.id,
                collection: None,
                submitter: "ada",
                mode: "either",
                priority: None,
            };
            let id = batch::create(tx, now, &new)?;
            let entry = |number: i64| batch::Entry {
                number,
                subject: format!("box-{number}"),
                lock: None,
                payload: None,
            };
            batch::fill(tx, &catalog, id, &[entry(1), entry(2), entry(3)])?;
            batch::accept(tx, now, id)?;
            batch::move_entries(tx, now, &catalog, 1)?;
            let actor = Actor { who: "bert", reason: "sent twice" };
            let mut after = JobId::default();
            while let Some(last) = cancel_some(tx, now, &catalog, actor, id, after, 10)? {
                after = last;
            }
            let report = reports::short(tx, &catalog, id, 10)?;
            assert_eq!((report.head.cancelled, report.head.cancellations_total), (3, 3));
            Ok(report.cancellations)
        });
        let told: Vec<(String, String, String, bool)> = told
            .unwrap()
            .into_iter()
            .map(|line| (line.subject, line.by, line.reason, line.job.is_some()))
            .collect();
        let line = |name: &str, is_job: bool| {
            (name.to_string(), "bert".to_string(), "sent twice".to_string(), is_job)
        };
        assert_eq!(told, [line("box-1", true), line("box-2", false), line("box-3", false)]);
    }
}
