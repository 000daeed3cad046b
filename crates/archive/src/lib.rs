//! The archive itself: who deposits what, the stages that bring a deposit into every store it
//! should be in, the registry of what is kept, and what depositors are told.

pub mod app;
mod blocking;
pub mod config;
pub mod delivery;
pub mod identifier;
pub mod intake;
pub mod metadata;
pub mod model;
pub mod package;
pub mod pipeline;
pub mod premis;
pub mod registry;
pub mod report;
pub mod scheduler;
pub mod setup;
pub mod stores;
pub mod transfer;
pub mod watch;
pub mod worker;
mod xml;

pub use model::error::{Error, Result};
pub use model::error_code::ErrorCode;

use db::{Migration, migration};

/// The schema of the queue, and the archive's after it.
pub const MIGRATIONS: &[Migration] = &[
    queue::MIGRATIONS[0],
    migration!(2, "0002_archive"),
    queue::MIGRATIONS[1],
    migration!(4, "0004_received"),
    queue::MIGRATIONS[2],
    queue::MIGRATIONS[3],
    queue::MIGRATIONS[4],
    queue::MIGRATIONS[5],
    migration!(9, "0009_discards"),
    queue::MIGRATIONS[6],
    queue::MIGRATIONS[7],
    migration!(14, "0014_checks"),
    migration!(15, "0015_people"),
    migration!(16, "0016_places"),
    migration!(17, "0017_dates"),
    migration!(18, "0018_overview"),
    migration!(19, "0019_told"),
    queue::MIGRATIONS[8],
    migration!(21, "0021_bad_copies"),
    migration!(22, "0022_restores"),
];
