//! Listing objects and unfinished uploads, page by page.

use super::client::{Client, Request};
use super::clock;
use super::document::{self, contradiction, is_truncated, next_marker, number, required};
use super::xml::Element;
use crate::error::Result;
use crate::key::check_existing_key;
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

/// Where a page of a listing starts.
#[derive(Debug, Clone, Copy)]
pub(super) enum From<'a> {
    Start,
    /// Where the page before said that the next one starts.
    Token(&'a str),
    /// After this key.
    After(&'a str),
}

/// One page of raw keys below a prefix.
pub(super) async fn page(
    client: &Client,
    prefix: &str,
    recursive: bool,
    from: From<'_>,
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
    let token = match from {
        From::Start => None,
        From::Token(token) => Some(token),
        From::After(key) => {
            request = request.query("start-after", client.full_key(key));
            None
        }
    };
    if let Some(token) = token {
        request = request.query("continuation-token", token);
    }
    let document = client.document(&request).await?;
    let mut answer = document::read(prefix, &document, &["ListBucketResult"])?;
    let mut encoded = false;
    // A character that XML has no way to write. Asking for encoded keys always would rely on all
    // servers that say they encode doing it; some do not, and their `+` and `%` would be misread.
    if written_keys(&answer).any(|key| key.contains(char::REPLACEMENT_CHARACTER)) {
        let document = client.document(&request.query("encoding-type", "url")).await?;
        answer = document::read(prefix, &document, &["ListBucketResult"])?;
        encoded = is_encoded(&answer);
    }
    let read = |written: &str| match encoded {
        true => decoded(written)
            .ok_or_else(|| contradiction(prefix, format!("its key {written:?} is not encoded"))),
        false => Ok(written.to_owned()),
    };
    let mut listed = Vec::new();
    for object in answer.children("Contents") {
        let key = read(required(prefix, object, "Key")?)?;
        let size = number(prefix, object, "Size")?;
        let modified = object.text_of("LastModified").and_then(clock::parse_iso);
        let below = key.strip_prefix(&start);
        // Some tools leave empty objects whose keys end in a slash, and some stores list them.
        let flat = below.is_some_and(|rest| !rest.trim_end_matches('/').contains('/'));
        let own = own_key(client, &key).filter(|_| below.is_some() && (recursive || flat));
        let key = own.ok_or_else(|| {
            contradiction(prefix, format!("it lists {key:?}, which was not asked for"))
        })?;
        listed.push(Listed { key, size, modified, is_prefix: false });
    }
    for common in answer.children("CommonPrefixes") {
        let full = read(required(prefix, common, "Prefix")?)?;
        let own = own_key(client, &full).filter(|_| !recursive && full.starts_with(&start));
        let key = own.ok_or_else(|| {
            contradiction(prefix, format!("it lists {full:?}, which was not asked for"))
        })?;
        listed.push(Listed { key, size: 0, modified: None, is_prefix: true });
    }
    let counted = answer.text_of("KeyCount").and_then(|count| count.trim().parse::<usize>().ok());
    if counted.is_some_and(|counted| counted > listed.len()) {
        return Err(contradiction(prefix, "it counts more keys than it lists"));
    }
    listed.sort_by(|one, other| one.key.cmp(&other.key));
    let next = next_marker(prefix, &answer, "NextContinuationToken", token)?;
    let given = answer.text_of("NextContinuationToken").is_some_and(|next| !next.is_empty());
    if next.is_none() && given {
        return Err(contradiction(prefix, "the list is complete, and says where it goes on"));
    }
    Ok((listed, next))
}

/// The keys of a page, as they are written in it.
fn written_keys(answer: &Element) -> impl Iterator<Item = &str> {
    let keys = answer.children("Contents").filter_map(|object| object.text_of("Key"));
    keys.chain(answer.children("CommonPrefixes").filter_map(|common| common.text_of("Prefix")))
}

/// Whether an answer's keys are encoded: it says so, and they look it.
fn is_encoded(answer: &Element) -> bool {
    let says = answer.text_of("EncodingType").is_some_and(|text| text.trim() == "url");
    says && written_keys(answer).all(|key| key.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// A key as `encoding-type=url` writes it: percent-encoded, a space as `+`. `None` if it is not.
fn decoded(written: &str) -> Option<String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The key without the prefix of this store.
fn own_key(client: &Client, full: &str) -> Option<String> {
    match client.config.prefix.as_str() {
        "" => Some(full.to_owned()),
        prefix => full.strip_prefix(prefix)?.strip_prefix('/').map(str::to_owned),
    }
}

pub(super) async fn list(client: &Client, prefix: &str, options: &ListOptions) -> Result<Page> {
    let from = options.after.as_deref().map_or(From::Start, From::Token);
    let (listed, next) = page(client, prefix, options.recursive, from, options.limit).await?;
    entries_of(client, prefix, listed, next).await
}

/// A page of everything after a key.
pub(super) async fn list_after(client: &Client, prefix: &str, after: &str) -> Result<Page> {
    let (listed, next) = page(client, prefix, true, From::After(after), PAGE_MAX).await?;
    entries_of(client, prefix, listed, next).await
}

async fn entries_of(
    client: &Client,
    prefix: &str,
    listed: Vec<Listed>,
    next: Option<String>,
) -> Result<Page> {
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
        let kind = if check_existing_key(name).is_ok() { Kind::Directory } else { Kind::Other };
        entries.push(Entry { key: name.to_owned(), kind, size: 0, modified: object.modified });
    }
    Ok(Page { entries, next })
}

fn file_entry(object: &Listed) -> Entry {
    let kind = if check_existing_key(&object.key).is_ok() { Kind::File } else { Kind::Other };
    Entry { key: object.key.clone(), kind, size: object.size, modified: object.modified }
}

/// Whether nothing but its own mark lies in a directory.
async fn is_empty(client: &Client, name: &str) -> Result<bool> {
    let (listed, _) = page(client, name, true, From::Start, 2).await?;
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
            request = request.query("key-marker", key);
            if !id.is_empty() {
                request = request.query("upload-id-marker", id);
            }
        }
        let document = client.document(&request).await?;
        let answer = document::read(start, &document, &["ListMultipartUploadsResult"])?;
        for upload in answer.children("Upload") {
            let key = required(start, upload, "Key")?;
            let id = required(start, upload, "UploadId")?.to_owned();
            // Some stores ignore the prefix; what is not below it is not ours.
            let Some(key) = own_key(client, key).filter(|_| key.starts_with(&full)) else {
                continue;
            };
            let begun = upload.text_of("Initiated").and_then(clock::parse_iso);
            found.push(Unfinished { key: Some(key), id, begun });
        }
        if !is_truncated(start, &answer)? {
            return Ok(found);
        }
        // The key alone says where it goes on, where a store names no upload.
        let key = next_marker(start, &answer, "NextKeyMarker", None)?;
        let id = answer.text_of("NextUploadIdMarker").unwrap_or_default().to_owned();
        let next = key.map(|key| (key, id));
        if next == marker {
            return Err(contradiction(start, "the list goes on where it began"));
        }
        marker = next;
    }
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    #[test]
    fn encoded_keys_are_the_keys_that_were_written() {
        assert_eq!(decoded("a%0Ab/c+d%2Be/%C3%BC").as_deref(), Some("a\nb/c d+e/ü"));
        for bad in ["%", "%4", "%zz", "%ff", "a%+1"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_answer_that_only_says_that_it_is_encoded_is_taken_as_it_is() {
        let answer = |kind: &str, key: &str| {
            let text = format!("<R>{kind}<Contents><Key>{key}</Key></Contents></R>");
            xml::parse(text.as_bytes()).unwrap()
        };
        let says = "<EncodingType>url</EncodingType>";
        assert!(is_encoded(&answer(says, "a+b%01")));
        assert!(!is_encoded(&answer(says, "a b\u{fffd}")));
        assert!(!is_encoded(&answer("", "a%01")));
    }
}
