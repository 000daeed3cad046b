//! What a worker tells its own process of what it does, so that people can watch.

use crate::codes::Status;
use crate::job::JobError;
use crate::progress::Progress;
use std::fmt;
use std::sync::Arc;

/// Something that happened to a job in this process.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// A run of it began.
    Began { job: i64, stage: &'a str, subject: &'a str },
    /// The run has come so far.
    Came { job: i64, progress: &'a Progress },
    /// The run is over. What became of the job is told when the database has it.
    Over { job: i64 },
    /// The job's run was settled: it ended, or goes on, or is tried again after an error.
    Settled { job: i64, stage: i64, status: Status, error: Option<&'a JobError> },
}

/// Is called from the worker's threads, so it must be quick.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(Told<'_>) + Send + Sync>);

impl Observer {
    pub fn new(hear: impl Fn(Told<'_>) + Send + Sync + 'static) -> Observer {
        Observer(Arc::new(hear))
    }

    pub(crate) fn tell(&self, told: Told<'_>) {
        (self.0)(told);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
