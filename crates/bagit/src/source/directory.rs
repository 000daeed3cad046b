//! A bag that is a directory.

use super::{Dated, Kind, Member, Members, Serialization};
use crate::beneath::{Entries, EntryKind, Folder};
use crate::error::Error;
use crate::path;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Directories nested deeper are not read; each level holds a file descriptor.
pub const DEPTH_MAX: usize = 200;

/// The members of a directory. Links are reported, and never followed: not those that are listed,
/// and not those that are put in the place of a file or directory afterwards.
pub struct Directory {
    root: PathBuf,
    /// Opened once, so a directory that is put in its place later is not read.
    folder: OnceLock<Folder>,
}

impl Directory {
    /// A directory whose path is trusted; it is opened when it is first read.
    pub fn new(root: impl Into<PathBuf>) -> Directory {
        Directory { root: root.into(), folder: OnceLock::new() }
    }

    /// A directory that is open; the path is for messages.
    pub fn opened(folder: Folder, root: impl Into<PathBuf>) -> Directory {
        Directory { root: root.into(), folder: OnceLock::from(folder) }
    }

    fn folder(&self) -> io::Result<&Folder> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let folder = Folder::open(&self.root)?;
        Ok(self.folder.get_or_init(|| folder))
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

fn kind_of(kind: EntryKind) -> Kind {
    match kind {
        EntryKind::File => Kind::File,
        EntryKind::Directory => Kind::Directory,
        EntryKind::Link => Kind::Symlink,
        EntryKind::Special => Kind::Special,
    }
}

fn micros(seconds: i64, nanos: u64) -> Option<i64> {
    seconds.checked_mul(1_000_000)?.checked_add(i64::try_from(nanos / 1000).ok()?)
}

/// When a file was last written to, in microseconds since 1970.
pub fn modified(meta: &std::fs::Metadata) -> Option<i64> {
    let time = meta.modified().ok()?;
    match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).ok(),
        Err(before) => i64::try_from(before.duration().as_micros()).ok().map(|micros| -micros),
    }
}

/// A directory that is being read: what is left of it, and its path as text and as bytes.
struct Level {
    entries: Entries,
    path: String,
    raw: Vec<u8>,
    utf8: bool,
}

impl Level {
    fn member(&self, name: &OsStr) -> Member {
        let bytes = OsStr::as_encoded_bytes(name);
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
        let utf8 = utf8 && self.utf8;
        Member { path, kind: Kind::File, size: None, utf8, locator, modified: None }
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
        let top = self.folder().and_then(Folder::entries);
        let entries = top.map_err(|e| Error::io(about(""), e))?;
        let mut levels = vec![Level { entries, path: String::new(), raw: Vec::new(), utf8: true }];
        loop {
            let depth = levels.len();
            let Some(level) = levels.last_mut() else { return Ok(()) };
            let Some(entry) = level.entries.next() else {
                levels.pop();
                continue;
            };
            let (name, kind) = entry.map_err(|e| Error::io(about(&level.path), e))?;
            let mut member = level.member(&name);
            member.kind = kind_of(kind);
            if sizes && matches!(member.kind, Kind::File | Kind::Directory) {
                let found = level.entries.info(&name);
                let found = found.map_err(|e| Error::io(about(&member.path), e))?;
                member.size = (member.kind == Kind::File).then_some(found.bytes);
                member.modified = micros(found.modified.0, found.modified.1);
            }
            if member.kind != Kind::Directory {
                visit(member)?;
                continue;
            }
            if depth >= DEPTH_MAX {
                member.kind = Kind::Unsupported("directories nested deeper than 200 are not read");
                visit(member)?;
                continue;
            }
            let below = level.entries.folder(&name).and_then(|folder| folder.entries());
            let entries = below.map_err(|e| Error::io(about(&member.path), e))?;
            let mut path = member.path.clone();
            path.push('/');
            let mut raw = member.locator.clone();
            raw.push(b'/');
            let utf8 = member.utf8;
            visit(member)?;
            levels.push(Level { entries, path, raw, utf8 });
        }
    }

    fn open<'a>(&'a self, locator: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
        Ok(Box::new(self.folder()?.file(os_path(locator)?)?))
    }

    fn open_dated<'a>(&'a self, locator: &[u8]) -> io::Result<Dated<'a>> {
        let file = self.folder()?.file(os_path(locator)?)?;
        let modified = modified(&file.metadata()?);
        Ok((Box::new(file), modified))
    }

    fn size(&self, locator: &[u8]) -> io::Result<u64> {
        Ok(self.folder()?.file(os_path(locator)?)?.metadata()?.len())
    }

    fn stored_bytes(&self) -> Option<u64> {
        None
    }
}
