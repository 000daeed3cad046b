//! Zip archives, read by their central directory.

use super::read_at::{ReadAt, Section};
use super::zip_format::{self, ENTRY_BYTES, Entry, LOCAL_HEADER_BYTES};
use super::{Ending, Kind, Member, Members, Serialization};
use crate::error::Error;
use crate::path;
use crate::spill::{Record, Sorter};
use std::io::{self, BufReader, Read};
use std::sync::OnceLock;

/// A zip file whose members are read where they lie, by several threads.
pub struct ZipFile<R> {
    inner: R,
    name: String,
    ending: OnceLock<Ending>,
}

impl<R: ReadAt> ZipFile<R> {
    pub fn new(inner: R, name: impl Into<String>) -> ZipFile<R> {
        ZipFile { inner, name: name.into(), ending: OnceLock::new() }
    }

    fn damaged(&self, reason: impl Into<String>) -> Error {
        Error::archive(&self.name, reason)
    }

    fn failed(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                self.damaged("the archive ends in the middle of a record")
            }
            _ => Error::io(&self.name, error),
        }
    }

    /// Two members must not share bytes: that is how a small archive unpacks to a huge one.
    fn check_overlaps(&self, stretches: Sorter) -> Result<(), Error> {
        let mut sorted = stretches.sorted().map_err(|e| self.failed(e))?;
        let (mut record, mut previous_end) = (Record::default(), 0);
        while sorted.next(&mut record).map_err(|e| self.failed(e))? {
            let word = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).unwrap_or(u64::MAX);
            if word(&record.key) < previous_end {
                return Err(
                    self.damaged("members overlap, as in archives made to exhaust their reader")
                );
            }
            previous_end = word(&record.body);
        }
        Ok(())
    }
}

/// How a member is found again; kept as small as it can be.
struct Locator {
    header_at: u64,
    stored: u64,
    size: u64,
    crc32: u32,
    method: u16,
    name_len: u16,
}

/// The bytes of a member are not those that were put in the archive. It travels inside an
/// [`io::Error`], so that validation can report it under a code of its own.
#[derive(Debug, thiserror::Error)]
#[error("its CRC-32 is {found:08x}, and the archive says {stated:08x}")]
pub(crate) struct CrcMismatch {
    stated: u32,
    found: u32,
}

impl Locator {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        for word in [self.header_at, self.stored, self.size] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.crc32.to_le_bytes());
        bytes.extend_from_slice(&self.method.to_le_bytes());
        bytes.extend_from_slice(&self.name_len.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> io::Result<Locator> {
        let bytes: &[u8; 32] = bytes.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Ok(Locator {
            header_at: word(0),
            stored: word(8),
            size: word(16),
            crc32: u32::from_le_bytes(std::array::from_fn(|i| bytes[24 + i])),
            method: u16::from_le_bytes([bytes[28], bytes[29]]),
            name_len: u16::from_le_bytes([bytes[30], bytes[31]]),
        })
    }
}

fn decode_name(entry: &Entry, name: &[u8]) -> (String, bool) {
    // Many writers store UTF-8 without saying so; what is valid UTF-8 is hardly ever an accident.
    match std::str::from_utf8(name) {
        Ok(text) => (text.to_owned(), true),
        Err(_) if entry.flags & 0x800 != 0 => (path::from_bytes(name), false),
        Err(_) => (zip_format::decode_cp437(name), true),
    }
}

impl<R: ReadAt> Members for ZipFile<R> {
    fn serialization(&self) -> Serialization {
        Serialization::Zip
    }

