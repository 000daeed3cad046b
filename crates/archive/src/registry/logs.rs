//! Events that come after a version was sealed, kept in the `logs/` of the object in each store, so that
//! a store alone tells them.

use crate::app::App;
use crate::model::error::Result;
use crate::model::event::Event;
use crate::stores::{Place, object_error};
use futures_util::TryStreamExt;
use ocfl::Object;
use queue::JobId;
use serde::{Deserialize, Serialize};
use store::{ErrorKind, Kind, join, list_all};

/// An event as it is kept beside an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent {
    #[serde(flatten)]
    pub event: Event,
    /// When it was, for people.
    pub time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
}

/// Larger files in `logs/` are none of ours.
const BYTES_MAX: usize = 64 * 1024;

impl LoggedEvent {
    pub fn new(event: Event, version: Option<i64>, job: Option<JobId>) -> LoggedEvent {
        let time = jiff::Timestamp::from_microsecond(event.at);
        let time = time.map(|at| at.to_string()).unwrap_or_default();
        LoggedEvent { event, time, version, job }
    }
}

/// Writes an event beside an object in these stores. The registry has it all the same, so a store that
/// does not take it now is only logged.
pub async fn write<'a>(
    app: &App,
    identifier: &str,
    stores: impl Iterator<Item = &'a str>,
    logged: &LoggedEvent,
) {
    let name = format!("{}.json", logged.event.id);
    let body = format!("{}\n", serde_json::json!(logged));
    for store in stores {
        let added = match app.stores.get(store).await {
            Ok(place) => {
                let body = body.clone().into_bytes().into();
                place
                    .root
                    .add_log(identifier, &name, body)
                    .await
                    .map_err(|e| object_error(store, e))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = added
            && !is_there(app, identifier, store, &name).await
        {
            tracing::warn!(store, %error, "the event is not in the logs of the object");
        }
    }
}

/// Whether an earlier run has written it.
async fn is_there(app: &App, identifier: &str, store: &str, name: &str) -> bool {
    let Ok(place) = app.stores.get(store).await else { return false };
    let Ok(path) = place.root.object_path(identifier) else { return false };
    place.root.store().head(&join(&path, &format!("logs/{name}"))).await.is_ok()
}

/// The events in the logs of an object. Logs of other programs are passed over.
pub async fn read(place: &Place, object: &Object) -> Result<Vec<LoggedEvent>> {
    let failed = |error: store::Error| object_error(&place.name, error.into());
    let store = place.root.store();
    let mut found = Vec::new();
    let mut entries = list_all(store.clone(), &join(object.path(), "logs"), true);
    while let Some(entry) = entries.try_next().await.map_err(failed)? {
        let is_ours = entry.kind == Kind::File
            && entry.key.ends_with(".json")
            && entry.size <= BYTES_MAX as u64;
        if !is_ours {
            continue;
        }
        let content = match store.get(&entry.key, None).await {
            Ok(object) => object.bytes(BYTES_MAX).await.map_err(failed)?,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Cold) => continue,
            Err(error) => return Err(failed(error)),
        };
        match serde_json::from_slice(&content) {
            Ok(logged) => found.push(logged),
            Err(error) => tracing::debug!(key = entry.key, %error, "it is no event of ours"),
        }
    }
    Ok(found)
}
