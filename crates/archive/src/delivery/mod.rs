//! Packages on their way out: what goes into them, the containers they are written in, the places they
//! are delivered to, and the look at what was delivered.
//!
//! A [`plan`] lists the members of a package in an order that is the same for every run. [`feed`] reads
//! them from the copies of an object, each compared with the registry's digest (K1), and hands them to
//! a [`writer`], which takes back what it has written of a file that turns out bad (K2). [`verify`]
//! reads the finished package again, and compares every member with the registry once more.

pub mod bag;
pub mod directory;
pub mod feed;
pub mod local;
pub mod ocfl;
pub mod plan;
pub mod sink;
pub mod tar;
pub mod verify;
pub mod writer;
pub mod zip;

use crate::stores::copies::StoredFile;
use bagit::source::read_at::ReadAt;
use bytes::Bytes;
use db::Micros;
use digest::{Algorithms, Digests, Hasher};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// A member of a package.
#[derive(Debug, Clone)]
pub struct Member {
    /// Where it is in the package, with `/` between parts.
    pub path: String,
    pub modified: Option<Micros>,
    pub content: Content,
}

/// What a member is.
#[derive(Debug, Clone)]
pub enum Content {
    /// An empty directory.
    Directory,
    /// A file of the object.
    Stored(StoredFile),
    /// A file that is made for the package.
    Made(MadeFile),
}

impl Member {
    pub fn size(&self) -> u64 {
        match &self.content {
            Content::Directory => 0,
            Content::Stored(file) => file.size,
            Content::Made(file) => file.size,
        }
    }

    /// The digest that its content has; none for a directory.
    pub fn sha512(&self) -> Option<&str> {
        match &self.content {
            Content::Directory => None,
            Content::Stored(file) => Some(&file.sha512),
            Content::Made(file) => Some(&file.sha512),
        }
    }

    pub fn is_directory(&self) -> bool {
        matches!(self.content, Content::Directory)
    }

    /// Whether a part of it may have been written when it turns out bad. Small files are compared
    /// before they are handed over.
    pub fn may_restart(&self) -> bool {
        matches!(&self.content, Content::Stored(file) if file.size > SMALL_BYTES)
    }
}

/// Files up to this size are read whole and compared before anything of them is written.
pub const SMALL_BYTES: u64 = 256 * 1024;

/// A file that is made for a package: in memory while it is small, else in a temporary file.
#[derive(Debug, Clone)]
pub struct MadeFile {
    pub size: u64,
    pub sha512: String,
    pub digests: Digests,
    content: MadeContent,
}

#[derive(Debug, Clone)]
enum MadeContent {
    Bytes(Bytes),
    Spooled(Arc<File>),
    /// It was written by an earlier run.
    Written,
}

/// What is kept of a made file in memory.
const MADE_BYTES_MAX: usize = 1 << 20;

impl MadeFile {
    /// A file that was written by an earlier run, to be compared with.
    pub fn known(size: u64, sha512: String) -> MadeFile {
        let digests = Digests::from_iter([]);
        MadeFile { size, sha512, digests, content: MadeContent::Written }
    }

    /// The next bytes from an offset on; none at the end.
    pub fn read_at(&self, offset: u64) -> io::Result<Bytes> {
        const CHUNK: usize = 256 * 1024;
        match &self.content {
            MadeContent::Bytes(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(from..bytes.len().min(from + CHUNK)))
            }
            MadeContent::Spooled(file) => {
                let mut chunk = vec![0; CHUNK];
                let read = file.read_at(&mut chunk, offset)?;
                chunk.truncate(read);
                Ok(chunk.into())
            }
            MadeContent::Written => Err(io::Error::other("the file has to be made again")),
        }
    }
}

/// Writes a [`MadeFile`].
pub struct Making {
    memory: Vec<u8>,
    spooled: Option<File>,
    hasher: Hasher,
    size: u64,
}

impl Making {
    /// Begins a file whose digests are wanted beside its SHA-512.
    pub fn new(algorithms: Algorithms) -> Making {
        let sha512 = [digest::Algorithm::Sha512].into_iter().collect();
        Making {
            memory: Vec::new(),
            spooled: None,
            hasher: Hasher::new(algorithms.union(sha512)),
            size: 0,
        }
    }

    /// Makes a file of bytes that are there.
    pub fn of(bytes: &[u8], algorithms: Algorithms) -> io::Result<MadeFile> {
        let mut making = Making::new(algorithms);
        making.write_all(bytes)?;
        making.finish()
    }

    pub fn finish(mut self) -> io::Result<MadeFile> {
        let content = match self.spooled.take() {
            None => MadeContent::Bytes(std::mem::take(&mut self.memory).into()),
            Some(mut file) => {
                file.write_all(&self.memory)?;
                MadeContent::Spooled(Arc::new(file))
            }
        };
        let digests = self.hasher.finish();
        let sha512 = digests.hex(digest::Algorithm::Sha512).unwrap_or_default();
        Ok(MadeFile { size: self.size, sha512, digests, content })
    }
}

impl Write for Making {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > MADE_BYTES_MAX {
            let file = match &mut self.spooled {
                Some(file) => file,
                none => none.insert(tempfile::tempfile()?),
            };
            file.write_all(&self.memory)?;
            self.memory.clear();
        }
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a file from its beginning.
pub(crate) fn from_start(mut file: &File) -> io::Result<impl Read + '_> {
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}
