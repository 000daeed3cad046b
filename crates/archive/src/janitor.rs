//! Cleans up after jobs that failed or were cancelled: reservations at once, staged data and
//! invisible leftovers in stores after a retention time. Nothing of a depositor's is ever removed.

use crate::error::{Error, Result};
use crate::site::Site;
use crate::stage::cleaning::{forget, remove_directory};
use crate::stage::provisioning::give_back;
use crate::stores::store_error;
use db::{Micros, Statement, Tx, statement};
use queue::rules::add;
use queue::runtime::{Context, Work};
use queue::{Catalog, Claimed, NewJob, Outcome, Status};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub const PIPELINE: &str = "sweep";
pub const STAGE: &str = "sweeping";

const EVERY: Duration = Duration::from_secs(30);
const DAY_MICROS: Micros = 86_400 * 1_000_000;

/// A job that has ended or failed, and has not been cleaned up after.
struct Left {
    job: i64,
    /// Its identifier and lock, if it had one.
    object: Option<(String, String)>,
    failed: bool,
    since: Micros,
    /// It still has work space reserved.
    reserved: bool,
    /// How long the collection keeps what failed, where it says so.
    retention_days: Option<u32>,
}

/// Looks again and again.
pub async fn run(site: Arc<Site>) {
    loop {
        if let Err(error) = once(&site).await {
            tracing::warn!(%error, "cleaning up after failed jobs did not succeed; it is tried again");
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Cleans up what is due; how many jobs it was.
pub async fn once(site: &Arc<Site>) -> Result<u64> {
    let mut done = 0;
    let mut after = 0;
    loop {
        let (now, page) =
            site.db.read(move |tx| Ok::<_, Error>((tx.now(), page(tx, after)?))).await?;
        let Some(last) = page.last().map(|left| left.job) else { return Ok(done) };
        for left in page {
            let job = left.job;
            let days = left.retention_days.map_or(site.settings.failed_retention_days, i64::from);
            let retention = days * DAY_MICROS;
            if left.failed && left.since + retention > now {
                if left.reserved {
                    site.db.write(move |tx| give_back(tx, job)).await?;
                }
                continue;
            }
            clean(site, &left).await?;
            done += 1;
        }
        after = last;
    }
}

fn page(tx: &mut Tx<'_>, after: i64) -> Result<Vec<Left>> {
    const UNCLEANED: Statement = statement!("sql/uncleaned_ingests");
    let rows: Vec<(i64, Option<String>, Status, Option<Micros>, Option<String>, i64, String)> =
        tx.query(&UNCLEANED, &db::params![after, 100])?;
    let mut retentions: BTreeMap<String, Option<u32>> = BTreeMap::new();
    let mut left = Vec::with_capacity(rows.len());
    for (job, identifier, status, since, lock, reserved, collection) in rows {
        let retention_days = match retentions.get(&collection) {
            Some(known) => *known,
            None => {
                let profile = crate::collection::find(tx, &collection)?;
                let days = profile.and_then(|profile| profile.invalid_retention_days);
                retentions.insert(collection, days);
                days
            }
        };
        left.push(Left {
            job,
            object: identifier.zip(lock),
            failed: status == Status::Failed,
            since: since.unwrap_or(0),
            reserved: reserved > 0,
            retention_days,
        });
    }
    Ok(left)
}

/// Removes what a job left in the work space, and has another job look after the stores.
async fn clean(site: &Arc<Site>, left: &Left) -> Result<()> {
    remove_directory(&site.settings.work_space.of(left.job))?;
    let (job, object) = (left.job, left.object.clone());
    site.db
        .write(move |tx| {
            forget(tx, job)?;
            let Some((identifier, lock)) = &object else { return Ok(()) };
            let sweep = NewJob {
                subject: queue::subject::encode(identifier.as_bytes())?,
                lock: Some(lock.clone()),
                payload: Some(identifier.clone().into_bytes()),
                ..NewJob::default()
            };
            let catalog = Catalog::load(tx)?;
            let now = tx.now();
            add::add(tx, now, catalog.named(PIPELINE)?, &format!("job {job}"), &[sweep])?;
            Ok::<_, Error>(())
        })
        .await?;
    tracing::info!(job, "what the job left in the work space was removed");
    Ok(())
}

/// Removes a version that was written and never sealed. A job of its own with the object's lock,
/// so that it never meets one that is writing.
pub struct Sweeping(pub Arc<Site>);

impl Work for Sweeping {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        let identifier = String::from_utf8_lossy(job.payload.as_deref().unwrap_or_default());
        match sweep(&self.0, &identifier).await {
            Ok(note) => {
                Outcome::Success(queue::Handover { note: Some(note), ..Default::default() })
            }
            Err(error) => error.into(),
        }
    }
}

async fn sweep(site: &Arc<Site>, identifier: &str) -> Result<String> {
    let mut removed = Vec::new();
    for store in site.stores.names() {
        let place = site.stores.get(store).await?;
        match place.root.discard(identifier).await {
            Ok(()) => removed.push(store.as_str()),
            Err(ocfl::Error::NothingUnsealed { .. }) => {}
            Err(error) => return Err(store_error(store, error)),
        }
    }
    Ok(match removed.is_empty() {
        true => "there was nothing to remove".to_string(),
        false => format!("a version that was never sealed was removed from {}", removed.join(", ")),
    })
}
