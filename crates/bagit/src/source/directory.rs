//! A bag that is a directory.

use super::{Kind, Member, Members, Serialization};
use crate::error::Error;
use crate::path;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, FileType, ReadDir};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Directories nested deeper are not read; each level holds a file descriptor.
pub const DEPTH_MAX: usize = 200;

/// The members of a directory. Links are reported, and never followed.
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    pub fn new(root: impl Into<PathBuf>) -> Directory {
        Directory { root: root.into() }
    }

    fn at(&self, locator: &[u8]) -> io::Result<PathBuf> {
        Ok(self.root.join(os_path(locator)?))
    }
}

#[cfg(unix)]
fn os_path(locator: &[u8]) -> io::Result<&Path> {
    Ok(Path::new(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(locator)))
}

#[cfg(not(unix))]
fn os_path(locator: &[u8]) -> io::Result<&Path> {
    let text = std::str::from_utf8(locator).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(Path::new(text))
}

fn kind_of(file_type: FileType) -> Kind {
    if file_type.is_file() {
        Kind::File
    } else if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_symlink() {
        Kind::Symlink
    } else {
        Kind::Special
    }
}

/// A directory that is being read: what is left of it, and its path as text and as bytes.
struct Level {
    entries: ReadDir,
    path: String,
    raw: Vec<u8>,
    utf8: bool,
}

impl Level {
    fn member(&self, entry: &DirEntry) -> Member {
        let name = entry.file_name();
        let bytes = OsStr::as_encoded_bytes(&name);
        let (text, utf8) = match std::str::from_utf8(bytes) {
            Ok(text) => (text.to_owned(), true),
            Err(_) => (path::from_bytes(bytes), false),
        };
        let mut path = String::with_capacity(self.path.len() + text.len());
        path.push_str(&self.path);
        path.push_str(&text);
        let mut locator = Vec::with_capacity(self.raw.len() + bytes.len());
        locator.extend_from_slice(&self.raw);
        locator.extend_from_slice(bytes);
        Member { path, kind: Kind::File, size: None, utf8: utf8 && self.utf8, locator }
    }
}

impl Members for Directory {
    fn serialization(&self) -> Serialization {
        Serialization::Directory
    }

    fn list(
        &self,
        sizes: bool,
        visit: &mut dyn FnMut(Member) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let about = |path: &str| format!("{}/{path}", self.root.display());
        let open = |locator: &[u8], path: &str| {
            self.at(locator).and_then(fs::read_dir).map_err(|e| Error::io(about(path), e))
        };
        let entries = open(b"", "")?;
        let mut levels = vec![Level { entries, path: String::new(), raw: Vec::new(), utf8: true }];
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                levels.pop();
                continue;
            };
            let entry = entry.map_err(|e| Error::io(about(&level.path), e))?;
            let mut member = level.member(&entry);
            let file_type = entry.file_type().map_err(|e| Error::io(about(&member.path), e))?;
            member.kind = kind_of(file_type);
            if sizes && member.kind == Kind::File {
                let metadata = entry.metadata().map_err(|e| Error::io(about(&member.path), e))?;
                member.size = Some(metadata.len());
            }
            if member.kind != Kind::Directory {
                visit(member)?;
                continue;
            }
            if levels.len() >= DEPTH_MAX {
                member.kind = Kind::Unsupported("directories nested deeper than 200 are not read");
                visit(member)?;
                continue;
            }
            let entries = open(&member.locator, &member.path)?;
            let mut path = member.path.clone();
            path.push('/');
            let mut raw = member.locator.clone();
            raw.push(b'/');
            let utf8 = member.utf8;
            visit(member)?;
            levels.push(Level { entries, path, raw, utf8 });
        }
        Ok(())
    }

    fn open<'a>(&'a self, locator: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
        Ok(Box::new(File::open(self.at(locator)?)?))
    }

    fn size(&self, locator: &[u8]) -> io::Result<u64> {
        Ok(fs::symlink_metadata(self.at(locator)?)?.len())
    }

    fn stored_bytes(&self) -> Option<u64> {
        None
    }
}
