//! Reads one file of an object, and takes it from the next copy when one turns out bad.
//!
//! K1: every byte is compared with the registry's digest on the way. K2: a copy that differs is
//! recorded as bad. K3: a mismatch is read a second time before it counts.

use super::content::{ContentState, Fault, Method, Referred, look};
use super::copies::{Copies, RankedCopy, StoredFile, Unusable};
use super::{Place, store_error};
use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::registry::bad_copy::{self, BadCopy};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use ocfl::{Algorithm, Sealed, SingleHasher};
use std::sync::PoisonError;
use store::{ByteStream, ErrorKind};

/// A part of a file on its way.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    Bytes(Bytes),
    /// What came before is not the file: it follows again from its beginning.
    Restart,
    /// The file is complete, and has its digest.
    End,
}

/// Why a file cannot be read from any copy.
#[derive(Debug)]
pub enum ReadError {
    /// Every copy that can be read has other bytes, or none.
    Damaged(String),
    /// The copies that are left are in cold storage.
    Frozen(String),
    /// A store or the database did not answer.
    Failed(Error),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> ReadError {
        ReadError::Failed(error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        match error {
            ReadError::Damaged(message) => Error::permanent(ErrorCode::NoIntactCopy, message),
            ReadError::Frozen(message) => Error::permanent(ErrorCode::ContentFrozen, message),
            ReadError::Failed(error) => error,
        }
    }
}

/// What went wrong with one copy.
enum Trouble {
    Bad(String),
    Frozen,
    Failed(Error),
}

/// A file that is being read.
pub struct FileReader<'a> {
    copies: &'a Copies,
    file: &'a StoredFile,
    /// Which copy is read next, or is being read.
    at: usize,
    open: Option<OpenFile>,
    /// The copy that is being read was looked at again, and was good then.
    is_second_try: bool,
    /// Something was given that turned out not to be the file.
    must_restart: bool,
    troubles: Vec<Trouble>,
}

/// The content in one copy.
struct OpenFile {
    place: Place,
    key: String,
    body: ByteStream,
    hasher: SingleHasher,
    length: u64,
}

/// How reading from a copy ended.
enum Step {
    Piece(Bytes),
    End,
    /// The bytes are not those of the file, or there are none.
    Suspect(Fault),
    Frozen,
    Failed(store::Error),
}

