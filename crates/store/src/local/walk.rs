//! Walking a directory tree in the byte order of keys, in bounded memory.

use super::root::Root;
use crate::error::Result;
use crate::key::join;
use crate::meta::{Entry, Kind};
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;
use std::borrow::Cow;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// So many names of one directory are held at once; a larger directory is read again for the
/// next so many.
const NAMES_MAX: usize = 65_536;

/// A directory that is exchanged for another while it is read is read again, so many times.
const EXCHANGES_MAX: usize = 10;

/// A name in a directory, by the order in which keys sort: a directory as its name and a `/`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    sort: Vec<u8>,
    kind: FileTypeOrd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileTypeOrd {
    Directory,
    File,
    Other,
}

#[derive(Debug)]
struct Level {
    path: String,
    /// Kept open only while this level is the deepest, so that depth costs no descriptors.
    fd: Option<OwnedFd>,
    names: std::vec::IntoIter<Name>,
    /// Where reading has to go on after these names.
    more_after: Option<Vec<u8>>,
    /// Whether anything in it was seen, or skipped because it came before.
    is_empty: bool,
}

impl Level {
    /// Whether its path still leads to the directory that was read.
    fn is_still_there(&self, root: &Root) -> bool {
        let identity = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
        let Some(read) = &self.fd else { return true };
        let now = root.open_directory(&self.path);
        // One that is gone is as good as one that is still there: it was read before it went.
        now.is_err() || now.and_then(|now| identity(&now)) == identity(read)
    }
}

/// A walk through what lies below a prefix.
#[derive(Debug)]
pub(super) struct Walker {
    root: Arc<Root>,
    hidden: Arc<str>,
    recursive: bool,
    levels: Vec<Level>,
    /// The last entry, as bytes in the order of keys: names need not be UTF-8.
    last: Vec<u8>,
}

impl Walker {
    /// Starts after a given key, or after everything in a directory if that ends in `/`.
    pub(super) fn start(
        root: Arc<Root>,
        hidden: Arc<str>,
        prefix: &str,
        recursive: bool,
        after: Option<&[u8]>,
    ) -> Result<Walker, Errno> {
        let mut walker = Walker { root, hidden, recursive, levels: Vec::new(), last: Vec::new() };
        let below = |after| match prefix {
            "" => after,
            prefix => <[u8]>::strip_prefix(after, prefix.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"/"))
                .unwrap_or_default(),
        };
        let mut rest: Option<&[u8]> = after.map(below);
        let mut path = prefix.to_owned();
        loop {
            // The segments of `after` that lead further down; the last one is where to go on.
            let down = rest.and_then(first_segment);
            let skip = match down {
                Some((segment, _)) => rest.map(|rest| &rest[..=segment.len()]),
                None => rest.filter(|rest| !rest.is_empty()),
            };
            match walker.read_level(path.clone(), skip) {
                Ok(mut level) => {
                    level.is_empty &= skip.is_none();
                    walker.levels.push(level);
                }
                // Nothing there, or it went away since the last page.
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(walker),
                Err(errno) => return Err(errno),
            }
            let Some((segment, further)) = down.filter(|_| recursive) else { return Ok(walker) };
            path = join(&path, segment);
            rest = Some(further);
        }
    }

    /// Where the next page would start after the entry that came last.
    pub(super) fn position(&self) -> &[u8] {
        &self.last
    }

    /// Reads a directory. If it was exchanged for another meanwhile, it may have been emptied
    /// before all of it was read, so the one that is there now is read.
    fn read_level(&self, path: String, after: Option<&[u8]>) -> Result<Level, Errno> {
        let mut tries_left = EXCHANGES_MAX;
        loop {
            let level = self.read_level_once(path.clone(), after)?;
            tries_left -= 1;
            if tries_left == 0 || level.is_still_there(&self.root) {
                return Ok(level);
            }
        }
    }

    fn read_level_once(&self, path: String, after: Option<&[u8]>) -> Result<Level, Errno> {
        let fd = self.root.open_directory(&path)?;
        let mut heap = BinaryHeap::new();
        let mut more = false;
        let mut is_empty = true;
        for entry in Dir::read_from(&fd)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            is_empty = false;
            if self.is_hidden(&path, bytes) {
                continue;
            }
            let Some(kind) = kind_of(fd.as_fd(), entry.file_type(), entry.file_name()) else {
                continue;
            };
            let mut sort = bytes.to_vec();
            if kind == FileTypeOrd::Directory {
                sort.push(b'/');
            }
            if after.is_some_and(|after| &*sort <= after) {
                continue;
            }
            heap.push(Name { sort, kind });
            if heap.len() > NAMES_MAX {
                heap.pop();
                more = true;
            }
        }
        let names = heap.into_sorted_vec();
        let more_after = if more { names.last().map(|name| name.sort.clone()) } else { None };
        Ok(Level { path, fd: Some(fd), names: names.into_iter(), more_after, is_empty })
    }

    fn is_hidden(&self, path: &str, name: &[u8]) -> bool {
        let hidden = self.hidden.as_bytes();
        match path.is_empty() {
            true => hidden == name,
            false => hidden
                .strip_prefix(path.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"/"))
                .is_some_and(|rest| rest == name),
        }
    }

    /// The next entry, or `None` at the end.
    pub(super) fn step(&mut self) -> Result<Option<Entry>, Errno> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            let Some(name) = level.names.next() else {
                let path = std::mem::take(&mut level.path);
                let (more, is_empty) = (level.more_after.take(), level.is_empty);
                self.levels.pop();
                if let Some(more) = more {
                    match self.read_level(path, Some(&more)) {
                        Ok(level) => self.levels.push(Level { is_empty: false, ..level }),
                        Err(Errno::NOENT | Errno::NOTDIR) => {}
                        Err(errno) => return Err(errno),
                    }
                } else if is_empty && !self.levels.is_empty() {
                    self.last = format!("{path}/").into_bytes();
                    return Ok(Some(plain_entry(path, Kind::Directory)));
                }
                continue;
            };
            if let Some(entry) = self.visit(name)? {
                return Ok(Some(entry));
            }
        }
    }

    fn visit(&mut self, name: Name) -> Result<Option<Entry>, Errno> {
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        let bytes = name.sort.strip_suffix(b"/").unwrap_or(&name.sort);
        let text = readable(bytes);
        let key = join(&level.path, &text);
        let is_text = matches!(text, Cow::Borrowed(_));
        if name.kind == FileTypeOrd::Directory && is_text && self.recursive {
            level.fd = None;
            match self.read_level(key, None) {
                Ok(level) => self.levels.push(level),
                // It went away, or became something else, since its name was read.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(errno),
            }
            return Ok(None);
        }
        self.last.clear();
        if !level.path.is_empty() {
            self.last.extend_from_slice(level.path.as_bytes());
            self.last.push(b'/');
        }
        self.last.extend_from_slice(&name.sort);
        match name.kind {
            FileTypeOrd::Directory if is_text => Ok(Some(plain_entry(key, Kind::Directory))),
            FileTypeOrd::File if is_text => file_entry(&self.root, level, key, &text),
            _ if is_text => Ok(Some(plain_entry(key, Kind::Other))),
            _ => Ok(Some(plain_entry(key, Kind::NotUtf8))),
        }
    }
}

