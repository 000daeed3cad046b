//! Events of a worker for its own process, for example to show progress.

use crate::codes::Status;
use crate::id::{JobId, StageId};
use crate::job::JobError;
use crate::progress::Progress;
use std::fmt;
use std::sync::Arc;

/// Something that happened to a job in this process.
#[derive(Debug, Clone, Copy)]
pub enum RunEvent<'a> {
    /// A run of it began.
    Began {
        /// The job.
        job: JobId,
        /// The stage, as `pipeline/stage`.
        stage: &'a str,
        /// The job's subject.
        subject: &'a str,
    },
    /// The run reported progress.
    Came {
        /// The job.
        job: JobId,
        /// How far it has come.
        progress: &'a Progress,
    },
    /// The run is over. `Settled` follows when the database has the outcome.
    Over {
        /// The job.
        job: JobId,
    },
    /// The job's run was settled: it ended, or goes on, or is tried again after an error.
    Settled {
        /// The job.
        job: JobId,
        /// The stage that it was in.
        stage: StageId,
        /// What became of it.
        status: Status,
        /// The error of the run, if it ended in one.
        error: Option<&'a JobError>,
    },
}

/// A function that is called with each event, on the worker's threads: it must be quick.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(RunEvent<'_>) + Send + Sync>);

impl Observer {
    /// Makes an observer from a function.
    pub fn new(hear: impl Fn(RunEvent<'_>) + Send + Sync + 'static) -> Observer {
        Observer(Arc::new(hear))
    }

    pub(crate) fn tell(&self, told: RunEvent<'_>) {
        (self.0)(told);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
