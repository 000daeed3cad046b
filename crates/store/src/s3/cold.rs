//! Cold storage: asking for an object to be made readable.

use super::client::{Client, Request};
use super::{get, xml};
use crate::checksum::Sha256Digest;
use crate::error::Result;
use crate::meta::{Availability, Thaw, ThawSpeed};
use http::{Method, StatusCode};

pub(super) async fn thaw(client: &Client, key: &str, thaw: &Thaw) -> Result<Availability> {
    // The answer to a thaw does not tell an object that never was cold from one that is thawed.
    let before = get::head(client, key).await?.availability;
    if before != Availability::Cold {
        return Ok(before);
    }
    match client.send(&request(key, thaw)).await {
        Ok(success) if success.answer.status == StatusCode::OK => {
            get::head(client, key).await.map(|meta| meta.availability)
        }
        Ok(_) => Ok(Availability::Thawing),
        Err(failure) if failure.code == "RestoreAlreadyInProgress" => Ok(Availability::Thawing),
        Err(failure) => Err(failure.into()),
    }
}

pub(super) fn request(key: &str, thaw: &Thaw) -> Request {
    let speed = match thaw.speed {
        ThawSpeed::Expedited => "Expedited",
        ThawSpeed::Standard => "Standard",
        ThawSpeed::Bulk => "Bulk",
    };
    let document = format!(
        "<RestoreRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{}\
         <GlacierJobParameters>{}</GlacierJobParameters></RestoreRequest>",
        xml::element("Days", &thaw.days.max(1).to_string()),
        xml::element("Tier", speed),
    );
    let digest = Sha256Digest::of(document.as_bytes());
    Request::new(Method::POST, key).query("restore", "").body(document.into(), digest)
}
