//! A store that dies, for proving that a writer killed at any point leaves nothing half done; and
//! one that misreads, for proving that a reader tells damage from a bad moment.

use crate::body::{Body, Object};
use crate::error::{Error, ErrorKind, Result};
use crate::meta::{Availability, Capabilities, ListOptions, Meta, Page, Space, Thaw, Unfinished};
use crate::store::{PutOptions, SmallFile, Store, list_all};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many changes were made through a [`FaultStore`].
#[derive(Debug, Clone, Default)]
pub struct OperationCount(Arc<AtomicU64>);

impl OperationCount {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Passes on the first `n` changes to another store, then fails everything, reads included, as if
/// the process had been killed there.
///
/// Each file of a batch and each object of a `delete_all`, `forget` or `link_all` counts as one
/// change, so that they are cut in the middle too.
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn Store>,
    stop_after: u64,
    count: OperationCount,
    misreads: Mutex<VecDeque<Misread>>,
}

/// How one `get` goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misread {
    /// There is no answer.
    Fails,
    /// The connection is lost after half of the body.
    Breaks,
    /// Half of the body comes, as if it were all.
    Ends,
    /// The first byte is another one.
    Flips,
}

impl FaultStore {
    /// A store that dies when the change after the `n`-th is asked for.
    pub fn stopping_after(inner: Arc<dyn Store>, n: u64) -> FaultStore {
        let (count, misreads) = (OperationCount::default(), Mutex::default());
        FaultStore { inner, stop_after: n, count, misreads }
    }

    /// A store that never dies, to learn how many changes a piece of work makes.
    pub fn counting(inner: Arc<dyn Store>) -> FaultStore {
        FaultStore::stopping_after(inner, u64::MAX)
    }

    /// A store whose first gets go wrong, in this order, and that is all right afterwards.
    pub fn misreading(
        inner: Arc<dyn Store>,
        misreads: impl IntoIterator<Item = Misread>,
    ) -> FaultStore {
        let store = FaultStore::counting(inner);
        store.misread_next(misreads);
        store
    }

    /// Has the next gets go wrong as well.
    pub fn misread_next(&self, misreads: impl IntoIterator<Item = Misread>) {
        self.misreads.lock().unwrap_or_else(PoisonError::into_inner).extend(misreads);
    }

    /// How many changes were asked for so far, those that failed included.
    pub fn operations(&self) -> OperationCount {
        self.count.clone()
    }

    fn alive(&self) -> Result<()> {
        if self.count.get() > self.stop_after { Err(self.dead()) } else { Ok(()) }
    }

    fn change(&self) -> Result<()> {
        let number = self.count.0.fetch_add(1, Ordering::SeqCst) + 1;
        if number > self.stop_after { Err(self.dead()) } else { Ok(()) }
    }

    /// The files of a batch that are put before death comes.
    fn survivors(&self, files: Vec<SmallFile>) -> (Vec<SmallFile>, Result<()>) {
        let mut survived = Vec::new();
        for file in files {
            if let Err(death) = self.change() {
                return (survived, Err(death));
            }
            survived.push(file);
        }
        (survived, Ok(()))
    }

    async fn keys_below(&self, prefix: &str) -> Result<Vec<String>> {
        list_all(self.inner.clone(), prefix, true).map_ok(|entry| entry.key).try_collect().await
    }

    fn dead(&self) -> Error {
        let detail = format!("stopped after {} changes", self.stop_after);
        Error::new(ErrorKind::Permanent, "", detail).in_store(self.url())
    }
}

impl Misread {
    async fn of(self, object: Object, key: &str) -> Result<Object> {
        let lost = || Error::new(ErrorKind::Transient, key, "the connection was lost");
        let (meta, range) = (object.meta.clone(), object.range.clone());
        let mut bytes = object.bytes(usize::MAX).await?.to_vec();
        let mut chunks = Vec::new();
        match self {
            Misread::Fails => return Err(lost()),
            Misread::Breaks | Misread::Ends => bytes.truncate(bytes.len() / 2),
            Misread::Flips => bytes.iter_mut().take(1).for_each(|byte| *byte ^= 1),
        }
        chunks.push(Ok(Bytes::from(bytes)));
        if self == Misread::Breaks {
            chunks.push(Err(lost()));
        }
        Ok(Object { meta, range, body: stream::iter(chunks).boxed() })
    }
}

#[async_trait]
impl Store for FaultStore {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn at_once(&self) -> usize {
        self.inner.at_once()
    }

