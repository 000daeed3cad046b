//! A stretch of a file that is a file of the package: read without being copied anywhere first.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Open, so that what it shows cannot be exchanged meanwhile.
#[derive(Debug)]
pub struct Stretch {
    pub file: File,
    pub at: u64,
    pub size: u64,
}

impl Stretch {
    /// `None` if it cannot be opened: whoever reads the member itself says why.
    pub fn of(path: &Path, at: u64, size: Option<u64>) -> Option<Stretch> {
        // A link in the place of a file is never followed.
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(no_follow).open(path).ok()?;
        let size = match size {
            Some(size) => size,
            None => file.metadata().ok()?.len(),
        };
        Some(Stretch { file, at, size })
    }

    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        self.file.read_at(&mut buffer[..wanted], self.at + offset)
    }
}

impl pronom::Source for Stretch {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match Stretch::read_at(self, offset + filled as u64, &mut buffer[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }
}
