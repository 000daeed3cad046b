//! What leaves the archive for people and programs: reports by mail, and callbacks. Each is a job
//! of its own, tried again until it is delivered or cannot be; so none is lost, and a dead host
//! holds up no object.

mod attachments;
pub mod sending;

use super::{Pipeline, StageEntry};
use crate::model::pipelines;

/// The pipeline `report`.
pub const REPORT: Pipeline = Pipeline::new(pipelines::REPORT, &STAGES);
/// The pipeline `callback`.
pub const CALLBACK: Pipeline = Pipeline::new(pipelines::CALLBACK, &STAGES);

const STAGES: [StageEntry; 1] = [StageEntry::of::<sending::Sending>()];