impl<'a> FileReader<'a> {
    pub(super) fn new(copies: &'a Copies, file: &'a StoredFile) -> FileReader<'a> {
        FileReader {
            copies,
            file,
            at: 0,
            open: None,
            is_second_try: false,
            must_restart: false,
            troubles: Vec::new(),
        }
    }

    /// The next part of the file.
    pub async fn next(&mut self) -> Result<Piece, ReadError> {
        loop {
            if self.open.is_none() && !self.open_next().await? {
                return Err(self.failure());
            }
            if std::mem::take(&mut self.must_restart) {
                return Ok(Piece::Restart);
            }
            let Some(open) = &mut self.open else { continue };
            match open.step(self.file).await {
                Step::Piece(bytes) => return Ok(Piece::Bytes(bytes)),
                Step::End => return Ok(Piece::End),
                Step::Suspect(fault) => {
                    self.must_restart |= open.length > 0;
                    self.suspect(fault).await?;
                }
                Step::Frozen => self.pass(Trouble::Frozen),
                Step::Failed(error) => {
                    self.must_restart |= open.length > 0;
                    self.failed(error);
                }
            }
        }
    }

    /// The whole file in memory.
    pub async fn whole(mut self) -> Result<Bytes, ReadError> {
        let mut whole = BytesMut::new();
        loop {
            match self.next().await? {
                // Most small files are one piece.
                Piece::Bytes(bytes) => whole.extend_from_slice(&bytes),
                Piece::Restart => whole.clear(),
                Piece::End => return Ok(whole.freeze()),
            }
        }
    }

    /// The store that the file is being read from.
    pub fn store(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.place.name.as_str())
    }

    fn copy(&self) -> Option<&'a RankedCopy> {
        self.copies.ranked.get(self.at)
    }

    /// Goes on with the next copy.
    fn pass(&mut self, trouble: Trouble) {
        self.troubles.push(trouble);
        self.open = None;
        self.is_second_try = false;
        self.at += 1;
    }

    /// Opens the content in the next copy that has it; false if there is none left.
    async fn open_next(&mut self) -> Result<bool, ReadError> {
        while let Some(copy) = self.copy() {
            let (place, object) = match self.copies.open(copy).await? {
                Ok(opened) => opened,
                Err(why) => {
                    self.pass(match why.is_damage {
                        true => Trouble::Bad(why.message),
                        false => Trouble::Failed(why.into_error()),
                    });
                    continue;
                }
            };
            let Some(content) = Sealed::Object(object).find(&self.file.sha512) else {
                let (store, has) = (&copy.view.store, copy.view.version);
                let message = format!("store {store} has the object only to version {has}");
                self.pass(Trouble::Bad(message));
                continue;
            };
            let bad = (copy.view.store.clone(), self.file.sha512.clone());
            let is_bad = {
                let known = &self.copies.known_bad;
                known.lock().unwrap_or_else(PoisonError::into_inner).contains(&bad)
            };
            if is_bad {
                let message = format!("store {}: {} is damaged", copy.view.store, content.key);
                self.pass(Trouble::Bad(message));
                continue;
            }
            match place.root.store().get(&content.key, None).await {
                Ok(found) => {
                    self.open = Some(OpenFile {
                        place: place.clone(),
                        key: content.key,
                        body: found.body,
                        hasher: SingleHasher::new(Algorithm::Sha512),
                        length: 0,
                    });
                    return Ok(true);
                }
                Err(error) if error.is_not_found() => {
                    self.bad(copy, &content.key, Fault::Missing).await?;
                }
                Err(error) if error.kind() == ErrorKind::NotPlain => {
                    self.bad(copy, &content.key, Fault::NotAFile).await?;
                }
                Err(error) if error.kind() == ErrorKind::Cold => self.pass(Trouble::Frozen),
                Err(error) => self.failed(error),
            }
        }
        Ok(false)
    }

    /// K3: what was wrong once is read again before it counts.
    async fn suspect(&mut self, fault: Fault) -> Result<(), ReadError> {
        let (Some(copy), Some(open)) = (self.copy(), &self.open) else { return Ok(()) };
        let (place, key) = (open.place.clone(), open.key.clone());
        if self.is_second_try {
            let message = format!(
                "store {}: {key} {fault}, and is good when it is read again; check the network and the disks on the way to it",
                place.name
            );
            let error = Error::transient(ErrorCode::UnsteadyStore, message).at(place.target());
            self.pass(Trouble::Failed(error));
            return Ok(());
        }
        let referred = Referred {
            path: self.file.path.clone(),
            size: self.file.size,
            sha512: self.file.sha512.clone(),
            sha256: self.file.sha256.clone(),
            key: key.clone(),
        };
        match look(&place, &referred, Method::Reading).await {
            Ok(ContentState::Damaged(fault)) => self.bad(copy, &key, fault).await?,
            Ok(ContentState::Good) => {
                tracing::warn!(store = place.name, key, "a second reading found it good");
                self.open = None;
                self.is_second_try = true;
            }
            Ok(ContentState::Listed) => self.pass(Trouble::Frozen),
            Err(error) => self.pass(Trouble::Failed(error)),
        }
        Ok(())
    }

    /// K2: records that the copy is bad, and goes on with the next one.
    async fn bad(&mut self, copy: &RankedCopy, key: &str, fault: Fault) -> Result<(), ReadError> {
        let found = BadCopy {
            file: Some((self.file.path.clone(), self.file.since)),
            is_missing: fault == Fault::Missing,
            ..self.copies.bad_copy(copy, key, fault.to_string())
        };
        let message = format!("store {}: {key} {fault}", copy.view.store);
        let bad = (copy.view.store.clone(), self.file.sha512.clone());
        self.copies.known_bad.lock().unwrap_or_else(PoisonError::into_inner).insert(bad);
        tracing::warn!(store = copy.view.store, key, "{fault}; another copy is read");
        self.copies.app.db.write(move |tx| bad_copy::record(tx, &found)).await?;
        self.pass(Trouble::Bad(message));
        Ok(())
    }

    fn failed(&mut self, error: store::Error) {
        let Some(copy) = self.copy() else { return };
        let store = &copy.view.store;
        // It is down, or lets nobody in: other files of it need not be asked for.
        let is_whole = matches!(
            error.kind(),
            ErrorKind::Unavailable | ErrorKind::Denied | ErrorKind::Throttled
        );
        let error = store_error(store, error.into());
        if is_whole {
            copy.give_up(Unusable { is_transient: true, ..Unusable::of(store, &error) });
        }
        self.pass(Trouble::Failed(error));
    }

    /// Why no copy has the file. What may pass, and what can be thawed, comes before what is lost.
    fn failure(&mut self) -> ReadError {
        let path = &self.file.path;
        let identifier = &self.copies.object.identifier;
        let mut bad = Vec::new();
        let mut is_frozen = false;
        for trouble in std::mem::take(&mut self.troubles) {
            match trouble {
                Trouble::Failed(error) => return ReadError::Failed(error),
                Trouble::Frozen => is_frozen = true,
                Trouble::Bad(message) => bad.push(message),
            }
        }
        match is_frozen {
            true => ReadError::Frozen(format!(
                "{path} of {identifier} is in cold storage; `accession restore {identifier}` has it thawed"
            )),
            false => ReadError::Damaged(format!(
                "no store has {path} of {identifier} intact: {}; `accession check --content {identifier}` says what is damaged",
                bad.join("; ")
            )),
        }
    }
}

impl OpenFile {
    async fn step(&mut self, file: &StoredFile) -> Step {
        match self.body.next().await {
            Some(Ok(bytes)) => {
                self.length += bytes.len() as u64;
                if self.length > file.size {
                    let found = self.length;
                    return Step::Suspect(Fault::Size { found, wanted: file.size });
                }
                self.hasher.update(&bytes);
                Step::Piece(bytes)
            }
            Some(Err(error)) => match error.kind() {
                ErrorKind::Corrupt => Step::Suspect(Fault::Bytes),
                ErrorKind::NotFound => Step::Suspect(Fault::Missing),
                ErrorKind::Cold => Step::Frozen,
                _ => Step::Failed(error),
            },
            None if self.length < file.size => {
                Step::Suspect(Fault::Size { found: self.length, wanted: file.size })
            }
            None => {
                let fresh = SingleHasher::new(Algorithm::Sha512);
                let found = std::mem::replace(&mut self.hasher, fresh).finish().to_string();
                match found.eq_ignore_ascii_case(&file.sha512) {
                    true => Step::End,
                    false => Step::Suspect(Fault::Bytes),
                }
            }
        }
    }
}