    async fn put(&self, key: &str, body: Body, options: &PutOptions) -> Result<Meta> {
        self.change()?;
        self.inner.put(key, body, options).await
    }

    async fn put_batch(&self, files: Vec<SmallFile>) -> Result<()> {
        let (survived, death) = self.survivors(files);
        self.inner.put_batch(survived).await.and(death)
    }

    async fn put_batch_lazily(&self, files: Vec<SmallFile>) -> Result<()> {
        let (survived, death) = self.survivors(files);
        self.inner.put_batch_lazily(survived).await.and(death)
    }

    async fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Object> {
        self.alive()?;
        let next = self.misreads.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match next {
            None => self.inner.get(key, range).await,
            Some(misread) => misread.of(self.inner.get(key, range).await?, key).await,
        }
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.alive()?;
        self.inner.head(key).await
    }

    async fn list(&self, prefix: &str, options: &ListOptions) -> Result<Page> {
        self.alive()?;
        self.inner.list(prefix, options).await
    }

    async fn list_after(&self, prefix: &str, after: &str) -> Result<Page> {
        self.alive()?;
        self.inner.list_after(prefix, after).await
    }

    async fn copy(&self, from: &str, to: &str) -> Result<Meta> {
        self.change()?;
        self.inner.copy(from, to).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.change()?;
        self.inner.delete(key).await
    }

    async fn delete_all(&self, prefix: &str) -> Result<u64> {
        self.alive()?;
        let keys = self.keys_below(prefix).await?;
        for key in &keys {
            self.change()?;
            self.inner.delete(key).await?;
        }
        // What is left are empty directories, where the store has such things.
        self.change()?;
        self.inner.delete_all(prefix).await?;
        Ok(keys.len() as u64)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.change()?;
        self.inner.rename(from, to).await
    }

    async fn link_all(&self, from: &str, to: &str) -> Result<u64> {
        self.alive()?;
        let keys = self.keys_below(from).await?;
        let mut linked = 0;
        for key in &keys {
            self.change()?;
            let end = key.strip_prefix(from).unwrap_or_default();
            linked += self.inner.link_all(key, &format!("{to}{end}")).await?;
        }
        Ok(linked)
    }

    async fn exchange(&self, one: &str, other: &str) -> Result<()> {
        self.change()?;
        self.inner.exchange(one, other).await
    }

    async fn forget(&self, prefix: &str) -> Result<()> {
        self.alive()?;
        let keys = self.keys_below(prefix).await?;
        for key in keys.iter().map(String::as_str).chain([prefix]) {
            self.change()?;
            self.inner.forget(key).await?;
        }
        Ok(())
    }

    async fn prune(&self, prefix: &str) -> Result<()> {
        self.change()?;
        self.inner.prune(prefix).await
    }

    async fn thaw(&self, key: &str, thaw: &Thaw) -> Result<Availability> {
        self.change()?;
        self.inner.thaw(key, thaw).await
    }

    async fn free_space(&self) -> Result<Option<Space>> {
        self.alive()?;
        self.inner.free_space().await
    }

    async fn unfinished(&self, prefix: &str) -> Result<Vec<Unfinished>> {
        self.alive()?;
        self.inner.unfinished(prefix).await
    }

    async fn versions(&self, prefix: &str) -> Result<Option<u64>> {
        self.alive()?;
        self.inner.versions(prefix).await
    }

    async fn remove_versions(&self, prefix: &str) -> Result<u64> {
        self.change()?;
        self.inner.remove_versions(prefix).await
    }

    async fn abort(&self, unfinished: &Unfinished) -> Result<()> {
        self.change()?;
        self.inner.abort(unfinished).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[tokio::test]
    async fn it_dies_in_the_middle_of_a_batch_and_stays_dead() {
        let inner = Arc::new(MemoryStore::new());
        let store = FaultStore::stopping_after(inner.clone(), 3);
        store.put("first", "1".into(), &PutOptions::default()).await.unwrap();
        let file = |name: &str| SmallFile::new(name, "x");
        let batch = vec![file("a"), file("b"), file("c"), file("d")];
        store.put_batch(batch).await.unwrap_err();
        assert_eq!(inner.snapshot().keys().collect::<Vec<_>>(), ["a", "b", "first"]);
        store.head("first").await.unwrap_err();
        store.delete("first").await.unwrap_err();
        assert!(inner.snapshot().contains_key("first"));
    }
}
