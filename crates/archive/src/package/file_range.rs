//! A stretch of a file that is a file of the package: read without being copied anywhere first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Open, so that its content cannot be exchanged.
#[derive(Debug)]
pub struct FileRange {
    pub file: File,
    pub at: u64,
    pub size: u64,
}

impl FileRange {
    /// A whole file; `None` if its size cannot be read.
    pub fn of(file: File) -> Option<FileRange> {
        let size = file.metadata().ok()?.len();
        Some(FileRange { file, at: 0, size })
    }

    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        self.file.read_at(&mut buffer[..wanted], self.at + offset)
    }
}

impl pronom::Source for FileRange {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match FileRange::read_at(self, offset + filled as u64, &mut buffer[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }
}
