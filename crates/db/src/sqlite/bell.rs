//! Waking other processes on the same SQLite file: a byte written to a small file beside it, which
//! they watch with inotify. Rung after the commit, so whoever wakes finds what it was woken for.
//! A ring that is lost with its process is made up for by the runtime's slow polling.
//!
//! Whoever listens has a shared lock on that file, and a bell that nobody else listens to is not
//! rung: it would only wake a thread of this process after every commit. Whoever begins to listen
//! looks for work after that, and so finds what was committed before.

use crate::error::{Error, Result};
use crate::sqlite::beside;
use crate::wakes::Wakes;
use inotify::{Inotify, WatchMask};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use std::fs::File;
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
        let file = super::open_beside(path, "-bell").map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Error::ReadOnly(path.display().to_string())
            }
            _ => Error::CannotOpen(bell.display().to_string(), e.to_string()),
        })?;
        if let Err(error) = fcntl(&file, FcntlArg::F_OFD_SETLK(&whole_file(libc::F_RDLCK))) {
            // Others do not know that we listen, unless they cannot ask either and always ring.
            tracing::debug!(%error, "the bell cannot be locked; other processes may not wake this one");
        }
        if let Err(error) = listen(&bell, Arc::downgrade(&wakes)) {
            tracing::warn!(%error, "other processes cannot wake this one; it looks for work by polling");
        }
        Ok(Bell { file })
    }

    pub fn ring(&self) {
        if !self.is_heard() {
            return;
        }
        if let Err(error) = self.file.write_at(b"!", 0) {
            tracing::debug!(%error, "the bell could not be rung; other processes will find the work by polling");
        }
    }

    /// Whether anybody else listens, or may do so.
    fn is_heard(&self) -> bool {
        let mut in_the_way = whole_file(libc::F_WRLCK);
        let asked = fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut in_the_way));
        asked.is_err() || i32::from(in_the_way.l_type) != libc::F_UNLCK
    }
}

/// A lock of this open file, and not of this process: a second database of the same process is
/// somebody else too.
fn whole_file(kind: i32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
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
