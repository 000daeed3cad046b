//! Listing objects and unfinished uploads, page by page.

use super::client::{Client, Request};
use super::clock;
use super::xml::{self, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::key::check_key;
use crate::meta::{Entry, Kind, ListOptions, Page, Unfinished};
use http::Method;

/// S3 gives at most so many keys at once.
pub(super) const PAGE_MAX: usize = 1000;

/// An object or common prefix as the store lists it, with the key that callers know.
pub(super) struct Listed {
    pub key: String,
    size: u64,
    modified: Option<std::time::SystemTime>,
    is_prefix: bool,
}

/// One page of raw keys below a prefix.
pub(super) async fn page(
    client: &Client,
    prefix: &str,
    recursive: bool,
    token: Option<&str>,
    limit: usize,
) -> Result<(Vec<Listed>, Option<String>)> {
    let mut start = client.full_key(prefix);
    if prefix.is_empty() {
        start.clone_from(&client.config.prefix);
    }
    if !start.is_empty() {
        start.push('/');
    }
    let mut request = Request::new(Method::GET, "")
        .query("list-type", 2)
        .query("max-keys", limit.clamp(1, PAGE_MAX));
    if !start.is_empty() {
        request = request.query("prefix", &start);
    }
    if !recursive {
        request = request.query("delimiter", "/");
    }
    if let Some(token) = token {
        request = request.query("continuation-token", token);
    }
    let answer = document(client, prefix, &request).await?;
    let mut listed = Vec::new();
    for object in answer.children("Contents") {
        let size = object.text_of("Size").and_then(|size| size.parse().ok());
        let modified = object.text_of("LastModified").and_then(clock::parse_iso);
        let key = object.text_of("Key").and_then(|key| own_key(client, key));
        let (Some(key), Some(size)) = (key, size) else {
            return Err(Error::new(ErrorKind::Permanent, prefix, "a listing without key or size"));
        };
        listed.push(Listed { key, size, modified, is_prefix: false });
    }
    for common in answer.children("CommonPrefixes") {
        if let Some(key) = common.text_of("Prefix").and_then(|key| own_key(client, key)) {
            listed.push(Listed { key, size: 0, modified: None, is_prefix: true });
        }
    }
    listed.sort_by(|one, other| one.key.cmp(&other.key));
    Ok((listed, next_marker(&answer, "NextContinuationToken", token)))
}

/// The key without the prefix of this store.
fn own_key(client: &Client, full: &str) -> Option<String> {
    match client.config.prefix.as_str() {
        "" => Some(full.to_owned()),
        prefix => full.strip_prefix(prefix)?.strip_prefix('/').map(str::to_owned),
    }
}

async fn document(client: &Client, about: &str, request: &Request) -> Result<Element> {
    let document = client.document(request).await?;
    xml::parse(&document).map_err(|why| {
        Error::new(ErrorKind::Permanent, about, format!("the listing is no XML: {why}"))
    })
}

/// Where the next page starts. A server that names the same place twice would list forever.
pub(super) fn next_marker(answer: &Element, name: &str, before: Option<&str>) -> Option<String> {
    let more = answer.text_of("IsTruncated").is_some_and(|text| text.trim() == "true");
    let next = answer.text_of(name).filter(|next| more && !next.is_empty());
    next.filter(|next| Some(*next) != before).map(str::to_owned)
}

pub(super) async fn list(client: &Client, prefix: &str, options: &ListOptions) -> Result<Page> {
    let token = options.after.as_deref();
    let (listed, next) = page(client, prefix, options.recursive, token, options.limit).await?;
    let mut entries = Vec::with_capacity(listed.len());
    for (index, object) in listed.iter().enumerate() {
        // The mark of the directory that is listed, left behind by some tools.
        let name = object.key.strip_suffix('/');
        if object.key.is_empty() || name == Some(prefix) {
            continue;
        }
        let Some(name) = name else {
            entries.push(file_entry(object));
            continue;
        };
        if !object.is_prefix {
            let is_empty = match listed.get(index + 1) {
                Some(after) => !after.key.starts_with(&object.key),
                None => next.is_none() || is_empty(client, name).await?,
            };
            if !is_empty {
                continue;
            }
        }
        let kind = if check_key(name).is_ok() { Kind::Directory } else { Kind::Other };
        entries.push(Entry { key: name.to_owned(), kind, size: 0, modified: object.modified });
    }
    Ok(Page { entries, next })
}

fn file_entry(object: &Listed) -> Entry {
    let kind = if check_key(&object.key).is_ok() { Kind::File } else { Kind::Other };
    Entry { key: object.key.clone(), kind, size: object.size, modified: object.modified }
}

/// Whether nothing but its own mark lies in a directory.
async fn is_empty(client: &Client, name: &str) -> Result<bool> {
    let (listed, _) = page(client, name, true, None, 2).await?;
    Ok(listed.iter().all(|object| object.key.strip_suffix('/') == Some(name)))
}

/// The unfinished uploads whose key starts with this text.
pub(super) async fn uploads(client: &Client, start: &str) -> Result<Vec<Unfinished>> {
    let mut found = Vec::new();
    let mut marker: Option<(String, String)> = None;
    let full = match (start, client.config.prefix.as_str()) {
        ("", "") => String::new(),
        ("", prefix) => format!("{prefix}/"),
        (start, _) => client.full_key(start),
    };
    loop {
        let mut request = Request::new(Method::GET, "").query("uploads", "");
        if !full.is_empty() {
            request = request.query("prefix", &full);
        }
        if let Some((key, id)) = &marker {
            request = request.query("key-marker", key).query("upload-id-marker", id);
        }
        let answer = document(client, start, &request).await?;
        for upload in answer.children("Upload") {
            let key = upload.text_of("Key").and_then(|key| own_key(client, key));
            let (Some(key), Some(id)) = (key, upload.text_of("UploadId")) else { continue };
            let begun = upload.text_of("Initiated").and_then(clock::parse_iso);
            found.push(Unfinished { key: Some(key), id: id.to_owned(), begun });
        }
        let before = marker.as_ref().map(|(_, id)| id.as_str());
        let next_id = next_marker(&answer, "NextUploadIdMarker", before);
        let next_key = answer.text_of("NextKeyMarker").map(str::to_owned);
        marker = next_key.zip(next_id);
        if marker.is_none() {
            return Ok(found);
        }
    }
}
