//! A file on its way into the store: written under a temporary name, published by one rename.

use super::root::{Root, os_error, split};
use crate::checksum::Sha256Hasher;
use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A directory may be pruned by a delete just before a file is renamed into it, again and again;
/// this often is beyond chance.
const PUBLISH_TRIES: usize = 100;

/// The name of a temporary file, which is removed when this is dropped before it was published.
/// The opened file is kept apart, so that a batch does not need a descriptor for each.
#[derive(Debug)]
pub(super) struct Temporary {
    root: Arc<Root>,
    directory: Arc<str>,
    name: String,
    published: bool,
}

impl Temporary {
    pub(super) fn create(
        root: &Arc<Root>,
        directory: &Arc<str>,
    ) -> Result<(Temporary, File), Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            let at = root.make_directory_unflushed(directory)?;
            let name = unique_name();
            match rustix::fs::openat(&at, &*name, flags, Mode::from_raw_mode(0o666)) {
                // Somebody else has the name, or has pruned the directory: try another, or again.
                Err(Errno::EXIST | Errno::NOENT) => continue,
                result => {
                    let (root, directory) = (root.clone(), directory.clone());
                    let file = File::from(result?);
                    return Ok((Temporary { root, directory, name, published: false }, file));
                }
            }
        }
    }

    /// Gives the file its key. The content must be durable before, or be flushed by the caller;
    /// `flush` says whether the new name is made durable here.
    pub(super) fn publish(mut self, key: &str, replace: bool, flush: bool) -> Result<()> {
        let (parent, name) = split(key);
        for _ in 0..PUBLISH_TRIES {
            let rename = |to: &OwnedFd| self.rename_to(to, name, replace);
            let renamed = match flush {
                true => self.root.add_name(parent, None, rename),
                false => self.root.make_directory_unflushed(parent).and_then(|to| rename(&to)),
            };
            match renamed {
                Ok(()) => {
                    self.published = true;
                    return Ok(());
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(in_the_way(key, errno)),
            }
        }
        Err(Error::new(ErrorKind::Transient, key, "its directory was removed again and again"))
    }

    fn rename_to(&self, to: &OwnedFd, name: &str, replace: bool) -> Result<(), Errno> {
        let from = self.root.open_directory(&self.directory)?;
        if replace {
            return rustix::fs::renameat(&from, &*self.name, to, name);
        }
        rename_new(&from, &self.name, to, name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        // What cannot be removed now is found by `unfinished` later.
        if let Ok(at) = self.root.open_directory(&self.directory) {
            let _ = rustix::fs::unlinkat(&at, &*self.name, AtFlags::empty());
        }
    }
}

/// Sets space aside, so that a full disk is known before the bytes are read. Where the file system
/// cannot do that, writing will tell.
pub(super) fn reserve(file: &File, length: u64) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    if length > 0 {
        use rustix::fs::FallocateFlags;
        let set_aside = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, length);
        if let Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) = set_aside {
            return Err(errno);
        }
    }
    let _ = (file, length);
    Ok(())
}

/// Renames only if there is nothing at the new name.
pub(super) fn rename_new(
    from: &OwnedFd,
    name: &str,
    to: &OwnedFd,
    new_name: &str,
) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        // Some network file systems cannot; linking cannot replace anything either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        result => return result,
    }
    match rustix::fs::linkat(from, name, to, new_name, AtFlags::empty()) {
        Ok(()) => rustix::fs::unlinkat(from, name, AtFlags::empty()),
        // A directory cannot be linked. Renaming it replaces nothing but an empty directory.
        Err(Errno::PERM) => match rustix::fs::statat(to, new_name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => rustix::fs::renameat(from, name, to, new_name),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        },
        Err(errno) => Err(errno),
    }
}

/// An error while making room for a key: a file where a directory has to be, or the reverse, is
/// something that stands in the way, not something that is missing.
pub(super) fn in_the_way(key: &str, errno: Errno) -> Error {
    match errno {
        Errno::NOTDIR => {
            Error::new(ErrorKind::NotPlain, key, "a file stands where a directory has to be")
        }
        Errno::ISDIR => {
            Error::new(ErrorKind::NotPlain, key, "a directory stands where the file has to be")
        }
        errno => os_error(key, errno),
    }
}

/// Writes a chunk, and hashes it where a digest was announced.
pub(super) fn write(
    file: &mut File,
    hasher: &mut Option<Sha256Hasher>,
    chunks: &[bytes::Bytes],
) -> std::io::Result<()> {
    for chunk in chunks {
        file.write_all(chunk)?;
        if let Some(hasher) = hasher {
            hasher.update(chunk);
        }
    }
    Ok(())
}

fn unique_name() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{now:x}-{:x}-{number:x}", std::process::id())
}
