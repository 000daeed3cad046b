//! Sparse members of GNU tar: the archive keeps the stretches that have data, and a map of where
//! they belong. Four forms are read: the type `S` of old GNU tar, and 0.0, 0.1 and 1.0 of POSIX
//! archives.

use super::read_at::ReadAt;
use super::tar_header::Block;
use std::io::{self, Read};

/// A map with more stretches is refused: it is kept in memory while the member is read.
pub(crate) const STRETCHES_MAX: usize = 32 * 1024;

const BAD_MAP: &str = "the map of a sparse member is malformed";
const LARGE_MAP: &str = "the map of a sparse member has more than 32768 stretches";

/// Where data lies in the file as it was; all else is zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SparseMap {
    pub size: u64,
    stretches: Vec<(u64, u64)>,
}

impl SparseMap {
    /// Checks that the stretches follow each other, lie in the file, and have the stored bytes.
    pub fn new(
        size: u64,
        stretches: Vec<(u64, u64)>,
        stored: u64,
    ) -> Result<SparseMap, &'static str> {
        let (mut at, mut bytes) = (0_u64, 0_u64);
        for (offset, len) in &stretches {
            let end = offset.checked_add(*len).filter(|end| *offset >= at && *end <= size);
            at = end.ok_or(BAD_MAP)?;
            // The stretches are disjoint parts of `size` bytes, so their sum fits.
            bytes += len;
        }
        let fits = bytes == stored && i64::try_from(size).is_ok();
        if fits { Ok(SparseMap { size, stretches }) } else { Err(BAD_MAP) }
    }

    pub fn holes(self) -> Holes {
        Holes { map: self, at: 0, next: 0 }
    }

    /// Adds the map to a locator.
    pub fn write(&self, locator: &mut Vec<u8>) {
        locator.extend_from_slice(&self.size.to_le_bytes());
        for number in self.stretches.iter().flat_map(|(offset, len)| [offset, len]) {
            locator.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads what [`SparseMap::write`] wrote.
    pub fn read(bytes: &[u8]) -> io::Result<SparseMap> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|word| u64::from_le_bytes(*word));
        let size = numbers.next().filter(|_| rest.is_empty()).ok_or(io::ErrorKind::InvalidInput)?;
        let mut stretches = Vec::with_capacity(bytes.len() / 16);
        while let (Some(offset), Some(len)) = (numbers.next(), numbers.next()) {
            stretches.push((offset, len));
        }
        Ok(SparseMap { size, stretches })
    }
}

/// What comes next in a sparse file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Zeros(u64),
    Data(u64),
    End,
}

/// Goes through a sparse file from its start to its end.
#[derive(Debug)]
pub(crate) struct Holes {
    map: SparseMap,
    at: u64,
    next: usize,
}

impl Holes {
    pub fn left(&self) -> u64 {
        self.map.size - self.at
    }

    pub fn next(&mut self) -> Next {
        while let Some((offset, len)) = self.map.stretches.get(self.next) {
            if self.at < *offset {
                return Next::Zeros(offset - self.at);
            }
            match offset + len - self.at {
                0 => self.next += 1,
                left => return Next::Data(left),
            }
        }
        match self.left() {
            0 => Next::End,
            left => Next::Zeros(left),
        }
    }

    /// Says that so many bytes were taken, of what `next` said.
    pub fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
    }

    /// Reads through the map; `data` reads what is stored.
    pub fn read(
        &mut self,
        buffer: &mut [u8],
        data: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let cut = |left: u64| buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = match self.next() {
            Next::End => 0,
            Next::Zeros(left) => {
                let bytes = cut(left);
                buffer[..bytes].fill(0);
                bytes
            }
            Next::Data(left) => {
                let bytes = cut(left);
                data(&mut buffer[..bytes])?
            }
        };
        self.advance(read);
        Ok(read)
    }
}

/// Reads a sparse member of what can be read anywhere.
pub(crate) struct SparseSection<'a> {
    pub inner: &'a dyn ReadAt,
    pub at: u64,
    pub holes: Holes,
}

impl Read for SparseSection<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let SparseSection { inner, at, holes } = self;
        holes.read(buffer, |part| {
            let read = inner.read_at(part, *at)?;
            if read == 0 && !part.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            *at += read as u64;
            Ok(read)
        })
    }
}

/// The map of a member of type `S`: four stretches in its header, more in blocks after it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OldMap {
    pub size: u64,
    pub stretches: Vec<(u64, u64)>,
    /// Another block of the map follows.
    pub more: bool,
}

impl OldMap {
    pub fn from_header(
        block: &Block,
        number: fn(&[u8]) -> Option<u64>,
    ) -> Result<OldMap, &'static str> {
        let size = number(&block[483..495]).ok_or(BAD_MAP)?;
        let mut map = OldMap { size, stretches: Vec::new(), more: block[482] != 0 };
        map.entries(&block[386..482], number)?;
        Ok(map)
    }

    /// Reads a block that follows the header.
    pub fn extend(
        &mut self,
        block: &Block,
        number: fn(&[u8]) -> Option<u64>,
    ) -> Result<(), &'static str> {
        self.more = block[504] != 0;
        self.entries(&block[..504], number)
    }

    fn entries(
        &mut self,
        fields: &[u8],
        number: fn(&[u8]) -> Option<u64>,
    ) -> Result<(), &'static str> {
        for entry in fields.chunks_exact(24).take_while(|entry| entry[0] != 0) {
            let (offset, len) = entry.split_at(12);
            push(&mut self.stretches, number(offset), number(len))?;
        }
        Ok(())
    }
}

