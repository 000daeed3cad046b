//! Uploads in parts: several at a time, each with its digest; taken up again, or given up.

use super::answer::{
    self, META_PART_BYTES, META_PUT, META_SHA256, base64, kind_of_code, parse_checksum, text,
};
use super::client::{Client, Failure, Request};
use super::parts::{PARTS_MAX, digest_of_parts, part_bytes};
use super::probe::{Support, must_refuse};
use super::put::{Pieces, blocking, check_announced, condition, hash, md5_hex, new_token};
use super::{document, get, xml};
use crate::checksum::{Digest, Sha256Digest, Sha256Hasher};
use crate::error::{Error, ErrorKind, Result};
use crate::meta::Meta;
use crate::store::{Condition, PutOptions};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Method;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A part that the store has.
#[derive(Debug, Clone)]
struct Part {
    etag: String,
    sha256: Option<Sha256Digest>,
    size: u64,
}

/// An upload under way. Dropped before it is completed, it is given up, unless it is to be taken
/// up again later.
pub(super) struct Upload {
    client: Arc<Client>,
    key: String,
    id: String,
    keep: bool,
    /// What a new upload wrote into the metadata, to recognise the object as its own.
    token: Option<String>,
    there: BTreeMap<u64, Part>,
    /// It was taken up, and turned out to have been begun with another announced digest: nothing
    /// can come of it.
    of_other_content: AtomicBool,
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        let (client, key, id) = (self.client.clone(), self.key.clone(), self.id.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { abort(&client, &key, &id).await });
        }
    }
}

pub(super) async fn put(
    client: &Arc<Client>,
    key: &str,
    base: u64,
    first: Bytes,
    pieces: Pieces,
    options: &PutOptions,
) -> Result<Meta> {
    // Known before all is sent; the condition at the end is what decides.
    if options.condition == Condition::IfAbsent && get::head(client, key).await.is_ok() {
        return Err(Error::new(ErrorKind::PreconditionFailed, key, "there is an object"));
    }
    let taken_up = match options.resume {
        true => take_up(client, key, base).await?,
        false => None,
    };
    let mut upload = match taken_up {
        Some(upload) => upload,
        None => begin(client, key, base, options).await?,
    };
    let sent = send_parts(&upload, base, first, pieces, options).await;
    let finished = match sent {
        Ok((parts, size)) => complete(&mut upload, &parts, size, options).await,
        Err(error) => Err(error),
    };
    let hopeless = upload.of_other_content.load(Ordering::Relaxed);
    if finished.is_err() && (!options.resume || hopeless) {
        upload.keep = true;
        // Given up here rather than on drop, so that nothing is left when the caller hears.
        if let Err(error) = abort(client, key, &upload.id).await {
            tracing::warn!(key, "an unfinished upload is left: {error}");
        }
    }
    finished
}

/// Begins an upload.
pub(super) async fn begin(
    client: &Arc<Client>,
    key: &str,
    base: u64,
    options: &PutOptions,
) -> Result<Upload> {
    let token = new_token();
    let mut request = Request::new(Method::POST, key)
        .query("uploads", "")
        .header(META_PUT, &token)
        .header(META_PART_BYTES, base)
        .header("x-amz-checksum-algorithm", "SHA256");
    if let Some(digest) = options.sha256 {
        request = request.header(META_SHA256, digest);
    }
    request = client.keep_as(request, options.storage_class.as_ref());
    let document = client.document(&request).await?;
    let answer = document::read(key, &document, &["InitiateMultipartUploadResult"])?;
    let id = document::required(key, &answer, "UploadId")?.to_owned();
    let (client, key) = (client.clone(), key.to_owned());
    let (keep, there) = (options.resume, BTreeMap::new());
    let of_other_content = AtomicBool::new(false);
    Ok(Upload { client, key, id, keep, token: Some(token), there, of_other_content })
}

