//! Tells the collection's callback, and removes what was only needed on the way.

use super::{Run, Step};
use crate::blocking::blocking;
use crate::model::error::Result;
use crate::registry::restoring;
use queue::{Outcome, StageSettings};

pub struct NotifyingStep;
pub type Notifying = super::Handling<NotifyingStep>;

impl Step for NotifyingStep {
    const NAME: &'static str = "notifying";

    fn defaults() -> StageSettings {
        StageSettings { workers: 8, buffer: 16, ..StageSettings::default() }
    }

    async fn run(run: Run<'_>) -> Result<Outcome> {
        if let Some(place) = run.local() {
            blocking(move || place.clean()).await?;
        }
        let job = run.id();
        run.context.record(move |tx| restoring::cleaned(tx, job));
        Ok(Outcome::success())
    }
}
