//! The names that were read, as far as messages show them, in bounded memory.

use crate::report::excerpt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// What is held in memory before it goes to a temporary file.
const MEMORY_BYTES_MAX: usize = 1 << 20;

/// A log of names: each has a place, by which it is found again when a problem is about it.
pub(crate) struct Excerpts {
    memory: Vec<u8>,
    file: Option<File>,
    file_bytes: u64,
    directory: Option<PathBuf>,
}

impl Excerpts {
    pub fn new(directory: Option<PathBuf>) -> Excerpts {
        Excerpts { memory: Vec::new(), file: None, file_bytes: 0, directory }
    }

    /// Adds a name, and says where it is.
    pub fn push(&mut self, name: &str) -> io::Result<u64> {
        let text = excerpt(name);
        if self.memory.len() + text.len() + 2 > MEMORY_BYTES_MAX {
            self.spill()?;
        }
        let at = self.file_bytes + self.memory.len() as u64;
        // An excerpt has at most 101 characters of at most four bytes.
        self.memory.extend_from_slice(&(text.len() as u16).to_le_bytes());
        self.memory.extend_from_slice(text.as_bytes());
        Ok(at)
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(temporary(self.directory.as_ref())?),
        };
        file.seek(SeekFrom::Start(self.file_bytes))?;
        file.write_all(&self.memory)?;
        self.file_bytes += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }

    /// The name at a place.
    pub fn get(&mut self, at: u64) -> io::Result<String> {
        let lost = || io::Error::from(io::ErrorKind::InvalidData);
        let bytes = match &mut self.file {
            Some(file) if at < self.file_bytes => {
                let mut bytes = Vec::new();
                file.seek(SeekFrom::Start(at))?;
                file.take(2 + 4 * 101).read_to_end(&mut bytes)?;
                bytes
            }
            _ => {
                let start = usize::try_from(at - self.file_bytes).map_err(|_| lost())?;
                self.memory.get(start..).ok_or_else(lost)?.to_vec()
            }
        };
        let (len, text) = bytes.split_first_chunk::<2>().ok_or_else(lost)?;
        let text = text.get(..u16::from_le_bytes(*len).into()).ok_or_else(lost)?;
        String::from_utf8(text.to_vec()).map_err(|_| lost())
    }
}

pub(crate) fn temporary(directory: Option<&PathBuf>) -> io::Result<File> {
    match directory {
        Some(directory) => tempfile::tempfile_in(directory),
        None => tempfile::tempfile(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_in_memory_and_in_the_file() {
        let mut log = Excerpts::new(None);
        let name = |n: u32| format!("name-{n}-{}", "ü".repeat(n as usize % 150));
        let places: Vec<u64> = (0..20_000).map(|n| log.push(&name(n)).unwrap()).collect();
        assert!(log.file_bytes > 0 && !log.memory.is_empty());
        for n in [0, 1, 149, 7_000, 19_998, 19_999] {
            assert_eq!(log.get(places[n as usize]).unwrap(), excerpt(&name(n)));
        }
    }
}
