//! Folders by file descriptors, and `openat2` where the system has it.

use super::{EntryInfo, EntryKind, Opened, Refused, names};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// An open directory.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// Opens for reading. Opening a pipe must not wait for a writer, and a terminal must not become
/// the controlling one.
pub(super) fn reading() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// Opens a directory to pass through it, which takes permission to enter it, not to list it.
fn passing() -> OFlags {
    #[cfg(target_os = "linux")]
    let kind = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let kind = OFlags::RDONLY | OFlags::NONBLOCK;
    kind | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Opens a name in a directory without following a link.
fn step(folder: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    // Systems differ in what they answer for a link where a directory is asked for.
    rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(|error| {
        match is_link(folder, name) {
            true => Refused::Link.into(),
            false => explained(error),
        }
    })
}

impl Folder {
    /// Opens a directory by a path that is trusted: links on it are followed.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Folder> {
        Ok(Folder(rustix::fs::open(path.as_ref(), passing(), Mode::empty()).map_err(explained)?))
    }

    /// Opens a file or directory below this one for reading.
    pub fn at(&self, below: &Path) -> io::Result<Opened> {
        if names(below)?.is_empty() {
            return Ok(Opened::Folder(self.again()?));
        }
        let fd = self.open_below(below, reading())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::RegularFile => Ok(Opened::File(File::from(fd))),
            FileType::Directory => Ok(Opened::Folder(Folder(fd))),
            _ => Err(Refused::Special.into()),
        }
    }

    pub fn file(&self, below: &Path) -> io::Result<File> {
        self.at(below)?.file()
    }

    /// Opens a directory below this one, to open or write what is in it. That takes permission to
    /// enter it, not to list it.
    pub fn folder(&self, below: &Path) -> io::Result<Folder> {
        if names(below)?.is_empty() {
            return Ok(Folder(self.0.try_clone()?));
        }
        Ok(Folder(self.open_below(below, passing() | OFlags::NOFOLLOW)?))
    }

    #[cfg(target_os = "linux")]
    fn open_below(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        use rustix::fs::ResolveFlags;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // With NOFOLLOW, a link in the last place would be opened itself where PATH is asked for.
        let whole = flags - OFlags::NOFOLLOW;
        match rustix::fs::openat2(&self.0, below, whole, Mode::empty(), resolve) {
            // Kernels before 5.6 do not have it, and some sandboxes forbid it.
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_step(below, flags),
            opened => opened.map_err(explained),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_below(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        self.step_by_step(below, flags)
    }

    /// Opens one directory after the other.
    pub(super) fn step_by_step(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let parts = names(below)?;
        let (last, above) = parts.split_last().ok_or(Refused::Path)?;
        let mut at: Option<OwnedFd> = None;
        for name in above {
            let here = at.as_ref().map_or(self.0.as_fd(), AsFd::as_fd);
            at = Some(step(here, name, passing() | OFlags::NOFOLLOW)?);
        }
        step(at.as_ref().map_or(self.0.as_fd(), AsFd::as_fd), last, flags)
    }

    /// Opens the same directory once more, with its own position in the listing.
    pub fn again(&self) -> io::Result<Folder> {
        Ok(Folder(rustix::fs::openat(&self.0, ".", reading() | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// What a name in this folder stands for; a link is not followed.
    pub fn info(&self, name: &Path) -> io::Result<EntryInfo> {
        Ok(info(&rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Lists the names in this folder.
    pub fn entries(&self) -> io::Result<Entries> {
        Ok(Entries(rustix::fs::Dir::new(self.again()?.0)?))
    }

    /// Writes a file in this folder, whole or not at all, in the place of a file of that name. A
    /// link of that name is replaced; its target is not touched.
    pub fn replace(&self, name: &OsStr, content: &[u8], mode: u32) -> io::Result<()> {
        let mut temporary = OsString::from(format!(".accession-{:x}-", std::process::id()));
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        temporary.push(format!("{:x}", nanos.map_or(0, |since| since.as_nanos())));
        let mode = Mode::from_raw_mode(mode as _);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.0, &temporary, flags | OFlags::NOFOLLOW, mode)?;
        let mut file = File::from(fd);
        let written = (|| {
            file.write_all(content)?;
            // The process's mask does not decide who may read it.
            rustix::fs::fchmod(&file, mode)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.0, &temporary, &self.0, name)?;
            Ok(())
        })();
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.0, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes a file of this folder; of a link the link itself, never its target.
    pub fn remove_file(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

fn is_link(folder: BorrowedFd<'_>, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Translates the system's answers that mean one of [`Refused`].
fn explained(error: Errno) -> io::Error {
    match error {
        // Some systems say EMLINK or EFTYPE of a link, Linux says ELOOP.
        Errno::LOOP | Errno::MLINK => Refused::Link.into(),
        // A socket cannot be opened at all.
        Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => Refused::Special.into(),
        Errno::XDEV => Refused::Path.into(),
        Errno::NOTDIR => Refused::NotDirectory.into(),
        other => other.into(),
    }
}

fn kind(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Special,
    }
}

// The fields have other types on other systems.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn info(stat: &Stat) -> EntryInfo {
    EntryInfo {
        kind: kind(FileType::from_raw_mode(stat.st_mode)),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: (i64::from(stat.st_mtime), stat.st_mtime_nsec as u64),
        inode: u64::from(stat.st_ino),
    }
}

/// The names in a folder, one after the other.
#[derive(Debug)]
pub struct Entries(rustix::fs::Dir);

impl Entries {
    /// The next name, and what it stands for.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<io::Result<(OsString, EntryKind)>> {
        loop {
            let entry = match self.0.read()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name = OsString::from_vec(name.to_vec());
            let kind = match entry.file_type() {
                // Some file systems tell the kind only when they are asked for it.
                FileType::Unknown => match self.info(&name) {
                    Ok(info) => info.kind,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Some(Err(error)),
                },
                known => kind(known),
            };
            return Some(Ok((name, kind)));
        }
    }

    /// What a name stands for; a link is not followed.
    pub fn info(&self, name: &OsStr) -> io::Result<EntryInfo> {
        Ok(info(&rustix::fs::statat(self.0.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens a directory in this one.
    pub fn folder(&self, name: &OsStr) -> io::Result<Folder> {
        debug_assert!(!name.as_bytes().contains(&b'/'));
        let fd = step(self.0.fd()?, name, reading() | OFlags::DIRECTORY)?;
        Ok(Folder(fd))
    }
}