/// Whether parts that are there were cut as ours are. Several are sent at once, so any of them may
/// be missing; only the last of all may be shorter.
fn is_cut_alike(there: &BTreeMap<u64, Part>, base: u64) -> bool {
    let is_whole =
        |(number, part): (&u64, &Part)| part.size == part_bytes(base, number.saturating_sub(1));
    let last = there.keys().next_back().copied();
    there.iter().any(is_whole)
        && there.iter().all(|(number, part)| {
            let is_shorter = part.size < part_bytes(base, number.saturating_sub(1));
            is_whole((number, part)) || (Some(*number) == last && is_shorter)
        })
}

/// Finds the latest unfinished upload of this key whose parts have our size.
async fn take_up(client: &Arc<Client>, key: &str, base: u64) -> Result<Option<Upload>> {
    let mut uploads = match list_uploads(client, key).await {
        Ok(uploads) => uploads,
        // Where uploads cannot be listed, there is nothing to take up.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
        Err(error) => return Err(error),
    };
    uploads.retain(|upload| upload.key.as_deref() == Some(key));
    uploads.sort_by_key(|upload| upload.begun);
    while let Some(found) = uploads.pop() {
        let there = list_parts(client, key, &found.id).await?;
        if is_cut_alike(&there, base) {
            tracing::info!(key, parts = there.len(), "taking up an unfinished upload");
            let (client, key, id) = (client.clone(), key.to_owned(), found.id);
            let of_other_content = AtomicBool::new(false);
            let (keep, token) = (true, None);
            return Ok(Some(Upload { client, key, id, keep, token, there, of_other_content }));
        }
    }
    Ok(None)
}

async fn send_parts(
    upload: &Upload,
    base: u64,
    first: Bytes,
    mut pieces: Pieces,
    options: &PutOptions,
) -> Result<(BTreeMap<u64, Part>, u64)> {
    let mut whole = options.sha256.map(|_| Sha256Hasher::new());
    let mut parts = BTreeMap::new();
    let mut sending = FuturesUnordered::new();
    let mut sending_bytes = 0;
    let (mut piece, mut number, mut size) = (first, 1, 0);
    // One part at a time needs no asking; more are sent at once as far as there is memory.
    let config = &upload.client.config;
    let ahead = config.buffer_bytes.saturating_sub(part_bytes(base, 0));
    let memory = upload.client.put_memory.grant(ahead);
    let buffer_bytes = part_bytes(base, 0) + memory.bytes;
    loop {
        if number > PARTS_MAX {
            let detail = "too long for one object; announce its length";
            return Err(Error::new(ErrorKind::Body, &upload.key, detail));
        }
        let bytes = piece.len() as u64;
        size += bytes;
        if let Some(mut hasher) = whole.take() {
            let piece = piece.clone();
            whole = Some(
                blocking(move || {
                    hasher.update(&piece);
                    hasher
                })
                .await?,
            );
        }
        sending_bytes += bytes;
        sending.push(send_part(upload, number, piece, options.sha256.is_some()));
        let next_bytes = part_bytes(base, number);
        while sending_bytes + next_bytes > buffer_bytes {
            let Some(sent) = sending.next().await else { break };
            let (number, part) = sent?;
            sending_bytes -= part.size;
            parts.insert(number, part);
        }
        if pieces.at_end().await? {
            break;
        }
        piece = pieces.next(next_bytes).await?;
        number += 1;
    }
    while let Some(sent) = sending.next().await {
        let (number, part) = sent?;
        parts.insert(number, part);
    }
    if let Some(hasher) = whole {
        check_announced(&upload.key, options.sha256, hasher.finish())?;
    }
    Ok((parts, size))
}

