//! Finding and removing what crashes have left behind.

use crate::error::{Error, Result};
use crate::root::StorageRoot;
use crate::seal::Progress;
use crate::unsealed::{Note, Work};
use crate::version::VersionName;
use std::time::{Duration, SystemTime};

/// What to sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Leave alone what was last worked on within this time: somebody may still be at it.
    pub older_than: Duration,
    /// Only tell what would be done.
    pub dry_run: bool,
}

/// Something that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub id: String,
    pub path: String,
    /// The version that was being written; `None` for an object that was being purged.
    pub version: Option<VersionName>,
    /// Whether content and inventory are complete, so that it could be sealed.
    pub complete: bool,
    pub modified: Option<SystemTime>,
    pub outcome: Outcome,
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
    /// The object cannot be read, so nothing was touched; a validation tells why.
    Blocked,
}

impl StorageRoot {
    /// Finds what crashes have left behind, and removes it. Objects stay as they are.
    pub async fn sweep(&self, sweep: &Sweep) -> Result<Vec<Leftover>> {
        let now = SystemTime::now();
        let mut leftovers = Vec::new();
        for note in self.notes().await? {
            let (version, complete) = match &note.work {
                Work::Version { name, inventory, .. } => (Some(*name), inventory.is_some()),
                Work::Purge => (None, false),
            };
            let age = note.modified.and_then(|modified| now.duration_since(modified).ok());
            let young = age.is_none_or(|age| age < sweep.older_than);
            let outcome = match young && !sweep.older_than.is_zero() {
                true => Outcome::Kept,
                false => match self.sweep_one(&note, sweep.dry_run).await {
                    // One damaged object does not keep the others from being swept.
                    Err(Error::Invalid { .. }) => Outcome::Blocked,
                    outcome => outcome?,
                },
            };
            let Note { id, path, modified, .. } = note;
            leftovers.push(Leftover { id, path, version, complete, modified, outcome });
        }
        self.sweep_uploads(sweep, now).await?;
        Ok(leftovers)
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
            self.remove_note(&note.path).await?;
        }
        Ok(Outcome::Finished)
    }

    /// Gives up uploads that nobody finished.
    async fn sweep_uploads(&self, sweep: &Sweep, now: SystemTime) -> Result<()> {
        if sweep.dry_run {
            return Ok(());
        }
        for unfinished in self.store.unfinished("").await? {
            let age = unfinished.begun.and_then(|begun| now.duration_since(begun).ok());
            if age.is_some_and(|age| age >= sweep.older_than) {
                self.store.abort(&unfinished).await?;
            }
        }
        Ok(())
    }
}
