//! Removing a whole object, and keeping logs beside one.

use crate::error::{Error, Result};
use crate::fetch;
use crate::inventory::INVENTORY;
use crate::root::StorageRoot;
use crate::unsealed::{Note, Work};
use store::{Body, Condition, ListOptions, PutOptions, join};

impl StorageRoot {
    /// Removes an object with all its versions. What was unsealed of it goes too.
    pub async fn purge(&self, id: &str) -> Result<()> {
        let path = self.object_path(id)?;
        if let Some(note) = self.note(&path).await? {
            self.roll_back(&note).await?;
            if note.work == Work::Purge {
                return Ok(());
            }
        }
        // Whatever is there under this identifier goes, also if it cannot be read any more.
        match self.find_object(&path).await {
            Ok(None) => return Err(Error::NoSuchObject(id.to_owned())),
            Ok(Some(object)) if object.inventory.id != id => {
                let (wanted, found) = (id.to_owned(), object.inventory.id);
                return Err(Error::WrongObject { path, wanted, found });
            }
            Ok(Some(_)) | Err(Error::Invalid { .. }) => {}
            Err(error) => return Err(error),
        }
        let note = Note { id: id.to_owned(), path, work: Work::Purge, modified: None };
        self.put_note(&note).await?;
        self.finish_purge(&note.path).await
    }

    /// How many versions of the files of an object that was purged a versioned bucket still keeps,
    /// marks of deletion included; `None` where the store does not tell.
    pub async fn versions_kept(&self, id: &str) -> Result<Option<u64>> {
        let path = self.object_path(id)?;
        let of_object = self.store.versions(&path).await?;
        let of_notes = self.store.versions(&Note::directory(&path)).await?;
        Ok(of_object.zip(of_notes).map(|(one, other)| one + other))
    }

    /// Removes those versions for good; returns how many there were. The object must be purged.
    pub async fn remove_versions(&self, id: &str) -> Result<u64> {
        let path = self.object_path(id)?;
        if self.find_object(&path).await?.is_some() {
            let why = "it is there; purge it first".to_owned();
            return Err(Error::Conflict { id: id.to_owned(), why });
        }
        let of_object = self.store.remove_versions(&path).await?;
        Ok(of_object + self.store.remove_versions(&Note::directory(&path)).await?)
    }

    /// Goes on with a purge wherever it was stopped.
    pub(crate) async fn finish_purge(&self, path: &str) -> Result<()> {
        if self.store.capabilities().rename {
            // One step, and the object is gone for everybody; its bytes follow.
            let removed = join(&Note::directory(path), "removed");
            let options = ListOptions { limit: 1, ..ListOptions::default() };
            if !self.store.list(path, &options).await?.entries.is_empty() {
                self.store.delete_all(&removed).await?;
                self.store.rename(path, &removed).await?;
            }
        } else {
            // Without its inventory there is no object, whatever else is still there.
            self.store.delete(&join(path, INVENTORY)).await?;
            self.abort_uploads(path).await?;
            self.store.delete_all(path).await?;
        }
        self.remove_note(path).await
    }

    /// Keeps a file in the object's `logs` directory. A log of that name must not exist.
    pub async fn add_log(&self, id: &str, name: &str, body: Body) -> Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > 200 || !name.chars().all(plain) || name.starts_with('.')
        {
            return Err(Error::BadLogName(name.to_owned()));
        }
        let path = self.object_path(id)?;
        let inventory = fetch::found(self.store.head(&join(&path, INVENTORY)).await)?;
        if inventory.is_none() {
            return Err(Error::NoSuchObject(id.to_owned()));
        }
        let key = join(&path, &format!("logs/{name}"));
        let options = PutOptions { condition: Condition::IfAbsent, ..self.own() };
        self.store.put(&key, body, &options).await?;
        Ok(())
    }
}
