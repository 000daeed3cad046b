//! Tar archives: as a stream, and at any place of a file.

use super::read_at::{ReadAt, Section};
use super::tar_header::{BLOCK_BYTES, Block, Extended, Header};
use super::{Kind, Member, Members, Serialization};
use crate::error::Error;
use crate::path::{self, PATH_BYTES_MAX};
use std::io::{self, Read};

/// Long names and extended headers larger than this are refused.
const EXTENSION_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes that are read forward, with stretches passed over.
pub(crate) trait Tape {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
}

/// A tape that is a stream.
pub(crate) struct StreamTape<R>(pub R);

impl<R: Read> Tape for StreamTape<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.0).take(bytes), &mut io::sink())?;
        if skipped < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// A tape over what can be read anywhere; headers are read ahead a little, bodies not at all.
pub(crate) struct FileTape<'a> {
    inner: &'a dyn ReadAt,
    size: u64,
    at: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
}

impl<'a> FileTape<'a> {
    const AHEAD_BYTES: usize = 64 * 1024;

    pub fn new(inner: &'a dyn ReadAt) -> io::Result<FileTape<'a>> {
        Ok(FileTape { inner, size: inner.size()?, at: 0, buffer: Vec::new(), buffer_at: 0 })
    }
}

impl Tape for FileTape<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let have = self.at.checked_sub(self.buffer_at).filter(|o| *o < self.buffer.len() as u64);
        let offset = match have {
            Some(offset) => offset as usize,
            None => {
                self.buffer.resize(Self::AHEAD_BYTES, 0);
                let read = self.inner.read_at(&mut self.buffer, self.at)?;
                self.buffer.truncate(read);
                self.buffer_at = self.at;
                0
            }
        };
        let read = (&self.buffer[offset..]).read(out)?;
        self.at += read as u64;
        Ok(read)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let at = self.at.checked_add(bytes).filter(|at| *at <= self.size);
        self.at = at.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(())
    }
}

/// Walks the members of a tape.
pub(crate) struct TarReader<T> {
    tape: T,
    name: String,
    /// Where the body of the current member starts.
    body_at: u64,
    /// What is left of the current member, and the padding after it.
    left: u64,
    padding: u64,
    global: Extended,
}

impl<T: Tape> TarReader<T> {
    pub fn new(tape: T, name: impl Into<String>) -> TarReader<T> {
        let global = Extended::default();
        TarReader { tape, name: name.into(), body_at: 0, left: 0, padding: 0, global }
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::archive(&self.name, format!("{reason} (near byte {})", self.body_at))
    }

