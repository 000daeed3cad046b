//! Writing a version, second half: the root inventory, which is the moment it becomes visible.
//! And the opposite: taking back what was written.

use crate::error::{Error, Result};
use crate::fetch;
use crate::inventory::INVENTORY;
use crate::object::{Object, verified};
use crate::root::StorageRoot;
use crate::sidecar;
use crate::unsealed::{Note, Unsealed, Work};
use store::{Body, Condition, PutOptions, join};

/// How far the sealing of a version has come.
pub(crate) enum Progress {
    /// The root inventory is the one before.
    Before(Option<Box<Object>>),
    /// The root inventory has the version; only traces are left to be removed.
    After(Box<Object>),
    /// The object has gone another way.
    Conflict(String),
}

impl StorageRoot {
    /// Makes a version visible. Sealing again what is sealed already is no error: a caller who
    /// was stopped in the middle just does it again.
    pub async fn seal(&self, unsealed: &Unsealed) -> Result<()> {
        let conflict = |why: String| Error::Conflict { id: unsealed.id.clone(), why };
        let Some(note) = self.note(&unsealed.path).await? else {
            return self.sealed_before(unsealed).await;
        };
        if note.unsealed().as_ref() != Some(unsealed) {
            return Err(conflict("another write of it has begun".to_owned()));
        }
        match self.progress(&note).await? {
            Progress::Conflict(why) => return Err(conflict(why)),
            Progress::Before(object) => self.make_visible(unsealed, object.as_deref()).await?,
            Progress::After(object) => self.refresh_sidecar(&object).await?,
        }
        self.forget_sealed(&unsealed.path).await
    }

    /// There is no note: it was sealed, or never there.
    async fn sealed_before(&self, unsealed: &Unsealed) -> Result<()> {
        let directory = join(&unsealed.path, &unsealed.version.to_string());
        let digest = self.sidecar(&directory, unsealed.algorithm).await?;
        if digest.as_ref() == Some(&unsealed.inventory_digest)
            && let Some(object) = self.find_object(&unsealed.path).await?
            && object.inventory.head.number() >= unsealed.version.number()
        {
            return Ok(());
        }
        Err(Error::NothingUnsealed { id: unsealed.id.clone() })
    }

    /// Finds out how far the sealing of a noted version has come.
    pub(crate) async fn progress(&self, note: &Note) -> Result<Progress> {
        let Work::Version { name, algorithm, base, inventory } = &note.work else {
            return Ok(Progress::Conflict("it is being removed".to_owned()));
        };
        let object = self.find_object(&note.path).await?.map(Box::new);
        let Some(object) = object else {
            return Ok(match base {
                None => Progress::Before(None),
                Some(_) => Progress::Conflict("the object is gone".to_owned()),
            });
        };
        if Some(&object.digest) == inventory.as_ref() {
            return Ok(Progress::After(object));
        }
        if Some(&object.digest) == base.as_ref() {
            return Ok(Progress::Before(Some(object)));
        }
        // Later versions may have been sealed since.
        let directory = join(&note.path, &name.to_string());
        let sealed = self.sidecar(&directory, *algorithm).await?;
        if inventory.is_some()
            && sealed == *inventory
            && object.inventory.head.number() > name.number()
        {
            return Ok(Progress::After(object));
        }
        Ok(Progress::Conflict(format!("its head is {} by now", object.inventory.head)))
    }

    async fn make_visible(&self, unsealed: &Unsealed, before: Option<&Object>) -> Result<()> {
        let waiting = self.waiting(&unsealed.path, unsealed.version);
        let version = join(&unsealed.path, &unsealed.version.to_string());
        if waiting.aside {
            // Without an exchange, it may have been moved before we were stopped.
            let moved = self.store.head(&join(&version, INVENTORY)).await;
            let is_moved = before.is_some() && fetch::found(moved)?.is_some();
            if !is_moved && !self.waits_whole(unsealed, &waiting).await? {
                return Err(Error::NothingUnsealed { id: unsealed.id.clone() });
            }
            if before.is_none() {
                return Ok(self.store.rename(&waiting.object, &unsealed.path).await?);
            }
            if !is_moved {
                if self.replace_by_twin(unsealed, &waiting).await? {
                    return Ok(());
                }
                self.store.rename(&waiting.version, &version).await?;
            }
        } else if before.is_none() {
            let name = self.spec().object_declaration();
            let value = format!("{}\n", name.strip_prefix("0=").unwrap_or_default());
            let key = join(&unsealed.path, &name);
            self.store.put(&key, Body::from_bytes(value), &self.own()).await?;
        }
        self.put_root_inventory(unsealed, before, &version).await?;
        self.put_sidecar(&unsealed.path, unsealed.algorithm, &unsealed.inventory_digest).await
    }

