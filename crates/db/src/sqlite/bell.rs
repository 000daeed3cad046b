//! Waking other processes on the same SQLite file: a byte written to a small file beside it, which
//! they watch with inotify. Rung after the commit, so whoever wakes finds what it was woken for.
//! A ring that is lost with its process is made up for by the runtime's slow polling.

use crate::error::{Error, Result};
use crate::sqlite::beside;
use crate::wakes::Wakes;
use inotify::{Inotify, WatchMask};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Weak};

pub(crate) struct Bell {
    file: File,
}

impl Bell {
    pub fn open(path: &Path, wakes: Arc<Wakes>) -> Result<Bell> {
        let bell = beside(path, "-bell");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&bell)
            .map_err(|e| match e.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    Error::ReadOnly(path.display().to_string())
                }
                _ => Error::CannotOpen(bell.display().to_string(), e.to_string()),
            })?;
        if let Err(error) = listen(&bell, Arc::downgrade(&wakes)) {
            tracing::warn!(%error, "other processes cannot wake this one; it looks for work by polling");
        }
        Ok(Bell { file })
    }

    pub fn ring(&self) {
        if let Err(error) = self.file.write_at(b"!", 0) {
            tracing::debug!(%error, "the bell could not be rung; other processes will find the work by polling");
        }
    }
}

fn listen(bell: &Path, wakes: Weak<Wakes>) -> std::io::Result<()> {
    let mut inotify = Inotify::init()?;
    inotify.watches().add(bell, WatchMask::MODIFY)?;
    std::thread::Builder::new().name("db-bell".to_string()).spawn(move || {
        let mut buffer = [0; 4096];
        // Ends with the process, or at the first ring after the database was closed.
        while inotify.read_events_blocking(&mut buffer).is_ok() {
            match wakes.upgrade() {
                Some(wakes) => wakes.ring_all(),
                None => return,
            }
        }
    })?;
    Ok(())
}
