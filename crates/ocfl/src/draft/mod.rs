//! Writing a version, first half: content and the version's inventory. Nothing is visible yet.

pub(crate) mod contents;
mod finish;

use crate::algorithm::algorithm_name;
use crate::error::{Error, Result};
use crate::inventory::{About, INVENTORY, Inventory};
use crate::root::StorageRoot;
use crate::unsealed::{Note, Waiting, Work};
use crate::version::VersionName;
use crate::{fetch, path, time};
use bytes::Bytes;
use contents::{Contents, Recorded};
use digest::{Algorithm, SingleHasher};
use futures_util::TryStreamExt;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use store::{Body, PutOptions, SmallFile, StorageClass, join};

/// What to do about a version of the object that was begun before and never sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leftovers {
    /// Begin nothing.
    #[default]
    Refuse,
    /// Remove it first.
    Discard,
    /// Keep its content, for [`Draft::adopt`] to use; what is not adopted is removed in the end.
    Adopt,
}

/// What a new version starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// The files of the version before.
    #[default]
    Head,
    /// No files.
    Empty,
}

/// How to begin a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftOptions {
    pub leftovers: Leftovers,
    pub start: Start,
    /// The digest algorithm of a new object; others keep theirs.
    pub algorithm: Algorithm,
}

impl Default for DraftOptions {
    fn default() -> DraftOptions {
        DraftOptions {
            leftovers: Leftovers::default(),
            start: Start::default(),
            algorithm: Algorithm::Sha512,
        }
    }
}

/// A file that was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The digest of the object's algorithm.
    pub digest: String,
    pub size: u64,
    /// Where the content is, relative to the object.
    pub content_path: String,
    /// Whether the object had this content already, so that nothing was kept.
    pub deduplicated: bool,
}

/// Content that a file of the version refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Where it is in the store.
    pub key: String,
    /// Whether a sealed version brought it, and not this one. The caller knows then that it is
    /// good, or looks: see [`Sealed`](crate::Sealed).
    pub sealed: bool,
}

/// A version on its way. Files can be put in parallel; nothing is visible before it is sealed.
#[derive(Debug)]
pub struct Draft {
    pub(crate) root: StorageRoot,
    pub(crate) path: String,
    version: VersionName,
    about: About,
    /// The digest of the root inventory this builds on.
    base: Option<String>,
    waiting: Waiting,
    pub(crate) algorithm: Algorithm,
    adopting: bool,
    /// Whether there is a note about this version; held while it is put, so that no content
    /// comes before it.
    noted: tokio::sync::Mutex<bool>,
    /// How many puts have begun and not ended well: they failed, or their caller went away. Each
    /// may have left content that nothing names.
    on_the_way: AtomicUsize,
    contents: Mutex<Contents>,
}

impl StorageRoot {
    /// Begins a new version of an object, or the first one of a new object.
    ///
    /// That no other writer is at work on the object is the caller's business. Nothing is written
    /// before the first content is put.
    pub async fn begin(&self, id: &str, about: About, options: &DraftOptions) -> Result<Draft> {
        let path = self.object_path(id)?;
        let mut note = self.note(&path).await?;
        if let Some(found) = &note {
            let purging = found.work == Work::Purge;
            match options.leftovers {
                Leftovers::Refuse => return Err(Error::UnfinishedWrite { id: id.to_owned() }),
                Leftovers::Adopt if !purging => {}
                // There is nothing to take over from an object that is going away.
                Leftovers::Adopt | Leftovers::Discard => {
                    self.roll_back(found).await?;
                    note = None;
                }
            }
        }
        let object = self.find_object(&path).await?;
        if let Some(object) = &object
            && object.inventory.id != id
        {
            let (wanted, found) = (id.to_owned(), object.inventory.id.clone());
            return Err(Error::WrongObject { path, wanted, found });
        }
        if let Some(object) = &object {
            self.refresh_sidecar(object).await?;
        }
        let base = object.as_ref().map(|object| object.digest.clone());
        let (inventory, version) = match object {
            Some(object) => {
                let head = object.inventory.head;
                let full = || Error::VersionsFull { id: id.to_owned(), head };
                (object.inventory, head.next().ok_or_else(full)?)
            }
            None => (Inventory::new(id, self.spec(), options.algorithm), VersionName::FIRST),
        };
        let draft = Draft {
            waiting: self.waiting(&path, version),
            root: self.clone(),
            path,
            version,
            about: with_moment(about),
            base,
            algorithm: inventory.algorithm,
            adopting: note.is_some(),
            noted: tokio::sync::Mutex::new(note.is_some()),
            on_the_way: AtomicUsize::new(0),
            contents: Mutex::new(Contents::new(inventory, version, options.start)),
        };
        if draft.adopting {
            draft.move_back().await?;
            // From here on the version is not complete any more.
            draft.root.put_note(&draft.note(id, None)).await?;
        }
        Ok(draft)
    }
}

