//! How a later version becomes visible in one step, where the store can exchange directories.
//!
//! A version that waits aside lies in a directory that stands for the object, beside the root
//! inventory that the object will have. Sealing gives that directory everything else the object
//! has, by second names for the same files, and exchanges the two. What was the object then lies
//! aside, and is forgotten. Between two names for each file and one there is no moment in which
//! the object is not whole, to whoever looks.

use crate::error::{Error, Result};
use crate::fetch;
use crate::inventory::INVENTORY;
use crate::root::StorageRoot;
use crate::unsealed::{Note, Unsealed, Waiting};
use store::{ErrorKind, ListOptions, join};

impl StorageRoot {
    /// Replaces an object by the one that waits with its next version. False where the store
    /// cannot do that: the version waits as before, then.
    pub(crate) async fn replace_by_twin(
        &self,
        unsealed: &Unsealed,
        waiting: &Waiting,
    ) -> Result<bool> {
        if !self.store.capabilities().exchange {
            return Ok(false);
        }
        let version = join(&unsealed.path, &unsealed.version.to_string());
        let options = ListOptions { limit: 1, ..ListOptions::default() };
        if !self.store.list(&version, &options).await?.entries.is_empty() {
            let why = format!("there is a directory {version} that its inventory does not name");
            return Err(Error::Conflict { id: unsealed.id.clone(), why });
        }
        let replaced = match self.store.link_all(&unsealed.path, &waiting.object).await {
            Ok(_) => self.store.exchange(&waiting.object, &unsealed.path).await,
            Err(error) => Err(error),
        };
        match replaced {
            Ok(()) => Ok(true),
            // Not here, or not with what others have put into the object.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::NotPlain) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether everything is there that was written beside the content of an object that waits:
    /// after a crash of the machine, a file system may have kept the note and not the others.
    pub(crate) async fn waits_whole(&self, unsealed: &Unsealed, waiting: &Waiting) -> Result<bool> {
        if unsealed.version.number() == 1 {
            let declaration = join(&waiting.object, &self.spec().object_declaration());
            if fetch::found(self.store.head(&declaration).await)?.is_none() {
                return Ok(false);
            }
        }
        let key = join(&waiting.object, INVENTORY);
        let found = fetch::digests(&self.store, &key, unsealed.algorithm.into()).await?;
        let Some((digests, size)) = found else { return Ok(false) };
        if digests.hex(unsealed.algorithm).as_ref() != Some(&unsealed.inventory_digest) {
            let detail = "the inventory is not the one that was written";
            return Err(store::Error::new(ErrorKind::Corrupt, key, detail).into());
        }
        let own = self.store.head(&join(&waiting.version, INVENTORY)).await;
        if fetch::found(own)?.is_none_or(|own| own.size != size) {
            return Ok(false);
        }
        for directory in [&waiting.object, &waiting.version] {
            let digest = self.sidecar(directory, unsealed.algorithm).await?;
            if digest.as_ref() != Some(&unsealed.inventory_digest) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets work that made a version visible. A log that was added to the object while its
    /// twin was made lies aside with the old one, and is fetched first.
    pub(crate) async fn forget_sealed(&self, path: &str) -> Result<()> {
        if self.store.capabilities().exchange {
            let aside = join(&Note::directory(path), "object/logs");
            match self.store.link_all(&aside, &join(path, "logs")).await {
                // Without second names there was no twin.
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                linked => drop(linked?),
            }
        }
        self.remove_note(path).await
    }
}
