//! Gets inventories and small files out of a store.

use crate::Limits;
use crate::error::{Error, Result};
use crate::inventory::{Parsed, parse};
use bytes::Bytes;
use digest::{Algorithms, Digests, Hasher};
use futures_util::TryStreamExt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::SystemTime;
use store::{ErrorKind, Meta, Store};
use tokio::sync::mpsc;

/// So many chunks wait between the store and the parser.
const CHUNKS_WAITING: usize = 4;

/// An inventory out of a store.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) parsed: Parsed,
    /// The digests of the file, of the algorithms asked for.
    pub(crate) digests: Digests,
    pub(crate) meta: Meta,
}

/// Reads an inventory as it arrives; `None` if there is none. `place` is its name in findings.
pub(crate) async fn inventory(
    store: &Arc<dyn Store>,
    key: &str,
    algorithms: Algorithms,
    limits: &Limits,
    place: &str,
) -> Result<Option<Fetched>> {
    let Some(object) = found(store.get(key, None).await)? else { return Ok(None) };
    let (meta, mut body) = (object.meta, object.body);
    let (sender, chunks) = mpsc::channel(CHUNKS_WAITING);
    let hasher = Hasher::new(algorithms);
    let (limits, place) = (*limits, place.to_owned());
    // Parsing is work for a processor; the threads that wait for the store are not for that.
    let parsing = tokio::task::spawn_blocking(move || {
        let mut reader = ChunkReader { chunks, chunk: Bytes::new(), hasher };
        let parsed = parse(&mut reader, &limits, &place)?;
        // What follows a fault still counts for the digest.
        let rest = (&mut reader).take(limits.inventory_bytes_max);
        let drained = io::copy(&mut { rest }, &mut io::sink());
        drained.map_err(|source| Error::Io { place, source })?;
        Ok::<_, Error>((parsed, reader.hasher.finish()))
    });
    let failure = loop {
        match body.try_next().await {
            Ok(Some(chunk)) => {
                // The parser has given up; its own result says why.
                if sender.send(Ok(chunk)).await.is_err() {
                    break None;
                }
            }
            Ok(None) => break None,
            Err(error) => {
                let stop = io::Error::other("the store failed");
                sender.send(Err(stop)).await.ok();
                break Some(error);
            }
        }
    };
    drop(sender);
    let parsed =
        parsing.await.map_err(|error| Error::Io { place: key.to_owned(), source: error.into() })?;
    match failure {
        Some(error) => Err(error.into()),
        None => {
            let (parsed, digests) = parsed?;
            Ok(Some(Fetched { parsed, digests, meta }))
        }
    }
}

/// The chunks of a body as a reader that takes digests on the way.
struct ChunkReader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    chunk: Bytes,
    hasher: Hasher,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.chunk = chunk?,
                None => return Ok(0),
            }
            self.hasher.update(&self.chunk);
        }
        let count = buffer.len().min(self.chunk.len());
        buffer[..count].copy_from_slice(&self.chunk.split_to(count));
        Ok(count)
    }
}

/// The digests of a file without keeping it; `None` if there is none.
pub(crate) async fn digests(
    store: &Arc<dyn Store>,
    key: &str,
    algorithms: Algorithms,
) -> Result<Option<(Digests, u64)>> {
    let Some(object) = found(store.get(key, None).await)? else { return Ok(None) };
    let mut body = object.body;
    let mut hasher = Hasher::new(algorithms);
    let mut length = 0;
    while let Some(chunk) = body.try_next().await? {
        length += chunk.len() as u64;
        hasher.update(&chunk);
    }
    Ok(Some((hasher.finish(), length)))
}

/// A small file, whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Small {
    Whole(Bytes),
    TooLarge,
    Missing,
}

/// Reads a file that has no business being large.
pub(crate) async fn small(store: &Arc<dyn Store>, key: &str, limits: &Limits) -> Result<Small> {
    small_and_age(store, key, limits).await.map(|(small, _)| small)
}

/// The same, and when it was last written, as the store tells.
pub(crate) async fn small_and_age(
    store: &Arc<dyn Store>,
    key: &str,
    limits: &Limits,
) -> Result<(Small, Option<SystemTime>)> {
    let object = found(store.get(key, None).await)?;
    let Some(object) = object else { return Ok((Small::Missing, None)) };
    let modified = object.meta.modified;
    if object.meta.size > limits.small_file_bytes_max as u64 {
        return Ok((Small::TooLarge, modified));
    }
    Ok((Small::Whole(object.bytes(limits.small_file_bytes_max).await?), modified))
}

/// Turns "not found" into `None`.
pub(crate) fn found<T>(result: store::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        // A directory of that name, say: nothing that could be read as a file.
        Err(error) if error.kind() == ErrorKind::NotPlain => Ok(None),
        Err(error) => Err(error.into()),
    }
}