/// Sends a part, or finds that it is there already.
async fn send_part(
    upload: &Upload,
    number: u64,
    content: Bytes,
    announced: bool,
) -> Result<(u64, Part)> {
    let (size, digest) = (content.len() as u64, hash(&content).await?);
    if let Some(part) = upload.there.get(&number) {
        if is_same(part, &content, digest).await? {
            // From here on it is known by its SHA-256, also where the store keeps none.
            return Ok((number, Part { sha256: Some(digest), ..part.clone() }));
        }
        if announced {
            return Err(begun_with_other_content(upload));
        }
    }
    let request = Request::new(Method::PUT, &upload.key)
        .query("partNumber", number)
        .query("uploadId", &upload.id)
        .header("x-amz-checksum-sha256", base64(digest))
        .header("x-amz-sdk-checksum-algorithm", "SHA256")
        .body(content, digest);
    let success = upload.client.send(&request).await?;
    let kept = text(success.headers(), "x-amz-checksum-sha256").and_then(parse_checksum);
    if kept.is_some_and(|kept| kept != Digest::Sha256(digest)) {
        let detail = format!("the store kept another SHA-256 of part {number}");
        return Err(Error::new(ErrorKind::Corrupt, &upload.key, detail));
    }
    let etag = text(success.headers(), "etag").map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::Permanent, &upload.key, "the answer to a part has no etag")
    })?;
    Ok((number, Part { etag, sha256: Some(digest), size }))
}

/// Whether a part that the store has is this one: by its SHA-256, or, where the store keeps none,
/// by the MD5 that its etag is.
async fn is_same(part: &Part, content: &Bytes, digest: Sha256Digest) -> Result<bool> {
    if part.size != content.len() as u64 {
        return Ok(false);
    }
    if let Some(sha256) = part.sha256 {
        return Ok(sha256 == digest);
    }
    let content = content.clone();
    let md5 = blocking(move || md5_hex(&content)).await?;
    Ok(part.etag.trim_matches('"').eq_ignore_ascii_case(&md5))
}

/// An upload in parts carries the digest of the whole that was announced when it was begun, and
/// nothing can change that.
fn begun_with_other_content(upload: &Upload) -> Error {
    upload.of_other_content.store(true, Ordering::Relaxed);
    let detail = "the unfinished upload of this key was begun with other content, and is given up";
    Error::new(ErrorKind::Transient, &upload.key, detail)
}

async fn complete(
    upload: &mut Upload,
    parts: &BTreeMap<u64, Part>,
    size: u64,
    options: &PutOptions,
) -> Result<Meta> {
    let when = &options.condition;
    let client = upload.client.clone();
    let expected = digest_of_parts(parts.values().filter_map(|part| part.sha256));
    let request = condition(completing(&upload.key, &upload.id, parts, size), when);
    let mut tries = 1;
    loop {
        let failure = match client.document(&request).await {
            Ok(document) => match completed(&client, &upload.key, &document, expected) {
                Ok(()) => break,
                Err(failure) => failure,
            },
            Err(failure) => failure,
        };
        if failure.error.is_retryable()
            && failure.status.is_none()
            && tries < client.config.tries_max
        {
            tries += 1;
            continue;
        }
        if is_done_after_all(upload, &failure, expected).await {
            break;
        }
        return Err(failure.into());
    }
    upload.keep = true;
    let head = Request::new(Method::HEAD, &upload.key).header("x-amz-checksum-mode", "ENABLED");
    let found = client.send(&head).await?;
    let meta = get::head_of(&upload.key, found.headers())?;
    if meta.size != size {
        let detail = format!("{} bytes arrived of {size} that were sent", meta.size);
        return Err(Error::new(ErrorKind::Corrupt, &upload.key, detail));
    }
    let kept = text(found.headers(), "x-amz-checksum-sha256").and_then(parse_checksum);
    if matches!(kept, Some(Digest::Sha256OfParts { .. })) && kept != Some(expected) {
        let detail = "the store has another SHA-256 of the parts";
        return Err(Error::new(ErrorKind::Corrupt, &upload.key, detail));
    }
    let told = answer::announced(found.headers());
    drop(found);
    // All parts that were there were the same, and yet it had been begun for something else; or it is
    // not known now whether they are what was announced then.
    if told.is_some() && told != options.sha256 {
        super::remove::delete(&client, &upload.key).await?;
        return Err(begun_with_other_content(upload));
    }
    Ok(meta)
}

