//! A store in memory, for tests: all capabilities, and cold storage that thaws on command.

use crate::body::{Body, Object, clip};
use crate::checksum::{Digest, Sha256Digest};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{check_existing_key, check_key, check_prefix, is_below, join};
use crate::meta::{
    Availability, Capabilities, Entry, Kind, ListOptions, Meta, Page, Space, StorageClass, Thaw,
    Unfinished,
};
use crate::store::{Condition, PutOptions, SmallFile, Store};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Bodies come out in chunks of this size, so that readers meet more than one.
const CHUNK_BYTES: usize = 64 * 1024;

/// Keeps bytes in memory.
#[derive(Debug)]
pub struct MemoryStore {
    capabilities: Capabilities,
    capacity: u64,
    objects: Mutex<Objects>,
}

#[derive(Debug, Default)]
struct Objects {
    by_key: BTreeMap<String, Kept>,
    puts: u64,
}

impl Objects {
    fn at_or_below(&self, prefix: &str) -> Vec<(String, Kept)> {
        let kept = self.by_key.iter();
        let kept = kept.filter(|(key, _)| *key == prefix || is_below(key, prefix));
        kept.map(|(key, kept)| (key.clone(), kept.clone())).collect()
    }
}

#[derive(Debug, Clone)]
struct Kept {
    content: Bytes,
    meta: Meta,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// A store that can do everything.
    pub fn new() -> MemoryStore {
        MemoryStore {
            capabilities: Capabilities {
                rename: true,
                exchange: true,
                put_if_absent: true,
                put_if_match: true,
                digests: true,
                digests_of_large: true,
                storage_classes: true,
                free_space: true,
                batch: true,
            },
            capacity: u64::MAX,
            objects: Mutex::default(),
        }
    }

    /// A store that can do what an object store can: everything but rename and free space.
    pub fn like_s3() -> MemoryStore {
        let capabilities = MemoryStore::new().capabilities;
        MemoryStore::new().with_capabilities(Capabilities {
            rename: false,
            exchange: false,
            free_space: false,
            batch: false,
            ..capabilities
        })
    }

    pub fn with_capabilities(mut self, capabilities: Capabilities) -> MemoryStore {
        self.capabilities = capabilities;
        self
    }

    /// Lets the store be full after so many bytes.
    pub fn with_capacity(mut self, bytes: u64) -> MemoryStore {
        self.capacity = bytes;
        self
    }

    /// Finishes every thaw that was asked for.
    pub fn finish_thaws(&self) {
        for kept in self.lock().by_key.values_mut() {
            if kept.meta.availability == Availability::Thawing {
                kept.meta.availability = Availability::Thawed { until: None };
            }
        }
    }

    /// Changes a byte behind the store's back, as failing hardware does. Returns whether there
    /// was such a byte.
    pub fn corrupt(&self, key: &str, offset: usize) -> bool {
        let mut objects = self.lock();
        let Some(kept) = objects.by_key.get_mut(key) else { return false };
        let mut content = BytesMut::from(&kept.content[..]);
        let Some(byte) = content.get_mut(offset) else { return false };
        *byte ^= 0xff;
        kept.content = content.freeze();
        true
    }

