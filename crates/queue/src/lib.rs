#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod catalog;
mod codes;
mod engine;
mod error;
mod error_code;
mod id;
mod job;
mod progress;
pub mod rules;
pub mod runtime;
pub mod subject;
pub mod view;

pub use catalog::{Catalog, Pipeline, PipelineSettings, Stage, StageSettings};
pub use codes::{BatchState, Content, State, Status};
pub use error::{Entity, Error, Result};
pub use error_code::ErrorCode;
pub use id::{BatchId, JobId, PipelineId, StageId, WorkerId};
pub use job::*;
pub use progress::Progress;

use db::{Migration, migration};

/// Sequences whose values are ranges on PostgreSQL, for [`db::Move`].
pub const RANGED_SEQUENCES: &[&str] = &["tokens"];

/// The schema of the queue.
pub const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_queue"),
    migration!(3, "0003_claims"),
    migration!(5, "0005_batches"),
    migration!(6, "0006_endings"),
    migration!(7, "0007_parked"),
    migration!(8, "0008_discarded"),
    migration!(10, "0010_preparing"),
    migration!(11, "0011_replacements"),
    migration!(20, "0020_leases"),
];
