//! The trait: what every place that keeps bytes can do.

use crate::body::{Body, Object};
use crate::checksum::Sha256Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::{
    Availability, Capabilities, Entry, ListOptions, Meta, Page, Space, StorageClass, Thaw,
    Unfinished,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// When a put may take place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Condition {
    /// Always; what was there is replaced.
    #[default]
    Always,
    /// Only if there is nothing with this key.
    IfAbsent,
    /// Only if the object there still has this etag.
    IfMatch(String),
}

/// How to put.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutOptions {
    pub condition: Condition,
    /// The digest the content must have; with another one the put fails and leaves nothing.
    pub sha256: Option<Sha256Digest>,
    /// How to keep it; `None` for the store's default. Stores without classes refuse any.
    pub storage_class: Option<StorageClass>,
    /// Take up an unfinished put of the same key where there is one, and leave this one to be
    /// taken up when it fails. Parts that are already there are compared by digest, not sent.
    pub resume: bool,
}

impl PutOptions {
    pub fn if_absent() -> PutOptions {
        PutOptions { condition: Condition::IfAbsent, ..PutOptions::default() }
    }
}

/// A file of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFile {
    pub key: String,
    pub content: Bytes,
    /// How to keep it; `None` for the store's default. Stores without classes do not look at it.
    pub storage_class: Option<StorageClass>,
}

impl SmallFile {
    /// A file that is kept as the store keeps things by default.
    pub fn new(key: impl Into<String>, content: impl Into<Bytes>) -> SmallFile {
        SmallFile { key: key.into(), content: content.into(), storage_class: None }
    }
}

