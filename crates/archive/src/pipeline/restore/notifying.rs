//! Tells the collection's callback, and removes what was only needed on the way.

use super::{Run, Step};
use crate::blocking::blocking;
use crate::model::error::{Result, into_queue};
use crate::model::restore::Destination;
use crate::registry::{messages, restoring};
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
        let collection = run.object.collection.clone();
        let name = collection.clone();
        let read = move |tx: &mut db::Tx<'_>| crate::registry::collection::find(tx, &name);
        let profile = run.app.db.read(read).await?.unwrap_or_default();
        let (job, identifier) = (run.id(), run.object.identifier.clone());
        let restore = run.restore.clone();
        run.context.record(move |tx| {
            if profile.callback.is_some() && restore.order.to != Destination::Nowhere {
                messages::add_delivery(tx, &collection, &identifier, &restore)
                    .map_err(into_queue)?;
            }
            restoring::cleaned(tx, job)
        });
        Ok(Outcome::success())
    }
}
