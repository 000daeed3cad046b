//! Writes the package to its destination, under a name that nothing finished has.

use super::{Run, Step, making, streams_packages};
use crate::model::error::Result;
use crate::pipeline::failpoint;
use queue::{Outcome, StageSettings};

pub struct PackagingStep;
pub type Packaging = super::Handling<PackagingStep>;

impl Step for PackagingStep {
    const NAME: &'static str = "packaging";

    fn defaults() -> StageSettings {
        streams_packages()
    }

    async fn run(mut run: Run<'_>) -> Result<Outcome> {
        if let Some(wait) = making::make(&mut run).await? {
            return Ok(wait);
        }
        failpoint("packaging.written");
        run.save();
        Ok(Outcome::success())
    }
}