fn completing(key: &str, id: &str, parts: &BTreeMap<u64, Part>, size: u64) -> Request {
    let mut document = String::from("<CompleteMultipartUpload>");
    for (number, part) in parts {
        document.push_str("<Part>");
        document.push_str(&xml::element("PartNumber", &number.to_string()));
        document.push_str(&xml::element("ETag", &part.etag));
        if let Some(digest) = part.sha256 {
            document.push_str(&xml::element("ChecksumSHA256", &base64(digest)));
        }
        document.push_str("</Part>");
    }
    document.push_str("</CompleteMultipartUpload>");
    let digest = Sha256Digest::of(document.as_bytes());
    Request::new(Method::POST, key)
        .query("uploadId", id)
        .header("x-amz-mp-object-size", size)
        .body(document.into(), digest)
}

/// Whether the answer says that the upload is complete: a success may still hold an error, since
/// the server begins to answer before it knows.
fn completed(client: &Client, key: &str, document: &[u8], expected: Digest) -> Result<(), Failure> {
    let fail = |kind, code: &str, detail: String| {
        let error = Error::new(kind, key, detail).in_store(&client.url);
        Failure { error, status: None, code: code.to_owned(), uncertain: true }
    };
    let answer = xml::parse(document)
        .map_err(|why| fail(ErrorKind::Transient, "", format!("the answer is no XML: {why}")))?;
    if answer.name == "Error" {
        let code = answer.text_of("Code").unwrap_or_default();
        let kind = kind_of_code(code).unwrap_or(ErrorKind::Permanent);
        let message = answer.text_of("Message").unwrap_or_default();
        return Err(fail(kind, code, format!("completing the upload: {code} {message}")));
    }
    if answer.name != "CompleteMultipartUploadResult" || answer.text_of("ETag").is_none() {
        let detail = "the answer to completing the upload does not say that it is complete";
        return Err(fail(ErrorKind::Transient, "", detail.into()));
    }
    let kept = answer.text_of("ChecksumSHA256").and_then(parse_checksum);
    match kept {
        Some(kept) if kept != expected => {
            let detail = "the store has another SHA-256 of the whole object";
            Err(fail(ErrorKind::Corrupt, "", detail.into()))
        }
        _ => Ok(()),
    }
}

/// Completing again after a lost answer fails, because the upload is no more, or because the
/// object is there: then the object itself tells whether it is ours.
async fn is_done_after_all(upload: &Upload, failure: &Failure, expected: Digest) -> bool {
    let gone = failure.code == "NoSuchUpload"
        || matches!(failure.error.kind(), ErrorKind::NotFound | ErrorKind::PreconditionFailed);
    if !gone || !failure.uncertain {
        return false;
    }
    let head = Request::new(Method::HEAD, &upload.key).header("x-amz-checksum-mode", "ENABLED");
    let Ok(found) = upload.client.send(&head).await else { return false };
    match &upload.token {
        Some(token) => text(found.headers(), META_PUT) == Some(token.as_str()),
        None => {
            let kept = text(found.headers(), "x-amz-checksum-sha256").and_then(parse_checksum);
            kept == Some(expected)
        }
    }
}

