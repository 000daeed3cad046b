//! Cleans up after jobs that failed or were cancelled: reservations at once, staged data and
//! invisible leftovers in stores after a retention time. Nothing of a depositor's is ever removed.

use crate::app::{App, WorkSpace};
use crate::blocking::blocking;
use crate::model::error::{Error, Result};
use crate::model::pipelines;
use crate::package::unpack::unwritable;
use crate::pipeline::ingest::cleaning::{forget, remove_directory};
use crate::pipeline::ingest::provisioning::give_back;
use db::{Micros, Statement, Tx, statement};
use queue::rules::add;
use queue::rules::operator::{Actor, discard, find};
use queue::{Catalog, JobId, NewJob, Status};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(30);
const DAY_MICROS: Micros = 86_400 * 1_000_000;

/// A job that has ended or failed, and has not been cleaned up after.
struct Left {
    job: JobId,
    failed: bool,
    since: Micros,
    /// It still has work space reserved.
    reserved: bool,
    /// How long the collection keeps what failed, where it says so.
    retention_days: Option<u32>,
}

/// Looks again and again.
pub async fn run(app: Arc<App>) {
    loop {
        if let Err(error) = once(&app).await {
            match error.is_outage() {
                true => {
                    tracing::debug!(%error, "cleaning up after failed jobs did not succeed; it is tried again")
                }
                false => {
                    tracing::warn!(%error, "cleaning up after failed jobs did not succeed; it is tried again")
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Cleans up what is due; how many jobs it was.
pub async fn once(app: &Arc<App>) -> Result<u64> {
    let mut done = 0;
    let mut after = JobId::default();
    loop {
        let (now, page) =
            app.db.read(move |tx| Ok::<_, Error>((tx.now(), page(tx, after)?))).await?;
        let Some(last) = page.last().map(|left| left.job) else { break };
        for left in page {
            let days = left.retention_days.map_or(app.settings.failed_retention_days, i64::from);
            let kept = left.failed && left.since + days * DAY_MICROS > now;
            match clean(app, &left, kept).await {
                Ok(cleaned) => done += u64::from(cleaned),
                Err(error) => {
                    tracing::warn!(job = left.job.number(), %error, "the janitor could not clean up after the job; it is tried again");
                }
            }
        }
        after = last;
    }
    super::restored::once(app).await?;
    remove_directories(app).await?;
    Ok(done)
}

fn page(tx: &mut Tx<'_>, after: JobId) -> Result<Vec<Left>> {
    const UNCLEANED: Statement = statement!(janitor::uncleaned_ingests);
    let rows: Vec<(JobId, String, Option<Micros>, i64, String)> =
        tx.query(&UNCLEANED, &db::params![after, 100])?;
    let mut retentions: BTreeMap<String, Option<u32>> = BTreeMap::new();
    let mut left = Vec::with_capacity(rows.len());
    for (job, status, since, reserved, collection) in rows {
        let retention_days = match retentions.get(&collection) {
            Some(known) => *known,
            None => {
                let profile = crate::registry::collection::find(tx, &collection)?;
                let days = profile.and_then(|profile| profile.invalid_retention_days);
                retentions.insert(collection, days);
                days
            }
        };
        left.push(Left {
            job,
            failed: status == Status::Failed.name(),
            since: since.unwrap_or(0),
            reserved: reserved > 0,
            retention_days,
        });
    }
    Ok(left)
}

/// Cleans up after one job. Of one that failed only the reservation goes while its data is `kept`.
async fn clean(app: &Arc<App>, left: &Left, kept: bool) -> Result<bool> {
    let job = left.job;
    if kept {
        if left.reserved {
            app.db
                .write(move |tx| match find(tx, job)?.status() {
                    Status::Failed => give_back(tx, job),
                    // It was requeued a moment ago, and may need its reservation.
                    _ => Ok(()),
                })
                .await?;
        }
        return Ok(false);
    }
    let reason = if left.failed { "its retention is over" } else { "it has ended" };
    let actor = Actor { who: "janitor", reason };
    let cleaned = app
        .db
        .write(move |tx| {
            let catalog = Catalog::load(tx)?;
            match release(tx, &catalog, actor, job) {
                // It was requeued a moment ago, or is half sealed: its data is needed.
                Err(queue::Error::Refused(_)) => Ok::<_, queue::Error>(false),
                done => done.map(|()| true),
            }
        })
        .await?;
    Ok(cleaned)
}

/// Gives up what a job has gathered: its rows, its reservation and, within a short time, its
/// directory. One that failed starts from its first stage if it is requeued later. Whether that
/// or this comes first is decided by the transaction: what is refused was not changed. A job that
/// goes on is refused.
pub fn release(
    tx: &mut Tx<'_>,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
) -> queue::Result<()> {
    const FIND: Statement = statement!(janitor::ingest_to_discard);
    const DISCARD: Statement = statement!(janitor::discard_ingest);
    let now = tx.now();
    type Found = (Option<String>, Option<String>, Option<Micros>);
    let (identifier, lock, recorded) =
        tx.first::<Found>(&FIND, &db::params![job])?.unwrap_or_default();
    match find(tx, job)?.status() {
        Status::Failed if recorded.is_none() => {
            discard::discard(tx, now, catalog, actor, job)?;
            tx.send(&DISCARD, &db::params![job, now])?;
        }
        // Once its version is recorded, nothing that it has gathered is needed any more.
        Status::Failed | Status::Succeeded | Status::Cancelled => {}
        status @ (Status::Queued | Status::Held | Status::Running) => {
            return Err(queue::Error::Refused(format!(
                "the data of job {job} cannot be discarded: it is {status}, and its data are needed"
            )));
        }
    }
    forget(tx, job)?;
    let Some((identifier, lock)) = identifier.zip(lock) else { return Ok(()) };
    let sweep = NewJob {
        subject: queue::subject::encode(identifier.as_bytes())?,
        lock: Some(lock),
        payload: Some(identifier.into_bytes()),
        ..NewJob::default()
    };
    add::add(tx, now, catalog.named(pipelines::SWEEP)?, &format!("job {job}"), &[sweep])?;
    Ok(())
}

/// As [`release`], for a person who wants the room that a failed job's data takes.
pub fn release_failed(
    tx: &mut Tx<'_>,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
) -> queue::Result<()> {
    let found = find(tx, job)?;
    if found.status() != Status::Failed {
        return Err(queue::Error::Refused(format!(
            "the data of job {job} cannot be discarded: it is {}, and only a failed job's data can",
            found.status()
        )));
    }
    release(tx, catalog, actor, job)
}

/// Removes the directories of this work space that no job needs any more. One that cannot be
/// removed is named, and the others go all the same.
async fn remove_directories(app: &Arc<App>) -> Result<()> {
    let work = &app.settings.work_space;
    let entries = match std::fs::read_dir(&work.path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unwritable(&work.path, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|e| unwritable(&work.path, e))?;
        let name = entry.file_name();
        let Some((job, discards)) = name.to_str().and_then(WorkSpace::job_of) else { continue };
        if !app.db.read(move |tx| is_left_over(tx, job, discards)).await? {
            continue;
        }
        let path = entry.path();
        match blocking(move || remove_directory(&path)).await {
            Ok(()) => tracing::info!(
                job = job.number(),
                "what the job left in the work space was removed"
            ),
            Err(error) => {
                tracing::warn!(job = job.number(), %error, "a directory of the work space stays")
            }
        }
    }
    Ok(())
}

/// Whether nothing can need a directory any more. One of a job that this database does not know
/// may belong to another one, and stays.
fn is_left_over(tx: &mut Tx<'_>, job: JobId, discards: i64) -> Result<bool> {
    const LEFT_OVER: Statement = statement!(janitor::is_left_over);
    Ok(tx.first::<(i64,)>(&LEFT_OVER, &db::params![job, discards])?.is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::codes::Change;
    use crate::registry::ingest::{self, Ingest, JobFile};
    use db::{Address, Db, Options};

    /// A requeue that commits between the janitor's look and its transaction comes first.
    #[test]
    fn nothing_of_a_job_that_goes_on_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::sqlite(dir.path().join("a.db"));
        let db = Db::open(&address, crate::MIGRATIONS, &Options::default()).unwrap();
        let done: Result<()> = db.write_blocking(|tx| {
            let catalog = crate::setup::prepare(tx, &crate::config::Config::default())?;
            let (now, ingest) = (tx.now(), catalog.named(pipelines::INGEST)?);
            let new = NewJob { subject: "box".to_string(), ..NewJob::default() };
            let job = add::add(tx, now, ingest, "ada", &[new])?[0].job;
            let known = Ingest { job, collection: "default".to_string(), ..Ingest::default() };
            ingest::save(tx, &known)?;
            let file = JobFile {
                number: 1,
                path: "data/a".to_string(),
                size: Some(3),
                locator: Vec::new(),
                source: None,
                sha512: None,
                digests: None,
                puid: None,
                format: None,
                change: Change::Unknown,
                modified: None,
            };
            ingest::put_files(tx, job, &[file])?;
            let actor = Actor { who: "janitor", reason: "its retention is over" };
            let refused = release(tx, &catalog, actor, job);
            assert!(matches!(refused, Err(queue::Error::Refused(_))), "{refused:?}");
            assert_eq!(ingest::count_files(tx, job)?, (1, 3));
            Ok(())
        });
        done.unwrap();
    }
}