/// A name as text; the bytes of one that is not UTF-8 as `\xe9`.
fn readable(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for chunk in name.utf8_chunks() {
        shown.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
    }
    Cow::Owned(shown)
}

fn file_entry(
    root: &Root,
    level: &mut Level,
    key: String,
    name: &str,
) -> Result<Option<Entry>, Errno> {
    let at = match &mut level.fd {
        Some(fd) => fd,
        closed => match root.open_directory(&level.path) {
            Ok(fd) => closed.insert(fd),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(errno),
        },
    };
    let mut stat = rustix::fs::statat(&*at, name, AtFlags::SYMLINK_NOFOLLOW);
    if matches!(stat, Err(Errno::NOENT))
        && let Ok(now) = root.open_directory(&level.path)
    {
        // The directory may have been exchanged for another, and emptied.
        *at = now;
        stat = rustix::fs::statat(&*at, name, AtFlags::SYMLINK_NOFOLLOW);
    }
    match stat {
        Ok(stat) => {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            Ok(Some(Entry { key, kind: Kind::File, size, modified: modified(&stat) }))
        }
        // It went away between reading its name and asking for its size.
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The first segment of a path that goes on after it, and what follows.
fn first_segment(path: &[u8]) -> Option<(&str, &[u8])> {
    let slash = path.iter().position(|byte| *byte == b'/')?;
    let rest = &path[slash + 1..];
    let segment = std::str::from_utf8(&path[..slash]).ok()?;
    (!rest.is_empty()).then_some((segment, rest))
}

/// When the content of a file was last changed.
pub(super) fn modified(stat: &rustix::fs::Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    let nanos = u32::try_from(stat.st_mtime_nsec).ok()?;
    Some(UNIX_EPOCH + Duration::new(seconds, nanos))
}

fn plain_entry(key: String, kind: Kind) -> Entry {
    Entry { key, kind, size: 0, modified: None }
}

fn kind_of(at: BorrowedFd<'_>, known: FileType, name: &std::ffi::CStr) -> Option<FileTypeOrd> {
    let file_type = match known {
        // Some file systems do not say in the directory what a name is.
        FileType::Unknown => {
            let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            FileType::from_raw_mode(stat.st_mode)
        }
        known => known,
    };
    Some(match file_type {
        FileType::Directory => FileTypeOrd::Directory,
        FileType::RegularFile => FileTypeOrd::File,
        _ => FileTypeOrd::Other,
    })
}
