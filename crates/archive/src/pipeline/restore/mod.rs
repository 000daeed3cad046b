//! The pipelines `restore-object` and `restore-file`: what is kept goes out again, each byte compared on
//! the way, and what was delivered is read again before it counts.

pub mod delivering;
mod making;
pub mod notifying;
pub mod packaging;
mod s3;
pub mod thawing;

use super::ingest::meter::Meter;
use super::{Pipeline, Stage, StageEntry, failpoint};
use crate::app::App;
use crate::delivery::feed::Observer;
use crate::delivery::local::LocalPlace;
use crate::model::error::{Error, Result};
use crate::model::pipelines;
use crate::model::restore::Order;
use crate::registry::restoring::{self, Restore};
use crate::registry::view::{self, ObjectView};
use crate::stores::copies::{Copies, check_kept};
use queue::runtime::{Context, Handler, Stop};
use queue::{Claimed, JobId, Outcome, StageSettings};
use std::marker::PhantomData;
use std::sync::Arc;

/// The pipeline `restore-object`: a package of an object's files.
pub const OBJECT: Pipeline = Pipeline::new(pipelines::RESTORE_OBJECT, &OBJECT_STAGES);
/// The pipeline `restore-file`: one file by itself.
pub const FILE: Pipeline = Pipeline::new(pipelines::RESTORE_FILE, &FILE_STAGES);

const OBJECT_STAGES: [StageEntry; 4] = [
    StageEntry::of::<thawing::Thawing>(),
    StageEntry::of::<packaging::Packaging>(),
    StageEntry::of::<delivering::Delivering>(),
    StageEntry::of::<notifying::Notifying>(),
];

const FILE_STAGES: [StageEntry; 3] = [
    StageEntry::of::<thawing::Thawing>(),
    StageEntry::of::<delivering::Delivering>(),
    StageEntry::of::<notifying::Notifying>(),
];

/// A stage of a restore.
pub trait Step: 'static {
    const NAME: &'static str;

    fn defaults() -> StageSettings {
        StageSettings::default()
    }

    fn run(run: Run<'_>) -> impl Future<Output = Result<Outcome>> + Send;
}

/// Settings of a stage that streams whole packages.
fn streams_packages() -> StageSettings {
    StageSettings { workers: 2, buffer: 1, ..StageSettings::default() }
}

/// One run of a stage.
pub struct Run<'a> {
    pub app: &'a Arc<App>,
    pub job: &'a Claimed,
    pub context: &'a Context,
    pub order: Order,
    pub object: ObjectView,
    pub restore: Restore,
    pub meter: Meter,
}

impl Run<'_> {
    pub fn id(&self) -> JobId {
        self.job.lease.job
    }

    /// The place of this machine that it is delivered to, if it is one.
    pub fn local(&self) -> Option<LocalPlace> {
        let path = self.order.to.path()?;
        Some(LocalPlace::new(path, &self.app.installation, self.id()))
    }

    pub async fn copies(&self) -> Result<Copies> {
        Copies::of(self.app, self.object.clone(), &self.order.by).await
    }

    /// Has the restore written together with the outcome.
    pub fn save(&self) {
        let restore = self.restore.clone();
        self.context.record(move |tx| restoring::save(tx, &restore));
    }
}

/// Counts what a run has written, and stops it when it should.
struct Telling<'a, 'r> {
    run: &'a Run<'r>,
    /// Members that an earlier run has written are compared, and stay.
    root: Option<std::path::PathBuf>,
}

impl Observer for Telling<'_, '_> {
    fn bytes(&self, bytes: u64) {
        self.run.meter.add(bytes);
    }

    fn taken_back(&self, bytes: u64) {
        self.run.meter.take_back(bytes);
    }

    fn is_stopped(&self) -> bool {
        self.run.context.stop() != Stop::No
    }

    fn is_there(&self, member: &crate::delivery::Member) -> bool {
        let Some(root) = &self.root else { return false };
        tokio::task::block_in_place(|| crate::delivery::verify::has_file(root, member))
    }
}

impl<S: Step> Stage for Handling<S> {
    const NAME: &'static str = S::NAME;

    fn defaults() -> StageSettings {
        S::defaults()
    }

    fn handler(app: &Arc<App>) -> impl Handler {
        Handling::<S> { app: app.clone(), step: PhantomData }
    }
}

/// Runs the jobs of a step.
pub struct Handling<S> {
    app: Arc<App>,
    step: PhantomData<fn() -> S>,
}

impl<S: Step> Handler for Handling<S> {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        match self.go(job, context).await {
            Ok(outcome) => outcome,
            Err(Error::Stopped) => match context.stop() {
                Stop::Cancelled => Outcome::Cancelled,
                _ => Outcome::Interrupted("the worker stopped".to_string()),
            },
            Err(error) => error.into(),
        }
    }
}

impl<S: Step> Handling<S> {
    async fn go(&self, job: &Claimed, context: &Context) -> Result<Outcome> {
        let order = Order::parse(job.payload.as_deref())?;
        failpoint(S::NAME);
        let (id, batch, name) = (job.lease.job, job.lease.batch, order.object.clone());
        let (object, found, now) = self
            .app
            .db
            .read(move |tx| {
                Ok::<_, Error>((view::find(tx, &name)?, restoring::find(tx, id)?, tx.now()))
            })
            .await?;
        if found.as_ref().is_none_or(|restore| restore.delivered_at.is_none()) {
            check_kept(&object)?;
        }
        let restore = found.unwrap_or_else(|| restoring::begin(id, batch, object.id, &order, now));
        let meter = Meter::default();
        let app = &self.app;
        let run = Run { app, job, context, order, object, restore, meter: meter.clone() };
        meter.during(context, Box::pin(S::run(run))).await
    }
}