    fn list(
        &self,
        _sizes: bool,
        visit: &mut dyn FnMut(Member) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let directory = zip_format::find_directory(&self.inner)
            .map_err(|e| self.failed(e))?
            .map_err(|reason| self.damaged(reason))?;
        let size = self.inner.size().map_err(|e| self.failed(e))?;
        let section = Section { inner: &self.inner, at: directory.start, end: directory.end };
        let mut reader = BufReader::with_capacity(64 * 1024, section);
        let mut stretches = Sorter::new(4 * 1024 * 1024);
        let (mut left, mut count) = (directory.end - directory.start, 0_u64);
        let mut first_at = directory.start;
        // The length decides, not the number of entries: some writers let that overflow.
        while left > 0 {
            let mut fixed = [0; ENTRY_BYTES];
            reader.read_exact(&mut fixed).map_err(|e| self.failed(e))?;
            let mut entry = Entry::parse(&fixed).map_err(|reason| self.damaged(reason))?;
            let mut rest = vec![0; entry.name_len + entry.extra_len + entry.comment_len];
            reader.read_exact(&mut rest).map_err(|e| self.failed(e))?;
            left = left.saturating_sub((ENTRY_BYTES + rest.len()) as u64);
            count += 1;
            let (name, extra) = rest.split_at(entry.name_len);
            entry.read_extra(&extra[..entry.extra_len]).map_err(|reason| self.damaged(reason))?;
            let end = (LOCAL_HEADER_BYTES as u64 + entry.name_len as u64)
                .checked_add(entry.stored)
                .and_then(|len| entry.header_at.checked_add(len))
                .filter(|end| *end <= directory.start)
                .ok_or_else(|| self.damaged("a member lies outside the archive"))?;
            first_at = first_at.min(entry.header_at);
            stretches
                .push(&entry.header_at.to_be_bytes(), &end.to_be_bytes())
                .map_err(|e| self.failed(e))?;
            visit(member(&entry, name))?;
        }
        if count as u16 != directory.entries as u16 {
            return Err(self.damaged("the number of members is not what the archive says"));
        }
        self.ending.get_or_init(|| match (directory.archive_end < size, first_at) {
            (true, _) => Ending::DataAfter { at: directory.archive_end },
            (false, 0) => Ending::Marked,
            (false, bytes) => Ending::DataBefore { bytes },
        });
        self.check_overlaps(stretches)
    }

    fn open<'a>(&'a self, locator: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
        let damaged = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
        let locator = Locator::from_bytes(locator)?;
        let mut header = [0; LOCAL_HEADER_BYTES];
        self.inner.read_exact_at(&mut header, locator.header_at)?;
        let (name_len, extra_len) = zip_format::local_lengths(&header)
            .filter(|(name_len, _)| *name_len == usize::from(locator.name_len))
            .ok_or_else(|| damaged("its local header does not match the central directory"))?;
        let at = locator.header_at + (LOCAL_HEADER_BYTES + name_len + extra_len) as u64;
        let end = at.checked_add(locator.stored).ok_or_else(|| damaged("sizes overflow"))?;
        let section = Section { inner: &self.inner, at, end };
        let buffered = |section| BufReader::with_capacity(64 * 1024, section);
        let body: Box<dyn Read + 'a> = match locator.method {
            0 => Box::new(section),
            8 => Box::new(flate2::bufread::DeflateDecoder::new(buffered(section))),
            12 => Box::new(bzip2::bufread::BzDecoder::new(buffered(section))),
            93 => Box::new(zstd::stream::read::Decoder::with_buffer(buffered(section))?),
            _ => return Err(damaged("its compression method is not read here")),
        };
        let (left, stated) = (locator.size, locator.crc32);
        Ok(Box::new(Exactly { body, left, stated, crc: flate2::Crc::new() }))
    }

    fn size(&self, locator: &[u8]) -> io::Result<u64> {
        Ok(Locator::from_bytes(locator)?.size)
    }

    fn stored_bytes(&self) -> Option<u64> {
        self.inner.size().ok()
    }

    fn ending(&self) -> Option<Ending> {
        self.ending.get().copied()
    }
}

fn member(entry: &Entry, name: &[u8]) -> Member {
    let kind = entry.kind(name);
    let (mut path, utf8) = decode_name(entry, name);
    path.truncate(path.trim_end_matches('/').len());
    let locator = Locator {
        header_at: entry.header_at,
        stored: entry.stored,
        size: entry.size,
        crc32: entry.crc32,
        method: entry.method,
        // A name's length is a 16-bit field, so nothing is lost.
        name_len: entry.name_len as u16,
    };
    let size = if kind == Kind::Directory { 0 } else { entry.size };
    let (locator, modified) = (locator.to_bytes(), entry.modified);
    Member { path, kind, size: Some(size), utf8, locator, modified }
}

/// Reads as many bytes as were announced; more, fewer or others are an error.
struct Exactly<'a> {
    body: Box<dyn Read + 'a>,
    left: u64,
    stated: u32,
    crc: flate2::Crc,
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wrong = |text| io::Error::new(io::ErrorKind::InvalidData, text);
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.body.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| wrong("it has more bytes than the central directory says"))?;
        if read == 0 && self.left > 0 {
            return Err(wrong("it has fewer bytes than the central directory says"));
        }
        self.crc.update(&buffer[..read]);
        if read == 0 && self.crc.sum() != self.stated {
            let mismatch = CrcMismatch { stated: self.stated, found: self.crc.sum() };
            return Err(io::Error::new(io::ErrorKind::InvalidData, mismatch));
        }
        Ok(read)
    }
}
