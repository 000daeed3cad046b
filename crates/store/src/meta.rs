//! What a store knows of its objects and of itself.

use crate::checksum::{Digest, Sha256Digest};
use std::fmt;
use std::time::SystemTime;

/// What a store knows of one object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub size: u64,
    pub modified: Option<SystemTime>,
    /// Changes when the content changes; what `Condition::IfMatch` compares.
    pub etag: Option<String>,
    /// The digest that the store keeps, if it keeps one.
    pub digest: Option<Digest>,
    /// Whether the store itself has compared the bytes with the digest, so that it may stand in
    /// for reading them. A digest that only lies beside the object is good for reading it.
    pub vouched: bool,
    pub storage_class: Option<StorageClass>,
    pub availability: Availability,
}

impl Meta {
    /// The facts of a plain object that can be read at once.
    pub fn of_size(size: u64) -> Meta {
        Meta {
            size,
            modified: None,
            etag: None,
            digest: None,
            vouched: false,
            storage_class: None,
            availability: Availability::Ready,
        }
    }
}

/// The store's name for how an object is kept, such as `STANDARD` or `DEEP_ARCHIVE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StorageClass(pub String);

impl StorageClass {
    pub fn new(name: impl Into<String>) -> StorageClass {
        StorageClass(name.into())
    }

    /// Whether objects of this class have to be thawed before they can be read.
    pub fn is_cold(&self) -> bool {
        matches!(self.0.as_str(), "GLACIER" | "DEEP_ARCHIVE")
    }
}

impl fmt::Display for StorageClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Meta {
    /// The SHA-256 of the whole content that the store vouches for.
    pub fn vouched_sha256(&self) -> Option<Sha256Digest> {
        self.digest.filter(|_| self.vouched).and_then(|digest| digest.whole())
    }
}

/// Whether an object can be read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Ready,
    /// In cold storage; ask for a thaw, then wait.
    Cold,
    /// A thaw was asked for and is not done yet.
    Thawing,
    /// Readable until the given moment, where the store says so, then cold again.
    Thawed {
        until: Option<SystemTime>,
    },
}

impl Availability {
    pub fn is_readable(self) -> bool {
        matches!(self, Availability::Ready | Availability::Thawed { .. })
    }
}

/// A request to make a cold object readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thaw {
    /// How many days it stays readable.
    pub days: u32,
    pub speed: ThawSpeed,
}

impl Default for Thaw {
    fn default() -> Thaw {
        Thaw { days: 7, speed: ThawSpeed::Standard }
    }
}

/// How fast, and at what price, an object is thawed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThawSpeed {
    Expedited,
    Standard,
    Bulk,
}

/// How to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// Everything below the prefix, or only what is directly below it.
    pub recursive: bool,
    /// Where the page before ended: its `next`.
    pub after: Option<String>,
    /// At most so many entries in a page; a store may return fewer.
    pub limit: usize,
}

impl Default for ListOptions {
    fn default() -> ListOptions {
        ListOptions { recursive: true, after: None, limit: 1000 }
    }
}

/// A page of a listing, in the byte order of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Where the next page starts; `None` at the end. Opaque, and only good for the same listing.
    pub next: Option<String>,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The whole key, not only what follows the prefix; no `/` at the end of a directory.
    pub key: String,
    pub kind: Kind,
    /// Zero for what is not a file.
    pub size: u64,
    pub modified: Option<SystemTime>,
}

/// What an entry of a listing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    File,
    /// In a listing of one level, a common prefix of keys. A recursive listing shows only
    /// directories with nothing in them: empty ones in a local store, and in S3 the empty objects
    /// whose key ends in `/` that some tools leave behind.
    Directory,
    /// A symbolic link, device, socket or pipe, or in S3 a key that no file could have: it is
    /// there, but this store will not open it.
    Other,
    /// A file, directory or anything else whose name is not UTF-8. The key shows the bytes that are
    /// not as `\xe9`; the store will not open it.
    NotUtf8,
}

/// What a store can do beyond the least that all can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// `rename` moves a file or everything below a prefix in one step.
    pub rename: bool,
    /// `link_all` and `exchange` replace a whole directory in one step. In a local directory the
    /// file system decides; where it cannot, they fail with `ErrorKind::Unsupported`.
    pub exchange: bool,
    /// `Condition::IfAbsent` is kept, even between processes.
    pub put_if_absent: bool,
    /// `Condition::IfMatch` is kept, even between processes.
    pub put_if_match: bool,
    /// `head` returns a digest that the store itself has checked.
    pub digests: bool,
    /// The same for objects so large that they are put in parts.
    pub digests_of_large: bool,
    /// Objects have storage classes, and cold ones can be thawed.
    pub storage_classes: bool,
    /// `free_space` has an answer.
    pub free_space: bool,
    /// `put_batch` is much cheaper than as many puts.
    pub batch: bool,
}

/// How much a store can hold, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// What is left for this user.
    pub available: u64,
}

/// A put that was begun and neither finished nor given up: a crash, or one under way right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The key it would have had, where the store knows.
    pub key: Option<String>,
    /// The store's own name for it.
    pub id: String,
    pub begun: Option<SystemTime>,
}
