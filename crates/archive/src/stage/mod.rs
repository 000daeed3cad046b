//! The twelve stages of an ingest, each a file. All are idempotent, and resume at the file they
//! stopped at.

pub mod cleaning;
pub mod downloading;
mod earlier;
pub mod estimating;
pub mod identifying;
mod mark;
pub mod meter;
pub mod notifying;
pub mod provisioning;
pub mod recording;
pub mod resolving;
pub mod room;
pub mod staging;
pub mod storing;
mod under_way;
pub mod validating;
pub mod verifying;

use crate::error::{Error, Result};
use crate::ingest::{self, Ingest};
use crate::item::Item;
use crate::profile::Profile;
use crate::site::Site;
use futures_util::future::BoxFuture;
use meter::Meter;
use queue::runtime::{Context, Handler, Stop, Worker};
use queue::{Carryover, Claimed, Outcome, PipelineSettings, StageSettings};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub const PIPELINE: &str = "ingest";

/// The stages in their order.
pub const STAGES: [&str; 12] = [
    "estimating",
    "provisioning",
    "downloading",
    "validating",
    "resolving",
    "staging",
    "identifying",
    "storing",
    "verifying",
    "recording",
    "notifying",
    "cleaning",
];

/// The settings a stage starts with.
pub fn default_settings(stage: &str) -> StageSettings {
    let long = ["downloading", "validating", "storing", "verifying"].contains(&stage);
    let workers = match stage {
        // As many objects as are read and hashed at once.
        "downloading" | "validating" => 2,
        // These wait for disks more than they compute, and share the flushes that they wait for.
        "resolving" | "storing" | "verifying" | "recording" => 4,
        // And these do next to nothing: a place is there for whoever comes.
        _ => 8,
    };
    StageSettings { workers, buffer: if long { 8 } else { 16 }, ..StageSettings::default() }
}

pub fn pipeline_settings() -> PipelineSettings {
    PipelineSettings { forward_from: Some("recording".to_string()), ..PipelineSettings::default() }
}

/// One run of a stage.
pub struct Run<'a> {
    pub site: &'a Arc<Site>,
    pub job: &'a Claimed,
    pub context: &'a Context,
    pub item: Item,
    pub ingest: Ingest,
    pub profile: Profile,
    /// Counts what the run has come past.
    pub meter: Meter,
}

impl Run<'_> {
    pub fn id(&self) -> i64 {
        self.job.lease.job
    }

    /// The directory that only this job writes to.
    pub fn directory(&self) -> PathBuf {
        self.site.settings.work_space.of(self.id(), self.ingest.discards)
    }

    /// Makes the job's directory.
    pub fn make_directory(&self) -> Result<PathBuf> {
        let directory = self.directory();
        std::fs::create_dir_all(&directory)
            .map_err(|e| crate::package::unpack::unwritable(&directory, e))?;
        Ok(directory)
    }

    /// Has the job's row written together with the outcome.
    pub fn save(&self) {
        let ingest = self.to_save();
        self.context.record(move |tx| ingest::save(tx, &ingest));
    }

    /// The job's row as it is to be written together with the outcome, and as the next stage gets
    /// it.
    pub fn to_save(&self) -> Ingest {
        self.context.carry_over(passed(&self.ingest, &self.profile));
        self.ingest.clone()
    }

    /// True from the moment the run should stop; for work on other threads.
    pub fn stop_flag(&self) -> StopFlag {
        let flag = Arc::new(AtomicBool::new(false));
        let (context, raise) = (self.context.clone(), flag.clone());
        let watch = tokio::spawn(async move {
            context.stopped().await;
            raise.store(true, Ordering::Relaxed);
        });
        StopFlag { flag, watch }
    }

    /// The stores the version must be in before it counts as preserved.
    pub fn required_stores(&self) -> Vec<String> {
        let names = self.profile.required_stores(self.site.stores.names());
        names.into_iter().map(str::to_string).collect()
    }

    /// A name for the one object or package this is about, for messages.
    pub fn name(&self) -> &str {
        &self.item.name
    }
}

/// Ends its watch when it is dropped.
pub struct StopFlag {
    pub flag: Arc<AtomicBool>,
    watch: tokio::task::JoinHandle<()>,
}