    /// Every key and content, for comparing before and after.
    pub fn snapshot(&self) -> BTreeMap<String, Bytes> {
        let objects = self.lock();
        objects.by_key.iter().map(|(key, kept)| (key.clone(), kept.content.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        // Every change is one insert or remove, so a panic elsewhere cannot have left it halfway.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, kind: ErrorKind, key: &str, detail: impl Into<String>) -> Error {
        Error::new(kind, key, detail).in_store(self.url())
    }

    fn not_found(&self, key: &str) -> Error {
        self.error(ErrorKind::NotFound, key, "")
    }

    fn check_condition(&self, objects: &Objects, key: &str, condition: &Condition) -> Result<()> {
        let there = objects.by_key.get(key);
        let (can, holds) = match condition {
            Condition::Always => (true, true),
            Condition::IfAbsent => (self.capabilities.put_if_absent, there.is_none()),
            Condition::IfMatch(etag) => (
                self.capabilities.put_if_match,
                there.is_some_and(|kept| kept.meta.etag.as_ref() == Some(etag)),
            ),
        };
        match (can, holds) {
            (false, _) => Err(self.error(ErrorKind::Unsupported, key, "no conditional put")),
            (_, false) => Err(self.error(ErrorKind::PreconditionFailed, key, "")),
            _ => Ok(()),
        }
    }

    fn insert(
        &self,
        objects: &mut Objects,
        key: &str,
        content: Bytes,
        class: Option<StorageClass>,
    ) -> Result<Meta> {
        let used: u64 = objects.by_key.values().map(|kept| kept.meta.size).sum();
        if used.saturating_add(content.len() as u64) > self.capacity {
            return Err(self.error(ErrorKind::NoSpace, key, "the store is full"));
        }
        objects.puts += 1;
        let cold = class.as_ref().is_some_and(StorageClass::is_cold);
        let meta = Meta {
            size: content.len() as u64,
            modified: Some(SystemTime::now()),
            etag: Some(format!("\"{}\"", objects.puts)),
            digest: self.capabilities.digests.then(|| Digest::Sha256(Sha256Digest::of(&content))),
            vouched: self.capabilities.digests,
            storage_class: class,
            availability: if cold { Availability::Cold } else { Availability::Ready },
        };
        objects.by_key.insert(key.to_owned(), Kept { content, meta: meta.clone() });
        Ok(meta)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn url(&self) -> &str {
        "memory:"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn put(&self, key: &str, body: Body, options: &PutOptions) -> Result<Meta> {
        check_key(key).map_err(|error| error.in_store(self.url()))?;
        self.check_condition(&self.lock(), key, &options.condition)?;
        if options.storage_class.is_some() && !self.capabilities.storage_classes {
            return Err(self.error(ErrorKind::Unsupported, key, "no storage classes"));
        }
        let mut content = BytesMut::new();
        let mut body = body.into_stream();
        while let Some(chunk) = body.try_next().await.map_err(|e| e.in_store(self.url()))? {
            content.extend_from_slice(&chunk);
        }
        let content = content.freeze();
        if options.sha256.is_some_and(|expected| expected != Sha256Digest::of(&content)) {
            return Err(self.error(ErrorKind::Corrupt, key, "the content has another SHA-256"));
        }
        let mut objects = self.lock();
        self.check_condition(&objects, key, &options.condition)?;
        self.insert(&mut objects, key, content, options.storage_class.clone())
    }

    async fn put_batch(&self, files: Vec<SmallFile>) -> Result<()> {
        let mut objects = self.lock();
        for file in files {
            check_key(&file.key).map_err(|error| error.in_store(self.url()))?;
            self.insert(&mut objects, &file.key, file.content, file.storage_class)?;
        }
        Ok(())
    }

    async fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Object> {
        check_existing_key(key).map_err(|error| error.in_store(self.url()))?;
        let kept = self.lock().by_key.get(key).cloned().ok_or_else(|| self.not_found(key))?;
        if !kept.meta.availability.is_readable() {
            return Err(self.error(ErrorKind::Cold, key, ""));
        }
        let whole = range.is_none();
        let range = clip(key, range, kept.meta.size).map_err(|e| e.in_store(self.url()))?;
        let content = kept.content.slice(range.start as usize..range.end as usize);
        let expected = kept.meta.digest.filter(|_| whole);
        let intact = expected.is_none_or(|d| d.whole() == Some(Sha256Digest::of(&content)));
        let end = (!intact).then(|| Err(self.error(ErrorKind::Corrupt, key, "wrong SHA-256")));
        let starts = (0..content.len()).step_by(CHUNK_BYTES);
        let chunks = starts
            .map(move |start| Ok(content.slice(start..content.len().min(start + CHUNK_BYTES))));
        let body = stream::iter(chunks.chain(end)).boxed();
        Ok(Object { meta: kept.meta, range, body })
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        check_existing_key(key).map_err(|error| error.in_store(self.url()))?;
        let objects = self.lock();
        objects.by_key.get(key).map(|kept| kept.meta.clone()).ok_or_else(|| self.not_found(key))
    }

    async fn list(&self, prefix: &str, options: &ListOptions) -> Result<Page> {
        check_prefix(prefix).map_err(|error| error.in_store(self.url()))?;
        let objects = self.lock();
        let mut entries: Vec<Entry> = Vec::new();
        let below = objects.by_key.iter().filter(|(key, _)| is_below(key, prefix));
        let after = options.after.as_deref().unwrap_or("");
        for (key, kept) in below {
            let rest = if prefix.is_empty() { key } else { &key[prefix.len() + 1..] };
            let (key, kind) = match rest.split_once('/') {
                Some((name, _)) if !options.recursive => (join(prefix, name), Kind::Directory),
                _ => (key.clone(), Kind::File),
            };
            let seen = format!("{key}{}", if kind == Kind::Directory { "/" } else { "" });
            let repeated = entries.last().is_some_and(|last| last.key == key);
            if seen.as_str() <= after || repeated {
                continue;
            }
            if entries.len() == options.limit.max(1) {
                let last = entries.last().map(|last| match last.kind {
                    Kind::Directory => format!("{}/", last.key),
                    _ => last.key.clone(),
                });
                return Ok(Page { entries, next: last });
            }
            let (size, modified) = match kind {
                Kind::File => (kept.meta.size, kept.meta.modified),
                _ => (0, None),
            };
            entries.push(Entry { key, kind, size, modified });
        }
        Ok(Page { entries, next: None })
    }

    async fn list_after(&self, prefix: &str, after: &str) -> Result<Page> {
        if self.capabilities.rename {
            return Err(self.error(ErrorKind::Unsupported, prefix, "it lists directories"));
        }
        // Where the next page starts is the last key of the one before.
        let after = Some(after.to_owned());
        self.list(prefix, &ListOptions { after, ..ListOptions::default() }).await
    }

    async fn copy(&self, from: &str, to: &str) -> Result<Meta> {
        check_key(to).map_err(|error| error.in_store(self.url()))?;
        let mut objects = self.lock();
        let kept = objects.by_key.get(from).cloned().ok_or_else(|| self.not_found(from))?;
        if !kept.meta.availability.is_readable() {
            return Err(self.error(ErrorKind::Cold, from, ""));
        }
        self.insert(&mut objects, to, kept.content, kept.meta.storage_class)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        check_existing_key(key).map_err(|error| error.in_store(self.url()))?;
        self.lock().by_key.remove(key);
        Ok(())
    }

    async fn delete_all(&self, prefix: &str) -> Result<u64> {
        check_prefix(prefix).map_err(|error| error.in_store(self.url()))?;
        let mut objects = self.lock();
        let before = objects.by_key.len();
        objects.by_key.retain(|key, _| !is_below(key, prefix));
        Ok((before - objects.by_key.len()) as u64)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_existing_key(from).and(check_key(to)).map_err(|error| error.in_store(self.url()))?;
        if !self.capabilities.rename {
            return Err(self.error(ErrorKind::Unsupported, from, "no rename"));
        }
        let mut objects = self.lock();
        let taken = |key: &String| key == to || is_below(key, to);
        if objects.by_key.keys().any(taken) {
            return Err(self.error(ErrorKind::PreconditionFailed, to, "there is something"));
        }
        let moves = objects.at_or_below(from);
        if moves.is_empty() {
            return Err(self.not_found(from));
        }
        for (key, kept) in moves {
            objects.by_key.remove(&key);
            objects.by_key.insert(format!("{to}{}", &key[from.len()..]), kept);
        }
        Ok(())
    }

    async fn link_all(&self, from: &str, to: &str) -> Result<u64> {
        check_existing_key(from).and(check_key(to)).map_err(|error| error.in_store(self.url()))?;
        if !self.capabilities.exchange {
            return Err(self.error(ErrorKind::Unsupported, from, "no second keys"));
        }
        let mut objects = self.lock();
        let before = objects.by_key.len();
        for (key, kept) in objects.at_or_below(from) {
            objects.by_key.entry(format!("{to}{}", &key[from.len()..])).or_insert(kept);
        }
        Ok((objects.by_key.len() - before) as u64)
    }

    async fn exchange(&self, one: &str, other: &str) -> Result<()> {
        check_existing_key(one)
            .and(check_existing_key(other))
            .map_err(|error| error.in_store(self.url()))?;
        if !self.capabilities.exchange {
            return Err(self.error(ErrorKind::Unsupported, one, "no exchange"));
        }
        let mut objects = self.lock();
        let (ones, others) = (objects.at_or_below(one), objects.at_or_below(other));
        for (kept, missing) in [(&ones, one), (&others, other)] {
            if kept.is_empty() {
                return Err(self.not_found(missing));
            }
        }
        for (key, _) in ones.iter().chain(&others) {
            objects.by_key.remove(key);
        }
        for (from, to, kept) in [(one, other, ones), (other, one, others)] {
            let moved = kept.into_iter();
            let moved = moved.map(|(key, kept)| (format!("{to}{}", &key[from.len()..]), kept));
            objects.by_key.extend(moved);
        }
        Ok(())
    }

    async fn thaw(&self, key: &str, _: &Thaw) -> Result<Availability> {
        let mut objects = self.lock();
        let kept = objects.by_key.get_mut(key).ok_or_else(|| self.not_found(key))?;
        if kept.meta.availability == Availability::Cold {
            kept.meta.availability = Availability::Thawing;
        }
        Ok(kept.meta.availability)
    }

    async fn free_space(&self) -> Result<Option<Space>> {
        if !self.capabilities.free_space {
            return Ok(None);
        }
        let used: u64 = self.lock().by_key.values().map(|kept| kept.meta.size).sum();
        Ok(Some(Space { total: self.capacity, available: self.capacity.saturating_sub(used) }))
    }

    async fn unfinished(&self, _: &str) -> Result<Vec<Unfinished>> {
        Ok(Vec::new())
    }

    async fn abort(&self, _: &Unfinished) -> Result<()> {
        Ok(())
    }
}
