//! Removes a version that was written and never sealed.

use crate::app::App;
use crate::model::error::Result;
use crate::pipeline::Stage;
use crate::stores::store_error;
use queue::runtime::{Context, Handler};
use queue::{Claimed, Outcome};
use std::sync::Arc;

/// A job of its own with the object's lock, so that it never meets one that is writing.
pub struct Sweeping(Arc<App>);

impl Stage for Sweeping {
    const NAME: &'static str = "sweeping";

    fn handler(app: &Arc<App>) -> impl Handler {
        Sweeping(app.clone())
    }
}

impl Handler for Sweeping {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        let identifier = String::from_utf8_lossy(job.payload.as_deref().unwrap_or_default());
        match sweep(&self.0, &identifier).await {
            Ok(note) => {
                Outcome::Success(queue::Handover { note: Some(note), ..Default::default() })
            }
            Err(error) => error.into(),
        }
    }
}

async fn sweep(app: &Arc<App>, identifier: &str) -> Result<String> {
    let mut removed = Vec::new();
    for store in app.stores.names() {
        let place = app.stores.get(store).await?;
        match place.root.discard(identifier).await {
            Ok(()) => removed.push(store.as_str()),
            Err(ocfl::Error::NothingUnsealed { .. }) => {}
            Err(error) => return Err(store_error(store, error)),
        }
    }
    Ok(match removed.is_empty() {
        true => "there was nothing to remove".to_string(),
        false => format!("a version that was never sealed was removed from {}", removed.join(", ")),
    })
}
