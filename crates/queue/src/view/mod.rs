//! What people ask of the queue: which jobs, how many, how long, and why not now. Nothing here
//! changes anything.

mod jobs;
mod overview;
mod stats;
mod time;
mod why;
mod workers;

pub use jobs::{JobView, ListFilter, StateView, TriesView, failed, list, show, states, tries};
pub use overview::{
    BatchCount, Blocked, FailureGroup, Hold, Limited, Limits, LongRun, Overview, overview,
};
pub(crate) use stats::idle_heads;
pub use stats::{StageStats, Stats, stats, stuck};
pub use time::{ago, show_time};
pub use why::why;
pub use workers::{WorkerView, served, workers};
