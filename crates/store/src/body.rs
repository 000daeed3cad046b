//! Bytes on their way into and out of a store.

use crate::error::{Error, ErrorKind, Result};
use crate::meta::Meta;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use std::fmt;
use std::ops::Range;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Content as it comes out of a store. The stream ends with an error, never silently, when the
/// content turns out shorter than it should be or does not match the store's digest.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// How much of a reader is read at once.
const READ_BYTES: usize = 256 * 1024;

/// Content to be put into a store: a stream, and its length where it is known.
pub struct Body {
    length: Option<u64>,
    stream: ByteStream,
}

impl Body {
    /// Content that is already in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        let length = Some(bytes.len() as u64);
        let stream = stream::iter((!bytes.is_empty()).then_some(Ok(bytes))).boxed();
        Body { length, stream }
    }

    /// A stream whose length may be known. A stream that is shorter or longer than announced
    /// fails the put, and leaves nothing behind.
    pub fn from_stream<S, E>(stream: S, length: Option<u64>) -> Body
    where
        S: Stream<Item = std::result::Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stream = stream.map_err(|error| {
            let source = error.into();
            Error::new(ErrorKind::Body, "", source.to_string()).with_source(source)
        });
        Body { length, stream: stream.boxed() }
    }

    /// A reader, such as a file or a pipe, read to its end.
    pub fn from_reader(
        reader: impl AsyncRead + Send + Unpin + 'static,
        length: Option<u64>,
    ) -> Body {
        let chunks = stream::try_unfold(reader, |mut reader| async move {
            let mut chunk = bytes::BytesMut::with_capacity(READ_BYTES);
            let count = reader.read_buf(&mut chunk).await?;
            Ok::<_, std::io::Error>((count > 0).then(|| (chunk.freeze(), reader)))
        });
        Body::from_stream(chunks, length)
    }

    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The stream, checked against the announced length: it fails instead of ending too early,
    /// and before passing on a byte too many. Implementations of `Store` read this.
    pub fn into_stream(self) -> ByteStream {
        let Some(length) = self.length else { return self.stream };
        exactly(self.stream, length, ErrorKind::Body)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("length", &self.length).finish_non_exhaustive()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::from_bytes(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::from_bytes(bytes)
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::from_bytes(text)
    }
}

/// Passes on a stream of exactly `length` bytes; anything else is an error of this kind.
pub(crate) fn exactly(stream: ByteStream, length: u64, kind: ErrorKind) -> ByteStream {
    let state = Some((stream, 0_u64));
    stream::try_unfold(state, move |state| async move {
        let Some((mut stream, before)) = state else { return Ok(None) };
        match stream.try_next().await? {
            Some(chunk) => {
                let seen = before + chunk.len() as u64;
                if seen > length {
                    let detail = format!("more than the {length} bytes announced");
                    return Err(Error::new(kind, "", detail));
                }
                Ok(Some((chunk, Some((stream, seen)))))
            }
            None if before < length => {
                let detail = format!("ended after {before} of {length} bytes");
                Err(Error::new(kind, "", detail))
            }
            None => Ok(None),
        }
    })
    .boxed()
}

/// What a get returns: what the store knows of the object, and the bytes asked for.
pub struct Object {
    pub meta: Meta,
    /// Which bytes of the object the body holds.
    pub range: Range<u64>,
    pub body: ByteStream,
}

impl Object {
    /// The whole body in memory, or an error when it has more than `limit` bytes.
    pub async fn bytes(self, limit: usize) -> Result<Bytes> {
        let length = self.range.end.saturating_sub(self.range.start);
        if length > limit as u64 {
            let detail = format!("{length} bytes, where at most {limit} are expected");
            return Err(Error::new(ErrorKind::Permanent, "", detail));
        }
        let mut body = self.body;
        let mut whole = bytes::BytesMut::with_capacity(length as usize);
        while let Some(chunk) = body.try_next().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// The body as the content of a put elsewhere.
    pub fn into_body(self) -> Body {
        let length = self.range.end.saturating_sub(self.range.start);
        Body::from_stream(self.body, Some(length))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Object");
        shown.field("meta", &self.meta).field("range", &self.range).finish_non_exhaustive()
    }
}

/// The part of an object of `size` bytes that a request for `range` gets: the end is cut at the
/// object's end, a start after it is an error.
pub(crate) fn clip(key: &str, range: Option<Range<u64>>, size: u64) -> Result<Range<u64>> {
    let Some(range) = range else { return Ok(0..size) };
    if range.start > size || range.start > range.end {
        let detail = format!("{}..{} of {size} bytes", range.start, range.end);
        return Err(Error::new(ErrorKind::InvalidRange, key, detail));
    }
    Ok(range.start..range.end.min(size))
}