/// A place that keeps bytes under keys.
///
/// A put is all or nothing: readers see the object before or the object after, also when the
/// process or the machine dies in between, and when a put returns, the content is durable. Keys
/// are checked by [`check_key`](crate::check_key). Prefixes are whole segments: `a/b` stands for
/// everything whose key starts with `a/b/`.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// Where this store is, for messages: `file:///srv/objects`, `s3://bucket/prefix`.
    fn url(&self) -> &str;

    /// What this store can do beyond the least.
    fn capabilities(&self) -> Capabilities;

    /// How many operations are worth having under way at once: many where each waits for a
    /// network, few where they share a disk.
    fn at_once(&self) -> usize {
        4
    }

    /// Puts an object; returns what the store knows of it afterwards.
    async fn put(&self, key: &str, body: Body, options: &PutOptions) -> Result<Meta>;

    /// Puts many small files and makes them durable together. When this fails, any of them may
    /// be there, but each that is there is whole.
    async fn put_batch(&self, files: Vec<SmallFile>) -> Result<()>;

    /// Puts many small files whose keys need not be durable yet: when the machine fails, any of
    /// them may be missing, but each that is there is whole. The next [`put_batch`] of two or more
    /// files makes them durable with its own.
    ///
    /// [`put_batch`]: Store::put_batch
    async fn put_batch_lazily(&self, files: Vec<SmallFile>) -> Result<()> {
        self.put_batch(files).await
    }

    /// The content of an object, or a range of it. The end of the range is cut at the object's
    /// end. Where the store keeps a digest, the stream of a whole object ends with
    /// [`ErrorKind::Corrupt`] if the bytes do not have it.
    async fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Object>;

    /// The whole content of many small objects, each at most `bytes_max` long, in the order of
    /// their keys; `None` for one that is not there. Much cheaper than as many gets where a get
    /// is mostly overhead.
    async fn get_batch(&self, keys: Vec<String>, bytes_max: usize) -> Result<Vec<Option<Bytes>>> {
        let mut contents = Vec::with_capacity(keys.len());
        for key in keys {
            contents.push(match self.get(&key, None).await {
                Ok(object) => Some(object.bytes(bytes_max).await?),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error),
            });
        }
        Ok(contents)
    }

    /// What the store knows of an object without reading it.
    async fn head(&self, key: &str) -> Result<Meta>;

    /// One page of what lies below a prefix, in the byte order of keys (a directory counts as
    /// its name with a `/`). A prefix with nothing below it gives an empty page, not an error.
    async fn list(&self, prefix: &str, options: &ListOptions) -> Result<Page>;

    /// A page of everything whose key is below a prefix and comes after `after` in the byte order
    /// of keys, whether there is such a key or not. Stores that walk through directories instead
    /// of keeping keys in order fail with [`ErrorKind::Unsupported`].
    async fn list_after(&self, prefix: &str, after: &str) -> Result<Page> {
        let _ = after;
        let detail = "this store cannot begin a listing anywhere";
        Err(Error::new(ErrorKind::Unsupported, prefix, detail).in_store(self.url()))
    }

    /// Copies an object within this store, replacing what was there, without its content passing
    /// through the caller.
    async fn copy(&self, from: &str, to: &str) -> Result<Meta>;

    /// Deletes an object. No error if there is none: the caller wants it gone, and it is.
    async fn delete(&self, key: &str) -> Result<()>;

    /// Deletes everything below a prefix, empty directories included; returns how many objects.
    /// Not in one step: when this fails, some may be gone.
    async fn delete_all(&self, prefix: &str) -> Result<u64>;

    /// Moves an object, or everything below a prefix, in one step. Fails with
    /// [`ErrorKind::PreconditionFailed`] if there is something at `to`, and with
    /// [`ErrorKind::Unsupported`] in stores without [`Capabilities::rename`].
    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let _ = to;
        let detail = "this store cannot rename in one step";
        Err(Error::new(ErrorKind::Unsupported, from, detail).in_store(self.url()))
    }

    /// Gives every object below `from` a second key below `to`, without copying its content, and
    /// makes the new keys durable; returns how many. `from` may be a single object. What is there
    /// with one of the new keys already stays, so that doing it again completes it. Not in one
    /// step: when it fails, some new keys may be there. In stores without
    /// [`Capabilities::exchange`] this fails with [`ErrorKind::Unsupported`].
    async fn link_all(&self, from: &str, to: &str) -> Result<u64> {
        let _ = to;
        let detail = "this store cannot give an object a second key";
        Err(Error::new(ErrorKind::Unsupported, from, detail).in_store(self.url()))
    }

    /// Exchanges what lies below two prefixes in one step: whoever reads sees all of the one or
    /// all of the other. In stores without [`Capabilities::exchange`] this fails with
    /// [`ErrorKind::Unsupported`].
    async fn exchange(&self, one: &str, other: &str) -> Result<()> {
        let _ = other;
        let detail = "this store cannot exchange two directories";
        Err(Error::new(ErrorKind::Unsupported, one, detail).in_store(self.url()))
    }

    /// Deletes an object, or everything below a prefix, without waiting until that is durable:
    /// when the machine fails, some of it may be there again.
    async fn forget(&self, prefix: &str) -> Result<()> {
        self.delete_all(prefix).await?;
        self.delete(prefix).await
    }

    /// Removes the directories below a prefix, and the prefix, that have nothing in them: what a
    /// deletion that was cut short has left. An object that arrives meanwhile is safe. Nothing to
    /// do in stores that have no directories.
    async fn prune(&self, prefix: &str) -> Result<()> {
        let _ = prefix;
        Ok(())
    }

    /// Asks for a cold object to be made readable. Asking again is no error; the answer says how
    /// far it is. An object that is readable anyway is [`Availability::Ready`].
    async fn thaw(&self, key: &str, thaw: &Thaw) -> Result<Availability> {
        let _ = thaw;
        self.head(key).await.map(|meta| meta.availability)
    }

    /// How much the store can hold and what is left; `None` where it does not say.
    async fn free_space(&self) -> Result<Option<Space>> {
        Ok(None)
    }

    /// How many versions of objects below a prefix the store keeps, those of objects that are
    /// there and marks of deletion included; `None` where it does not tell. A store that keeps
    /// none but the present ones has none.
    async fn versions(&self, prefix: &str) -> Result<Option<u64>> {
        let _ = prefix;
        Ok(Some(0))
    }

    /// Removes everything below a prefix with all its versions for good; returns how many there
    /// were.
    async fn remove_versions(&self, prefix: &str) -> Result<u64> {
        let _ = prefix;
        Ok(0)
    }

    /// Puts below a prefix that were begun and not finished. Some may be under way right now;
    /// the moment they began tells.
    async fn unfinished(&self, prefix: &str) -> Result<Vec<Unfinished>>;

    /// Gives up an unfinished put and frees what it holds. No error if it is gone.
    async fn abort(&self, unfinished: &Unfinished) -> Result<()>;
}

/// A whole listing as a stream, page after page.
pub fn list_all(
    store: Arc<dyn Store>,
    prefix: &str,
    recursive: bool,
) -> BoxStream<'static, Result<Entry>> {
    let state = Some((store, prefix.to_owned(), None));
    stream::try_unfold(state, move |state| async move {
        let Some((store, prefix, after)) = state else { return Ok::<_, Error>(None) };
        let options = ListOptions { recursive, after, ..ListOptions::default() };
        let page = store.list(&prefix, &options).await?;
        let state = page.next.map(|next| (store, prefix, Some(next)));
        Ok(Some((stream::iter(page.entries.into_iter().map(Ok)), state)))
    })
    .try_flatten()
    .boxed()
}
