//! Versions that are written and not sealed: the notes about them, and where they wait.
//!
//! Before anything of a version is written, a note about it is put below `extensions/` in the
//! root, and it is removed after everything else. So whatever a crash leaves behind has a note,
//! and finding leftovers never means searching through all objects.

use crate::algorithm::{algorithm_name, algorithm_named};
use crate::error::{Error, Result};
use crate::fetch::{self, Small};
use crate::root::{StorageRoot, UNSEALED};
use crate::version::VersionName;
use digest::Algorithm;
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use std::time::SystemTime;
use store::{Body, ErrorKind, Kind, SmallFile, join, list_all};

/// A version whose content and inventory are written, and which is not visible yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsealed {
    pub id: String,
    /// Where the object is or will be.
    pub path: String,
    pub version: VersionName,
    /// The digest of the version's inventory, of the algorithm below.
    pub inventory_digest: String,
    pub algorithm: Algorithm,
}

/// What is noted about work on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) work: Work,
    /// When the note was last written, as the store tells.
    pub(crate) modified: Option<SystemTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// A version is being written; the inventory's digest is there once it is complete.
    Version {
        name: VersionName,
        algorithm: Algorithm,
        /// The digest of the root inventory it builds on; `None` for a new object.
        base: Option<String>,
        inventory: Option<String>,
    },
    /// The object is being removed.
    Purge,
}

impl Note {
    /// The directory of everything that belongs to work on the object at `path`.
    pub(crate) fn directory(path: &str) -> String {
        // A digest, because a path may be as long as a key may be.
        let digest = Algorithm::Sha256.hex(path.as_bytes());
        format!("{UNSEALED}/{digest}")
    }

    pub(crate) fn key(path: &str) -> String {
        join(&Note::directory(path), "note.json")
    }

    /// The note as a file of the store.
    pub(crate) fn file(&self, root: &StorageRoot) -> SmallFile {
        root.own_file(Note::key(&self.path), format!("{:#}\n", self.write()))
    }

    fn write(&self) -> Value {
        match &self.work {
            Work::Purge => json!({"id": self.id, "path": self.path, "work": "purge"}),
            Work::Version { name, algorithm, base, inventory } => json!({
                "id": self.id,
                "path": self.path,
                "work": "version",
                "version": name.to_string(),
                "digestAlgorithm": algorithm_name(*algorithm),
                "base": base,
                "inventory": inventory,
            }),
        }
    }

    fn read(content: &[u8]) -> Option<Note> {
        let value: Value = serde_json::from_slice(content).ok()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let (id, path) = (text("id")?, text("path")?);
        let work = match text("work")?.as_str() {
            "purge" => Work::Purge,
            "version" => Work::Version {
                name: text("version")?.parse().ok()?,
                algorithm: algorithm_named(&text("digestAlgorithm")?)?,
                base: text("base"),
                inventory: text("inventory"),
            },
            _ => return None,
        };
        // A path that leads out of the root was not written here.
        crate::path::is_good(&path).then_some(Note { id, path, work, modified: None })
    }

    /// What is to be sealed, if the version is complete.
    pub(crate) fn unsealed(&self) -> Option<Unsealed> {
        match &self.work {
            Work::Version { name, algorithm, inventory: Some(digest), .. } => Some(Unsealed {
                id: self.id.clone(),
                path: self.path.clone(),
                version: *name,
                inventory_digest: digest.clone(),
                algorithm: *algorithm,
            }),
            _ => None,
        }
    }
}

/// What is found where unfinished work leaves its traces.
pub(crate) enum Found {
    Note(Note),
    /// Something that should be a note.
    Unreadable {
        key: String,
        modified: Option<SystemTime>,
    },
    /// Files aside without a note: the crash came before it was there.
    Orphan {
        directory: String,
        modified: Option<SystemTime>,
    },
    /// Directories with nothing in them: the crash came between the last file and them.
    Empty {
        directory: String,
    },
}

/// Whether an error is about one file, and not about the store.
pub(crate) fn is_of_one_file(kind: ErrorKind) -> bool {
    use ErrorKind::{Cold, Corrupt, Denied, InvalidKey, NotPlain};
    matches!(kind, Corrupt | Denied | NotPlain | Cold | InvalidKey)
}

