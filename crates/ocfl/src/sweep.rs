//! Finding and removing what crashes have left behind.

use crate::error::{Error, Result};
use crate::root::StorageRoot;
use crate::seal::Progress;
use crate::unsealed::{Found, Note, Work, is_of_one_file};
use crate::version::VersionName;
use std::time::{Duration, SystemTime};
use store::ErrorKind;

/// What to sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Leave alone what was last worked on within this time: somebody may still be at it.
    pub older_than: Duration,
    /// Only tell what would be done.
    pub dry_run: bool,
}

impl Sweep {
    /// Whether something is too young to be touched. What has no known age counts as young.
    fn spares(&self, modified: Option<SystemTime>, now: SystemTime) -> bool {
        let age = modified.and_then(|modified| now.duration_since(modified).ok());
        !self.older_than.is_zero() && age.is_none_or(|age| age < self.older_than)
    }
}

/// Something that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub kind: Kind,
    /// The object's identifier; empty where there is no note that could tell.
    pub id: String,
    /// Where the object is or would be; without a note, where the leftover is.
    pub path: String,
    /// The version that was being written.
    pub version: Option<VersionName>,
    /// Whether content and inventory are complete, so that it could be sealed.
    pub complete: bool,
    pub modified: Option<SystemTime>,
    pub outcome: Outcome,
}

/// What was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A version that was being written.
    Version,
    /// An object that was being purged.
    Purge,
    /// Files without a note that tells whose they are.
    Files,
    /// A note that cannot be read.
    Note,
    /// A directory with nothing in it.
    Directory,
    /// An upload that was begun and not finished.
    Upload,
}

/// What became of something that was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Too young to be touched.
    Kept,
    /// It was visible already; its traces were removed.
    Finished,
    /// It was not visible, and was removed.
    Removed,
    /// The store does not list unfinished uploads, or not to us: there may be some.
    Unlisted,
    /// The object or the note about it cannot be read, so nothing was touched; a validation of the
    /// object tells why.
    Blocked,
}

fn nameless(kind: Kind, path: String, modified: Option<SystemTime>, outcome: Outcome) -> Leftover {
    Leftover { kind, id: String::new(), path, version: None, complete: false, modified, outcome }
}

impl StorageRoot {
    /// Finds what crashes have left behind, and removes it. Objects stay as they are.
    pub async fn sweep(&self, sweep: &Sweep) -> Result<Vec<Leftover>> {
        let now = SystemTime::now();
        // Uploads first, so that they are named and do not go silently with their version.
        let mut leftovers = self.sweep_uploads(sweep, now).await?;
        for found in self.found().await? {
            leftovers.push(match found {
                // No bytes are lost with it: it is removed at any age.
                Found::Empty { directory } => {
                    if !sweep.dry_run {
                        self.store.prune(&directory).await?;
                    }
                    nameless(Kind::Directory, directory, None, Outcome::Removed)
                }
                Found::Note(note) => self.sweep_note(note, sweep, now).await?,
                Found::Unreadable { key, modified } => {
                    nameless(Kind::Note, key, modified, Outcome::Blocked)
                }
                Found::Orphan { directory, modified } => {
                    let outcome = match sweep.spares(modified, now) {
                        true => Outcome::Kept,
                        false => Outcome::Removed,
                    };
                    if outcome == Outcome::Removed && !sweep.dry_run {
                        self.store.delete_all(&directory).await?;
                    }
                    nameless(Kind::Files, directory, modified, outcome)
                }
            });
        }
        Ok(leftovers)
    }

    async fn sweep_note(&self, note: Note, sweep: &Sweep, now: SystemTime) -> Result<Leftover> {
        let (kind, version, complete) = match &note.work {
            Work::Version { name, inventory, .. } => {
                (Kind::Version, Some(*name), inventory.is_some())
            }
            Work::Purge => (Kind::Purge, None, false),
        };
        let outcome = match sweep.spares(note.modified, now) {
            true => Outcome::Kept,
            false => match self.sweep_one(&note, sweep.dry_run).await {
                // One damaged object does not keep the others from being swept.
                Err(Error::Invalid { .. } | Error::Limit { .. }) => Outcome::Blocked,
                Err(Error::Store(error)) if is_of_one_file(error.kind()) => Outcome::Blocked,
                outcome => outcome?,
            },
        };
        let Note { id, path, modified, .. } = note;
        Ok(Leftover { kind, id, path, version, complete, modified, outcome })
    }

    async fn sweep_one(&self, note: &Note, dry_run: bool) -> Result<Outcome> {
        let finished = match &note.work {
            Work::Purge => None,
            Work::Version { .. } => match self.progress(note).await? {
                Progress::After(object) => Some(object),
                Progress::Before(_) | Progress::Conflict(_) => None,
            },
        };
        let Some(object) = finished else {
            if !dry_run {
                self.roll_back(note).await?;
            }
            return Ok(Outcome::Removed);
        };
        if !dry_run {
            self.refresh_sidecar(&object).await?;
            self.forget_sealed(&note.path).await?;
        }
        Ok(Outcome::Finished)
    }

    /// Gives up uploads that nobody finished.
    async fn sweep_uploads(&self, sweep: &Sweep, now: SystemTime) -> Result<Vec<Leftover>> {
        let uploads = match self.store.unfinished("").await {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Denied) => {
                let place = self.store.url().to_owned();
                return Ok(vec![nameless(Kind::Upload, place, None, Outcome::Unlisted)]);
            }
            uploads => uploads?,
        };
        let mut leftovers = Vec::new();
        for unfinished in uploads {
            let outcome = match sweep.spares(unfinished.begun, now) {
                true => Outcome::Kept,
                false => Outcome::Removed,
            };
            if outcome == Outcome::Removed && !sweep.dry_run {
                self.store.abort(&unfinished).await?;
            }
            let path = unfinished.key.unwrap_or(unfinished.id);
            leftovers.push(nameless(Kind::Upload, path, unfinished.begun, outcome));
        }
        Ok(leftovers)
    }
}
