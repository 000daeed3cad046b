//! Deleting files, and the directories they leave empty.

use super::Shared;
use super::root::{os_error, split};
use super::walk::Walker;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::Kind;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::collections::BTreeSet;

pub(super) fn delete(shared: &Shared, key: &str) -> Result<()> {
    if unlink(shared, key)? { flush(shared, shared.root.prune(split(key).0)) } else { Ok(()) }
}

/// Deletes an object or a tree, and leaves it to the system when that becomes durable.
pub(super) fn forget(shared: &Shared, prefix: &str) -> Result<()> {
    delete_tree(shared, prefix)?;
    if unlink(shared, prefix)? {
        shared.root.prune(split(prefix).0);
    }
    Ok(())
}

/// Deletes a tree. One flush at the end is enough: with the name of its topmost directory,
/// everything in it is gone.
pub(super) fn delete_all(shared: &Shared, prefix: &str) -> Result<u64> {
    let (deleted, left) = delete_tree(shared, prefix)?;
    for left in &left {
        flush(shared, left)?;
    }
    Ok(deleted)
}

/// Removes empty directories, and never a file: one that a writer is putting there keeps its
/// directory, or makes it again.
pub(super) fn prune(shared: &Shared, prefix: &str) -> Result<()> {
    let failed = |errno| os_error(prefix, errno);
    let (root, hidden) = (shared.root.clone(), shared.temporaries.clone());
    let mut walker = Walker::start(root, hidden, prefix, true, None).map_err(failed)?;
    while let Some(entry) = walker.step().map_err(failed)? {
        if entry.kind == Kind::Directory {
            shared.root.prune(&entry.key);
        }
    }
    if shared.root.open_directory(prefix).is_ok() {
        shared.root.prune(prefix);
    }
    Ok(())
}

/// Whether there was a file of this key, which is gone now.
fn unlink(shared: &Shared, key: &str) -> Result<bool> {
    let (parent, name) = split(key);
    let at = match shared.root.open_directory(parent) {
        Ok(at) => at,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
        Err(errno) => return Err(os_error(key, errno)),
    };
    match rustix::fs::unlinkat(&at, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        // A directory is no object; some systems call unlinking one not permitted.
        Err(Errno::NOENT | Errno::ISDIR) => Ok(false),
        Err(Errno::PERM) if shared.root.open_directory(key).is_ok() => Ok(false),
        Err(errno) => Err(os_error(key, errno)),
    }
}

/// Deletes a tree from the bottom up, file by file in the order of the listing. Returns how many,
/// and the directories in which something was deleted and which are still there.
fn delete_tree(shared: &Shared, prefix: &str) -> Result<(u64, BTreeSet<String>)> {
    let failed = |errno| os_error(prefix, errno);
    let (root, hidden) = (shared.root.clone(), shared.temporaries.clone());
    let mut walker = Walker::start(root, hidden, prefix, true, None).map_err(failed)?;
    let mut deleted = 0;
    let mut changed = BTreeSet::new();
    let mut left: Option<String> = None;
    let mut close = |path: &str| {
        // What is left of a directory that is not empty has to be flushed by itself.
        let remains = shared.root.prune(path);
        if !changed.contains(remains) {
            changed.insert(remains.to_owned());
        }
    };
    while let Some(entry) = walker.step().map_err(failed)? {
        let (parent, name) = split(&entry.key);
        // The walk has left a directory when the parent changes; by then it is empty.
        if left.as_deref().is_some_and(|left| left != parent) {
            close(&left.take().unwrap_or_default());
        }
        if entry.kind == Kind::Directory {
            close(&entry.key);
            continue;
        }
        let at = shared.root.open_directory(parent).map_err(|errno| os_error(&entry.key, errno))?;
        // Its key is not its name, and may be the name of another file.
        if entry.kind == Kind::NotUtf8 {
            let detail = "its name is not UTF-8";
            return Err(Error::new(ErrorKind::NotPlain, &entry.key, detail));
        }
        match rustix::fs::unlinkat(&at, name, AtFlags::empty()) {
            Ok(()) => deleted += 1,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(os_error(&entry.key, errno)),
        }
        left = Some(parent.to_owned());
    }
    if let Some(left) = left {
        close(&left);
    }
    if shared.root.open_directory(prefix).is_ok() {
        close(prefix);
    }
    Ok((deleted, changed))
}

/// Makes durable what was deleted in a directory. One that is gone needs no flush: somebody else
/// has emptied and removed it.
fn flush(shared: &Shared, path: &str) -> Result<()> {
    match shared.root.open_directory(path) {
        Ok(fd) => rustix::fs::fsync(&fd).map_err(|errno| os_error(path, errno)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(errno) => Err(os_error(path, errno)),
    }
}
