//! Has content thawed that only cold storage has.
//!
//! Each file is asked for once, however often the stage runs: what was asked for is kept in the database.
//! Between two looks the job waits without a worker.

use super::{Run, Step};
use crate::ErrorCode;
use crate::delivery::plan::Selection;
use crate::model::error::{Error, Result};
use crate::model::glob::Patterns;
use crate::model::text::plural;
use crate::registry::thaws::{self, AskedThaw};
use crate::stores::copies::{ColdFile, Copies, StoredFile};
use crate::stores::{ThawSettings, store_error};
use db::Micros;
use futures_util::{StreamExt, TryStreamExt, stream};
use queue::runtime::Stop;
use queue::{Outcome, StageSettings};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;
use store::{Availability, ErrorKind};

pub struct ThawingStep;
pub type Thawing = super::Handling<ThawingStep>;

/// Requests to a store at once.
const AT_ONCE: usize = 16;
/// Files whose requests are recorded together.
const PORTION: usize = 200;

impl Step for ThawingStep {
    const NAME: &'static str = "thawing";

    fn defaults() -> StageSettings {
        StageSettings { workers: 8, ..StageSettings::default() }
    }

    async fn run(run: Run<'_>) -> Result<Outcome> {
        run.save();
        let copies = run.copies().await?;
        if copies.has_warm() {
            return Ok(Outcome::success());
        }
        match ask(&run, &copies).await? {
            Some(outcome) => Ok(outcome),
            None => Ok(Outcome::Success(queue::Handover {
                note: Some("everything is thawed".to_string()),
                ..queue::Handover::default()
            })),
        }
    }
}

/// How far a thaw is.
#[derive(Default)]
struct Progress {
    total: u64,
    ready: u64,
    /// When the first of those that are not ready was asked for.
    since: Option<Micros>,
    /// How the store that takes longest is set.
    slowest: Option<ThawSettings>,
    /// Why some could not be asked for now.
    trouble: Option<String>,
}

/// Asks for what is in cold storage and was not asked for yet; how long to wait, or nothing if all of
/// it can be read.
pub async fn ask(run: &Run<'_>, copies: &Copies) -> Result<Option<Outcome>> {
    let selection = Selection {
        app: run.app.clone(),
        object: run.object.id,
        version: run.order.version,
        patterns: Patterns::new(&run.order.paths),
        without: Arc::default(),
    };
    let job = run.id();
    let asked = run.app.db.read(move |tx| thaws::of_job(tx, job)).await?;
    let asked: BTreeMap<(String, String), AskedThaw> =
        asked.into_iter().map(|one| ((one.store.clone(), one.key.clone()), one)).collect();
    let mut progress = Progress::default();
    let mut seen = HashSet::new();
    let mut files = selection.files();
    let mut portion = Vec::with_capacity(PORTION);
    loop {
        let file = files.try_next().await?;
        let is_last = file.is_none();
        if let Some(file) = file
            && seen.insert(file.sha512.clone())
        {
            portion.push(StoredFile::of_view(&file));
        }
        if portion.len() == PORTION || (is_last && !portion.is_empty()) {
            ask_portion(run, copies, std::mem::take(&mut portion), &asked, &mut progress).await?;
        }
        if run.context.stop() != Stop::No {
            return Err(Error::Stopped);
        }
        if is_last {
            break;
        }
    }
    if progress.ready == progress.total {
        return Ok(None);
    }
    let now = run.app.db.read(|tx| Ok::<_, Error>(tx.now())).await?;
    Ok(Some(progress.wait(now)))
}

/// What was found of one file.
struct Found {
    store: String,
    key: String,
    availability: Result<Availability, store::Error>,
    settings: ThawSettings,
}

async fn ask_portion(
    run: &Run<'_>,
    copies: &Copies,
    files: Vec<StoredFile>,
    asked: &BTreeMap<(String, String), AskedThaw>,
    progress: &mut Progress,
) -> Result<()> {
    let mut cold = Vec::new();
    for file in &files {
        // A file that no copy has is found missing when the package is written.
        cold.extend(copies.cold_place(file).await?);
    }
    let looks = stream::iter(cold).map(|ColdFile { place, key }| async move {
        let settings = run.app.stores.thaw_settings(&place.name);
        // The store answers how far it is if it was asked before: nothing is asked for twice.
        let availability = place.root.store().thaw(&key, &settings.thaw).await;
        Found { store: place.name.clone(), key, availability, settings }
    });
    let found: Vec<Found> = looks.buffer_unordered(AT_ONCE).collect().await;
    let mut rows = Vec::new();
    for Found { store, key, availability, settings } in found {
        progress.total += 1;
        let name = (store.clone(), key.clone());
        let before = asked.get(&name);
        match availability {
            Ok(availability) => {
                let is_ready = availability.is_readable();
                progress.ready += u64::from(is_ready);
                let until = match availability {
                    Availability::Thawed { until } => until.and_then(micros),
                    _ => None,
                };
                if !is_ready {
                    progress.note(before, settings);
                }
                // One that was ready and is not any more was asked for again just now.
                let is_news = before.is_none_or(|before| before.is_ready != is_ready);
                if is_news {
                    rows.push(AskedThaw { store, key, is_ready, until, asked_at: 0 });
                }
            }
            Err(error) if error.is_not_found() => progress.ready += 1,
            Err(error) if error.is_retryable() => {
                progress.note(before, settings);
                progress.trouble = Some(store_error(&store, error.into()).to_string());
            }
            Err(error) if error.kind() == ErrorKind::Denied => {
                return Err(Error::permanent(
                    ErrorCode::ThawRefused,
                    format!(
                        "store {store} refuses to thaw {key}: {error}; let it, then requeue the job"
                    ),
                ));
            }
            Err(error) => {
                return Err(Error::permanent(
                    ErrorCode::ThawRefused,
                    format!("store {store} cannot thaw {key}: {error}"),
                ));
            }
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let job = run.id();
    run.context.write(move |tx| thaws::record(tx, job, &rows)).await?;
    Ok(())
}

fn micros(at: SystemTime) -> Option<Micros> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Micros::try_from(since.as_micros()).ok()
}

impl Progress {
    /// Notes a file that is not ready.
    fn note(&mut self, before: Option<&AskedThaw>, settings: ThawSettings) {
        if let Some(before) = before {
            self.since = Some(self.since.map_or(before.asked_at, |at| at.min(before.asked_at)));
        }
        if self.slowest.is_none_or(|slowest| settings.hours() > slowest.hours()) {
            self.slowest = Some(settings);
        }
    }

    fn wait(&self, now: Micros) -> Outcome {
        let settings = self.slowest.unwrap_or_default();
        let since = self.since.unwrap_or(now);
        let by = since.saturating_add(settings.hours() * 3_600_000_000);
        let mut why = format!(
            "{} of {} thawed; asked for since {}, to be expected by {}",
            self.ready,
            plural(self.total, "file"),
            queue::view::show_time(since),
            queue::view::show_time(by)
        );
        if let Some(trouble) = &self.trouble {
            why.push_str(&format!("; some could not be asked for now: {trouble}"));
        }
        Outcome::Wait { due: now.saturating_add(settings.look_micros()), why }
    }
}