/// Copies an object that is too large for one request, part by part, within the store.
pub(super) async fn copy(
    client: &Arc<Client>,
    from: &str,
    to: &str,
    source: &Meta,
) -> Result<Meta> {
    let options = PutOptions {
        storage_class: source.storage_class.clone(),
        sha256: source.digest.and_then(|digest| digest.whole()),
        ..PutOptions::default()
    };
    let step = client.config.copy_bytes_max.max(1);
    let mut upload = begin(client, to, step, &options).await?;
    let ranges = (0..source.size.div_ceil(step))
        .map(|index| (index + 1, index * step..source.size.min((index + 1) * step)));
    let upload_ref = &upload;
    let mut copying = futures_util::stream::iter(ranges)
        .map(|(number, range)| copy_part(upload_ref, from, source, number, range))
        .buffer_unordered(4);
    let mut parts = BTreeMap::new();
    let mut failed = None;
    while let Some(copied) = copying.next().await {
        match copied {
            Ok((number, part)) => _ = parts.insert(number, part),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    drop(copying);
    let finished = match failed {
        None => complete(&mut upload, &parts, source.size, &options).await,
        Some(error) => Err(error),
    };
    if finished.is_err() {
        upload.keep = true;
        abort(client, to, &upload.id).await?;
    }
    finished
}

async fn copy_part(
    upload: &Upload,
    from: &str,
    source: &Meta,
    number: u64,
    range: std::ops::Range<u64>,
) -> Result<(u64, Part)> {
    let mut request = Request::new(Method::PUT, &upload.key)
        .query("partNumber", number)
        .query("uploadId", &upload.id)
        .header("x-amz-copy-source", upload.client.copy_source(from))
        .header("x-amz-copy-source-range", format!("bytes={}-{}", range.start, range.end - 1));
    if let Some(etag) = &source.etag {
        request = request.header("x-amz-copy-source-if-match", etag);
    }
    let document = upload.client.document(&request).await?;
    // Some stores name it as they name the answer to copying a whole object.
    let names = ["CopyPartResult", "CopyObjectResult"];
    let answer = document::read(&upload.key, &document, &names)?;
    let etag = document::required(&upload.key, &answer, "ETag")?;
    let sha256 = answer.text_of("ChecksumSHA256").and_then(parse_checksum);
    let sha256 = sha256.and_then(|digest| digest.whole());
    Ok((number, Part { etag: etag.to_owned(), sha256, size: range.end - range.start }))
}

/// Whether the store compares the digests of parts with their bytes, and keeps that of an object that
/// was sent in parts.
pub(super) async fn keeps_checksums(client: &Client, key: &str) -> Result<Support> {
    let Some((id, part)) = begin_trial(client, key).await? else { return Ok(Support::Unknown) };
    let wrong = trial_part(key, &id, 2, Sha256Digest::of(b"another"));
    if client.send_once_only(&wrong).await.map(drop).is_ok() {
        abort(client, key, &id).await?;
        return Ok(Support::No);
    }
    let parts = BTreeMap::from([(1, part)]);
    let expected = digest_of_parts(parts.values().filter_map(|part| part.sha256));
    let completed = client.document(&completing(key, &id, &parts, 4)).await;
    if completed.is_err() {
        abort(client, key, &id).await?;
        return Ok(Support::Unknown);
    }
    let head = Request::new(Method::HEAD, key).header("x-amz-checksum-mode", "ENABLED");
    let found = client.send(&head).await?;
    let kept = text(found.headers(), "x-amz-checksum-sha256").and_then(parse_checksum);
    Ok(if kept == Some(expected) { Support::Yes } else { Support::No })
}

/// Whether parts that were sent are recognised when the upload is taken up.
pub(super) async fn recognises_parts(client: &Client, key: &str) -> Result<Support> {
    let Some((id, part)) = begin_trial(client, key).await? else { return Ok(Support::Unknown) };
    let there = list_parts(client, key, &id).await;
    abort(client, key, &id).await?;
    let (Ok(there), Some(digest)) = (there, part.sha256) else { return Ok(Support::Unknown) };
    let Some(there) = there.get(&1) else { return Ok(Support::No) };
    let same = is_same(there, &Bytes::from_static(TRIAL), digest).await?;
    Ok(if same { Support::Yes } else { Support::No })
}

/// What the only part of a trial holds.
const TRIAL: &[u8] = b"part";

/// Begins an upload and sends its only part; `None` if that cannot be done.
async fn begin_trial(client: &Client, key: &str) -> Result<Option<(String, Part)>> {
    let begin = Request::new(Method::POST, key)
        .query("uploads", "")
        .header("x-amz-checksum-algorithm", "SHA256");
    let document = client.document(&client.encrypted(begin)).await?;
    let answer = xml::parse(&document).unwrap_or_default();
    let Some(id) = answer.text_of("UploadId") else { return Ok(None) };
    let digest = Sha256Digest::of(TRIAL);
    let etag = client
        .send(&trial_part(key, id, 1, digest))
        .await
        .map(|sent| text(sent.headers(), "etag").unwrap_or_default().to_owned());
    match etag {
        Ok(etag) => Ok(Some((id.to_owned(), Part { etag, sha256: Some(digest), size: 4 }))),
        Err(_) => {
            abort(client, key, id).await?;
            Ok(None)
        }
    }
}

/// A part of a trial, which says that it has this digest.
fn trial_part(key: &str, id: &str, number: u64, digest: Sha256Digest) -> Request {
    Request::new(Method::PUT, key)
        .query("partNumber", number)
        .query("uploadId", id)
        .header("x-amz-checksum-sha256", base64(digest))
        .header("x-amz-sdk-checksum-algorithm", "SHA256")
        .body(Bytes::from_static(TRIAL), Sha256Digest::of(TRIAL))
}

/// Whether completing an upload fails where there is an object, when it was asked to.
pub(super) async fn refuses_if_present(client: &Client, key: &str) -> Result<Support> {
    let Some((id, part)) = begin_trial(client, key).await? else { return Ok(Support::Unknown) };
    let request = completing(key, &id, &BTreeMap::from([(1, part)]), 4);
    let support = must_refuse(client.document(&condition(request, &Condition::IfAbsent)).await);
    abort(client, key, &id).await?;
    Ok(support)
}

/// What stores call the list of parts; not all agree with Amazon.
const LIST_OF_PARTS: [&str; 3] =
    ["ListPartsResult", "ListPartsResponse", "ListMultipartUploadResult"];

/// The parts of an upload that the store has, by number.
async fn list_parts(client: &Client, key: &str, id: &str) -> Result<BTreeMap<u64, Part>> {
    let mut parts = BTreeMap::new();
    let mut marker: Option<String> = None;
    loop {
        let mut request = Request::new(Method::GET, key).query("uploadId", id);
        if let Some(marker) = &marker {
            request = request.query("part-number-marker", marker);
        }
        let document = match client.document(&request).await {
            Ok(document) => document,
            Err(failure) if failure.error.is_not_found() => return Ok(BTreeMap::new()),
            Err(failure) => return Err(failure.into()),
        };
        let answer = document::read(key, &document, &LIST_OF_PARTS)?;
        for part in answer.children("Part") {
            let number = document::number(key, part, "PartNumber")?;
            let size = document::number(key, part, "Size")?;
            let sha256 = part.text_of("ChecksumSHA256").and_then(parse_checksum);
            let sha256 = sha256.and_then(|digest| digest.whole());
            let etag = part.text_of("ETag").unwrap_or_default().to_owned();
            parts.insert(number, Part { etag, sha256, size });
        }
        let before = marker.as_deref();
        marker = document::next_marker(key, &answer, "NextPartNumberMarker", before)?;
        if marker.is_none() {
            return Ok(parts);
        }
    }
}

/// The unfinished uploads whose key starts with this text.
pub(super) async fn list_uploads(client: &Client, start: &str) -> Result<Vec<crate::Unfinished>> {
    super::list::uploads(client, start).await
}

/// Gives up an upload.
pub(super) async fn abort(client: &Client, key: &str, id: &str) -> Result<()> {
    let request = Request::new(Method::DELETE, key).query("uploadId", id);
    match client.send(&request).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.error.is_not_found() => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}
