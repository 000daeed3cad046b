//! What was found out about a store, kept in the store itself: trying it out writes and deletes
//! objects, of which a versioned or locked bucket keeps every trace.

use super::client::{Client, Request};
use super::probe::S3Support;
use super::put;
use crate::error::Result;
use crate::store::PutOptions;
use http::Method;
use serde::{Deserialize, Serialize};

/// What is remembered by another version of this file is found out anew.
const VERSION: u32 = 2;
const BYTES_MAX: usize = 64 * 1024;

#[derive(Serialize, Deserialize)]
struct Remembered {
    version: u32,
    found: String,
    support: S3Support,
}

/// Reads what is remembered; `None` if that is nothing, or cannot be read.
pub(super) async fn read(client: &Client, key: &str) -> Result<Option<S3Support>> {
    let mut success = match client.send(&Request::new(Method::GET, key)).await {
        Ok(success) => success,
        Err(failure) if failure.error.is_not_found() && failure.code != "NoSuchBucket" => {
            return Ok(None);
        }
        Err(failure) => return Err(failure.into()),
    };
    let Ok(content) = success.answer.read(BYTES_MAX).await else { return Ok(None) };
    let remembered: Option<Remembered> = serde_json::from_slice(&content).ok();
    Ok(remembered.filter(|known| known.version == VERSION).map(|known| known.support))
}

/// Remembers what was found out. A store that does not let us is asked again next time.
pub(super) async fn write(client: &Client, key: &str, support: &S3Support) {
    let found = super::clock::stamp(std::time::SystemTime::now());
    let remembered = Remembered { version: VERSION, found, support: support.clone() };
    let Ok(mut content) = serde_json::to_vec_pretty(&remembered) else { return };
    content.push(b'\n');
    if let Err(error) = put::put_whole(client, key, content.into(), &PutOptions::default()).await {
        tracing::warn!(store = client.url, "what it supports could not be remembered: {error}");
    }
}
