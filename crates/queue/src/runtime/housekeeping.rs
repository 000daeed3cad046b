//! Periodic work: turn batch entries into jobs, write reports, queue the jobs of lost workers again,
//! prune, and log when a stage has jobs and no worker claims them.

use crate::catalog::Catalog;
use crate::error::Result;
use crate::id::{JobId, StageId};
use crate::rules::{batch, clock, lease, prune, report};
use crate::runtime::{Shared, micros, quietly};
use crate::view;
use db::{Db, Tx};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ENTRIES_PER_STEP: i64 = 2000;
/// Many batches have one job, so entries of several are moved, and reports written, together.
const BATCHES_PER_STEP: usize = 16;
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// How often times that were written before the clock was set back are looked for.
const CLOCK_EVERY: Duration = Duration::from_secs(60);
const PRUNED_PER_STEP: i64 = 500;
/// A stage with ready jobs and no claim for this long is logged.
const IDLE_STAGE: Duration = Duration::from_secs(60);

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut news = shared.db.subscribe(batch::TOPIC);
    let tick =
        (shared.settings.lease / 12).clamp(Duration::from_millis(100), Duration::from_secs(5));
    let mut trouble: Option<Instant> = None;
    let mut pruned = Instant::now() - PRUNE_EVERY + Duration::from_secs(30);
    let mut watchdog = Watchdog::default();
    let mut followed: Option<Instant> = None;
    loop {
        let done = async {
            let catalog = shared.catalog.borrow().clone();
            while batches(&shared.db, &catalog).await? {}
            if followed.is_none_or(|at| at.elapsed() > CLOCK_EVERY) {
                follow_clock(&shared).await?;
                followed = Some(Instant::now());
            }
            // After an outage of the database all workers have missed a renewal: each gets one full
            // lease before it counts as lost.
            if trouble.is_none_or(|at| at.elapsed() > shared.settings.lease) {
                while reap(&shared).await? {}
            }
            if pruned.elapsed() > PRUNE_EVERY {
                prune_all(&shared).await?;
                pruned = Instant::now();
            }
            watchdog.look(&shared).await
        }
        .await;
        if let Err(error) = done {
            quietly!(error, %error, "housekeeping was put off");
            trouble = Some(Instant::now());
        }
        let _ = tokio::time::timeout(tick, news.changed()).await;
    }
}

/// Moves entries and writes reports; true if there may be more.
pub(crate) async fn batches(db: &Db, catalog: &Catalog) -> Result<bool> {
    let (for_move, for_report) = (catalog.clone(), catalog.clone());
    let moved = db.write(move |tx| move_some(tx, &for_move)).await?;
    let written = db.write(move |tx| report_some(tx, &for_report)).await?;
    for report in &written {
        tracing::info!(
            batch = report.batch.number(),
            version = report.version,
            state = report.state.name(),
            succeeded = report.succeeded,
            failed = report.failed,
            "batch reported"
        );
    }
    Ok(moved > 0 || !written.is_empty())
}

fn move_some(tx: &mut Tx<'_>, catalog: &Catalog) -> Result<i64> {
    let (now, mut moved) = (tx.now(), 0);
    for _ in 0..BATCHES_PER_STEP {
        let limit = ENTRIES_PER_STEP - moved;
        match batch::move_entries(tx, now, catalog, limit)? {
            0 => break,
            count => moved += count,
        }
        if moved >= ENTRIES_PER_STEP {
            break;
        }
    }
    Ok(moved)
}

fn report_some(tx: &mut Tx<'_>, catalog: &Catalog) -> Result<Vec<report::Report>> {
    let now = tx.now();
    let next = || report::write_next(tx, now, catalog).transpose();
    std::iter::from_fn(next).take(BATCHES_PER_STEP).collect()
}

async fn follow_clock(shared: &Shared) -> Result<()> {
    let changed = shared.db.write(|tx| clock::follow(tx, tx.now())).await?;
    if changed > 0 {
        tracing::warn!(
            changed,
            "the clock was set back: back-offs, leases and probes count from now instead"
        );
    }
    Ok(())
}

async fn reap(shared: &Shared) -> Result<bool> {
    let catalog = shared.catalog.borrow().clone();
    let quiet = micros(shared.settings.lease);
    Ok(shared.db.write(move |tx| lease::reap(tx, tx.now(), &catalog, Some(quiet))).await?.is_some())
}

async fn prune_all(shared: &Shared) -> Result<()> {
    let mut after = Some(JobId::default());
    while let Some(from) = after {
        let catalog = shared.catalog.borrow().clone();
        let step = shared
            .db
            .write(move |tx| prune::prune(tx, tx.now(), &catalog, None, from, PRUNED_PER_STEP))
            .await?;
        after = step.next;
        // Small steps with pauses between them, so that other writes get through.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    shared.db.write(|tx| prune::prune_traces(tx, tx.now())).await
}

/// Says when a stage has ready jobs and nothing was claimed for a while.
#[derive(Default)]
struct Watchdog {
    /// Per stage: the job at the head of its line, since when, and whether that was said.
    idle: HashMap<StageId, (JobId, Instant, bool)>,
    looked: Option<Instant>,
}

impl Watchdog {
    async fn look(&mut self, shared: &Shared) -> Result<()> {
        if self.looked.is_some_and(|at| at.elapsed() < IDLE_STAGE / 4) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let catalog = shared.catalog.borrow().clone();
        let heads = shared.db.read(move |tx| view::idle_heads(tx, &catalog)).await?;
        self.idle.retain(|stage, _| heads.iter().any(|head| head.stage == *stage));
        for head in heads {
            let entry = self.idle.entry(head.stage).or_insert((head.job, Instant::now(), false));
            if entry.0 != head.job {
                *entry = (head.job, Instant::now(), false);
            } else if entry.1.elapsed() > IDLE_STAGE && !entry.2 {
                tracing::warn!(
                    stage = head.name,
                    first = head.job.number(),
                    seconds = entry.1.elapsed().as_secs(),
                    "jobs are ready and no worker claims them; is a worker running for this stage?"
                );
                entry.2 = true;
            }
        }
        Ok(())
    }
}
