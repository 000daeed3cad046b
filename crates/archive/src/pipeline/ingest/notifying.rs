//! Adds the callback to the outbox; the batch learns what became of the object from its row.

use super::{Run, Step};
use crate::model::error::Result;
use crate::registry::messages;
use queue::Outcome;

pub struct Notifying;

impl Step for Notifying {
    const NAME: &'static str = "notifying";

    async fn run(run: Run<'_>) -> Result<Outcome> {
        if run.profile.callback.is_some() {
            let (job, ingest) = (run.id(), run.ingest.clone());
            run.context.record(move |tx| {
                messages::add_callback(tx, job, &ingest).map_err(crate::model::error::into_queue)
            });
        }
        Ok(match run.ingest.unchanged {
            true => Outcome::Skip("unchanged".to_string()),
            false => Outcome::success(),
        })
    }
}
