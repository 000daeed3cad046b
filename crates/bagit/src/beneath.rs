//! Opens files and directories that other users can exchange at any moment.
//!
//! A [`Folder`] is an open directory. Below it no symbolic link is followed, and opening never
//! blocks: a pipe in the place of a file is an error. The type is read from the open descriptor,
//! not from the path, so an exchange between the two steps has no effect.

use std::fs::File;
use std::io;
use std::path::{Component, Path};

#[cfg(not(unix))]
#[path = "beneath/portable.rs"]
mod system;
#[cfg(unix)]
#[path = "beneath/unix.rs"]
mod system;

pub use system::{Entries, Folder};

/// Why something that exists is not opened. It travels inside an [`io::Error`]; see
/// [`Refused::of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "a symbolic link lies on the way or in its place, and links are not followed; put the file or directory itself there"
    )]
    Link,
    #[error(
        "it is a pipe, socket or device, which cannot be read as a file; put a regular file there"
    )]
    Special,
    #[error("it is a directory, where a file was expected")]
    Directory,
    #[error("it is not a directory, where one was expected")]
    NotDirectory,
    #[error("its path is not one below the directory; use names without `..`")]
    Path,
}

impl Refused {
    /// Finds the reason inside an error, if it is one of these.
    pub fn of(error: &io::Error) -> Option<Refused> {
        error.get_ref()?.downcast_ref::<Refused>().copied()
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, refused)
    }
}

/// An open file or directory.
#[derive(Debug)]
pub enum Opened {
    File(File),
    Folder(Folder),
}

impl Opened {
    pub fn file(self) -> io::Result<File> {
        match self {
            Opened::File(file) => Ok(file),
            Opened::Folder(_) => Err(Refused::Directory.into()),
        }
    }

    pub fn folder(self) -> io::Result<Folder> {
        match self {
            Opened::Folder(folder) => Ok(folder),
            Opened::File(_) => Err(Refused::NotDirectory.into()),
        }
    }
}

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Link,
    Special,
}

/// What is known of a name without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryInfo {
    pub kind: EntryKind,
    pub bytes: u64,
    /// When it was last written to: seconds, and nanoseconds of the second.
    pub modified: (i64, u64),
    pub inode: u64,
}

/// Opens a file or directory by an absolute path, and follows no link anywhere on it. The path
/// was free of links when it was accepted, see [`Path::canonicalize`].
pub fn open(path: &Path) -> io::Result<Opened> {
    let (root, below) = split_root(path)?;
    Folder::open(root)?.at(below)
}

/// Opens a file or directory, and follows no link in its own place. The directories above it are
/// trusted, as those of the caller's own are.
pub fn open_in_place(path: &Path) -> io::Result<Opened> {
    let (parent, name) = split_name(path)?;
    Folder::open(parent)?.at(name)
}

/// Opens the directory that an absolute path lies in, and follows no link anywhere on it; also
/// gives the last name of the path.
pub fn open_parent(path: &Path) -> io::Result<(Folder, &Path)> {
    let (parent, name) = split_name(path)?;
    let (root, below) = split_root(parent)?;
    Ok((Folder::open(root)?.folder(below)?, name))
}

/// Splits a path into its directory and its last name.
fn split_name(path: &Path) -> io::Result<(&Path, &Path)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Refused::Path.into());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Ok((parent, Path::new(name)))
}

fn split_root(path: &Path) -> io::Result<(&Path, &Path)> {
    let root = path.ancestors().last().filter(|_| path.is_absolute()).ok_or(Refused::Path)?;
    let below = path.strip_prefix(root).map_err(|_| Refused::Path)?;
    Ok((root, below))
}

/// Lists the names of a relative path; an error if it leads elsewhere.
fn names(below: &Path) -> io::Result<Vec<&std::ffi::OsStr>> {
    let mut names = Vec::new();
    for part in below.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(Refused::Path.into()),
        }
    }
    Ok(names)
}

#[cfg(all(test, unix))]
mod tests;
