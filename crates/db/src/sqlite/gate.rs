//! Taking turns with the other processes that write to the same file.
//!
//! SQLite's own waiting polls, so a process that writes without pause starves one that only wants
//! a word. Two file locks make a turnstile: whoever wants to write takes the *turn*, waits for the
//! *pen*, and gives the turn back once it has the pen. Who just wrote must queue for the turn
//! again, behind the one who is waiting for the pen.

use crate::error::{Error, Result};
use crate::sqlite::beside;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

pub(crate) struct Gate {
    turn: File,
    pen: File,
    shown: String,
}

const NAP_SHORTEST: Duration = Duration::from_micros(100);
const NAP_LONGEST: Duration = Duration::from_millis(4);

impl Gate {
    pub fn open(path: &Path) -> Result<Gate> {
        Ok(Gate {
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
        let mut nap = NAP_SHORTEST;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if !waiting() => return Ok(false),
                Err(TryLockError::WouldBlock) => std::thread::sleep(nap),
                Err(TryLockError::Error(e)) => {
                    return Err(Error::Other(self.shown.clone(), e.to_string()));
                }
            }
            nap = (nap * 2).min(NAP_LONGEST);
        }
    }

    fn release(&self, lock: &File) {
        if let Err(error) = lock.unlock() {
            // The lock goes with the process at the latest; writing itself is guarded by SQLite.
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
