//! Adds the callback to the outbox; the batch learns what became of the object from its row.

use super::Run;
use crate::error::Result;
use crate::outbox::messages;
use queue::Outcome;

pub async fn run(run: Run<'_>) -> Result<Outcome> {
    if run.profile.callback.is_some() {
        let (job, ingest) = (run.id(), run.ingest.clone());
        run.context.record(move |tx| {
            messages::add_callback(tx, job, &ingest).map_err(super::recording::into_queue)
        });
    }
    Ok(match run.ingest.unchanged {
        true => Outcome::Skip("unchanged".to_string()),
        false => Outcome::success(),
    })
}
