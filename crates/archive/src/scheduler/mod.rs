//! What runs by itself, beside the stages.

pub mod drills;
pub mod janitor;
pub mod reporting;
pub mod restored;
pub mod unsent;
