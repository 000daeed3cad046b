//! The pipelines of the archive: a directory each, with a file for each stage.
//!
//! A stage says its own name and the settings that it starts with; a pipeline is a list of stages.
//! Nothing else names them: the pipelines are made in the database, and worked on, from [`ALL`].

pub mod batch;
pub mod ingest;
pub mod outbox;
pub mod restore;
pub mod sweep;

use crate::app::App;
use queue::rules::pipelines::PipelineSpec;
use queue::runtime::{Handler, Worker};
use queue::{PipelineSettings, StageSettings};
use std::sync::Arc;

/// Every pipeline of the archive.
pub const ALL: [&Pipeline; 7] = [
    &batch::PIPELINE,
    &ingest::PIPELINE,
    &restore::OBJECT,
    &restore::FILE,
    &sweep::PIPELINE,
    &outbox::REPORT,
    &outbox::CALLBACK,
];

/// A stage of a pipeline.
pub trait Stage: 'static {
    /// Its name within the pipeline.
    const NAME: &'static str;

    /// The settings that it starts with; operators can change them.
    fn defaults() -> StageSettings {
        StageSettings::default()
    }

    /// Makes what runs its jobs in this process.
    fn handler(app: &Arc<App>) -> impl Handler;
}

/// A [`Stage`] as a value.
pub struct StageEntry {
    pub name: &'static str,
    pub defaults: fn() -> StageSettings,
    add: fn(Worker, &str, &Arc<App>) -> Worker,
}

impl StageEntry {
    /// The entry of a stage.
    pub const fn of<S: Stage>() -> StageEntry {
        StageEntry {
            name: S::NAME,
            defaults: S::defaults,
            add: |worker, pipeline, app| worker.stage(pipeline, S::NAME, S::handler(app)),
        }
    }
}

/// Stages that a job goes through one after the other.
pub struct Pipeline {
    pub name: &'static str,
    pub stages: &'static [StageEntry],
    /// Jobs of one subject that wait are one job.
    pub coalesces: bool,
    /// Where a job resumes at the latest if its object changed after it failed.
    pub restart: Option<&'static str>,
    /// The stage from which a job only goes forward.
    pub forward_from: Option<&'static str>,
}

impl Pipeline {
    /// A pipeline in which each job is by itself and can always be stopped.
    const fn new(name: &'static str, stages: &'static [StageEntry]) -> Pipeline {
        Pipeline { name, stages, coalesces: false, restart: None, forward_from: None }
    }

    /// The names of its stages, in their order.
    pub fn stage_names(&self) -> Vec<&'static str> {
        self.stages.iter().map(|stage| stage.name).collect()
    }

    /// As the queue makes it.
    pub fn spec(&self) -> PipelineSpec {
        let owned = |name: &str| name.to_string();
        PipelineSpec {
            coalesces: self.coalesces,
            restart: self.restart.map(owned),
            settings: PipelineSettings {
                forward_from: self.forward_from.map(owned),
                ..PipelineSettings::default()
            },
            stages: self.stages.iter().map(|s| (owned(s.name), (s.defaults)())).collect(),
            ..PipelineSpec::staged(self.name, &[])
        }
    }

    /// Has a worker run the stages that are wanted.
    pub fn add_to(
        &self,
        worker: Worker,
        app: &Arc<App>,
        wanted: &impl Fn(&str, &str) -> bool,
    ) -> Worker {
        let stages = self.stages.iter().filter(|stage| wanted(self.name, stage.name));
        stages.fold(worker, |worker, stage| (stage.add)(worker, self.name, app))
    }
}

/// Aborts the process where tests ask for it: `ACCESSION_FAILPOINT=name`, or `name:n` for the n-th
/// time that it is passed. Release builds have no failpoints.
#[cfg(debug_assertions)]
pub fn failpoint(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
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
