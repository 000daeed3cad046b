//! Which run a line of the log is about.
//!
//! A span would say the same, and is made and unmade for every job, most of which say nothing: a
//! quarter of the time of a queue of small jobs. This is looked at when a line is written.

use serde::Serialize;

tokio::task_local! {
    static LABEL: Label;
}

/// The run that the present task is.
#[derive(Debug, Clone, Serialize)]
pub struct Label {
    pub job: i64,
    pub batch: Option<i64>,
    pub stage: String,
    pub attempt: i64,
    pub worker: i64,
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
