//! Folders by paths, for systems without descriptors of directories. Each step is looked at before
//! it is taken; what is exchanged between the two is not noticed there.

use super::{EntryInfo, EntryKind, Opened, Refused, names};
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType, ReadDir};
use std::io;
use std::path::{Path, PathBuf};

/// A directory.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Opens a directory by a path that is trusted: links on it are followed.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Folder> {
        match path.as_ref().metadata()?.is_dir() {
            true => Ok(Folder(path.as_ref().to_path_buf())),
            false => Err(Refused::NotDirectory.into()),
        }
    }

    /// Opens what is below.
    pub fn at(&self, below: &Path) -> io::Result<Opened> {
        let mut path = self.0.clone();
        for name in names(below)? {
            path.push(name);
            if path.symlink_metadata()?.file_type().is_symlink() {
                return Err(Refused::Link.into());
            }
        }
        match kind(path.symlink_metadata()?.file_type()) {
            EntryKind::File => Ok(Opened::File(File::open(path)?)),
            EntryKind::Directory => Ok(Opened::Folder(Folder(path))),
            EntryKind::Link => Err(Refused::Link.into()),
            EntryKind::Special => Err(Refused::Special.into()),
        }
    }

    pub fn file(&self, below: &Path) -> io::Result<File> {
        self.at(below)?.file()
    }

    pub fn folder(&self, below: &Path) -> io::Result<Folder> {
        self.at(below)?.folder()
    }

    /// What a name in this folder stands for; a link is not followed.
    pub fn info(&self, name: &Path) -> io::Result<EntryInfo> {
        info(&self.0.join(name))
    }

    /// The names in this folder.
    pub fn entries(&self) -> io::Result<Entries> {
        let entries = std::fs::read_dir(&self.0)?;
        Ok(Entries { path: self.0.clone(), entries })
    }
}

fn kind(file_type: FileType) -> EntryKind {
    if file_type.is_file() {
        EntryKind::File
    } else if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Special
    }
}

fn info(path: &Path) -> io::Result<EntryInfo> {
    let meta = path.symlink_metadata()?;
    let since = meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Ok(EntryInfo {
        kind: kind(meta.file_type()),
        bytes: meta.len(),
        modified: (seconds, u64::from(since.subsec_nanos())),
        inode: 0,
    })
}

/// The names in a folder, one after the other.
#[derive(Debug)]
pub struct Entries {
    path: PathBuf,
    entries: ReadDir,
}

impl Entries {
    /// The next name, and what it stands for.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<io::Result<(OsString, EntryKind)>> {
        let entry = self.entries.next()?;
        Some(entry.and_then(|entry| Ok((entry.file_name(), kind(entry.file_type()?)))))
    }

    /// What a name stands for; a link is not followed.
    pub fn info(&self, name: &OsStr) -> io::Result<EntryInfo> {
        info(&self.path.join(name))
    }

    /// Opens a folder in this one.
    pub fn folder(&self, name: &OsStr) -> io::Result<Folder> {
        Folder(self.path.clone()).folder(Path::new(name))
    }
}
