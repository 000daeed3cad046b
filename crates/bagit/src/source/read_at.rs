//! Reading at any place of a file, of memory, or of an object in a store.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that can be read at any offset, by several threads at once. A range request to an
/// object store is one `read_at`; see `examples/object_range.rs`.
pub trait ReadAt: Send + Sync {
    /// Reads some bytes at an offset; zero only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// How many bytes there are.
    fn size(&self) -> io::Result<u64>;

    /// Fills the buffer, or fails.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        (&self[start..]).read(buffer)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Arc<T> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

/// Makes anything that seeks readable at any place; threads take turns.
pub struct Seekable<R> {
    inner: Mutex<R>,
    size: u64,
}

impl<R: Read + Seek + Send> Seekable<R> {
    pub fn new(mut reader: R) -> io::Result<Seekable<R>> {
        let size = reader.seek(SeekFrom::End(0))?;
        Ok(Seekable { inner: Mutex::new(reader), size })
    }
}

impl<R: Read + Seek + Send> ReadAt for Seekable<R> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        // A panic in a reader leaves its position unknown, and every read sets it anew.
        let mut reader = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(offset))?;
        reader.read(buffer)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }
}

/// A range of something larger, such as a bag inside a disk image or one part of an object.
pub struct Range<R> {
    inner: R,
    start: u64,
    len: u64,
}

impl<R: ReadAt> Range<R> {
    /// The range is cut where `inner` ends.
    pub fn new(inner: R, start: u64, len: u64) -> io::Result<Range<R>> {
        let len = len.min(inner.size()?.saturating_sub(start));
        Ok(Range { inner, start, len })
    }
}

impl<R: ReadAt> ReadAt for Range<R> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let want = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if want == 0 {
            return Ok(0);
        }
        self.inner.read_at(&mut buffer[..want], self.start + offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

/// Reads one stretch from its start to its end; ending early is an error.
pub(crate) struct Section<'a> {
    pub inner: &'a dyn ReadAt,
    pub at: u64,
    pub end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let want = buffer.len().min(left);
        if want == 0 {
            return Ok(0);
        }
        let read = self.inner.read_at(&mut buffer[..want], self.at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_shows_only_its_part() {
        let range = Range::new(b"0123456789".to_vec(), 3, 4).unwrap();
        let mut text = String::new();
        let mut section = Section { inner: &range, at: 1, end: range.size().unwrap() };
        section.read_to_string(&mut text).unwrap();
        assert_eq!(text, "456");
        assert_eq!(Range::new(b"abc".to_vec(), 2, 9).unwrap().size().unwrap(), 1);
    }

    #[test]
    fn what_seeks_can_be_read_anywhere() {
        let seekable = Seekable::new(io::Cursor::new(b"abcdef")).unwrap();
        let mut two = [0; 2];
        seekable.read_exact_at(&mut two, 4).unwrap();
        assert_eq!(&two, b"ef");
        assert!(seekable.read_exact_at(&mut two, 5).is_err());
    }
}