/// Where the parts of an unsealed version are while it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The object's directory: the real one, or one that stands for it.
    pub(crate) object: String,
    /// The version's directory.
    pub(crate) version: String,
    /// Whether they are moved into place by sealing.
    pub(crate) aside: bool,
}

impl StorageRoot {
    /// Where a version waits: aside where the store can rename, in its place elsewhere.
    pub(crate) fn waiting(&self, path: &str, version: VersionName) -> Waiting {
        let aside = self.store.capabilities().rename;
        let object = if aside { join(&Note::directory(path), "object") } else { path.to_owned() };
        let version = join(&object, &version.to_string());
        Waiting { object, version, aside }
    }

    pub(crate) async fn put_note(&self, note: &Note) -> Result<()> {
        let SmallFile { key, content, .. } = note.file(self);
        self.store.put(&key, Body::from_bytes(content), &self.own()).await?;
        Ok(())
    }

    pub(crate) async fn note(&self, path: &str) -> Result<Option<Note>> {
        let key = Note::key(path);
        let (content, modified) = fetch::small_and_age(&self.store, &key, &self.limits).await?;
        let content = match content {
            Small::Missing => return Ok(None),
            Small::TooLarge => Default::default(),
            Small::Whole(content) => content,
        };
        let note = Note::read(&content).filter(|note| note.path == path);
        match note {
            Some(note) => Ok(Some(Note { modified, ..note })),
            None => Err(Error::BadNote(key)),
        }
    }

    /// Forgets work that is done, and everything that still lies aside. Should any of it be there
    /// again after a crash, a sweep finds it.
    pub(crate) async fn remove_note(&self, path: &str) -> Result<()> {
        if self.store.capabilities().rename {
            self.store.forget(&join(&Note::directory(path), "object")).await?;
            self.store.forget(&join(&Note::directory(path), "removed")).await?;
        }
        Ok(self.store.forget(&Note::key(path)).await?)
    }

    /// Aborts all unfinished uploads below a prefix; returns how many. Where the store
    /// does not tell which there are, or not to us, a rule of the bucket has to remove them.
    pub(crate) async fn abort_uploads(&self, prefix: &str) -> Result<u64> {
        if self.store.capabilities().rename {
            // There they are files aside, and go with them.
            return Ok(0);
        }
        let uploads = match self.store.unfinished(prefix).await {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Denied) => {
                return Ok(0);
            }
            uploads => uploads?,
        };
        for upload in &uploads {
            self.store.abort(upload).await?;
        }
        Ok(uploads.len() as u64)
    }

    /// Everything that unfinished work has left.
    pub(crate) async fn found(&self) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut entries = list_all(self.store.clone(), UNSEALED, false);
        while let Some(entry) = entries.try_next().await? {
            if entry.kind != Kind::Directory || entry.key == StorageRoot::TEMPORARIES {
                continue;
            }
            let key = join(&entry.key, "note.json");
            let note = fetch::small_and_age(&self.store, &key, &self.limits).await;
            found.push(match note {
                Ok((Small::Missing, _)) => match self.newest(&entry.key).await? {
                    Some(modified) => Found::Orphan { directory: entry.key, modified },
                    None => Found::Empty { directory: entry.key },
                },
                Ok((Small::Whole(content), modified)) => match Note::read(&content) {
                    Some(note) => Found::Note(Note { modified, ..note }),
                    None => Found::Unreadable { key, modified },
                },
                Ok((Small::TooLarge, modified)) => Found::Unreadable { key, modified },
                Err(Error::Store(error)) if is_of_one_file(error.kind()) => {
                    Found::Unreadable { key, modified: None }
                }
                Err(error) => return Err(error),
            });
        }
        Ok(found)
    }

    /// When the newest file below a prefix was written; `None` if there is none.
    async fn newest(&self, prefix: &str) -> Result<Option<Option<SystemTime>>> {
        let mut newest = None;
        let mut entries = list_all(self.store.clone(), prefix, true);
        while let Some(entry) = entries.try_next().await? {
            if entry.kind != Kind::Directory {
                newest = newest.max(Some(entry.modified));
            }
        }
        Ok(newest)
    }

    /// The version of an object that is written and not sealed, if there is one.
    pub async fn unsealed(&self, id: &str) -> Result<Option<Unsealed>> {
        let note = self.note(&self.object_path(id)?).await?;
        Ok(note.and_then(|note| note.unsealed()))
    }
}
