//! What a versioned bucket keeps of objects that were deleted or replaced.

use super::answer::{base64, kind_of_code};
use super::client::{Client, Request};
use super::document::{self, contradiction, is_truncated, next_marker, required};
use super::put::content_md5;
use super::xml;
use crate::checksum::Sha256Digest;
use crate::error::{Error, ErrorKind, Result};
use http::Method;

/// A version of an object, or a mark that it was deleted: the whole key, and the version's name.
#[derive(PartialEq, Eq)]
struct Version {
    key: String,
    id: String,
}

/// How many versions and marks of deletion there are below a prefix; `None` where the store does not
/// tell.
pub(super) async fn count(client: &Client, prefix: &str) -> Result<Option<u64>> {
    let (mut count, mut marker) = (0, None);
    loop {
        let (versions, next) = match page(client, prefix, marker.as_ref()).await {
            // Not every store knows the question, or answers it to us.
            Err(error) if says_nothing(error.kind()) => return Ok(None),
            page => page?,
        };
        count += versions.len() as u64;
        marker = next;
        if marker.is_none() {
            return Ok(Some(count));
        }
    }
}

fn says_nothing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unsupported | ErrorKind::Permanent | ErrorKind::Denied)
}

/// Removes all versions and marks below a prefix for good; returns how many.
pub(super) async fn remove(client: &Client, prefix: &str) -> Result<u64> {
    let mut removed = 0;
    let mut first_before: Option<Version> = None;
    let mut marker = None;
    loop {
        let (mut versions, next) = page(client, prefix, marker.as_ref()).await?;
        if versions.is_empty() {
            // A page may be empty and the list go on all the same.
            marker = next;
            match marker {
                Some(_) => continue,
                None => return Ok(removed),
            }
        }
        if first_before.as_ref() == versions.first() {
            return Err(contradiction(prefix, "a version was removed, and is listed again"));
        }
        delete(client, prefix, &versions).await?;
        removed += versions.len() as u64;
        first_before = Some(versions.swap_remove(0));
        // From the start: what was listed before is gone by then.
        marker = None;
    }
}

type Marker = (String, String);

async fn page(
    client: &Client,
    prefix: &str,
    marker: Option<&Marker>,
) -> Result<(Vec<Version>, Option<Marker>)> {
    let start = format!("{}/", client.full_key(prefix));
    let mut request = Request::new(Method::GET, "").query("versions", "").query("prefix", &start);
    if let Some((key, id)) = marker {
        request = request.query("key-marker", key);
        if !id.is_empty() {
            request = request.query("version-id-marker", id);
        }
    }
    let document = client.document(&request).await?;
    let answer = document::read(prefix, &document, &["ListVersionsResult", "ListBucketResult"])?;
    if answer.name == "ListBucketResult" {
        // The answer to another question: the store does not know this one.
        let detail = "the store does not list versions";
        return Err(Error::new(ErrorKind::Unsupported, prefix, detail));
    }
    let mut versions = Vec::new();
    for found in answer.children("Version").chain(answer.children("DeleteMarker")) {
        let key = required(prefix, found, "Key")?.to_owned();
        let id = required(prefix, found, "VersionId")?.to_owned();
        if !key.starts_with(&start) {
            let why = format!("it lists versions of {key:?}, which was not asked for");
            return Err(contradiction(prefix, why));
        }
        versions.push(Version { key, id });
    }
    if !is_truncated(prefix, &answer)? {
        return Ok((versions, None));
    }
    let key = next_marker(prefix, &answer, "NextKeyMarker", None)?;
    let id = answer.text_of("NextVersionIdMarker").unwrap_or_default().to_owned();
    let next = key.map(|key| (key, id));
    if next.as_ref() == marker {
        return Err(contradiction(prefix, "the list goes on where it began"));
    }
    Ok((versions, next))
}

async fn delete(client: &Client, prefix: &str, versions: &[Version]) -> Result<()> {
    let mut body = String::from("<Delete>");
    for version in versions {
        body.push_str("<Object>");
        body.push_str(&xml::element("Key", &version.key));
        body.push_str(&xml::element("VersionId", &version.id));
        body.push_str("</Object>");
    }
    body.push_str("<Quiet>true</Quiet></Delete>");
    let digest = Sha256Digest::of(body.as_bytes());
    let request = Request::new(Method::POST, "")
        .query("delete", "")
        .header("content-md5", content_md5(&body))
        .header("x-amz-checksum-sha256", base64(digest))
        .header("x-amz-sdk-checksum-algorithm", "SHA256")
        .body(body.into(), digest);
    let answer = document::read(prefix, &client.document(&request).await?, &["DeleteResult"])?;
    match answer.children("Error").next() {
        None => Ok(()),
        Some(failed) => {
            let text = |name| failed.text_of(name).unwrap_or_default();
            let (key, code) = (text("Key"), text("Code"));
            let detail = format!("its versions stay: {code} {}", text("Message"));
            Err(Error::new(kind_of_code(code).unwrap_or(ErrorKind::Permanent), key, detail))
        }
    }
}
