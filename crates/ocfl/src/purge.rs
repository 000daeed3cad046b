//! Removing a whole object, and keeping logs beside one.

use crate::error::{Error, Result};
use crate::fetch;
use crate::inventory::INVENTORY;
use crate::root::StorageRoot;
use crate::unsealed::{Note, Work};
use store::{Body, ListOptions, PutOptions, join};

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
        self.store.put(&key, body, &PutOptions::if_absent()).await?;
        Ok(())
    }
}