    /// The moment of sealing: the root inventory becomes the version's.
    async fn put_root_inventory(
        &self,
        unsealed: &Unsealed,
        before: Option<&Object>,
        version: &str,
    ) -> Result<()> {
        let from = join(version, INVENTORY);
        let source = self.store.get(&from, None).await?;
        let (size, digest) = (source.meta.size, unsealed.inventory_digest.clone());
        let body = verified(source.body, unsealed.algorithm, digest, from);
        let can = self.store.capabilities();
        let etag = before.and_then(|object| object.meta.etag.clone());
        let condition = match (before, etag) {
            (None, _) if can.put_if_absent => Condition::IfAbsent,
            (Some(_), Some(etag)) if can.put_if_match => Condition::IfMatch(etag),
            _ => Condition::Always,
        };
        let options = PutOptions { condition, ..self.own() };
        let key = join(&unsealed.path, INVENTORY);
        match self.store.put(&key, Body::from_stream(body, Some(size)), &options).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == store::ErrorKind::PreconditionFailed => {
                let why = "another writer has changed its inventory".to_owned();
                Err(Error::Conflict { id: unsealed.id.clone(), why })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn put_sidecar(
        &self,
        path: &str,
        algorithm: digest::Algorithm,
        digest: &str,
    ) -> Result<()> {
        let key = join(path, &sidecar::name(algorithm));
        let body = Body::from_bytes(sidecar::write(digest));
        self.store.put(&key, body, &self.own()).await?;
        Ok(())
    }

    pub(crate) async fn refresh_sidecar(&self, object: &Object) -> Result<()> {
        if !object.sidecar_is_stale {
            return Ok(());
        }
        self.put_sidecar(&object.path, object.inventory.algorithm, &object.digest).await
    }

    /// Takes back a version that was begun and not sealed. What was sealed stays.
    pub async fn discard(&self, id: &str) -> Result<()> {
        let path = self.object_path(id)?;
        match self.note(&path).await? {
            Some(note) => self.roll_back(&note).await,
            None if self.abort_uploads(&path).await? > 0 => Ok(()),
            None => Err(Error::NothingUnsealed { id: id.to_owned() }),
        }
    }

    pub(crate) async fn roll_back(&self, note: &Note) -> Result<()> {
        let Work::Version { name, .. } = &note.work else {
            return self.finish_purge(&note.path).await;
        };
        let object = self.find_object(&note.path).await?;
        if let Some(object) = &object {
            self.refresh_sidecar(object).await?;
        }
        // Only what no inventory names may go.
        let named = object.as_ref().is_some_and(|o| o.inventory.head.number() >= name.number());
        if !named {
            let version = join(&note.path, &name.to_string());
            self.abort_uploads(&note.path).await?;
            self.take_away(note, object.is_some(), &version).await?;
            return self.remove_note(&note.path).await;
        }
        self.forget_sealed(&note.path).await
    }

    async fn take_away(&self, note: &Note, object_exists: bool, version: &str) -> Result<()> {
        if self.store.capabilities().rename {
            let removed = join(&Note::directory(&note.path), "removed");
            let there = self.store.head(&join(version, INVENTORY)).await;
            if fetch::found(there)?.is_some() {
                // What an earlier attempt took away is in the way of this one.
                self.store.delete_all(&removed).await?;
                self.store.rename(version, &removed).await?;
            }
        } else if object_exists {
            self.store.delete_all(version).await?;
        } else {
            self.store.delete_all(&note.path).await?;
        }
        Ok(())
    }
}
