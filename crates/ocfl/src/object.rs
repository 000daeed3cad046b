//! An object, opened for reading.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::fetch::{self, Fetched, Small};
use crate::inventory::{File, INVENTORY, Inventory, Version};
use crate::root::StorageRoot;
use crate::sidecar;
use crate::version::VersionName;
use digest::{Algorithm, SingleHasher};
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{StreamExt, TryStreamExt};
use store::{Body, ByteStream, Meta, PutOptions, Store, join};

/// An object as its root inventory describes it.
#[derive(Debug, Clone)]
pub struct Object {
    pub(crate) root: StorageRoot,
    pub(crate) path: String,
    pub(crate) inventory: Inventory,
    /// The digest of the root inventory, of its own algorithm.
    pub(crate) digest: String,
    pub(crate) meta: Meta,
    /// Whether the sidecar still waits for a seal to be finished.
    pub(crate) sidecar_is_stale: bool,
}

impl StorageRoot {
    /// Opens an object by its identifier.
    pub async fn object(&self, id: &str) -> Result<Object> {
        let path = self.object_path(id)?;
        let object = self.find_object(&path).await?;
        let object = object.ok_or_else(|| Error::NoSuchObject(id.to_owned()))?;
        if object.inventory.id != id {
            let found = object.inventory.id;
            return Err(Error::WrongObject { path, wanted: id.to_owned(), found });
        }
        Ok(object)
    }

    /// Opens an object by where it is.
    pub async fn object_at(&self, path: &str) -> Result<Object> {
        let object = self.find_object(path).await?;
        object.ok_or_else(|| Error::NoSuchObject(path.to_owned()))
    }

    /// The object at a path, if there is one.
    pub(crate) async fn find_object(&self, path: &str) -> Result<Option<Object>> {
        let found = self.find_object_once(path).await;
        match found {
            // A version may have been sealed between the inventory and its sidecar.
            Err(Error::Invalid { finding, .. }) if finding.code == Code::E060 => {
                self.find_object_once(path).await
            }
            found => found,
        }
    }

    async fn find_object_once(&self, path: &str) -> Result<Option<Object>> {
        let key = join(path, INVENTORY);
        let algorithms = [Algorithm::Sha512, Algorithm::Sha256].into_iter().collect();
        let fetched = fetch::inventory(&self.store, &key, algorithms, &self.limits, &key).await?;
        let Some(Fetched { parsed, digests, meta }) = fetched else { return Ok(None) };
        let inventory = Inventory::from_parsed(parsed, &key)?;
        let digest = digests.hex(inventory.algorithm).unwrap_or_default();
        let vouched = |sidecar: Option<String>| sidecar.as_deref() == Some(&*digest);
        let mut sidecar_is_stale = false;
        if !vouched(self.sidecar(path, inventory.algorithm).await?) {
            // A seal writes the inventory, then the sidecar. When it was stopped between the two,
            // the version's own sidecar, which was there before, vouches for the inventory.
            let version = join(path, &inventory.head.to_string());
            if !vouched(self.sidecar(&version, inventory.algorithm).await?) {
                return Err(invalid_digest(&key));
            }
            sidecar_is_stale = true;
        }
        let (root, path) = (self.clone(), path.to_owned());
        Ok(Some(Object { root, path, inventory, digest, meta, sidecar_is_stale }))
    }

    /// The digest that a directory's sidecar gives for its inventory.
    pub(crate) async fn sidecar(
        &self,
        directory: &str,
        algorithm: Algorithm,
    ) -> Result<Option<String>> {
        let key = join(directory, &sidecar::name(algorithm));
        match fetch::small(&self.store, &key, &self.limits).await? {
            Small::Whole(content) => Ok(sidecar::read(&content, algorithm)),
            Small::TooLarge | Small::Missing => Ok(None),
        }
    }
}

