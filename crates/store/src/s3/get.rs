//! Getting objects: checked, taken up where they break off, and in parallel when they are large.

use super::answer::{self, META_PART_BYTES, text};
use super::client::{Client, Request, Success};
use super::document::contradiction;
use super::http::Answer;
use super::limit::Grant;
use super::parts::PartsHasher;
use crate::body::{ByteStream, Object, clip};
use crate::checksum::{Digest, Sha256Hasher};
use crate::error::{Error, ErrorKind, Result};
use crate::meta::Meta;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{HeaderMap, Method, StatusCode};
use std::ops::Range;
use std::sync::Arc;

/// Servers keep lengths in 63 bits; nothing lies beyond.
const END_MAX: u64 = i64::MAX as u64;

pub(super) async fn head(client: &Client, key: &str) -> Result<Meta> {
    let request = Request::new(Method::HEAD, key).header("x-amz-checksum-mode", "ENABLED");
    let success = client.send(&request).await?;
    head_of(key, success.headers())
}

pub(super) fn head_of(key: &str, headers: &HeaderMap) -> Result<Meta> {
    let size = text(headers, "content-length").and_then(|length| length.parse().ok());
    let size = size.ok_or_else(|| contradiction(key, "it does not say how long the object is"))?;
    Ok(answer::meta(headers, size))
}

pub(super) async fn get(
    client: &Arc<Client>,
    key: &str,
    range: Option<Range<u64>>,
) -> Result<Object> {
    if range.as_ref().is_some_and(|range| range.start >= range.end) {
        return empty(client, key, range).await;
    }
    let request = get_request(key, range.as_ref(), None);
    match client.send(&request).await {
        Ok(success) => open(client, key, range, success),
        // An object without bytes, or a range at its very end.
        Err(failure) if failure.status == Some(StatusCode::RANGE_NOT_SATISFIABLE) => {
            empty(client, key, range).await
        }
        Err(failure) => Err(failure.into()),
    }
}

/// A range with nothing in it, if it lies within the object.
async fn empty(client: &Client, key: &str, range: Option<Range<u64>>) -> Result<Object> {
    let meta = head(client, key).await?;
    if !meta.availability.is_readable() {
        return Err(Error::new(ErrorKind::Cold, key, ""));
    }
    let range = clip(key, range, meta.size)?;
    if !range.is_empty() {
        let detail = "the store refuses a range that it should have";
        return Err(Error::new(ErrorKind::Permanent, key, detail));
    }
    Ok(Object { meta, range, body: stream::empty().boxed() })
}

fn get_request(key: &str, range: Option<&Range<u64>>, etag: Option<&str>) -> Request {
    let mut request = Request::new(Method::GET, key);
    match range {
        Some(range) => {
            let last = range.end.min(END_MAX) - 1;
            request = request.header("range", format!("bytes={}-{last}", range.start));
        }
        None => request = request.header("x-amz-checksum-mode", "ENABLED"),
    }
    if let Some(etag) = etag {
        request = request.header("if-match", etag);
    }
    request
}

fn open(
    client: &Arc<Client>,
    key: &str,
    asked: Option<Range<u64>>,
    success: Success,
) -> Result<Object> {
    let (range, size) = served(key, asked.as_ref(), &success.answer)?;
    let meta = answer::meta(success.headers(), size);
    let whole = range == (0..size);
    let base = text(success.headers(), META_PART_BYTES).and_then(|base| base.parse().ok());
    let check = meta.digest.filter(|_| whole).and_then(|digest| Check::new(digest, base));
    // From here on the reader decides how fast this goes, so it no longer counts as a request:
    // many open objects must not keep the reader's own requests from being sent.
    drop(success.permit);
    let source =
        Source { client: client.clone(), key: key.to_owned(), etag: meta.etag.clone(), size };
    let chunk = client.config.part_bytes.max(1);
    let first_end = match range.end - range.start > 2 * chunk {
        true => range.start + chunk,
        false => range.end,
    };
    let first = Download::new(source.clone(), range.start..first_end, Some(success.answer));
    // One chunk at a time needs no asking; more are fetched ahead as far as there is memory.
    let ahead = client.config.buffer_bytes.min(range.end - first_end).saturating_sub(chunk);
    let memory = client.get_memory.grant(ahead);
    let at_once = 1 + (memory.bytes / chunk) as usize;
    let rest = in_parallel(source, first_end..range.end, chunk, at_once, memory);
    let body = first.into_stream().chain(rest).boxed();
    let body = match check {
        Some(check) => check.watch(client.url.clone(), key.to_owned(), body),
        None => body,
    };
    Ok(Object { meta, range, body })
}

