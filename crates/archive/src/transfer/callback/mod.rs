//! Callbacks: signed JSON for a program elsewhere.
//!
//! The receiver gets a POST with three headers of ours:
//!
//! | header | what |
//! |---|---|
//! | `Accession-Id` | the message's own name; the same one again is the same message, sent twice |
//! | `Accession-Timestamp` | when it was sent, in seconds since 1970 |
//! | `Accession-Signature` | `v1=` and, in hexadecimal, the HMAC-SHA-256 of timestamp, a dot and the body, with the shared secret |
//!
//! The id stands in the body too (`id`), and so is signed. [`verify`] is a receiver's check.

use crate::ErrorCode;
use crate::transfer::http::{self, Failure, Request};
use crate::{Error, Result};
use digest::{hmac_sha256, to_hex, verify_hmac_sha256};
use std::fmt;
use std::time::Duration;

pub const ID: &str = "Accession-Id";
pub const TIMESTAMP: &str = "Accession-Timestamp";
pub const SIGNATURE: &str = "Accession-Signature";

const BODY_BYTES_MAX: usize = 1 << 20;

/// Where callbacks of a collection go.
#[derive(Clone, PartialEq, Eq)]
pub struct Callback {
    pub url: String,
    pub secret: Vec<u8>,
    pub timeout: Duration,
    /// Whether it may be an address that is not public.
    pub allow_private: bool,
}

/// Never shows the secret.
impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callback").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Callback {
    pub fn new(url: &str, secret: &[u8]) -> Callback {
        let timeout = Duration::from_secs(60);
        Callback { url: url.to_owned(), secret: secret.to_owned(), timeout, allow_private: false }
    }

    /// Sends a message. The id is the message's own for ever (an outbox job's); `fields` are those
    /// of a JSON object, to which the id is added. `now` is in seconds since 1970.
    pub async fn send(
        &self,
        id: &str,
        fields: &serde_json::Map<String, serde_json::Value>,
        now: i64,
    ) -> Result<()> {
        let (_, host) = http::scheme_and_host(&self.url).map_err(|why| {
            Error::permanent(
                ErrorCode::CallbackUrl,
                format!("{why}; correct the collection's callback URL"),
            )
        })?;
        if self.secret.is_empty() {
            let message = "the collection has a callback URL but no secret to sign with; set one";
            return Err(Error::permanent(ErrorCode::CallbackSecret, message));
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/".contains(&b);
        if id.is_empty() || id.len() > 200 || !id.bytes().all(plain) {
            return Err(Error::permanent(
                ErrorCode::CallbackId,
                format!("{id:?} cannot be the id of a callback"),
            ));
        }
        let mut fields = fields.clone();
        fields.insert("id".to_owned(), id.into());
        let body = serde_json::Value::Object(fields).to_string().into_bytes();
        if body.len() > BODY_BYTES_MAX {
            let message = format!("a callback of {} bytes is too large", body.len());
            return Err(Error::permanent(ErrorCode::CallbackTooLarge, message));
        }
        let request = Request {
            method: "POST",
            url: self.url.clone(),
            headers: vec![
                ("Content-Type", "application/json".to_owned()),
                (ID, id.to_owned()),
                (TIMESTAMP, now.to_string()),
                (SIGNATURE, sign(&self.secret, now, &body)),
            ],
            body,
            timeout: self.timeout,
            allow_private: self.allow_private,
        };
        match http::call(request).await {
            Ok(answer) => answered(&host, answer.status),
            Err(Failure::Refused(why)) => {
                let message = format!(
                    "the callback to {} is not sent: {why}; correct the URL, or allow private addresses in the settings",
                    without_secrets(&self.url)
                );
                Err(Error::permanent(ErrorCode::CallbackRefusedAddress, message))
            }
            Err(Failure::Unreachable(why)) => {
                let message = format!("{host} did not take the callback: {why}");
                Err(Error::transient(ErrorCode::CallbackUnreachable, message).at(host))
            }
        }
    }
}

fn answered(host: &str, status: u16) -> Result<()> {
    let permanent = |code, why: &str| {
        Err(Error::permanent(code, format!("{host} answered the callback with {status}: {why}")))
    };
    match status {
        200..=299 => Ok(()),
        300..=399 => permanent(
            ErrorCode::CallbackRedirected,
            "redirects are not followed; set the collection's callback URL to where it goes",
        ),
        410 => permanent(
            ErrorCode::CallbackGone,
            "the address is gone for good; remove the collection's callback URL",
        ),
        408 | 425 | 429 | 500..=599 => {
            let message = format!("{host} answered the callback with {status}");
            Err(Error::transient(ErrorCode::CallbackUnavailable, message).at(host))
        }
        _ => permanent(
            ErrorCode::CallbackRefused,
            "have its operator look, or correct the URL and secret, then retry",
        ),
    }
}

/// A URL may hold a user and password, or a key in its query.
fn without_secrets(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    match bare.split_once("://").map(|(scheme, rest)| (scheme, rest.split_once('@'))) {
        Some((scheme, Some((_, rest)))) => format!("{scheme}://{rest}"),
        _ => bare.to_owned(),
    }
}

/// What is signed: the time and the body.
fn message(timestamp: i64, body: &[u8]) -> Vec<u8> {
    [format!("{timestamp}.").as_bytes(), body].concat()
}

/// The value of `Accession-Signature`.
pub fn sign(secret: &[u8], timestamp: i64, body: &[u8]) -> String {
    format!("v1={}", to_hex(&hmac_sha256(secret, &message(timestamp, body))))
}

/// Why a callback is not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotGenuine {
    #[error("the timestamp is missing, no number, or too far from now")]
    Timestamp,
    #[error("the signature is missing or wrong")]
    Signature,
}

/// A receiver's check: that the body was signed with the secret, not longer ago (or ahead) than
/// `tolerance_seconds`. The header may hold several signatures, separated by commas, of which one
/// must be right: so secrets can be changed. Compares in constant time.
pub fn verify(
    secret: &[u8],
    timestamp: &str,
    signature: &str,
    body: &[u8],
    now: i64,
    tolerance_seconds: u64,
) -> Result<(), NotGenuine> {
    let sent: i64 = timestamp.trim().parse().map_err(|_| NotGenuine::Timestamp)?;
    if sent.abs_diff(now) > tolerance_seconds {
        return Err(NotGenuine::Timestamp);
    }
    let signed = message(sent, body);
    let is_right = |given: &str| {
        let tag = given.trim().strip_prefix("v1=").and_then(digest::Digest::from_hex);
        tag.is_some_and(|tag| verify_hmac_sha256(secret, &signed, tag.as_bytes()))
    };
    let known = !secret.is_empty() && signature.split(',').any(is_right);
    if known { Ok(()) } else { Err(NotGenuine::Signature) }
}

#[cfg(test)]
mod tests;