    fn failed(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                self.damaged("the archive ends in the middle of a member")
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                self.damaged(&format!("the compressed data is damaged: {error}"))
            }
            _ => Error::io(&self.name, error),
        }
    }

    /// Goes to the next member; none at the end.
    pub fn next(&mut self) -> Result<Option<Member>, Error> {
        let mut extended = self.global.clone();
        loop {
            let rest = self.left + self.padding;
            self.tape.skip(rest).map_err(|e| self.failed(e))?;
            self.body_at += rest;
            (self.left, self.padding) = (0, 0);
            let Some(header) = self.header()? else { return Ok(None) };
            match header.flag {
                b'L' => {
                    let mut name = self.extension(&header)?;
                    name.truncate(name.iter().position(|b| *b == 0).unwrap_or(name.len()));
                    extended.path = Some(name);
                }
                b'K' => drop(self.extension(&header)?),
                b'x' | b'X' => {
                    let data = self.extension(&header)?;
                    extended.read_records(&data).map_err(|e| self.damaged(e))?;
                }
                b'g' => {
                    let data = self.extension(&header)?;
                    self.global.read_records(&data).map_err(|e| self.damaged(e))?;
                    extended.read_records(&data).map_err(|e| self.damaged(e))?;
                }
                _ => return self.member(header, extended).map(Some),
            }
        }
    }

    fn member(&mut self, mut header: Header, extended: Extended) -> Result<Member, Error> {
        header.path = extended.path.unwrap_or(header.path);
        let mut kind = header.kind();
        if extended.sparse && kind == Kind::File {
            kind =
                Kind::Unsupported("it is a sparse member of GNU tar; write the archive without -S");
        }
        let has_body = matches!(kind, Kind::File | Kind::Unsupported(_));
        let size = if has_body { extended.size.unwrap_or(header.size) } else { 0 };
        self.begin(size)?;
        if header.path.len() > PATH_BYTES_MAX {
            return Err(self.damaged("a name is longer than 32 KiB"));
        }
        let utf8 = std::str::from_utf8(&header.path).is_ok();
        let mut path = path::from_bytes(&header.path);
        path.truncate(path.trim_end_matches('/').len().max(1));
        let mut locator = self.body_at.to_le_bytes().to_vec();
        locator.extend_from_slice(&size.to_le_bytes());
        Ok(Member { path, kind, size: Some(size), utf8, locator })
    }

    fn begin(&mut self, size: u64) -> Result<(), Error> {
        self.left = size;
        self.padding = (BLOCK_BYTES as u64 - size % BLOCK_BYTES as u64) % BLOCK_BYTES as u64;
        // Sizes are below 2^63, so the sum fits; the position must fit too.
        self.body_at
            .checked_add(self.left + self.padding)
            .map(drop)
            .ok_or_else(|| self.damaged("sizes overflow"))
    }

    /// Reads a header; none at the mark of the end, or where the tape ends between members.
    fn header(&mut self) -> Result<Option<Header>, Error> {
        let mut block: Block = [0; BLOCK_BYTES];
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match self.tape.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.body_at += BLOCK_BYTES as u64;
        if block.iter().all(|b| *b == 0) {
            return Ok(None);
        }
        Header::parse(&block).map(Some).map_err(|e| self.damaged(e))
    }

    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, Error> {
        if header.size > EXTENSION_BYTES_MAX {
            return Err(self.damaged("an extended header is larger than 1 MiB"));
        }
        self.begin(header.size)?;
        let mut data = vec![0; header.size as usize];
        let mut filled = 0;
        while filled < data.len() {
            match self.read(&mut data[filled..]) {
                Ok(read) => filled += read,
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(data)
    }

    /// What is left of the current member.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Reads the body of the current member; zero at its end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let want = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if want == 0 {
            return Ok(0);
        }
        let read = self.tape.read(&mut buffer[..want])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        self.body_at += read as u64;
        Ok(read)
    }
}

/// A tar file whose members are read where they lie, by several threads.
pub struct TarFile<R> {
    inner: R,
    name: String,
}

impl<R: ReadAt> TarFile<R> {
    pub fn new(inner: R, name: impl Into<String>) -> TarFile<R> {
        TarFile { inner, name: name.into() }
    }
}

fn stretch(locator: &[u8]) -> io::Result<(u64, u64)> {
    let word = |at: usize| {
        let bytes = locator.get(at..at + 8).and_then(|b| b.try_into().ok());
        bytes.map(u64::from_le_bytes).ok_or(io::ErrorKind::InvalidInput)
    };
    Ok((word(0)?, word(8)?))
}

impl<R: ReadAt> Members for TarFile<R> {
    fn serialization(&self) -> Serialization {
        Serialization::Tar
    }

    fn list(
        &self,
        _sizes: bool,
        visit: &mut dyn FnMut(Member) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let tape = FileTape::new(&self.inner).map_err(|e| Error::io(&self.name, e))?;
        let mut reader = TarReader::new(tape, &self.name);
        while let Some(member) = reader.next()? {
            visit(member)?;
        }
        Ok(())
    }

    fn open<'a>(&'a self, locator: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
        let (at, size) = stretch(locator)?;
        Ok(Box::new(Section { inner: &self.inner, at, end: at + size }))
    }

    fn size(&self, locator: &[u8]) -> io::Result<u64> {
        Ok(stretch(locator)?.1)
    }

    fn stored_bytes(&self) -> Option<u64> {
        self.inner.size().ok()
    }
}
