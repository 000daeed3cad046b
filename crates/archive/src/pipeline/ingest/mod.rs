//! The twelve stages of an ingest, each a file. All are idempotent, and resume at the file they
//! stopped at.

mod carried;
pub mod checks;
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

use super::{Pipeline, Stage, StageEntry, failpoint};
use crate::ErrorCode;
use crate::app::App;
use crate::model::error::{Error, Result};
use crate::model::item::Item;
use crate::model::pipelines;
use crate::model::profile::Profile;
use crate::registry::ingest::{self, Ingest};
use meter::Meter;
use queue::runtime::{Context, Handler, Stop};
use queue::{Carryover, Claimed, JobId, Outcome, StageSettings};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The pipeline `ingest`: brings an object into its stores.
pub const PIPELINE: Pipeline = Pipeline {
    restart: Some(<resolving::Resolving as Step>::NAME),
    forward_from: Some(<recording::Recording as Step>::NAME),
    ..Pipeline::new(pipelines::INGEST, &STAGES)
};

const STAGES: [StageEntry; 12] = [
    StageEntry::of::<estimating::Estimating>(),
    StageEntry::of::<provisioning::Provisioning>(),
    StageEntry::of::<downloading::Downloading>(),
    StageEntry::of::<validating::Validating>(),
    StageEntry::of::<resolving::Resolving>(),
    StageEntry::of::<staging::Staging>(),
    StageEntry::of::<identifying::Identifying>(),
    StageEntry::of::<storing::Storing>(),
    StageEntry::of::<verifying::Verifying>(),
    StageEntry::of::<recording::Recording>(),
    StageEntry::of::<notifying::Notifying>(),
    StageEntry::of::<cleaning::Cleaning>(),
];

/// A stage of an ingest. It does almost nothing but wait for the database unless it says otherwise:
/// many jobs can be in it at once.
trait Step: 'static {
    const NAME: &'static str;

    fn defaults() -> StageSettings {
        StageSettings { workers: 8, buffer: 16, ..StageSettings::default() }
    }

    fn run(run: Run<'_>) -> impl Future<Output = Result<Outcome>> + Send;
}

/// Settings of a stage that reads and hashes whole packages.
fn reads_packages() -> StageSettings {
    StageSettings { workers: 2, buffer: 8, ..StageSettings::default() }
}

/// Settings of a stage that waits for disks more than it computes. Its jobs share the flushes that
/// they wait for.
fn waits_for_disks() -> StageSettings {
    StageSettings { workers: 4, buffer: 16, ..StageSettings::default() }
}

impl<S: Step> Stage for S {
    const NAME: &'static str = S::NAME;

    fn defaults() -> StageSettings {
        S::defaults()
    }

    fn handler(app: &Arc<App>) -> impl Handler {
        StepHandler::<S> { app: app.clone(), step: PhantomData }
    }
}

/// One run of a stage.
pub struct Run<'a> {
    pub app: &'a Arc<App>,
    pub job: &'a Claimed,
    pub context: &'a Context,
    pub item: Item,
    pub ingest: Ingest,
    pub profile: Profile,
    /// Counts what the run has come past.
    pub meter: Meter,
}

impl Run<'_> {
    pub fn id(&self) -> JobId {
        self.job.lease.job
    }

    /// The directory that only this job writes to.
    pub fn directory(&self) -> PathBuf {
        self.app.settings.work_space.of(self.id(), self.ingest.discards)
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
        let names = self.profile.required_stores(self.app.stores.names());
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

/// Runs the jobs of a step.
struct StepHandler<S> {
    app: Arc<App>,
    step: PhantomData<fn() -> S>,
}

impl<S: Step> Handler for StepHandler<S> {
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
    error.code == ErrorCode::DigestMismatch.as_str()
        && Item::parse(job.payload.as_deref())
            .is_ok_and(|item| item.line.is_none() && item.claimed.is_some())
}

impl<S: Step> StepHandler<S> {
    async fn go(&self, job: &Claimed, context: &Context) -> Result<Outcome> {
        let item = Item::parse(job.payload.as_deref())?;
        let (ingest, profile) = match job.carryover.get::<(Ingest, Profile)>() {
            Some(known) => known.clone(),
            None => self.load(job, context).await?,
        };
        failpoint(S::NAME);
        let meter = Meter::default();
        let run = Run { app: &self.app, job, context, item, ingest, profile, meter: meter.clone() };
        context.carry_over(passed(&run.ingest, &run.profile));
        meter.during(context, Box::pin(S::run(run))).await
    }

    /// What is known of the job, and its collection's profile.
    async fn load(&self, job: &Claimed, context: &Context) -> Result<(Ingest, Profile)> {
        let id = job.lease.job;
        let collection = job.collection.clone().unwrap_or_else(|| "default".to_string());
        let (name, batch) = (collection.clone(), job.lease.batch);
        let (mut ingest, profile) = self
            .app
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
            None => self.app.profile(&collection).await?,
        };
        if ingest.cleaned_at.is_some() && ingest.recorded_at.is_none() {
            if S::NAME != ingest::FIRST_STAGE {
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
fn discarded(job: JobId) -> Error {
    Error::permanent(
        ErrorCode::DataDiscarded,
        format!(
            "what the job had read was discarded after its retention; read it again with `accession jobs requeue {job} --to {}`",
            ingest::FIRST_STAGE
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
