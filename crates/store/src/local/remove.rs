//! Deleting files, and the directories they leave empty.

use super::Shared;
use super::root::{os_error, split};
use super::walk::Walker;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::Kind;
use rustix::fs::AtFlags;
use rustix::io::Errno;

pub(super) fn delete(shared: &Shared, key: &str) -> Result<()> {
    let (parent, name) = split(key);
    let at = match shared.root.open_directory(parent) {
        Ok(at) => at,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(os_error(key, errno)),
    };
    match rustix::fs::unlinkat(&at, name, AtFlags::empty()) {
        Ok(()) => {}
        // A directory is no object; some systems call unlinking one not permitted.
        Err(Errno::NOENT | Errno::ISDIR) => return Ok(()),
        Err(Errno::PERM) if shared.root.open_directory(key).is_ok() => return Ok(()),
        Err(errno) => return Err(os_error(key, errno)),
    }
    rustix::fs::fsync(&at).map_err(|errno| os_error(key, errno))?;
    shared.root.prune(parent);
    Ok(())
}

/// Deletes a tree from the bottom up, file by file in the order of the listing.
pub(super) fn delete_all(shared: &Shared, prefix: &str) -> Result<u64> {
    let failed = |errno| os_error(prefix, errno);
    let (root, hidden) = (shared.root.clone(), shared.temporaries.clone());
    let mut walker = Walker::start(root, hidden, prefix, true, None).map_err(failed)?;
    let mut deleted = 0;
    let mut left: Option<String> = None;
    while let Some(entry) = walker.step().map_err(failed)? {
        let (parent, name) = split(&entry.key);
        // The walk has left a directory when the parent changes; by then it is empty.
        if left.as_deref().is_some_and(|left| left != parent) {
            let left = left.take().unwrap_or_default();
            close(shared, &left, prefix)?;
        }
        if entry.kind == Kind::Directory {
            close(shared, &entry.key, prefix)?;
            continue;
        }
        let at = shared.root.open_directory(parent).map_err(|errno| os_error(&entry.key, errno))?;
        match rustix::fs::unlinkat(&at, name, AtFlags::empty()) {
            Ok(()) => deleted += 1,
            // What is shown with replacement characters has another name, which is no key.
            Err(Errno::NOENT) if entry.kind == Kind::Other => {
                let detail = "its name is not UTF-8";
                return Err(Error::new(ErrorKind::NotPlain, &entry.key, detail));
            }
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(os_error(&entry.key, errno)),
        }
        left = Some(parent.to_owned());
    }
    if let Some(left) = left {
        close(shared, &left, prefix)?;
    }
    close(shared, prefix, prefix)?;
    Ok(deleted)
}

/// Makes what was deleted in a directory durable, and removes it and its parents if empty.
fn close(shared: &Shared, path: &str, prefix: &str) -> Result<()> {
    match shared.root.open_directory(path) {
        Ok(fd) => rustix::fs::fsync(&fd).map_err(|errno| os_error(prefix, errno))?,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(os_error(path, errno)),
    }
    shared.root.prune(path);
    Ok(())
}
