//! The pipeline `sweep`: removes what jobs that ended left in the stores.

pub mod sweeping;

use super::{Pipeline, StageEntry};
use crate::model::pipelines;

/// The pipeline `sweep`.
pub const PIPELINE: Pipeline =
    Pipeline { coalesces: true, ..Pipeline::new(pipelines::SWEEP, &STAGES) };

const STAGES: [StageEntry; 1] = [StageEntry::of::<sweeping::Sweeping>()];
