//! Tar archives: as a stream, and at any place of a file.

use super::read_at::{ReadAt, Section};
use super::tar_header::{self, BLOCK_BYTES, Block, Extended, Header};
use super::tar_sparse::{self, Holes, SparseMap, SparseRecords, SparseSection};
use super::{Ending, Kind, Member, Members, Serialization};
use crate::error::Error;
use crate::path::{self, PATH_BYTES_MAX};
use std::io::{self, Read};
use std::sync::OnceLock;

/// So many bytes after the end marker are searched for data; more zeros than that count as data.
const PADDING_BYTES_MAX: u64 = 64 * 1024 * 1024;

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
    /// The way through the current member, when it is sparse.
    holes: Option<Holes>,
    global: Extended,
    /// Whether the end is looked at, which reads what follows it.
    looks_at_end: bool,
    ending: Option<Ending>,
}

impl<T: Tape> TarReader<T> {
    pub fn new(tape: T, name: impl Into<String>) -> TarReader<T> {
        TarReader {
            tape,
            name: name.into(),
            body_at: 0,
            left: 0,
            padding: 0,
            holes: None,
            global: Extended::default(),
            looks_at_end: true,
            ending: None,
        }
    }

    /// How the tar ends, once [`TarReader::next`] has come to its end.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
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
            (self.left, self.padding, self.holes) = (0, 0, None);
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
        let of_header = header.modified.and_then(|seconds| seconds.checked_mul(1_000_000));
        let modified = extended.modified.or(of_header);
        let kind = header.kind();
        let has_body = matches!(kind, Kind::File | Kind::Unsupported(_));
        let stored = if has_body { extended.size.unwrap_or(header.size) } else { 0 };
        let mut map = None;
        if kind == Kind::File {
            header.path = extended.sparse.name.clone().unwrap_or(header.path);
            map = self.sparse_map(&mut header, extended.sparse, stored)?;
        } else {
            self.begin(stored)?;
        }
        if header.path.len() > PATH_BYTES_MAX {
            return Err(self.damaged("a name is longer than 32 KiB"));
        }
        let utf8 = std::str::from_utf8(&header.path).is_ok();
        let mut path = path::from_bytes(&header.path);
        path.truncate(path.trim_end_matches('/').len().max(1));
        let mut locator = self.body_at.to_le_bytes().to_vec();
        locator.extend_from_slice(&self.left.to_le_bytes());
        let mut size = stored;
        if let Some(map) = map {
            map.write(&mut locator);
            size = map.size;
            self.holes = Some(map.holes());
        }
        Ok(Member { path, kind, size: Some(size), utf8, locator, modified })
    }

    /// Begins the body of a file, after the map that a sparse one has.
    fn sparse_map(
        &mut self,
        header: &mut Header,
        records: SparseRecords,
        stored: u64,
    ) -> Result<Option<SparseMap>, Error> {
        let map = if let Some(mut old) = header.sparse.take() {
            while old.more {
                let block = self.block()?.ok_or_else(|| self.cut_off())?;
                old.extend(&block, tar_header::number).map_err(|e| self.damaged(e))?;
            }
            self.begin(stored)?;
            SparseMap::new(old.size, old.stretches, stored)
        } else if records.is_sparse {
            self.begin(stored)?;
            let stretches = match records.map_in_body {
                true => self.map_in_body()?,
                false => records.stretches,
            };
            let size = records.size.ok_or("a sparse member has no size");
            size.and_then(|size| SparseMap::new(size, stretches, self.left))
        } else {
            self.begin(stored)?;
            return Ok(None);
        };
        map.map(Some).map_err(|e| self.damaged(e))
    }

    fn map_in_body(&mut self) -> Result<Vec<(u64, u64)>, Error> {
        let name = self.name.clone();
        let bad = |reason: &'static str| Error::archive(&name, reason);
        let next = || {
            let mut block: Block = [0; BLOCK_BYTES];
            match self.left < BLOCK_BYTES as u64 {
                true => Err(self.damaged("the map of a sparse member is cut off")),
                false => self.fill(&mut block).map(|()| block),
            }
        };
        tar_sparse::read_map_in_body(next, bad)
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

    fn cut_off(&self) -> Error {
        self.failed(io::ErrorKind::UnexpectedEof.into())
    }

    /// Reads a block; none where the tape ends.
    fn block(&mut self) -> Result<Option<Block>, Error> {
        let mut block: Block = [0; BLOCK_BYTES];
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match self.tape.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(self.cut_off()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.body_at += BLOCK_BYTES as u64;
        Ok(Some(block))
    }

    /// Reads a header; none at the mark of the end, or where the tape ends between members.
    fn header(&mut self) -> Result<Option<Header>, Error> {
        let Some(block) = self.block()? else {
            self.ending = Some(Ending::Unmarked);
            return Ok(None);
        };
        if block.iter().any(|b| *b != 0) {
            return Header::parse(&block).map(Some).map_err(|e| self.damaged(e));
        }
        if self.looks_at_end {
            self.ending = Some(self.after_mark());
        }
        Ok(None)
    }

    /// Looks at what follows the first block of the end marker.
    fn after_mark(&mut self) -> Ending {
        let mut buffer = vec![0; 64 * 1024];
        let mut zeros = 0_u64;
        while zeros <= PADDING_BYTES_MAX {
            match self.tape.read(&mut buffer) {
                Ok(0) if zeros < BLOCK_BYTES as u64 => return Ending::Unmarked,
                Ok(0) => return Ending::Marked,
                Ok(read) => match buffer[..read].iter().position(|b| *b != 0) {
                    Some(at) => return Ending::DataAfter { at: self.body_at + zeros + at as u64 },
                    None => zeros += read as u64,
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Something follows that cannot be decompressed; the members before it are whole.
                Err(_) => break,
            }
        }
        Ending::DataAfter { at: self.body_at + zeros }
    }

    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, Error> {
        if header.size > EXTENSION_BYTES_MAX {
            return Err(self.damaged("an extended header is larger than 1 MiB"));
        }
        self.begin(header.size)?;
        let mut data = vec![0; header.size as usize];
        self.fill(&mut data)?;
        Ok(data)
    }

    /// Fills the buffer with stored bytes of the current member, which must have so many.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_stored(&mut buffer[filled..]) {
                Ok(0) => return Err(self.cut_off()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    /// What is left of the current member, holes included.
    pub fn left(&self) -> u64 {
        self.holes.as_ref().map_or(self.left, Holes::left)
    }

    /// Reads the body of the current member; zero at its end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.holes.take() {
            None => self.read_stored(buffer),
            Some(mut holes) => {
                let read = holes.read(buffer, |part| self.read_stored(part));
                self.holes = Some(holes);
                read
            }
        }
    }

    fn read_stored(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
    ending: OnceLock<Ending>,
}

impl<R: ReadAt> TarFile<R> {
    pub fn new(inner: R, name: impl Into<String>) -> TarFile<R> {
        TarFile { inner, name: name.into(), ending: OnceLock::new() }
    }
}

/// The offset and the length of a member in the tar file, from its locator. `None` for a sparse
/// member: its bytes are not one range of the file.
pub fn plain_range(locator: &[u8]) -> Option<(u64, u64)> {
    match stretch(locator).ok()? {
        (at, size, None) => Some((at, size)),
        (_, _, Some(_)) => None,
    }
}

/// Where the stored bytes are, how many, and the map of a sparse member.
fn stretch(locator: &[u8]) -> io::Result<(u64, u64, Option<SparseMap>)> {
    let (words, _) = locator.as_chunks::<8>();
    let [at, size, rest @ ..] = words else { return Err(io::ErrorKind::InvalidInput.into()) };
    let map = if rest.is_empty() { None } else { Some(SparseMap::read(&locator[16..])?) };
    Ok((u64::from_le_bytes(*at), u64::from_le_bytes(*size), map))
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
        let size = tape.size;
        let mut reader = TarReader::new(tape, &self.name);
        // What follows the end is read once, however often the members are listed.
        reader.looks_at_end = self.ending.get().is_none();
        while let Some(member) = reader.next()? {
            if reader.body_at + reader.left > size {
                return Err(reader.cut_off());
            }
            visit(member)?;
        }
        if let Some(ending) = reader.ending() {
            self.ending.get_or_init(|| ending);
        }
        Ok(())
    }

    fn open<'a>(&'a self, locator: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
        let (at, size, map) = stretch(locator)?;
        Ok(match map {
            None => Box::new(Section { inner: &self.inner, at, end: at + size }),
            Some(map) => Box::new(SparseSection { inner: &self.inner, at, holes: map.holes() }),
        })
    }

    fn size(&self, locator: &[u8]) -> io::Result<u64> {
        let (_, stored, map) = stretch(locator)?;
        Ok(map.map_or(stored, |map| map.size))
    }

    fn stored_bytes(&self) -> Option<u64> {
        self.inner.size().ok()
    }

    fn ending(&self) -> Option<Ending> {
        self.ending.get().copied()
    }
}
