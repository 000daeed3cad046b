//! The pipeline `batch`: what was deposited is examined, and expanded into the jobs of its objects.

pub mod examining;
pub mod expanding;

use super::{Pipeline, StageEntry};
use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::model::pipelines;
use queue::BatchId;

/// The pipeline `batch`.
pub const PIPELINE: Pipeline = Pipeline::new(pipelines::BATCH, &STAGES);

const STAGES: [StageEntry; 2] =
    [StageEntry::of::<examining::Examining>(), StageEntry::of::<expanding::Expanding>()];

/// The batch that a job of the pipeline `batch` is about.
fn batch_of(job: &queue::Claimed) -> Result<BatchId> {
    let text = job.payload.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    text.parse().map_err(|_| {
        Error::permanent(ErrorCode::BadPayload, "the job does not name its batch; deposit again")
    })
}
