//! The copies of an object, ranked by how well they can be read.
//!
//! Good copies come before bad ones, warm stores before cold ones, then stores by their
//! `restore_priority`. A copy is opened when a file is first read from it, and left alone for the rest
//! of the run once its store does not answer.

use super::reading::{FileReader, ReadError};
use super::{Place, object_error};
use crate::ErrorCode;
use crate::app::App;
use crate::blocking::blocking;
use crate::model::codes::{CopyState, ObjectState};
use crate::model::error::{Error, Result};
use crate::registry::bad_copy::{self, BadCopy};
use crate::registry::view::{self, CopyView, FileView, ObjectView};
use bytes::Bytes;
use ocfl::{Algorithm, Object, Sealed};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// A file of an object, as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    pub path: String,
    pub size: u64,
    pub sha512: String,
    pub sha256: Option<String>,
    /// The version that brought it.
    pub since: i64,
}

impl StoredFile {
    pub fn of_view(file: &FileView) -> StoredFile {
        let sha256 = file.digests.as_ref().and_then(|digests| digests.get("sha256"));
        StoredFile {
            path: file.path.clone(),
            size: u64::try_from(file.size).unwrap_or(0),
            sha512: file.sha512.clone(),
            sha256: sha256.and_then(|digest| digest.as_str()).map(str::to_string),
            since: file.since,
        }
    }
}

/// The copies of one object.
pub struct Copies {
    pub(super) app: Arc<App>,
    pub object: ObjectView,
    /// Who reads, for the events about what turns out bad.
    pub(super) operator: String,
    pub(super) ranked: Vec<RankedCopy>,
    /// Content that was found bad in this run: the store and the digest.
    pub(super) known_bad: Mutex<HashSet<(String, String)>>,
}

/// A copy, and what is known of it in this run.
pub(super) struct RankedCopy {
    pub view: CopyView,
    pub is_cold: bool,
    opened: OnceCell<(Place, Arc<Object>)>,
    /// Why nothing more is read from it.
    unusable: Mutex<Option<Unusable>>,
}

/// Why a copy as a whole cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Unusable {
    pub code: ErrorCode,
    pub message: String,
    /// Whether it may pass, and the breaker that it concerns.
    pub target: Option<String>,
    pub is_transient: bool,
    /// The copy is not what it should be, and not only out of reach.
    pub is_damage: bool,
}

impl Unusable {
    pub fn of(store: &str, error: &Error) -> Unusable {
        Unusable {
            code: error.own_code().unwrap_or(ErrorCode::Io),
            message: error.to_string(),
            target: Some(super::target(store)),
            is_transient: error.is_transient(),
            is_damage: false,
        }
    }

    pub fn into_error(self) -> Error {
        match (self.is_transient, self.target) {
            (true, Some(target)) => Error::transient(self.code, self.message).at(target),
            (true, None) => Error::transient(self.code, self.message),
            (false, _) => Error::permanent(self.code, self.message),
        }
    }
}

impl RankedCopy {
    async fn open_once(&self, app: &App) -> Result<(Place, Arc<Object>), (Error, Option<String>)> {
        let place = app.stores.get(&self.view.store).await.map_err(|error| (error, None))?;
        // K3: what looks damaged is looked at twice.
        let mut object = place.root.object_at(&self.view.key).await;
        if object.as_ref().is_err_and(is_damage) {
            object = place.root.object_at(&self.view.key).await;
        }
        let object = object.map_err(|error| {
            let fault = is_damage(&error).then(|| format!("cannot be read: {error}"));
            (object_error(&self.view.store, error), fault)
        })?;
        Ok((place, Arc::new(object)))
    }

