//! Second names for files, and the exchange of two directories: how a whole directory is replaced
//! in one step.

use super::Shared;
use super::root::{os_error, split};
use super::temporary::in_the_way;
use super::walk::Walker;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::Kind;
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

/// Up to so many directories are flushed one by one; for more, the file system is flushed.
const FEW: usize = 2;

/// Whether a whole file system can be flushed.
const FLUSHES_ALL: bool = cfg!(target_os = "linux");

/// Links every file below a directory, or one file, to another place.
pub(super) fn link_all(shared: &Shared, from: &str, to: &str) -> Result<u64> {
    let mut links = Links { shared, from, to, open: None, changed: BTreeSet::new(), count: 0 };
    let (root, hidden) = (shared.root.clone(), shared.temporaries.clone());
    let failed = |errno| os_error(from, errno);
    let mut walker = Walker::start(root, hidden, from, true, None).map_err(failed)?;
    let mut found = false;
    while let Some(entry) = walker.step().map_err(failed)? {
        found = true;
        match entry.kind {
            Kind::File => links.link(&entry.key)?,
            Kind::Directory => drop(links.make(&links.target(&entry.key))?),
            Kind::Other | Kind::NotUtf8 => {
                let detail = "it has to be a plain file to get a second name";
                return Err(Error::new(ErrorKind::NotPlain, &entry.key, detail));
            }
        }
    }
    if !found && shared.open_file(from).is_ok() {
        links.link(from)?;
    }
    links.flush()
}

struct Links<'a> {
    shared: &'a Shared,
    from: &'a str,
    to: &'a str,
    /// The directory that was linked from last, and the one to.
    open: Option<(String, OwnedFd, OwnedFd)>,
    /// The directories with new names in them; no longer complete when there are too many.
    changed: BTreeSet<String>,
    count: u64,
}

impl Links<'_> {
    fn target(&self, key: &str) -> String {
        format!("{}{}", self.to, key.strip_prefix(self.from).unwrap_or_default())
    }

    fn link(&mut self, key: &str) -> Result<()> {
        let (parent, name) = split(key);
        let target = self.target(key);
        let (target_parent, target_name) = split(&target);
        if self.open.as_ref().is_none_or(|(open, ..)| open != parent) {
            let from = self.shared.root.open_directory(parent);
            let from = from.map_err(|errno| os_error(key, errno))?;
            let to = self.make(target_parent)?;
            self.open = Some((parent.to_owned(), from, to));
        }
        let Some((_, from, to)) = &self.open else { return Ok(()) };
        match rustix::fs::linkat(from, name, to, target_name, AtFlags::empty()) {
            Ok(()) => {
                self.count += 1;
                self.note(target_parent);
                Ok(())
            }
            // What is there stays.
            Err(Errno::EXIST) => Ok(()),
            Err(
                errno
                @ (Errno::PERM | Errno::MLINK | Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS),
            ) => Err(unsupported(key, errno)),
            Err(errno) => Err(in_the_way(&target, errno)),
        }
    }

    /// Makes a directory where it is missing; each that is made is a new name in the one above.
    fn make(&mut self, path: &str) -> Result<OwnedFd> {
        let mut missing = path;
        while !missing.is_empty() && self.shared.root.open_directory(missing).is_err() {
            self.note(missing);
            missing = split(missing).0;
            self.note(missing);
        }
        let made = self.shared.root.make_directory_unflushed(path);
        made.map_err(|errno| in_the_way(path, errno))
    }

    fn note(&mut self, changed: &str) {
        let counts = self.changed.len() <= FEW || !FLUSHES_ALL;
        if counts && !self.changed.contains(changed) {
            self.changed.insert(changed.to_owned());
        }
    }

    fn flush(self) -> Result<u64> {
        if FLUSHES_ALL && self.changed.len() > FEW {
            self.shared.flush()?;
            return Ok(self.count);
        }
        for path in &self.changed {
            let failed = |errno| os_error(path, errno);
            let directory = self.shared.root.open_directory(path).map_err(failed)?;
            rustix::fs::fsync(&directory).map_err(failed)?;
        }
        Ok(self.count)
    }
}

/// Exchanges two files or directories in one step.
pub(super) fn exchange(shared: &Shared, one: &str, other: &str) -> Result<()> {
    let open = |key: &str| {
        let parent = shared.root.open_directory(split(key).0);
        parent.map_err(|errno| os_error(key, errno))
    };
    let (one_parent, other_parent) = (open(one)?, open(other)?);
    swap(&one_parent, split(one).1, &other_parent, split(other).1).map_err(
        |errno| match errno {
            Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV => unsupported(one, errno),
            errno => os_error(one, errno),
        },
    )?;
    rustix::fs::fsync(&one_parent).map_err(|errno| os_error(one, errno))?;
    rustix::fs::fsync(&other_parent).map_err(|errno| os_error(other, errno))
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn swap(one_parent: &OwnedFd, one: &str, parent: &OwnedFd, other: &str) -> Result<(), Errno> {
    rustix::fs::renameat_with(one_parent, one, parent, other, RenameFlags::EXCHANGE)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn swap(_: &OwnedFd, _: &str, _: &OwnedFd, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

fn unsupported(key: &str, errno: Errno) -> Error {
    let detail = format!("the file system cannot do this here: {errno}");
    Error::new(ErrorKind::Unsupported, key, detail)
}
