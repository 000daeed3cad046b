//! Content of versions that are sealed: what the store lists of it, and how damaged content is
//! replaced by the bytes that its digest names.

use crate::draft::Draft;
use crate::error::{Error, Result};
use crate::fetch;
use crate::object::{Object, verified};
use crate::root::StorageRoot;
use crate::unsealed::Note;
use digest::Algorithm;
use futures_util::TryStreamExt;
use store::{Body, Kind, PutOptions, join, list_all};

/// The sealed content of an object: read through the object, or through a draft of its next
/// version, which has the same inventory in memory.
#[derive(Debug, Clone, Copy)]
pub enum Sealed<'a> {
    Object(&'a Object),
    Draft(&'a Draft),
}

/// The sizes of an object's content files, as its store lists them. It takes eight bytes or so for
/// each path of the inventory.
#[derive(Debug, Default)]
pub struct ContentSizes {
    /// By the number of the path.
    sizes: Vec<Option<u64>>,
}

impl ContentSizes {
    fn get(&self, path: u32) -> Option<u64> {
        self.sizes.get(path as usize).copied().flatten()
    }

    pub(crate) fn set(&mut self, path: u32, size: u64) {
        let at = path as usize;
        if at >= self.sizes.len() {
            self.sizes.resize(at + 1, None);
        }
        self.sizes[at] = Some(size);
    }
}

/// A content file of a sealed version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedContent {
    /// Where it is in the store.
    pub key: String,
    /// The number of its path, by which its size is looked up.
    pub(crate) path: u32,
}

impl<'a> Sealed<'a> {
    fn root(self) -> &'a StorageRoot {
        match self {
            Sealed::Object(object) => &object.root,
            Sealed::Draft(draft) => &draft.root,
        }
    }

    fn path(self) -> &'a str {
        match self {
            Sealed::Object(object) => &object.path,
            Sealed::Draft(draft) => &draft.path,
        }
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Sealed::Object(object) => object.inventory.algorithm,
            Sealed::Draft(draft) => draft.algorithm,
        }
    }

    fn number(self, content_path: &str) -> Option<u32> {
        match self {
            Sealed::Object(object) => object.inventory.paths.find(content_path),
            Sealed::Draft(draft) => draft.contents().number(content_path),
        }
    }

    /// The content of a digest, if a sealed version has it.
    pub fn find(self, digest: &str) -> Option<SealedContent> {
        let (path, content_path) = match self {
            Sealed::Object(object) => {
                let inventory = &object.inventory;
                let path = inventory.first_content(inventory.digests.find_any_case(digest)?)?;
                (path, inventory.paths.get(path).to_owned())
            }
            Sealed::Draft(draft) => draft.contents().sealed(digest)?,
        };
        Some(SealedContent { key: join(self.path(), &content_path), path })
    }

    /// Lists the object's files.
    pub async fn list(self) -> Result<ContentSizes> {
        let mut sizes = ContentSizes::default();
        let cut = self.path().len() + 1;
        let mut entries = list_all(self.root().store.clone(), self.path(), true);
        while let Some(entry) = entries.try_next().await? {
            if entry.kind != Kind::File {
                continue;
            }
            if let Some(path) = entry.key.get(cut..).and_then(|path| self.number(path)) {
                sizes.set(path, entry.size);
            }
        }
        Ok(sizes)
    }

    /// The size that the store listed for a content file; `None` if it listed none.
    pub fn size(self, sizes: &ContentSizes, content: &SealedContent) -> Option<u64> {
        sizes.get(content.path)
    }

    /// Replaces a damaged or missing content file with the bytes that its digest names. Readers see
    /// the file before or the file after. A body that does not have the digest changes nothing.
    pub async fn restore(self, digest: &str, body: Body, options: &PutOptions) -> Result<()> {
        let (root, algorithm) = (self.root(), self.algorithm());
        let unknown = || Error::NoSuchContent { path: self.path().to_owned() };
        let key = self.find(digest).ok_or_else(unknown)?.key;
        let length = body.length();
        let checked = verified(body.into_stream(), algorithm, digest.to_owned(), key.clone());
        let put = root.store.put(&key, Body::from_stream(checked, length), options).await?;
        if root.store.capabilities().rename {
            // A seal that was cut short may have given the damaged file a second name.
            let aside = join(&Note::directory(self.path()), "object");
            let content_path = key.get(self.path().len() + 1..).unwrap_or_default();
            root.store.delete(&join(&aside, content_path)).await?;
        }
        let meta = root.store.head(&key).await?;
        if !meta.availability.is_readable() {
            // It cannot be read back: the store must vouch for what it was sent.
            let sent = options.sha256.or_else(|| put.digest.and_then(|digest| digest.whole()));
            let (kind, detail) = match (meta.vouched_sha256(), sent) {
                (Some(kept), Some(sent)) if kept == sent => return Ok(()),
                (Some(_), Some(_)) => {
                    (store::ErrorKind::Corrupt, "the store has another SHA-256 than was sent")
                }
                _ => {
                    let detail = "it is in cold storage, and the store keeps no SHA-256 of it";
                    (store::ErrorKind::Cold, detail)
                }
            };
            return Err(store::Error::new(kind, key, detail).into());
        }
        let kept = fetch::digests(&root.store, &key, algorithm.into()).await?;
        let same = kept.and_then(|(kept, _)| kept.hex(algorithm));
        if same.is_some_and(|kept| kept.eq_ignore_ascii_case(digest)) {
            return Ok(());
        }
        let detail = "the store does not give back the bytes that were put";
        Err(store::Error::new(store::ErrorKind::Corrupt, key, detail).into())
    }
}

impl Object {
    /// The content files of all versions that the store did not list.
    pub fn unlisted<'a>(&'a self, sizes: &'a ContentSizes) -> impl Iterator<Item = &'a str> {
        let missing = |path: &u32| sizes.get(*path).is_none();
        let paths = self.inventory.manifest.iter().map(|entry| entry.path);
        paths.filter(missing).map(|path| self.inventory.paths.get(path))
    }
}
