//! Finding out what a store supports by trying it on an object of our own.

use super::answer::{base64, text};
use super::client::{Client, Failure, Request};
use super::put::{condition, new_token};
use super::{cold, multipart, remove};
use crate::checksum::Sha256Digest;
use crate::error::{ErrorKind, Result};
use crate::meta::Thaw;
use crate::store::Condition;
use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether a store supports something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    Yes,
    No,
    /// It could not be tried, for lack of permission or because the probe was not asked for.
    #[default]
    Unknown,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Support::Yes => "yes",
            Support::No => "no",
            Support::Unknown => "unknown",
        })
    }
}

/// What an S3 store turned out to support.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct S3Support {
    /// Objects can be put, read and deleted.
    pub write: Support,
    /// A put with `If-None-Match: *` fails where there is an object.
    pub put_if_absent: Support,
    /// A put with `If-Match` fails where the object is another.
    pub put_if_match: Support,
    /// A put with the wrong SHA-256 fails.
    pub checksums_checked: Support,
    /// The SHA-256 is kept, and returned by head.
    pub checksums_kept: Support,
    /// The same holds for objects that were sent in parts.
    pub part_checksums_kept: Support,
    /// Unfinished uploads can be listed, and so taken up again.
    pub uploads_listed: Support,
    /// Parts of an unfinished upload are recognised by a digest, and need not be sent again.
    pub parts_recognised: Support,
    /// Cold objects can be thawed.
    pub thaw: Support,
}

impl fmt::Display for S3Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "write: {}, put if absent: {}, put if match: {}, checksums checked: {}, \
             checksums kept: {}, of parts: {}, uploads listed: {}, parts recognised: {}, \
             thaw: {}",
            self.write,
            self.put_if_absent,
            self.put_if_match,
            self.checksums_checked,
            self.checksums_kept,
            self.part_checksums_kept,
            self.uploads_listed,
            self.parts_recognised,
            self.thaw
        )
    }
}

/// Tries everything out; what is written is deleted again. Fails only when the bucket cannot be
/// reached at all.
pub(super) async fn probe(client: &Client) -> Result<S3Support> {
    reach(client).await?;
    let mut support = S3Support {
        uploads_listed: match multipart::list_uploads(client, ".store-probe").await {
            Ok(_) => Support::Yes,
            Err(error) => refused(error.kind()),
        },
        ..S3Support::default()
    };
    let key = format!(".store-probe-{}", new_token());
    // The place among the requests under way is given back at once: there may be only one.
    let written = client.send(&put(client, &key, "1")).await.map(drop);
    support.write = match &written {
        Ok(_) => Support::Yes,
        Err(failure) if failure.error.kind() == ErrorKind::Denied => Support::No,
        Err(_) => Support::Unknown,
    };
    if written.is_err() {
        return Ok(support);
    }
    let tried = try_out(client, &key, &mut support).await;
    remove::delete(client, &key).await?;
    tried.map(|()| support)
}

/// Whether the bucket is there and lets us list it.
pub(super) async fn reach(client: &Client) -> Result<()> {
    let request = Request::new(Method::GET, "").query("list-type", 2).query("max-keys", 1);
    match client.document(&request).await {
        Ok(_) => Ok(()),
        // Listing may be forbidden where reading is not.
        Err(failure) if failure.error.kind() == ErrorKind::Denied => {
            let head = client.send(&Request::new(Method::HEAD, "")).await;
            head.map(drop).map_err(|_| failure.into())
        }
        Err(failure) => Err(failure.into()),
    }
}

async fn try_out(client: &Client, key: &str, support: &mut S3Support) -> Result<()> {
    let head = Request::new(Method::HEAD, key).header("x-amz-checksum-mode", "ENABLED");
    let found = client.send(&head).await?;
    let kept = text(found.headers(), "x-amz-checksum-sha256");
    support.checksums_kept = yes(kept == Some(&base64(Sha256Digest::of(b"1"))));
    let etag = text(found.headers(), "etag").map(str::to_owned);
    drop(found);
    if support.uploads_listed == Support::Yes {
        support.parts_recognised = multipart::recognises_parts(client, key).await?;
    }

    let again = condition(put(client, key, "2"), &Condition::IfAbsent);
    support.put_if_absent = must_refuse(client.send(&again).await);
    // Some stores keep the condition for objects in one piece, and forget it for those in parts.
    if support.put_if_absent == Support::Yes {
        support.put_if_absent = multipart::refuses_if_present(client, key).await?;
    }
    let other = Condition::IfMatch("\"00000000000000000000000000000000\"".into());
    support.put_if_match =
        must_refuse(client.send(&condition(put(client, key, "3"), &other)).await);
    // A store that refuses every condition has not understood this one.
    if let (Support::Yes, Some(etag)) = (support.put_if_match, etag) {
        let same = condition(put(client, key, "1"), &Condition::IfMatch(etag));
        support.put_if_match = yes(client.send(&same).await.is_ok());
    }

    let mut wrong = put(client, key, "4");
    let another = base64(Sha256Digest::of(b"another"));
    wrong.headers.retain(|(name, _)| *name != "x-amz-checksum-sha256");
    let sent = client.send_once_only(&wrong.header("x-amz-checksum-sha256", another)).await;
    let sent = sent.map(drop);
    support.checksums_checked = match sent {
        Ok(()) => Support::No,
        Err(failure) => match failure.error.kind() {
            ErrorKind::Corrupt | ErrorKind::Permanent => Support::Yes,
            _ => Support::Unknown,
        },
    };

    support.thaw = match client.send(&cold::request(key, &Thaw::default())).await.map(drop) {
        // An object that is not cold cannot be thawed; a store that says so knows what it is.
        Err(failure) if failure.code == "InvalidObjectState" => Support::Yes,
        Err(failure) => refused(failure.error.kind()),
        Ok(()) => Support::Yes,
    };
    // Last, because it replaces the object.
    support.part_checksums_kept = match support.checksums_kept {
        Support::Yes => multipart::keeps_checksums(client, key).await?,
        other => other,
    };
    Ok(())
}

fn put(client: &Client, key: &str, content: &'static str) -> Request {
    let digest = Sha256Digest::of(content.as_bytes());
    let request = Request::new(Method::PUT, key)
        .header("x-amz-checksum-sha256", base64(digest))
        .header("x-amz-sdk-checksum-algorithm", "SHA256")
        .body(Bytes::from_static(content.as_bytes()), digest);
    client.encrypted(request)
}

pub(super) fn must_refuse<T>(sent: Result<T, Failure>) -> Support {
    match sent {
        Ok(_) => Support::No,
        Err(failure) => match failure.error.kind() {
            ErrorKind::PreconditionFailed => Support::Yes,
            kind => refused(kind),
        },
    }
}

fn refused(kind: ErrorKind) -> Support {
    match kind {
        ErrorKind::Unsupported | ErrorKind::Permanent => Support::No,
        _ => Support::Unknown,
    }
}

fn yes(holds: bool) -> Support {
    if holds { Support::Yes } else { Support::No }
}
