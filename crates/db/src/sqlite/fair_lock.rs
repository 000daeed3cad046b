//! Taking turns with the other processes that write to the same file.
//!
//! SQLite polls for its locks, so a process that writes without pause starves one that writes now and
//! then. Two file locks make a turnstile: a writer takes the *turn*, waits for the *pen*, and gives the
//! turn back once it has the pen. A process that just wrote must take the turn again, behind the one
//! that waits for the pen.

use crate::error::{Error, Result};
use crate::sqlite::beside;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

pub(crate) struct FairLock {
    turn: File,
    pen: File,
    shown: String,
}

const BACKOFF_SHORTEST: Duration = Duration::from_micros(100);
const BACKOFF_LONGEST: Duration = Duration::from_millis(4);

impl FairLock {
    pub fn open(path: &Path) -> Result<FairLock> {
        Ok(FairLock {
            turn: lock_file(path, "-turn")?,
            pen: lock_file(path, "-pen")?,
            shown: path.display().to_string(),
        })
    }

    /// Waits until this process may write. `waiting` is called between looks, and ends the wait
    /// by returning false.
    pub fn enter(&self, mut waiting: impl FnMut() -> bool) -> Result<bool> {
        if !self.take(&self.turn, &mut waiting)? {
            return Ok(false);
        }
        let has_pen = self.take(&self.pen, &mut waiting);
        self.release(&self.turn);
        has_pen
    }

    pub fn leave(&self) {
        self.release(&self.pen);
    }

    fn take(&self, lock: &File, waiting: &mut impl FnMut() -> bool) -> Result<bool> {
        let mut backoff = BACKOFF_SHORTEST;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if !waiting() => return Ok(false),
                Err(TryLockError::WouldBlock) => std::thread::sleep(backoff),
                Err(TryLockError::Error(e)) => {
                    return Err(Error::Other(self.shown.clone(), e.to_string()));
                }
            }
            backoff = (backoff * 2).min(BACKOFF_LONGEST);
        }
    }

    fn release(&self, lock: &File) {
        if let Err(error) = lock.unlock() {
            // The lock ends with the process at the latest, and SQLite has locks of its own.
            tracing::warn!(database = self.shown, %error, "a lock file could not be unlocked");
        }
    }
}

fn lock_file(path: &Path, suffix: &str) -> Result<File> {
    let file = beside(path, suffix);
    super::open_beside(path, suffix).map_err(|e| match e.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly(path.display().to_string())
        }
        std::io::ErrorKind::StorageFull => Error::NoSpace(path.display().to_string()),
        _ => Error::CannotOpen(file.display().to_string(), e.to_string()),
    })
}