/// Which bytes the answer holds, and how many the object has. Anything but what was asked for is
/// an error.
fn served(key: &str, asked: Option<&Range<u64>>, answer: &Answer) -> Result<(Range<u64>, u64)> {
    let corrupt = |why: &str| Error::new(ErrorKind::Corrupt, key, why);
    let length = text(&answer.headers, "content-length").and_then(|text| text.parse::<u64>().ok());
    let Some(asked) = asked else {
        if answer.status != StatusCode::OK {
            return Err(corrupt("the store sent a part of the object for the whole"));
        }
        let length = length.ok_or_else(|| corrupt("the answer does not say how long it is"))?;
        return Ok((0..length, length));
    };
    let said = text(&answer.headers, "content-range").and_then(parse_content_range);
    let Some((range, size)) = said.filter(|_| answer.status == StatusCode::PARTIAL_CONTENT) else {
        return Err(corrupt("the store ignored the range"));
    };
    let expected = asked.start..asked.end.min(size);
    if range != expected || length.is_some_and(|length| length != range.end - range.start) {
        return Err(corrupt("the store sent another range than asked for"));
    }
    Ok((range, size))
}

/// Reads `bytes 0-9/100`.
pub(super) fn parse_content_range(text: &str) -> Option<(Range<u64>, u64)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, size) = (first.parse().ok()?, last.parse::<u64>().ok()?, size.parse().ok()?);
    (first <= last && last < size).then(|| (first..last + 1, size))
}

/// The rest of a large object: chunks are fetched at the same time and passed on in order.
fn in_parallel(
    source: Source,
    range: Range<u64>,
    chunk: u64,
    at_once: usize,
    memory: Grant,
) -> ByteStream {
    let ranges = stream::unfold(range.start, move |start| async move {
        let end = range.end.min(start.saturating_add(chunk));
        (start < end).then_some((start..end, end))
    });
    ranges
        .map(move |range| {
            let download = Download::new(source.clone(), range, None);
            Task::spawn(async move { download.into_stream().try_collect::<Vec<Bytes>>().await })
        })
        .buffered(at_once)
        .map_ok(move |chunks| {
            // Given back with the stream.
            let _held = &memory;
            stream::iter(chunks.into_iter().map(Ok))
        })
        .try_flatten()
        .boxed()
}

/// A task that ends when nobody waits for it any more.
struct Task<T>(tokio::task::JoinHandle<Result<T>>);