fn push(
    stretches: &mut Vec<(u64, u64)>,
    offset: Option<u64>,
    len: Option<u64>,
) -> Result<(), &'static str> {
    if stretches.len() >= STRETCHES_MAX {
        return Err(LARGE_MAP);
    }
    stretches.push(offset.zip(len).ok_or(BAD_MAP)?);
    Ok(())
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let plain = (1..20).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}

/// What the records `GNU.sparse.*` of an extended header say.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SparseRecords {
    pub is_sparse: bool,
    /// The name of the file; the header's own is made up, for tools that do not know sparse files.
    pub name: Option<Vec<u8>>,
    pub size: Option<u64>,
    /// Version 1.0: the map is at the start of the member's body.
    pub map_in_body: bool,
    pub stretches: Vec<(u64, u64)>,
    offset: Option<u64>,
}

impl SparseRecords {
    /// Takes a record, its key without `GNU.sparse.`.
    pub fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        self.is_sparse = true;
        match key {
            b"name" => self.name = Some(value.to_vec()),
            b"size" | b"realsize" => self.size = Some(decimal(value).ok_or(BAD_MAP)?),
            b"major" if value == b"0" => {}
            b"major" if value == b"1" => self.map_in_body = true,
            b"major" => return Err("a sparse member is of a version that is not known"),
            b"map" => {
                let mut numbers = value.split(|b| *b == b',');
                while let Some(offset) = numbers.next() {
                    let len = numbers.next().ok_or(BAD_MAP)?;
                    push(&mut self.stretches, decimal(offset), decimal(len))?;
                }
            }
            b"offset" => self.offset = Some(decimal(value).ok_or(BAD_MAP)?),
            b"numbytes" => push(&mut self.stretches, self.offset.take(), decimal(value))?,
            // The minor version and the number of stretches say nothing that is not known.
            _ => {}
        }
        Ok(())
    }
}

/// Reads the map of version 1.0: decimal numbers, each in a line, padded to whole blocks.
/// `block` gives the next block of the body.
pub(crate) fn read_map_in_body<E>(
    mut block: impl FnMut() -> Result<Block, E>,
    bad: impl Fn(&'static str) -> E,
) -> Result<Vec<(u64, u64)>, E> {
    let (mut numbers, mut digits) = (Vec::new(), Vec::new());
    let mut wanted = None;
    while wanted.is_none_or(|wanted| numbers.len() < wanted) {
        for byte in block()? {
            match byte {
                b'\n' => {
                    let number = decimal(&digits).ok_or_else(|| bad(BAD_MAP))?;
                    digits.clear();
                    match wanted {
                        Some(wanted) if numbers.len() == wanted => return Err(bad(BAD_MAP)),
                        Some(_) => numbers.push(number),
                        None if number > STRETCHES_MAX as u64 => return Err(bad(LARGE_MAP)),
                        None => wanted = Some(2 * number as usize),
                    }
                }
                _ if digits.len() < 20 && wanted.is_none_or(|w| numbers.len() < w) => {
                    digits.push(byte);
                }
                // After the last number the block is filled with zeros.
                0 => {}
                _ => return Err(bad(BAD_MAP)),
            }
        }
    }
    Ok(numbers.as_chunks::<2>().0.iter().map(|[offset, len]| (*offset, *len)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_must_fit_the_file_and_the_stored_bytes() {
        assert!(SparseMap::new(100, vec![(0, 10), (50, 20), (100, 0)], 30).is_ok());
        for (size, stretches, stored) in [
            (100, vec![(0, 10), (5, 10)], 20),
            (100, vec![(95, 10)], 10),
            (100, vec![(0, 10)], 11),
            (100, vec![(u64::MAX, 2)], 2),
            (u64::MAX, vec![], 0),
        ] {
            assert_eq!(SparseMap::new(size, stretches, stored), Err(BAD_MAP));
        }
    }

    #[test]
    fn holes_are_zeros_and_locators_keep_the_map() {
        let map = SparseMap::new(12, vec![(2, 3), (5, 0), (8, 2), (12, 0)], 5).unwrap();
        let mut locator = Vec::new();
        map.write(&mut locator);
        assert_eq!(SparseMap::read(&locator).unwrap(), map);
        let stored = b"xxabcde".to_vec();
        let mut section = SparseSection { inner: &stored, at: 2, holes: map.holes() };
        let mut text = Vec::new();
        section.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"\0\0abc\0\0\0de\0\0");
    }

    #[test]
    fn maps_in_bodies_are_read_over_several_blocks() {
        let read = |text: &[u8]| {
            let mut padded = text.to_vec();
            padded.resize(text.len().next_multiple_of(512), 0);
            let mut blocks = padded.as_chunks::<512>().0.to_vec().into_iter();
            read_map_in_body(|| blocks.next().ok_or("end"), |why| why)
        };
        assert_eq!(read(b"2\n0\n5\n10\n5\n"), Ok(vec![(0, 5), (10, 5)]));
        assert_eq!(read(b"0\n"), Ok(vec![]));
        let many = format!("200\n{}", "1000000000\n0\n".repeat(200));
        assert_eq!(read(many.as_bytes()).map(|map| map.len()), Ok(200));
        for bad in [&b"x\n"[..], b"1\n0\n5\n7\n", b"\n", b"99999999\n", b"1\n2\n3\nrest"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
