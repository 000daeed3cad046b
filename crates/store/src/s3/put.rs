//! Putting objects: in one request when they are small, in parts when they are not.

use super::answer::{self, META_PUT, META_SHA256, base64, text};
use super::client::{Client, Failure, Request};
use super::document::contradiction;
use super::multipart;
use super::parts::{base_for, part_bytes};
use crate::body::{Body, ByteStream};
use crate::checksum::{Digest, Sha256Digest};
use crate::error::{Error, ErrorKind, Result};
use crate::meta::Meta;
use crate::store::{Condition, PutOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{Bytes, BytesMut};
use digest::Algorithm;
use futures_util::TryStreamExt;
use http::Method;
use std::sync::Arc;

/// Hashing more than this is left to a thread that may block.
const HASH_HERE_BYTES: usize = 256 * 1024;

pub(super) async fn put(
    client: &Arc<Client>,
    key: &str,
    body: Body,
    options: &PutOptions,
) -> Result<Meta> {
    let base = base_for(body.length().unwrap_or(0), client.config.part_bytes);
    let mut pieces = Pieces::new(body.into_stream());
    let first = pieces.next(part_bytes(base, 0)).await?;
    if pieces.at_end().await? {
        return put_whole(client, key, first, options).await;
    }
    multipart::put(client, key, base, first, pieces, options).await
}

/// Puts what fits into one request.
pub(super) async fn put_whole(
    client: &Client,
    key: &str,
    content: Bytes,
    options: &PutOptions,
) -> Result<Meta> {
    let size = content.len() as u64;
    let digest = hash(&content).await?;
    check_announced(key, options.sha256, digest)?;
    let token = new_token();
    let mut request = Request::new(Method::PUT, key)
        .header("x-amz-checksum-sha256", base64(digest))
        .header("x-amz-sdk-checksum-algorithm", "SHA256")
        .header(META_SHA256, digest)
        .body(content, digest);
    if options.condition != Condition::Always {
        request = condition(request, &options.condition).header(META_PUT, &token);
    }
    let class = options.storage_class.as_ref();
    request = client.keep_as(request, class);
    let success = match client.send(&request).await {
        Ok(success) => success,
        Err(failure) => return done_after_all(client, key, failure, &token).await,
    };
    let headers = success.headers();
    let kept = text(headers, "x-amz-checksum-sha256").and_then(answer::parse_checksum);
    if kept.is_some_and(|kept| kept != Digest::Sha256(digest)) {
        return Err(Error::new(ErrorKind::Corrupt, key, "the store kept another SHA-256"));
    }
    // A store always gives one; a proxy that answers in its place does not.
    if text(headers, "etag").is_none_or(str::is_empty) {
        return Err(contradiction(key, "the answer to a put has no etag"));
    }
    let meta = answer::meta(headers, size);
    let class = class.or(client.config.storage_class.as_ref());
    let cold = class.is_some_and(crate::StorageClass::is_cold);
    Ok(Meta {
        digest: Some(Digest::Sha256(digest)),
        vouched: kept.is_some(),
        storage_class: class.cloned(),
        availability: if cold { crate::Availability::Cold } else { crate::Availability::Ready },
        ..meta
    })
}

/// A conditional put that was tried more than once may have failed because of its own first try,
/// whose answer was lost. The token in the metadata tells whose object it is.
async fn done_after_all(client: &Client, key: &str, failure: Failure, token: &str) -> Result<Meta> {
    if failure.error.kind() != ErrorKind::PreconditionFailed || !failure.uncertain {
        return Err(failure.into());
    }
    let head = Request::new(Method::HEAD, key).header("x-amz-checksum-mode", "ENABLED");
    match client.send(&head).await {
        Ok(found) if text(found.headers(), META_PUT) == Some(token) => {
            super::get::head_of(key, found.headers())
        }
        _ => Err(failure.into()),
    }
}

/// Adds the condition of a put to its request.
pub(super) fn condition(request: Request, condition: &Condition) -> Request {
    match condition {
        Condition::Always => request,
        Condition::IfAbsent => request.header("if-none-match", "*"),
        Condition::IfMatch(etag) => request.header("if-match", etag),
    }
}

pub(super) fn check_announced(
    key: &str,
    announced: Option<Sha256Digest>,
    found: Sha256Digest,
) -> Result<()> {
    match announced {
        Some(announced) if announced != found => {
            let detail = format!("the content has the SHA-256 {found}, not {announced}");
            Err(Error::new(ErrorKind::Corrupt, key, detail))
        }
        _ => Ok(()),
    }
}

pub(super) fn new_token() -> String {
    format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

pub(super) async fn hash(content: &Bytes) -> Result<Sha256Digest> {
    if content.len() <= HASH_HERE_BYTES {
        return Ok(Sha256Digest::of(content));
    }
    let content = content.clone();
    blocking(move || Sha256Digest::of(&content)).await
}

/// The MD5 of bytes as older stores write it: not a proof of anything, only a name.
pub(super) fn md5_hex(content: &[u8]) -> String {
    Algorithm::Md5.hex(content)
}

/// The value of `Content-MD5` for a document.
pub(super) fn content_md5(document: &str) -> String {
    BASE64.encode(Algorithm::Md5.digest(document.as_bytes()).as_bytes())
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::new(ErrorKind::Transient, "", "the runtime is shutting down"))
}

/// A stream, taken apart into pieces of given sizes.
pub(super) struct Pieces {
    stream: ByteStream,
    rest: Bytes,
}

impl Pieces {
    pub(super) fn new(stream: ByteStream) -> Pieces {
        Pieces { stream, rest: Bytes::new() }
    }

    /// The next `size` bytes; fewer at the end of the stream.
    pub(super) async fn next(&mut self, size: u64) -> Result<Bytes> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if self.rest.len() >= size {
            return Ok(self.rest.split_to(size));
        }
        // Content in one chunk, such as a small file in memory, is not copied.
        let first = std::mem::take(&mut self.rest);
        let Some(second) = self.stream.try_next().await? else { return Ok(first) };
        if first.is_empty() && second.len() >= size {
            self.rest = second;
            return Ok(self.rest.split_to(size));
        }
        let mut piece = BytesMut::with_capacity(first.len() + second.len());
        piece.extend_from_slice(&first);
        self.rest = second;
        loop {
            let count = self.rest.len().min(size - piece.len());
            piece.extend_from_slice(&self.rest.split_to(count));
            if piece.len() == size {
                return Ok(piece.freeze());
            }
            match self.stream.try_next().await? {
                Some(chunk) => self.rest = chunk,
                None => return Ok(piece.freeze()),
            }
        }
    }

    pub(super) async fn at_end(&mut self) -> Result<bool> {
        while self.rest.is_empty() {
            match self.stream.try_next().await? {
                Some(chunk) => self.rest = chunk,
                None => return Ok(true),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_are_of_the_size_asked_for() {
        let content: Bytes = (0..=255_u8).collect::<Vec<_>>().into();
        for chunk in [1, 7, 100, 256] {
            let chunks: Vec<_> = content.chunks(chunk).map(Bytes::copy_from_slice).collect();
            let stream = futures_util::stream::iter(chunks.into_iter().map(Ok::<_, Error>));
            let mut pieces = Pieces::new(Body::from_stream(stream, None).into_stream());
            let mut seen = Vec::new();
            for size in [10, 100, 1, 45, 100, 10] {
                let expected = usize::min(size, 256 - seen.len());
                let piece = pieces.next(size as u64).await.unwrap();
                assert_eq!(piece.len(), expected, "{chunk}");
                seen.extend_from_slice(&piece);
            }
            assert_eq!(seen, content);
            assert!(pieces.at_end().await.unwrap());
        }
    }
}
