//! Packages as tar archives.

use super::Member;
use super::sink::Sink;
use super::writer::{PackageWriter, WriteError};
use bagit::tar_blocks::{BLOCK_BYTES, END, directory_header, file_header, padding};

/// Writes a tar archive.
pub struct TarWriter<S: Sink> {
    sink: S,
    /// Where the member begins, if it may have to be taken back.
    mark: Option<u64>,
}

impl<S: Sink> TarWriter<S> {
    pub fn new(sink: S) -> TarWriter<S> {
        TarWriter { sink, mark: None }
    }

    fn rewind(&mut self) -> Result<(), WriteError> {
        match self.mark {
            Some(mark) => self.sink.rewind(mark),
            None => Err(WriteError::CannotRewind),
        }
    }
}

/// The blocks before a member's content.
pub fn header(member: &Member) -> Vec<u8> {
    let modified = member.modified.unwrap_or(0);
    match member.is_directory() {
        true => directory_header(&format!("{}/", member.path), modified),
        false => file_header(&member.path, member.size(), modified),
    }
}

impl<S: Sink> PackageWriter for TarWriter<S> {
    fn begin(&mut self, member: &Member) -> Result<(), WriteError> {
        self.mark = match member.may_restart() {
            true => Some(self.sink.mark()?),
            false => None,
        };
        Ok(self.sink.write_all(&header(member))?)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        Ok(self.sink.write_all(bytes)?)
    }

    fn restart(&mut self, member: &Member) -> Result<(), WriteError> {
        self.rewind()?;
        Ok(self.sink.write_all(&header(member))?)
    }

    fn abandon(&mut self, _: &Member) -> Result<(), WriteError> {
        self.rewind()
    }

    fn end(&mut self, member: &Member) -> Result<(), WriteError> {
        Ok(self.sink.write_all(&[0; BLOCK_BYTES][..padding(member.size())])?)
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.sink.write_all(&END)?;
        Ok(self.sink.finish()?)
    }
}