impl StopFlag {
    pub fn is_raised(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl Drop for StopFlag {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// What a stage does, as a value.
type Function = for<'a> fn(Run<'a>) -> BoxFuture<'a, Result<Outcome>>;

/// A stage function in the queue's clothes.
struct Stage {
    site: Arc<Site>,
    name: &'static str,
    function: Function,
}

impl Handler for Stage {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        let done = self.go(job, context).await;
        match done {
            Ok(outcome) => outcome,
            Err(Error::Stopped) => match context.stop() {
                Stop::Cancelled => Outcome::Cancelled,
                _ => Outcome::Interrupted("the worker stopped".to_string()),
            },
            Err(error) => {
                ingest::note_failed_file(job, context, &error);
                match error.into() {
                    Outcome::Permanent(error) if is_of_another(job, &error) => {
                        Outcome::Permanent(error.unrecoverable())
                    }
                    outcome => outcome,
                }
            }
        }
    }
}

/// Whether what was handed over is not what its depositor said it was: its digest is another one.
/// Only another deposit can help. Rows of manifests name what can be corrected in its place.
fn is_of_another(job: &Claimed, error: &queue::JobError) -> bool {
    error.code == "digest_mismatch"
        && Item::parse(job.payload.as_deref())
            .is_ok_and(|item| item.line.is_none() && item.claimed.is_some())
}

impl Stage {
    async fn go(&self, job: &Claimed, context: &Context) -> Result<Outcome> {
        let item = Item::parse(job.payload.as_deref())?;
        let (ingest, profile) = match job.carryover.get::<(Ingest, Profile)>() {
            Some(known) => known.clone(),
            None => self.load(job, context).await?,
        };
        failpoint(self.name);
        let meter = Meter::default();
        let run =
            Run { site: &self.site, job, context, item, ingest, profile, meter: meter.clone() };
        context.carry_over(passed(&run.ingest, &run.profile));
        meter.during(context, (self.function)(run)).await
    }

    /// What is known of the job, and its collection's profile.
    async fn load(&self, job: &Claimed, context: &Context) -> Result<(Ingest, Profile)> {
        let id = job.lease.job;
        let collection = job.collection.clone().unwrap_or_else(|| "default".to_string());
        let (name, batch) = (collection.clone(), job.lease.batch);
        let (mut ingest, profile) = self
            .site
            .db
            .read(move |tx| {
                let (found, profile) = ingest::find_with_profile(tx, id, &name)?;
                let ingest = found.unwrap_or_else(|| Ingest {
                    job: id,
                    batch,
                    collection: name.clone(),
                    began_at: tx.now(),
                    ..Ingest::default()
                });
                Ok::<_, Error>((ingest, profile))
            })
            .await?;
        let profile = match profile {
            Some(profile) => profile,
            None => self.site.profile(&collection).await?,
        };
        if ingest.cleaned_at.is_some() && ingest.recorded_at.is_none() {
            if self.name != STAGES[0] {
                return Err(discarded(id));
            }
            ingest.began_at = context.write(move |tx| ingest::reopen(tx, id)).await?;
            ingest.cleaned_at = None;
        }
        Ok((ingest, profile))
    }
}

/// A stage must not go on with what is not there any more. The queue sends such a job to its first
/// stage, so that this is met only where something went wrong.
fn discarded(job: i64) -> Error {
    Error::permanent(
        "data_discarded",
        format!(
            "what the job had read was discarded after its retention; read it again with `accession jobs requeue {job} --to {}`",
            STAGES[0]
        ),
    )
}

/// What the next stage would find in the database.
fn passed(ingest: &Ingest, profile: &Profile) -> Carryover {
    let said = (&ingest.said, &ingest.metadata);
    let parts = (&ingest.package, said, &ingest.stores, &ingest.summary, profile);
    let passed = Carryover::new((ingest.clone(), profile.clone()));
    match size(&parts) {
        // In memory it takes more than in JSON.
        Some(bytes) => passed.keep(2 * bytes),
        None => passed,
    }
}

/// How long a value is in JSON.
fn size(value: &impl serde::Serialize) -> Option<usize> {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).ok()?;
    Some(count.0)
}

/// The functions by name.
const FUNCTIONS: [(&str, Function); 12] = [
    ("estimating", |run| Box::pin(estimating::run(run))),
    ("provisioning", |run| Box::pin(provisioning::run(run))),
    ("downloading", |run| Box::pin(downloading::run(run))),
    ("validating", |run| Box::pin(validating::run(run))),
    ("resolving", |run| Box::pin(resolving::run(run))),
    ("staging", |run| Box::pin(staging::run(run))),
    ("identifying", |run| Box::pin(identifying::run(run))),
    ("storing", |run| Box::pin(storing::run(run))),
    ("verifying", |run| Box::pin(verifying::run(run))),
    ("recording", |run| Box::pin(recording::run(run))),
    ("notifying", |run| Box::pin(notifying::run(run))),
    ("cleaning", |run| Box::pin(cleaning::run(run))),
];

/// Has a worker work on these stages of the ingest pipeline.
pub fn add_to(mut worker: Worker, site: &Arc<Site>, wanted: impl Fn(&str) -> bool) -> Worker {
    for (name, function) in FUNCTIONS.into_iter().filter(|(name, _)| wanted(name)) {
        worker = worker.stage(PIPELINE, name, Stage { site: site.clone(), name, function });
    }
    worker
}

/// A place where tests kill the process: `ACCESSION_FAILPOINT=name` or `name:n` for the n-th time
/// it is passed. Not in release builds.
#[cfg(debug_assertions)]
pub fn failpoint(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicU64;
    static WANTED: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("ACCESSION_FAILPOINT").ok()?;
        let (name, count) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_string(), AtomicU64::new(count.parse().unwrap_or(1))))
    });
    if let Some((wanted, left)) = wanted
        && wanted == name
        && left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
pub fn failpoint(_: &str) {}
