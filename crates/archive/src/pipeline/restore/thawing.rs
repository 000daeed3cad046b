//! Has content thawed that only cold storage has.

use super::{Run, Step};
use crate::model::error::Result;
use queue::{Outcome, StageSettings};

pub struct ThawingStep;
pub type Thawing = super::Handling<ThawingStep>;

impl Step for ThawingStep {
    const NAME: &'static str = "thawing";

    fn defaults() -> StageSettings {
        StageSettings { workers: 8, ..StageSettings::default() }
    }

    async fn run(run: Run<'_>) -> Result<Outcome> {
        run.save();
        Ok(Outcome::success())
    }
}