fn invalid_digest(key: &str) -> Error {
    let finding = crate::Finding {
        code: Code::E060,
        place: key.to_owned(),
        message: "the inventory does not have the digest of its sidecar".to_owned(),
    };
    Error::Invalid { place: key.to_owned(), finding: Box::new(finding) }
}

/// What an export wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    pub files: u64,
    pub bytes: u64,
}

impl Object {
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The digest of the root inventory, by which the whole object can be recognised.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn id(&self) -> &str {
        &self.inventory.id
    }

    /// Where it is, relative to the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A version, or the latest one.
    pub fn version(&self, name: Option<VersionName>) -> Result<&Version> {
        let number = name.unwrap_or(self.inventory.head).number();
        self.inventory.version(number).ok_or_else(|| Error::NoSuchVersion {
            id: self.inventory.id.clone(),
            version: name.unwrap_or(self.inventory.head),
            head: self.inventory.head,
        })
    }

    /// A file of a version, or of the latest one.
    pub fn file(&self, version: Option<VersionName>, path: &str) -> Result<File<'_>> {
        let version = self.version(version)?;
        self.inventory.find(version, path).ok_or_else(|| Error::NoSuchFile {
            id: self.inventory.id.clone(),
            version: version.name,
            path: path.to_owned(),
        })
    }

    /// The content of a file. The stream ends with an error if it does not have its digest.
    pub async fn content(&self, file: &File<'_>) -> Result<ByteStream> {
        let key = join(&self.path, file.content_path);
        let object = self.root.store.get(&key, None).await?;
        Ok(verified(object.body, self.inventory.algorithm, file.digest.clone(), key))
    }

    /// Copies the files of a version below a prefix of another store, each verified by its digest
    /// on the way. `progress` hears of each file and its length.
    pub async fn export(
        &self,
        version: Option<VersionName>,
        target: &dyn Store,
        prefix: &str,
        progress: &(dyn Fn(&str, u64) + Send + Sync),
    ) -> Result<Exported> {
        const PARALLEL: usize = 8;
        let version = self.version(version)?;
        let mut copying = FuturesUnordered::new();
        let mut exported = Exported::default();
        let mut entries = self.inventory.sorted_state(version).into_iter();
        loop {
            while copying.len() < PARALLEL
                && let Some(entry) = entries.next()
            {
                copying.push(self.copy_file(self.inventory.file(entry), target, prefix));
            }
            let Some(copied) = copying.next().await else { return Ok(exported) };
            let (path, size) = copied?;
            progress(path, size);
            exported.files += 1;
            exported.bytes += size;
        }
    }

    async fn copy_file<'a>(
        &self,
        file: File<'a>,
        target: &dyn Store,
        prefix: &str,
    ) -> Result<(&'a str, u64)> {
        let key = join(prefix, file.path);
        let from = join(&self.path, file.content_path);
        let object = self.root.store.get(&from, None).await?;
        let size = object.meta.size;
        let body = verified(object.body, self.inventory.algorithm, file.digest.clone(), from);
        let options = PutOptions::if_absent();
        target.put(&key, Body::from_stream(body, Some(size)), &options).await?;
        Ok((file.path, size))
    }
}

/// Passes on a stream, and fails at its end if the bytes do not have the digest.
pub(crate) fn verified(
    body: ByteStream,
    algorithm: Algorithm,
    digest: String,
    key: String,
) -> ByteStream {
    let state = Some((body, SingleHasher::new(algorithm), digest, key));
    stream::try_unfold(state, |state| async move {
        let Some((mut body, mut hasher, digest, key)) = state else { return Ok(None) };
        if let Some(chunk) = body.try_next().await? {
            hasher.update(&chunk);
            return Ok(Some((chunk, Some((body, hasher, digest, key)))));
        }
        if hasher.finish().to_string().eq_ignore_ascii_case(&digest) {
            return Ok(None);
        }
        let detail = "the content does not have the digest of its inventory";
        Err(store::Error::new(store::ErrorKind::Corrupt, key, detail))
    })
    .boxed()
}