impl<T: Send + 'static> Task<T> {
    fn spawn(work: impl Future<Output = Result<T>> + Send + 'static) -> Task<T> {
        Task(tokio::spawn(work))
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<T>> {
        std::pin::Pin::new(&mut self.0).poll(context).map(|joined| {
            let ended = |_| Error::new(ErrorKind::Transient, "", "the runtime is shutting down");
            joined.map_err(ended).and_then(|result| result)
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The object that is read: always the same one, by its etag.
#[derive(Clone)]
struct Source {
    client: Arc<Client>,
    key: String,
    etag: Option<String>,
    size: u64,
}

/// A range on its way here, asked for again from where it broke off.
struct Download {
    source: Source,
    range: Range<u64>,
    answer: Option<Answer>,
    failures: u32,
}

impl Download {
    fn new(source: Source, range: Range<u64>, answer: Option<Answer>) -> Download {
        Download { source, range, answer, failures: 0 }
    }

    fn into_stream(self) -> ByteStream {
        stream::try_unfold(self, |mut download| async move {
            let chunk = download.next().await;
            let chunk = chunk.map_err(|error| error.in_store(&download.source.client.url))?;
            Ok(chunk.map(|chunk| (chunk, download)))
        })
        .boxed()
    }

    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let left = self.range.end - self.range.start;
            if left == 0 {
                return Ok(None);
            }
            let mut answer = match self.answer.take() {
                Some(answer) => answer,
                None => self.ask_again().await?,
            };
            let why = match answer.next().await {
                Ok(Some(mut chunk)) => {
                    // The first chunk of a large object is cut off where the parallel ones begin.
                    chunk.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    self.range.start += chunk.len() as u64;
                    self.failures = 0;
                    self.answer = Some(answer);
                    return Ok(Some(chunk));
                }
                Ok(None) => "the answer ended too early".to_owned(),
                Err(why) => why,
            };
            self.failures += 1;
            let (key, start) = (&self.source.key, self.range.start);
            if self.failures >= self.source.client.config.tries_max {
                let detail = format!("broke off at byte {start}, again and again: {why}");
                return Err(Error::new(ErrorKind::Transient, key, detail));
            }
            tracing::debug!(key, start, "asking again for the rest: {why}");
            self.source.client.pause(self.failures).await;
        }
    }

    async fn ask_again(&mut self) -> Result<Answer> {
        let source = &self.source;
        let request = get_request(&source.key, Some(&self.range), source.etag.as_deref());
        let success = match source.client.send(&request).await {
            Ok(success) => success,
            Err(failure) if failure.status == Some(StatusCode::PRECONDITION_FAILED) => {
                let detail = "the object was replaced while it was read";
                return Err(Error::new(ErrorKind::PreconditionFailed, &source.key, detail));
            }
            Err(failure) => return Err(failure.into()),
        };
        let (_, size) = served(&source.key, Some(&self.range), &success.answer)?;
        // Not every store minds the condition: it must be the same object all the same.
        if size != source.size || text(success.headers(), "etag") != source.etag.as_deref() {
            let detail = "the object was replaced while it was read";
            return Err(Error::new(ErrorKind::PreconditionFailed, &source.key, detail));
        }
        Ok(success.answer)
    }
}

/// The digest that a whole object must turn out to have.
enum Check {
    Whole { hasher: Sha256Hasher, expected: Digest },
    Parts { hasher: PartsHasher, expected: Digest },
}

impl Check {
    fn new(expected: Digest, base: Option<u64>) -> Option<Check> {
        match (expected, base) {
            (Digest::Sha256(_), _) => Some(Check::Whole { hasher: Sha256Hasher::new(), expected }),
            (Digest::Sha256OfParts { .. }, Some(base)) if base > 0 => {
                Some(Check::Parts { hasher: PartsHasher::new(base), expected })
            }
            // Somebody else's upload: how it was cut into parts is not known.
            _ => None,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Check::Whole { hasher, .. } => hasher.update(bytes),
            Check::Parts { hasher, .. } => hasher.update(bytes),
        }
    }

    fn holds(self) -> bool {
        match self {
            Check::Whole { hasher, expected } => Digest::Sha256(hasher.finish()) == expected,
            Check::Parts { hasher, expected } => hasher.finish() == expected,
        }
    }

    fn watch(self, url: String, key: String, body: ByteStream) -> ByteStream {
        stream::try_unfold(Some((self, body)), move |state| {
            let (url, key) = (url.clone(), key.clone());
            async move {
                let Some((mut check, mut body)) = state else { return Ok(None) };
                if let Some(chunk) = body.try_next().await? {
                    check.update(&chunk);
                    return Ok(Some((chunk, Some((check, body)))));
                }
                if check.holds() {
                    return Ok(None);
                }
                let detail = "the bytes do not have the SHA-256 that the store keeps";
                Err(Error::new(ErrorKind::Corrupt, key, detail).in_store(&url))
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_that_make_sense() {
        assert_eq!(parse_content_range("bytes 0-9/100"), Some((0..10, 100)));
        for bad in ["", "bytes */100", "bytes 5-4/100", "bytes 0-100/100", "0-9/100", "bytes 0-9/*"]
        {
            assert_eq!(parse_content_range(bad), None, "{bad}");
        }
    }
}
