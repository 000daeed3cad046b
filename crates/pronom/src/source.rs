//! Where bytes come from: anything with a length that can be read by ranges.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// An object of known length that is read by ranges: a file, a slice, an object in a store, a
/// member of a tar.
pub trait Source {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Fills `buffer` from `offset` on, and returns how many bytes there were; fewer than asked
    /// for only at the end.
    ///
    /// # Errors
    /// When the bytes cannot be had.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize>;

    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest =
            usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// An open file, whose length is taken when it is wrapped.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
    position: u64,
}

impl FileSource {
    /// Wraps an open file.
    ///
    /// # Errors
    /// When its length cannot be had.
    pub fn new(file: File) -> std::io::Result<FileSource> {
        let len = file.metadata()?.len();
        Ok(FileSource { file, len, position: 0 })
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.position != offset {
            self.position = self.file.seek(SeekFrom::Start(offset))?;
        }
        let mut count = 0;
        while count < buffer.len() && self.position < self.len {
            let wanted = buffer.len().min(count + (self.len - self.position) as usize);
            match self.file.read(&mut buffer[count..wanted]) {
                Ok(0) => break,
                Ok(more) => {
                    count += more;
                    self.position += more as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

/// Fills the whole buffer, or says that the object is shorter than that.
pub(crate) fn read_exact(source: &mut dyn Source, offset: u64, buffer: &mut [u8]) -> Result<bool> {
    Ok(read(source, offset, buffer)? == buffer.len())
}

pub(crate) fn read(source: &mut dyn Source, offset: u64, buffer: &mut [u8]) -> Result<usize> {
    source.read_at(offset, buffer).map_err(|source| Error::Read { offset, source })
}

/// What is left of an object that went by as a stream: its beginning and its end. Ranges in
/// between come from the object itself if it can still be read.
pub(crate) struct Remembered<'a, 'o> {
    pub head: &'a [u8],
    pub tail: &'a [u8],
    pub len: u64,
    pub object: Option<&'a mut (dyn Source + 'o)>,
    /// Set when a range was asked for that is not here.
    pub missed: bool,
}

impl Source for Remembered<'_, '_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let wanted = (buffer.len() as u64).min(self.len.saturating_sub(offset));
        if wanted == 0 {
            return Ok(0);
        }
        let end = offset + wanted;
        // Both windows lie within the object, so what is inside them fits a `usize`.
        let tail_start = self.len - self.tail.len() as u64;
        if end <= self.head.len() as u64 {
            buffer[..wanted as usize].copy_from_slice(&self.head[offset as usize..end as usize]);
        } else if offset >= tail_start {
            let from = (offset - tail_start) as usize;
            buffer[..wanted as usize].copy_from_slice(&self.tail[from..from + wanted as usize]);
        } else if let Some(object) = &mut self.object {
            return object.read_at(offset, &mut buffer[..wanted as usize]);
        } else {
            self.missed = true;
            return Ok(0);
        }
        Ok(wanted as usize)
    }
}
