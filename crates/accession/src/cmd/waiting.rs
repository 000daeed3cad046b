//! Waiting for batches: why they do not go on, and how they ended.

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::app::App;
use archive::registry::{reports, waits};
use archive::report;
use queue::rules::batch::{self, Batch};
use queue::{BatchId, BatchState, Catalog};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Waits until all batches have ended.
pub async fn wait(app: &Arc<App>, ids: Vec<BatchId>) -> archive::Result<Vec<Batch>> {
    let mut news = app.db.subscribe(batch::TOPIC);
    let mut ended = Vec::with_capacity(ids.len());
    loop {
        // News come with every batch that moves; only those that may have ended are looked at.
        let left: Vec<BatchId> = ids[ended.len()..].to_vec();
        let found: archive::Result<Vec<Batch>> = app
            .db
            .read(move |tx| {
                let mut over = Vec::new();
                for id in &left {
                    let batch = batch::load(tx, *id)?;
                    if !is_over(&batch) {
                        break;
                    }
                    over.push(batch);
                }
                Ok(over)
            })
            .await;
        match found {
            Ok(found) => ended.extend(found),
            // What was received is safe, and the database's absence has been told.
            Err(error) if error.is_outage() => continue,
            Err(error) => return Err(error),
        }
        if ended.len() == ids.len() {
            return Ok(ended);
        }
        if ids.len() - ended.len() > 1 {
            // The last of many is not there sooner for being looked for at every step of another.
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        let _ = tokio::time::timeout(Duration::from_millis(500), news.changed()).await;
    }
}

/// How often is looked for the end of several batches at most.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How often is looked whether somebody stopped a batch that is waited for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// When nothing of a batch has run for so long, why is said.
const IDLE_MIN: Duration = Duration::from_secs(5);

/// Why the first of some batches that is not over does not go on.
#[derive(Default)]
struct Waiting {
    /// A person stopped it: the batch, and how it goes on.
    stopped: Option<(BatchId, String)>,
    /// No live worker works on what it needs.
    alone: Option<String>,
    /// Nothing of it runs: the batch, and what its newest job waits for.
    idle: Option<(BatchId, String)>,
}

/// Says on standard error who stopped the first of these batches that is not over, and how it goes
/// on; once for each cause. Says once for each batch what it waits for when nothing of it has run for a
/// while. With `others_work` also that no worker is alive that does what is left,
/// and when one is.
pub async fn say_why_it_waits(app: Arc<App>, ids: Vec<BatchId>, others_work: bool) {
    let mut said = HashSet::new();
    let mut alone: Option<String> = None;
    let mut idle: Option<(BatchId, Instant)> = None;
    let mut said_idle = HashSet::new();
    loop {
        let wanted = ids.clone();
        // What cannot be read now is read the next time.
        if let Ok(found) = app.db.read(move |tx| look(tx, &wanted)).await {
            if let Some((batch, why)) = found.stopped
                && said.insert(why.clone())
            {
                anstream::eprintln!("batch {batch} waits: {}", output::printable(&why));
            }
            idle = match (&found.idle, idle) {
                (Some((batch, _)), Some((before, since))) if *batch == before => {
                    Some((before, since))
                }
                (Some((batch, _)), _) => Some((*batch, Instant::now())),
                (None, _) => None,
            };
            if let (Some((batch, why)), Some((_, since))) = (&found.idle, idle)
                && since.elapsed() >= IDLE_MIN
                && said_idle.insert(*batch)
            {
                anstream::eprintln!("batch {batch} waits: {}", output::printable(why));
            }
            if others_work && alone != found.alone {
                match &found.alone {
                    Some(why) => anstream::eprintln!("{}", output::printable(why)),
                    None => anstream::eprintln!("a worker is running now"),
                }
                alone = found.alone;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn look(tx: &mut db::Tx<'_>, ids: &[BatchId]) -> archive::Result<Waiting> {
    for id in ids {
        let batch = batch::load(tx, *id)?;
        if is_over(&batch) {
            continue;
        }
        let catalog = Catalog::load(tx)?;
        let stopped = match waits::anything_stopped(tx)? {
            true => waits::stopped(tx, &catalog, &batch)?.map(|why| (*id, why)),
            false => None,
        };
        let alone = waits::without_workers(tx, &batch)?;
        let idle = match stopped.is_some() || alone.is_some() {
            true => None,
            false => waits::idle(tx, &catalog, &batch)?.map(|why| (*id, why)),
        };
        return Ok(Waiting { stopped, alone, idle });
    }
    Ok(Waiting::default())
}

fn is_over(batch: &Batch) -> bool {
    matches!(batch.state, BatchState::Completed | BatchState::Failed | BatchState::Deleted)
}

/// How batches ended: a table of objects and problems, and an exit status that says it.
pub fn show_batches(app: &Arc<App>, batches: &[Batch], global: &Global) -> Result<Exit, Failure> {
    for batch in batches {
        super::batches::show_result(app, batch.id, global)?;
    }
    let ids: Vec<BatchId> = batches.iter().map(|batch| batch.id).collect();
    // A batch is completed too if the rest of it was cancelled by a person.
    let good: archive::Result<bool> = app.db.read_blocking(move |tx| {
        for id in &ids {
            let (head, _) = reports::head(tx, *id)?;
            if !report::all_preserved(&head) {
                return Ok(false);
            }
        }
        Ok(true)
    });
    Ok(if good? { Exit::Yes } else { Exit::No })
}