    /// Why nothing more is read from it in this run.
    fn why_unusable(&self) -> Option<Unusable> {
        self.unusable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads nothing more from it in this run.
    pub fn give_up(&self, why: Unusable) {
        *self.unusable.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// Whether an object is not what it should be, and not only out of reach.
fn is_damage(error: &ocfl::Error) -> bool {
    use ocfl::Error as E;
    matches!(error, E::NoSuchObject(_) | E::Invalid { .. } | E::WrongObject { .. })
}

impl Copies {
    /// The copies that the registry knows. An object that is not kept has none to read.
    pub async fn of(app: &Arc<App>, object: ObjectView, operator: &str) -> Result<Copies> {
        check_kept(&object)?;
        let id = object.id;
        let views = app.db.read(move |tx| view::copies(tx, id)).await?;
        let mut ranked: Vec<RankedCopy> = views
            .into_iter()
            .map(|view| RankedCopy {
                is_cold: app.stores.is_cold(&view.store),
                view,
                opened: OnceCell::new(),
                unusable: Mutex::default(),
            })
            .collect();
        ranked.sort_by_cached_key(|copy| {
            let store = &copy.view.store;
            let is_bad = copy.view.state == CopyState::Bad;
            (copy.is_cold, is_bad, app.stores.restore_priority(store), store.clone())
        });
        if ranked.is_empty() {
            return Err(Error::permanent(
                ErrorCode::NoCopy,
                format!(
                    "no store is recorded to have {}; `accession registry rebuild` takes in what a store has",
                    object.identifier
                ),
            ));
        }
        Ok(Copies {
            app: app.clone(),
            object,
            operator: operator.to_string(),
            ranked,
            known_bad: Mutex::default(),
        })
    }

    /// The stores, best first.
    pub fn stores(&self) -> impl Iterator<Item = &str> {
        self.ranked.iter().map(|copy| copy.view.store.as_str())
    }

    /// The stores that keep their copy in cold storage.
    pub fn is_cold(&self, store: &str) -> bool {
        self.ranked.iter().any(|copy| copy.view.store == store && copy.is_cold)
    }

    /// Reads many small files whole, each from a copy that has it intact. They are read together from
    /// the best copy; those that are not as they should be are read one by one, from all copies.
    pub async fn read_small(&self, files: &[StoredFile]) -> Vec<Result<Bytes, ReadError>> {
        let together = match self.read_together(files).await {
            Ok(together) => together,
            Err(error) => {
                tracing::debug!(%error, "files are read one by one");
                Vec::new()
            }
        };
        let mut together = together.into_iter();
        let mut read = Vec::with_capacity(files.len());
        for file in files {
            read.push(match together.next().flatten() {
                Some(content) => Ok(content),
                None => self.read_whole(file).await,
            });
        }
        read
    }

    /// What the best copy has of some files, where that is what it should be.
    async fn read_together(&self, files: &[StoredFile]) -> Result<Vec<Option<Bytes>>> {
        let Some(copy) = self.ranked.first().filter(|copy| !copy.is_cold) else {
            return Ok(Vec::new());
        };
        let Ok((place, object)) = self.open(copy).await? else { return Ok(Vec::new()) };
        let object = Sealed::Object(object);
        let found: Option<Vec<String>> =
            files.iter().map(|file| object.find(&file.sha512).map(|content| content.key)).collect();
        let Some(keys) = found else { return Ok(Vec::new()) };
        let most = files.iter().map(|file| file.size).max().unwrap_or(0);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let contents = place.root.store().get_batch(keys, most).await;
        let contents = contents.map_err(|error| object_error(&place.name, error.into()))?;
        let wanted: Vec<String> = files.iter().map(|file| file.sha512.clone()).collect();
        let compare = move || {
            let compare = |(content, wanted): (Option<Bytes>, String)| {
                let is_same =
                    |content: &Bytes| Algorithm::Sha512.hex(content).eq_ignore_ascii_case(&wanted);
                content.filter(is_same)
            };
            Ok(contents.into_iter().zip(wanted).map(compare).collect())
        };
        blocking(compare).await
    }

    /// The copies that can be opened, best first; why the others cannot.
    pub async fn opened(&self, troubles: &mut Vec<String>) -> Result<Vec<(Place, Arc<Object>)>> {
        let mut opened = Vec::new();
        for copy in &self.ranked {
            match self.open(copy).await? {
                Ok(both) => opened.push(both.clone()),
                Err(why) => troubles.push(why.message),
            }
        }
        Ok(opened)
    }

    /// Whether a copy that can be read at once is not known to be bad.
    pub fn has_warm(&self) -> bool {
        self.ranked.iter().any(|copy| !copy.is_cold && copy.view.state == CopyState::Good)
    }

    /// Where a file's content is in the best cold copy that has it.
    pub async fn cold_place(&self, file: &StoredFile) -> Result<Option<ColdFile>> {
        let mut last = None;
        for copy in self.ranked.iter().filter(|copy| copy.is_cold) {
            match self.open(copy).await? {
                Ok((place, object)) => {
                    if let Some(content) = Sealed::Object(object).find(&file.sha512) {
                        return Ok(Some(ColdFile { place: place.clone(), key: content.key }));
                    }
                }
                Err(why) => last = Some(why),
            }
        }
        match last {
            Some(why) if why.is_transient => Err(why.into_error()),
            _ => Ok(None),
        }
    }

    /// Opens a copy: the store, and the object in it. K2: one that is damaged is recorded as bad.
    pub(super) async fn open<'a>(
        &self,
        copy: &'a RankedCopy,
    ) -> Result<Result<&'a (Place, Arc<Object>), Unusable>> {
        if let Some(why) = copy.why_unusable() {
            return Ok(Err(why));
        }
        match copy.opened.get_or_try_init(|| copy.open_once(&self.app)).await {
            Ok(opened) => Ok(Ok(opened)),
            Err((error, fault)) => {
                let is_damage = fault.is_some();
                let why = Unusable { is_damage, ..Unusable::of(&copy.view.store, &error) };
                copy.give_up(why.clone());
                if let Some(fault) = fault {
                    let bad = self.bad_copy(copy, &copy.view.key, fault);
                    self.app.db.write(move |tx| bad_copy::record(tx, &bad)).await?;
                }
                Ok(Err(why))
            }
        }
    }

    /// What is recorded of a copy that is bad as a whole.
    pub(super) fn bad_copy(&self, copy: &RankedCopy, key: &str, fault: String) -> BadCopy {
        BadCopy {
            installation: self.app.installation.clone(),
            object: self.object.id,
            identifier: self.object.identifier.clone(),
            store: copy.view.store.clone(),
            inventory_digest: copy.view.digest.clone(),
            file: None,
            key: key.to_string(),
            fault,
            is_missing: false,
            operator: self.operator.clone(),
        }
    }

    /// Begins to read a file.
    pub fn read<'a>(&'a self, file: &'a StoredFile) -> FileReader<'a> {
        FileReader::new(self, file)
    }

    /// Reads a whole file into memory, from a copy that has it intact.
    pub async fn read_whole(&self, file: &StoredFile) -> Result<Bytes, ReadError> {
        self.read(file).whole().await
    }
}

/// Content in cold storage.
#[derive(Debug, Clone)]
pub struct ColdFile {
    pub place: Place,
    pub key: String,
}

/// Refuses objects of which there is nothing to read.
pub fn check_kept(object: &ObjectView) -> Result<()> {
    let identifier = &object.identifier;
    match object.state {
        ObjectState::Active => Ok(()),
        ObjectState::Reserved => Err(Error::permanent(
            ErrorCode::ObjectReserved,
            format!(
                "{identifier} is reserved for a deposit that is not recorded yet; `accession jobs list ingest` shows how far it is"
            ),
        )),
        ObjectState::Deleted => Err(Error::permanent(
            ErrorCode::ObjectDeleted,
            format!(
                "{identifier} was deleted; `accession objects events {identifier}` says when and by whom"
            ),
        )),
    }
}