fn with_moment(mut about: About) -> About {
    if about.created.is_empty() {
        about.created = time::rfc3339(SystemTime::now());
    }
    about
}

impl Draft {
    fn note(&self, id: &str, inventory: Option<String>) -> Note {
        let work = Work::Version {
            name: self.version,
            algorithm: self.algorithm,
            base: self.base.clone(),
            inventory,
        };
        Note { id: id.to_owned(), path: self.path.clone(), work, modified: None }
    }

    /// Sees to it that there is a note before there is content.
    async fn ensure_noted(&self) -> Result<()> {
        let mut noted = self.noted.lock().await;
        if !*noted {
            let id = self.contents().id().to_owned();
            self.root.put_note(&self.note(&id, None)).await?;
            *noted = true;
        }
        Ok(())
    }

    /// A version that sealing had moved into the object, but not made visible, waits aside again.
    async fn move_back(&self) -> Result<()> {
        let moved = join(&self.path, &self.version.to_string());
        if !self.waiting.aside || self.base.is_none() {
            return Ok(());
        }
        let there = self.root.store.head(&join(&moved, INVENTORY)).await;
        if fetch::found(there)?.is_some() {
            self.root.store.rename(&moved, &self.waiting.version).await?;
        }
        Ok(())
    }

    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        // Each change is made whole before anything in it can fail.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version that is being written.
    pub fn version(&self) -> VersionName {
        self.version
    }

    /// The digest of the root inventory that it builds on; `None` for a new object.
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// How many files the version has by now.
    pub fn file_count(&self) -> usize {
        self.contents().file_count()
    }

    /// Puts a file. Content that the object has already, in whatever version, is not kept again.
    pub async fn put(&self, path: &str, body: Body) -> Result<Put> {
        self.put_with(path, body, &PutOptions::default()).await
    }

    /// Puts a file with options of the store.
    pub async fn put_with(&self, path: &str, body: Body, options: &PutOptions) -> Result<Put> {
        let hasher = Arc::new(Mutex::new(SingleHasher::new(self.algorithm)));
        let length = body.length();
        let taking = hasher.clone();
        let stream = body.into_stream().inspect_ok(move |chunk| {
            taking.lock().unwrap_or_else(PoisonError::into_inner).update(chunk);
        });
        let digest =
            || hasher.lock().unwrap_or_else(PoisonError::into_inner).clone().finish().to_string();
        self.put_as(path, Body::from_stream(stream, length), options, digest).await
    }

    /// As [`Draft::put_with`] for content whose digest is known. It is believed and not computed
    /// again: for a caller who reads the content back before the version is sealed.
    pub async fn put_believing(
        &self,
        path: &str,
        body: Body,
        digest: &str,
        options: &PutOptions,
    ) -> Result<Put> {
        self.check_digest(path, digest)?;
        self.put_as(path, body, options, || digest.to_ascii_lowercase()).await
    }

    /// Puts a file whose digest is known once it has been put.
    async fn put_as(
        &self,
        path: &str,
        body: Body,
        options: &PutOptions,
        digest: impl FnOnce() -> String,
    ) -> Result<Put> {
        self.check_path(path)?;
        self.ensure_noted().await?;
        let content_path = self.contents().reserve(path);
        let key = join(&self.waiting.object, &content_path);
        self.on_the_way.fetch_add(1, Ordering::SeqCst);
        let class = options.storage_class.clone().or_else(|| self.root.classes.content.clone());
        let options = PutOptions { storage_class: class, ..options.clone() };
        let put = self.root.store.put(&key, body, &options).await;
        let meta = match put {
            Ok(meta) => meta,
            Err(error) => {
                self.contents().give_up(&content_path);
                return Err(error.into());
            }
        };
        let put = self.record(path, digest(), meta.size, Some(content_path)).await?;
        self.on_the_way.fetch_sub(1, Ordering::SeqCst);
        Ok(put)
    }

