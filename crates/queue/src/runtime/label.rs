//! Which run a line of the log is about.
//!
//! A tracing span would do the same, but is created for every job, and most jobs log nothing: it cost a
//! quarter of the time of a queue of small jobs. The label is read only when a line is written.

use crate::id::{BatchId, JobId, WorkerId};
use serde::Serialize;

tokio::task_local! {
    static LABEL: Label;
}

/// The run that the present task is.
#[derive(Debug, Clone, Serialize)]
pub struct Label {
    /// The id of the job.
    pub job: JobId,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The stage, as `pipeline/stage`.
    pub stage: String,
    /// The number of the run, from 1.
    pub attempt: i64,
    /// The id of the worker.
    pub worker: WorkerId,
    /// What the job is about.
    pub subject: String,
}

impl Label {
    /// The label of the run that asks; `None` outside of runs, and in threads that a run has begun.
    pub fn current() -> Option<Label> {
        LABEL.try_with(Label::clone).ok()
    }

    pub(crate) fn on<F: Future>(self, run: F) -> impl Future<Output = F::Output> {
        LABEL.scope(self, run)
    }
}
