//! The root of a local store: every file and directory is opened relative to it, one plain name
//! after another, so that no symbolic link leads anywhere.

use super::flush::Flusher;
use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The opened root directory.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    flusher: Flusher,
    /// How many are making directories that are not durable yet. While there are any, a new name
    /// is durable only after a flush of all that leads to it.
    making: AtomicUsize,
}

/// The directory that holds a key, and the last segment of the key.
pub(super) fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}

/// An error of the operating system about a key.
pub(super) fn os_error(key: &str, errno: Errno) -> Error {
    if errno == Errno::LOOP {
        return Error::new(ErrorKind::NotPlain, key, "there is a symbolic link on the way");
    }
    Error::from_io(key, errno.into())
}

impl Root {
    pub(super) fn new(fd: OwnedFd) -> Root {
        Root { fd, flusher: Flusher::default(), making: AtomicUsize::new(0) }
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Opens what is at a path below the root; no segment may be a symbolic link.
    pub(super) fn open(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { "." } else { path };
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            // NOFOLLOW would leave a link at the end to be called something else.
            let flags = flags.difference(OFlags::NOFOLLOW);
            match rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve) {
                // An old kernel, or a sandbox that does not know the call: walk instead.
                Err(Errno::NOSYS | Errno::PERM) => {}
                result => return result,
            }
        }
        self.open_by_walking(path, flags)
    }

    fn open_by_walking(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (parents, name) = split(path);
        let mut at: Option<OwnedFd> = None;
        for segment in parents.split('/').filter(|segment| !segment.is_empty()) {
            let from = at.as_ref().unwrap_or(&self.fd);
            match rustix::fs::openat(from, segment, DIRECTORY, Mode::empty()) {
                Ok(fd) => at = Some(fd),
                // A link is refused as what it is, not as something that is not a directory.
                Err(Errno::NOTDIR) if is_link(from, segment) => return Err(Errno::LOOP),
                Err(errno) => return Err(errno),
            }
        }
        let from = at.as_ref().unwrap_or(&self.fd);
        match rustix::fs::openat(from, name, flags, Mode::empty()) {
            Err(Errno::NOTDIR) if is_link(from, name) => Err(Errno::LOOP),
            result => result,
        }
    }

    pub(super) fn open_directory(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open(path, DIRECTORY)
    }

    /// Puts a new name into a directory, which is made where it is missing, and makes all of it
    /// durable. A name that is taken from another directory is durably gone there, too.
    pub(super) fn add_name(
        &self,
        path: &str,
        from: Option<&OwnedFd>,
        add: impl Fn(&OwnedFd) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match self.open_directory(path) {
            Err(Errno::NOENT) => {}
            there => {
                let at = there?;
                add(&at)?;
                // Whoever has made this directory may not have flushed it yet.
                if self.making.load(Ordering::SeqCst) > 0 {
                    return self.flush_way(path, from);
                }
                rustix::fs::fsync(&at)?;
                return from.map_or(Ok(()), rustix::fs::fsync);
            }
        }
        self.making.fetch_add(1, Ordering::SeqCst);
        let added = self.make_segments(path).and_then(|at| add(&at));
        // What was made before a failure is there, and others will rely on it.
        self.flush_way(path, from)?;
        self.making.fetch_sub(1, Ordering::SeqCst);
        added
    }

    /// Makes a directory, all that lead to it, and another one durable: with one flush of the file
    /// system, which costs about as much as that of two directories and can be shared.
    fn flush_way(&self, path: &str, from: Option<&OwnedFd>) -> Result<(), Errno> {
        if cfg!(target_os = "linux") {
            return self.flush();
        }
        let mut path = path;
        loop {
            match self.open_directory(path) {
                Ok(at) => rustix::fs::fsync(&at)?,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            if path.is_empty() {
                return from.map_or(Ok(()), rustix::fs::fsync);
            }
            path = split(path).0;
        }
    }

    /// Flushes the whole file system, where that can be done.
    pub(super) fn flush(&self) -> Result<(), Errno> {
        self.flusher.flush(&self.fd)
    }

    /// Opens a directory, and makes what is missing of it; the caller flushes the file system.
    pub(super) fn make_directory_unflushed(&self, path: &str) -> Result<OwnedFd, Errno> {
        match self.open_directory(path) {
            Err(Errno::NOENT) => self.make_segments(path),
            result => result,
        }
    }

    fn make_segments(&self, path: &str) -> Result<OwnedFd, Errno> {
        let mut at = self.open_directory("")?;
        for segment in path.split('/') {
            match rustix::fs::mkdirat(&at, segment, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            at = match rustix::fs::openat(&at, segment, DIRECTORY, Mode::empty()) {
                Err(Errno::NOTDIR) if is_link(&at, segment) => return Err(Errno::LOOP),
                result => result?,
            };
        }
        Ok(at)
    }

    /// Removes directories that have become empty, from this one upwards, so that a local store
    /// looks like one that has no directories at all. Returns the first that stays.
    pub(super) fn prune<'a>(&self, path: &'a str) -> &'a str {
        let mut path = path;
        while !path.is_empty() {
            let (parent, name) = split(path);
            let Ok(fd) = self.open_directory(parent) else { return path };
            // Not empty, or not ours to remove: either way this is where pruning ends.
            if rustix::fs::unlinkat(&fd, name, AtFlags::REMOVEDIR).is_err() {
                return path;
            }
            path = parent;
        }
        path
    }
}

fn is_link(at: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(dir: &std::path::Path) -> Root {
        Root::new(rustix::fs::open(dir, DIRECTORY, Mode::empty()).unwrap())
    }

    #[test]
    fn walking_and_the_kernel_refuse_the_same_links() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/f"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("out")).unwrap();
        std::os::unix::fs::symlink("b", dir.path().join("a/in")).unwrap();
        let root = root(dir.path());
        for (path, expected) in [
            ("a/b/f", None),
            ("a/b", None),
            ("out/passwd", Some(Errno::LOOP)),
            ("out", Some(Errno::LOOP)),
            ("a/in/f", Some(Errno::LOOP)),
            ("a/none", Some(Errno::NOENT)),
            ("a/b/f/g", Some(Errno::NOTDIR)),
        ] {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            assert_eq!(root.open(path, flags).err(), expected, "{path}");
            assert_eq!(root.open_by_walking(path, flags).err(), expected, "walking {path}");
        }
        for (path, expected) in [
            ("a/b", None),
            ("out", Some(Errno::LOOP)),
            ("a/in", Some(Errno::LOOP)),
            ("a/b/f", Some(Errno::NOTDIR)),
        ] {
            assert_eq!(root.open_directory(path).err(), expected, "{path}");
            assert_eq!(root.open_by_walking(path, DIRECTORY).err(), expected, "walking {path}");
        }
    }
}