    fn check_digest(&self, path: &str, digest: &str) -> Result<()> {
        if self.algorithm.is_digest(digest) {
            return Ok(());
        }
        let (path, found) = (path.to_owned(), digest.to_owned());
        Err(Error::WrongDigest {
            path,
            wanted: format!("a {} digest", algorithm_name(self.algorithm)),
            found,
        })
    }

    /// Notes content that was put, or that was known before and has no place of its own.
    async fn record(
        &self,
        path: &str,
        digest: String,
        size: u64,
        place: Option<String>,
    ) -> Result<Put> {
        let Some(content_path) = place else {
            let known = self.contents().refer(path, &digest)?;
            // Content never goes away while a version is written.
            let content_path = known.unwrap_or_default();
            return Ok(Put { digest, size, content_path, deduplicated: true });
        };
        let recorded = self.contents().record(path, &digest, &content_path)?;
        match recorded {
            Recorded::New => Ok(Put { digest, size, content_path, deduplicated: false }),
            Recorded::Known(known) => {
                self.root.store.delete(&join(&self.waiting.object, &content_path)).await?;
                Ok(Put { digest, size, content_path: known, deduplicated: true })
            }
        }
    }

    /// Puts many small files, flushed together where the store can do that. All of them are durable
    /// when [`Draft::write`] returns; until then each is there whole, or is not there. When this
    /// fails, none of them is in the version.
    pub async fn put_batch(&self, files: Vec<(String, Bytes)>) -> Result<Vec<Put>> {
        let hashed = |(path, content): (String, Bytes)| {
            let digest = self.algorithm.hex(&content);
            (path, content, digest)
        };
        self.put_batch_believing(files.into_iter().map(hashed).collect()).await
    }

    /// As [`Draft::put_batch`] for files whose digests are known, and believed as by
    /// [`Draft::put_believing`].
    pub async fn put_batch_believing(
        &self,
        files: Vec<(String, Bytes, String)>,
    ) -> Result<Vec<Put>> {
        self.put_batch_as(files, self.root.classes.content.clone()).await
    }

    /// As [`Draft::put_batch`] for files that must be readable whatever becomes of the content,
    /// such as a record of the version: they are kept as inventories are.
    pub async fn put_records(&self, files: Vec<(String, Bytes)>) -> Result<Vec<Put>> {
        let hashed = |(path, content): (String, Bytes)| {
            let digest = self.algorithm.hex(&content);
            (path, content, digest)
        };
        let files = files.into_iter().map(hashed).collect();
        self.put_batch_as(files, self.root.classes.own.clone()).await
    }

    async fn put_batch_as(
        &self,
        files: Vec<(String, Bytes, String)>,
        storage_class: Option<StorageClass>,
    ) -> Result<Vec<Put>> {
        for (path, _, digest) in &files {
            self.check_path(path)?;
            self.check_digest(path, digest)?;
        }
        let (mut planned, mut batch) = (Vec::with_capacity(files.len()), Vec::new());
        let mut in_batch = HashSet::new();
        for (path, content, digest) in files {
            let digest = digest.to_ascii_lowercase();
            let size = content.len() as u64;
            let mut contents = self.contents();
            let place = if contents.has(&digest) || !in_batch.insert(digest.clone()) {
                None
            } else {
                let content_path = contents.reserve(&path);
                let key = join(&self.waiting.object, &content_path);
                batch.push(SmallFile { key, content, storage_class: storage_class.clone() });
                Some(content_path)
            };
            planned.push((path, digest, size, place));
        }
        self.on_the_way.fetch_add(1, Ordering::SeqCst);
        if let Err(error) = self.put_small(batch).await {
            let mut contents = self.contents();
            planned.iter().filter_map(|(.., place)| place.as_ref()).for_each(|place| {
                contents.give_up(place);
            });
            return Err(error);
        }
        let mut puts = Vec::with_capacity(planned.len());
        for (path, digest, size, place) in planned {
            puts.push(self.record(&path, digest, size, place).await?);
        }
        self.on_the_way.fetch_sub(1, Ordering::SeqCst);
        Ok(puts)
    }

