//! Wakes other processes on the same SQLite file: a byte written to a small file beside it, which they
//! watch with inotify. It is written after the commit, so a process that wakes finds what it was woken
//! for. A wake-up that is lost with its process costs one interval of the runtime's slow polling.
//!
//! Every handle holds a shared lock on that file. A handle that finds itself alone writes nothing: that
//! would only wake a thread of its own process after every commit. A handle that begins to listen
//! looks for work after that, and so finds what was committed before.

use crate::error::{Error, Result};
use crate::sqlite::beside;
use crate::wakes::Wakes;
use inotify::{Inotify, WatchMask};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Weak};

pub(crate) struct FileWaker {
    file: File,
}

impl FileWaker {
    /// Opens the file beside the database, and begins to watch it.
    pub fn open(path: &Path, wakes: Arc<Wakes>) -> Result<FileWaker> {
        let watched = beside(path, "-bell");
        let file = super::open_beside(path, "-bell").map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Error::ReadOnly(path.display().to_string())
            }
            _ => Error::CannotOpen(watched.display().to_string(), e.to_string()),
        })?;
        if let Err(error) = watch(&watched, Arc::downgrade(&wakes)) {
            tracing::warn!(%error, "other processes cannot wake this one; it looks for work by polling");
        }
        Ok(FileWaker { file })
    }

    /// Shows other handles that this one listens. As [`FileWaker::is_heard`], only while this process
    /// may write to the database.
    pub fn show(&self) {
        if let Err(error) = flock(&self.file, FlockOperation::NonBlockingLockShared) {
            tracing::debug!(%error, "the wake-up file cannot be locked; other processes may not wake this one");
        }
    }

    /// Returns whether another handle listens, or may do so. Only while this process may write to the
    /// database: the shared lock is exchanged for an exclusive one and back, which is not atomic, and
    /// no other handle may look in between.
    pub fn is_heard(&self) -> bool {
        let is_alone = flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        self.show();
        !is_alone
    }

    /// Wakes the other handles.
    pub fn wake(&self) {
        if let Err(error) = self.file.write_at(b"!", 0) {
            tracing::debug!(%error, "other processes could not be woken; they find the work by polling");
        }
    }
}

fn watch(file: &Path, wakes: Weak<Wakes>) -> std::io::Result<()> {
    let mut inotify = Inotify::init()?;
    inotify.watches().add(file, WatchMask::MODIFY)?;
    std::thread::Builder::new().name("db-waker".to_string()).spawn(move || {
        let mut buffer = [0; 4096];
        // Ends with the process, or at the first wake-up after the database was closed.
        while inotify.read_events_blocking(&mut buffer).is_ok() {
            match wakes.upgrade() {
                Some(wakes) => wakes.ring_all(),
                None => return,
            }
        }
    })?;
    Ok(())
}
