//! A process that works for the archive: the queue's worker with the archive's stages, and what
//! has to be done now and then beside them.

use crate::app::App;
use crate::config::WatchSection;
use crate::model::error::into_queue;
use crate::model::pipelines;
use crate::pipeline;
use crate::registry::collection;
use crate::registry::ingest::FIRST_STAGE;
use crate::registry::placed;
use crate::scheduler::{drills, janitor, reporting};
use crate::watch::Poller;
use db::{Statement, statement};
use queue::Catalog;
use queue::runtime::{Settings, Stop, Summary, Worker};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What [`work`] asks for to know whether drop folders and receiving buckets are watched.
pub const WATCHING: &str = "watching";

/// Looks at one watched place again and again.
async fn keep_watch(app: Arc<App>, place: WatchSection) {
    let poller = Poller {
        db: app.db.clone(),
        payloads: app.settings.payloads.clone(),
        received: app.settings.work_space.path.join("received"),
        work_space: app.settings.work_space.clone(),
        failed_retention_micros: app.settings.failed_retention_days * 86_400_000_000,
    };
    let mut is_known = false;
    loop {
        let looked = async {
            if !is_known {
                placed::check_older_stores(&app.db, &app.stores).await?;
                is_known = true;
            }
            poller.poll(&place).await
        };
        if let Err(error) = looked.await {
            match error.is_outage() {
                true => tracing::debug!(watch = place.path, %error, "it could not be looked at"),
                false => {
                    tracing::warn!(watch = place.path, %error, "it could not be looked at; it is tried again")
                }
            }
        }
        tokio::time::sleep(Duration::from_secs(place.poll_seconds)).await;
    }
}

/// Works on the stages that `wanted` names (by `pipeline/stage`) until it is told to stop.
pub async fn work(
    app: Arc<App>,
    settings: Settings,
    wanted: impl Fn(&str, &str) -> bool,
    stop: watch::Receiver<Stop>,
) -> queue::Result<Summary> {
    app.stores.allow_writing();
    check_cold_stores(&app).await?;
    let background = settings.housekeeping;
    let until_empty = settings.until_empty;
    let mut tasks = tokio::task::JoinSet::new();
    if background {
        tasks.spawn(reporting::run(app.clone()));
        tasks.spawn(janitor::run(app.clone()));
        tasks.spawn(drills::run(app.clone()));
    }
    if wanted(WATCHING, WATCHING) {
        for place in app.settings.watches.clone() {
            tasks.spawn(keep_watch(app.clone(), place));
        }
    }
    let mut total = Summary::default();
    let done = loop {
        let worker = staffed(&app, settings.clone(), &wanted);
        match worker.run(stop.clone()).await {
            Ok(summary) => {
                total.runs += summary.runs;
                total.succeeded += summary.succeeded;
                total.errors += summary.errors;
                total.failed += summary.failed;
            }
            Err(error) => break Err(error),
        }
        if background {
            // The last outcome may have been what a report waited for.
            reporting::once(&app).await?;
        }
        // The end of one pipeline is the beginning of another: a deposit that was expanded has
        // jobs, and a batch that is over has reports to send.
        if !until_empty || *stop.borrow() != Stop::No || !more_to_do(&app, &wanted).await? {
            break Ok(total);
        }
    };
    tasks.shutdown().await;
    done
}

/// Refuses to work where a version could not be verified in a store that it must be in. A store that
/// is down now is looked at again when it is used.
async fn check_cold_stores(app: &Arc<App>) -> queue::Result<()> {
    let cold: Vec<&String> = app.stores.names().filter(|n| app.stores.is_cold(n)).collect();
    if cold.is_empty() {
        return Ok(());
    }
    let collections = app.db.read(collection::list).await.map_err(into_queue)?;
    for name in cold {
        let required_by = collections.iter().find(|collection| {
            collection.profile.required_stores(app.stores.names()).contains(&name.as_str())
        });
        let Some(collection) = required_by else { continue };
        match app.stores.get(name).await.and_then(|place| place.check_verifiable()) {
            Ok(()) => {}
            Err(error) if error.is_transient() => {
                tracing::warn!(store = name, %error, "it could not be looked at yet");
            }
            Err(error) => {
                let name = &collection.name;
                return Err(queue::Error::Refused(format!("collection {name}: {error}")));
            }
        }
    }
    Ok(())
}

/// A worker with a handler for each stage that is wanted.
fn staffed(app: &Arc<App>, settings: Settings, wanted: &impl Fn(&str, &str) -> bool) -> Worker {
    let worker = Worker::new(app.db.clone(), settings);
    pipeline::ALL.iter().fold(worker, |worker, pipeline| pipeline.add_to(worker, app, wanted))
}

/// Whether a stage that is wanted has anything that may still be done.
pub async fn more_to_do(
    app: &Arc<App>,
    wanted: &impl Fn(&str, &str) -> bool,
) -> queue::Result<bool> {
    const LEFT: Statement = statement!(worker::anything_left_in_stage);
    const UNMOVED: Statement = statement!(worker::anything_unmoved);
    let catalog = app.db.read(Catalog::load).await?;
    let mut stages = Vec::new();
    for pipeline in catalog.pipelines() {
        let of_it = pipeline.stages.iter().filter(|s| wanted(&pipeline.name, &s.name));
        stages.extend(of_it.filter(|_| !pipeline.plain).map(|s| s.id));
    }
    let moves = wanted(pipelines::INGEST, FIRST_STAGE);
    app.db
        .read(move |tx| {
            if moves && tx.first::<(i64,)>(&UNMOVED, &[])?.is_some() {
                return Ok(true);
            }
            for id in &stages {
                if tx.first::<(i64,)>(&LEFT, &db::params![*id])?.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
}