    /// Puts small files, and the note with them if there is none: where the version waits aside,
    /// content without a note is just as easily found.
    async fn put_small(&self, mut files: Vec<SmallFile>) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        if !self.waiting.aside {
            self.ensure_noted().await?;
        }
        let mut noted = self.noted.lock().await;
        if *noted {
            drop(noted);
            return Ok(self.root.store.put_batch_lazily(files).await?);
        }
        let id = self.contents().id().to_owned();
        files.insert(0, self.note(&id, None).file(&self.root));
        self.root.store.put_batch_lazily(files).await?;
        *noted = true;
        Ok(())
    }

    /// Makes `path` a file of content that the object has already; `None` if it does not.
    pub fn reference(&self, path: &str, digest: &str) -> Result<Option<Reference>> {
        self.check_path(path)?;
        let content_path = self.contents().refer(path, digest)?;
        Ok(content_path.map(|content_path| {
            let sealed = !self.is_own(&content_path);
            Reference { key: self.key_of(&content_path), sealed }
        }))
    }

    /// Whether content is of this version, and not of one before.
    fn is_own(&self, content_path: &str) -> bool {
        content_path.split_once('/').is_some_and(|(version, _)| version == self.version.to_string())
    }

    fn key_of(&self, content_path: &str) -> String {
        let object = if self.is_own(content_path) { &self.waiting.object } else { &self.path };
        join(object, content_path)
    }

    /// Takes over content that an earlier, unfinished write of this version has put for `path`.
    /// False if it is not there, or not of this size: put it then. The digest is believed.
    pub async fn adopt(&self, path: &str, digest: &str, size: u64) -> Result<bool> {
        Ok(self.take_up(path, digest, size).await?.is_some())
    }

    /// As [`Draft::adopt`], and says where the content is; `None` if it is not there.
    pub async fn take_up(&self, path: &str, digest: &str, size: u64) -> Result<Option<Put>> {
        self.check_path(path)?;
        self.check_digest(path, digest)?;
        let content_path = self.contents().reserve(path);
        let key = join(&self.waiting.object, &content_path);
        let meta = fetch::found(self.root.store.head(&key).await)?;
        if meta.is_none_or(|meta| meta.size != size) {
            self.contents().give_up(&content_path);
            return Ok(None);
        }
        let content_path = Some(content_path);
        self.record(path, digest.to_ascii_lowercase(), size, content_path).await.map(Some)
    }

    /// As [`Draft::take_up`], without looking whether the content is there: for a caller who is
    /// about to read it.
    pub async fn presume(&self, path: &str, digest: &str, size: u64) -> Result<Put> {
        self.check_path(path)?;
        let content_path = Some(self.contents().reserve(path));
        self.record(path, digest.to_ascii_lowercase(), size, content_path).await
    }

    /// The key in the store of content that this draft has put, taken up or found, until it is
    /// sealed.
    pub fn key(&self, put: &Put) -> String {
        self.key_of(&put.content_path)
    }

    /// Adds a digest of another algorithm for a file, to be kept in the fixity block.
    pub fn fixity(&self, path: &str, algorithm: Algorithm, digest: &str) -> Result<()> {
        if !algorithm.is_digest(digest) {
            let (path, found) = (path.to_owned(), digest.to_owned());
            return Err(Error::WrongDigest {
                path,
                wanted: format!("a {} digest", algorithm_name(algorithm)),
                found,
            });
        }
        self.contents().fixity(path, algorithm, digest)
    }

    /// Removes a file from the version; false if it has none of that path.
    pub fn remove(&self, path: &str) -> bool {
        self.contents().remove(path)
    }

    /// Moves a file; false if there is none.
    pub fn rename(&self, from: &str, to: &str) -> Result<bool> {
        Ok(self.copy(from, to)? && (from == to || self.remove(from)))
    }

    /// Makes `to` a file of the same content; false if there is no `from`.
    pub fn copy(&self, from: &str, to: &str) -> Result<bool> {
        self.check_path(to)?;
        self.contents().copy(from, to)
    }

    fn check_path(&self, path: &str) -> Result<()> {
        if let Some(fault) = path::faults(path).next() {
            return Err(Error::BadPath(path.to_owned(), fault.why()));
        }
        if path.len() > self.root.limits.string_bytes_max {
            let start = path.chars().take(100).collect();
            return Err(Error::BadPath(start, "it is too long"));
        }
        Ok(())
    }
}
