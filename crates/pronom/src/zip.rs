//! Zip files by ranges: the directory at the end, then only the members that are asked for.
//!
//! Nothing in a directory is believed: offsets and sizes are checked against the file, the number
//! of entries and of bytes is capped, and a member is inflated only as far as it is read.

use crate::error::Result;
use crate::source::{self, Source};
use flate2::{Decompress, FlushDecompress, Status};
use std::collections::HashMap;

/// Entries looked at, at most: the directory of the largest archives people keep.
const ENTRIES_MAX: u64 = 1_000_000;
/// Bytes of directory read, at most.
const DIRECTORY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How much of the directory or of a member is read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// The record that ends the directory, and the longest comment after it.
const END_BYTES: usize = 22;
const COMMENT_BYTES_MAX: usize = 65_535;
/// More bytes than this may stand neither before the first nor in one directory entry.
const ENTRY_BYTES: usize = 46;

/// Why a zip cannot be read; shown in a warning.
pub(crate) type Unreadable = &'static str;

/// Where a member's data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    header_at: u64,
    compressed: u64,
    method: u16,
    encrypted: bool,
}

struct Directory {
    at: u64,
    bytes: u64,
    /// Bytes before the archive itself, as in self-extracting files.
    shift: u64,
}

/// Finds the members whose names are `wanted`; the first of a name counts.
pub(crate) fn find(
    object: &mut dyn Source,
    wanted: impl Fn(&str) -> bool,
) -> Result<std::result::Result<HashMap<String, Entry>, Unreadable>> {
    let directory = match directory(object)? {
        Ok(directory) => directory,
        Err(why) => return Ok(Err(why)),
    };
    let mut found = HashMap::new();
    let mut buffer: Vec<u8> = Vec::new();
    let (mut at, end) = (directory.at, directory.at + directory.bytes.min(DIRECTORY_BYTES_MAX));
    for _ in 0..ENTRIES_MAX {
        if buffer.len() < ENTRY_BYTES + 3 * 65_535 && at < end {
            let wanted = (end - at).min(4 * PIECE_BYTES as u64) as usize;
            let old = buffer.len();
            buffer.resize(old + wanted, 0);
            let got = source::read(object, at, &mut buffer[old..])?;
            buffer.truncate(old + got);
            at = if got == 0 { end } else { at + got as u64 };
        }
        let Some((name, entry, used)) = entry(&buffer, directory.shift) else { break };
        // Names are compared as they are stored; those of interest are plain ASCII.
        if let Ok(name) = std::str::from_utf8(name)
            && wanted(name)
        {
            found.entry(name.to_owned()).or_insert(entry);
        }
        buffer.drain(..used);
    }
    Ok(Ok(found))
}

/// Reads one entry of the directory: its name, where it is, and how long the entry is.
fn entry(buffer: &[u8], shift: u64) -> Option<(&[u8], Entry, usize)> {
    if !buffer.starts_with(b"PK\x01\x02") {
        return None;
    }
    let (flags, method) = (u16_at(buffer, 8)?, u16_at(buffer, 10)?);
    let [name, extra, comment] =
        [28, 30, 32].map(|at| u16_at(buffer, at).map(usize::from).unwrap_or(0));
    let used = ENTRY_BYTES + name + extra + comment;
    let rest = buffer.get(ENTRY_BYTES..used)?;
    let extra = &rest[name..name + extra];
    let (mut compressed, full) = (u64::from(u32_at(buffer, 20)?), u32_at(buffer, 24)?);
    let mut header_at = u64::from(u32_at(buffer, 42)?);
    if let Some(large) = zip64_extra(extra) {
        // The large values come in a fixed order, and only those that did not fit.
        let mut values = large.chunks_exact(8).map(|c| c.try_into().map(u64::from_le_bytes));
        if full == u32::MAX {
            values.next();
        }
        if compressed == u64::from(u32::MAX)
            && let Some(Ok(value)) = values.next()
        {
            compressed = value;
        }
        if header_at == u64::from(u32::MAX)
            && let Some(Ok(value)) = values.next()
        {
            header_at = value;
        }
    }
    let header_at = header_at.checked_add(shift)?;
    Some((&rest[..name], Entry { header_at, compressed, method, encrypted: flags & 1 != 0 }, used))
}

fn zip64_extra(mut extra: &[u8]) -> Option<&[u8]> {
    while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let field = extra.get(4..4 + usize::from(len))?;
        if id == 1 {
            return Some(field);
        }
        extra = &extra[4 + usize::from(len)..];
    }
    None
}

/// Finds the directory through the record at the end of the file.
fn directory(object: &mut dyn Source) -> Result<std::result::Result<Directory, Unreadable>> {
    let len = object.len();
    let tail = (len.min((END_BYTES + COMMENT_BYTES_MAX) as u64)) as usize;
    let mut buffer = vec![0; tail];
    let start = len - tail as u64;
    if !source::read_exact(object, start, &mut buffer)? {
        return Ok(Err("its end cannot be read"));
    }
    let fits = |at: &usize| {
        u16_at(&buffer, at + 20)
            .is_some_and(|comment| at + END_BYTES + usize::from(comment) <= tail)
    };
    let Some(at) = memchr::memmem::rfind_iter(&buffer, b"PK\x05\x06").find(fits) else {
        return Ok(Err("it has no directory; it may be cut off"));
    };
    let end_at = start + at as u64;
    let small = |offset: usize| u32_at(&buffer, at + offset).unwrap_or(0);
    let (mut bytes, mut offset) = (u64::from(small(12)), u64::from(small(16)));
    let mut before = end_at;
    if (bytes == u64::from(u32::MAX) || offset == u64::from(u32::MAX))
        && let Some((large_at, large_bytes, large_offset)) = large_end(object, end_at)?
    {
        (before, bytes, offset) = (large_at, large_bytes, large_offset);
    }
    if bytes == 0 {
        return Ok(Ok(Directory { at: offset, bytes: 0, shift: 0 }));
    }
    // The directory ends where the end record begins; what it says about its own offset may be
    // wrong by the bytes that were put before the archive.
    let Some(real) = before.checked_sub(bytes) else {
        return Ok(Err("its directory is said to be larger than the file"));
    };
    for at in [offset, real] {
        let mut magic = [0; 4];
        if at < len && source::read_exact(object, at, &mut magic)? && magic == *b"PK\x01\x02" {
            return Ok(Ok(Directory { at, bytes, shift: at.saturating_sub(offset) }));
        }
    }
    Ok(Err("its directory is not where it is said to be"))
}

/// The end record of archives above 4 GiB: where it is, and size and offset of the directory.
fn large_end(object: &mut dyn Source, end_at: u64) -> Result<Option<(u64, u64, u64)>> {
    let mut locator = [0; 20];
    let mut record = [0; 56];
    let Some(at) = end_at.checked_sub(20) else { return Ok(None) };
    if !source::read_exact(object, at, &mut locator)? || !locator.starts_with(b"PK\x06\x07") {
        return Ok(None);
    }
    let Some(record_at) = u64_at(&locator, 8) else { return Ok(None) };
    if !source::read_exact(object, record_at, &mut record)? || !record.starts_with(b"PK\x06\x06") {
        return Ok(None);
    }
    Ok(u64_at(&record, 40)
        .zip(u64_at(&record, 48))
        .map(|(bytes, offset)| (record_at, bytes, offset)))
}

/// Reads a member piece by piece.
pub(crate) struct MemberReader {
    at: u64,
    left: u64,
    inflate: Option<Box<Decompress>>,
    input: Vec<u8>,
    used: usize,
    done: bool,
}

impl MemberReader {
    pub fn open(
        object: &mut dyn Source,
        entry: &Entry,
    ) -> Result<std::result::Result<MemberReader, Unreadable>> {
        let inflate = match entry.method {
            _ if entry.encrypted => return Ok(Err("a member is encrypted")),
            0 => None,
            8 => Some(Box::new(Decompress::new(false))),
            _ => return Ok(Err("a member is compressed in a way that is not read here")),
        };
        let mut header = [0; 30];
        if !source::read_exact(object, entry.header_at, &mut header)?
            || !header.starts_with(b"PK\x03\x04")
        {
            return Ok(Err("a member is not where the directory says"));
        }
        let skip = [26, 28].map(|at| u64::from(u16_at(&header, at).unwrap_or(0)));
        let at = entry.header_at + 30 + skip[0] + skip[1];
        let left = entry.compressed.min(object.len().saturating_sub(at));
        Ok(Ok(MemberReader { at, left, inflate, input: Vec::new(), used: 0, done: false }))
    }

    /// Fills `buffer` as far as the member goes; 0 at its end, or where it is damaged.
    pub fn read(&mut self, object: &mut dyn Source, buffer: &mut [u8]) -> Result<usize> {
        let mut count = 0;
        while count < buffer.len() && !self.done {
            if self.used == self.input.len() {
                self.refill(object)?;
            }
            let ended = self.input.is_empty();
            let Some(inflate) = &mut self.inflate else {
                let more = (self.input.len() - self.used).min(buffer.len() - count);
                buffer[count..count + more]
                    .copy_from_slice(&self.input[self.used..self.used + more]);
                self.used += more;
                count += more;
                self.done = ended;
                continue;
            };
            let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(
                &self.input[self.used..],
                &mut buffer[count..],
                FlushDecompress::None,
            );
            // Both differences are bounded by the buffers' lengths.
            let taken = (inflate.total_in() - before_in) as usize;
            let given = (inflate.total_out() - before_out) as usize;
            self.used += taken;
            count += given;
            let stuck = taken == 0 && given == 0;
            self.done = !matches!(status, Ok(Status::Ok | Status::BufError)) || (stuck && ended);
        }
        Ok(count)
    }

    fn refill(&mut self, object: &mut dyn Source) -> Result<()> {
        let wanted = self.left.min(PIECE_BYTES as u64) as usize;
        self.input.resize(wanted, 0);
        let got = source::read(object, self.at, &mut self.input)?;
        self.input.truncate(got);
        self.used = 0;
        self.at += got as u64;
        self.left -= got as u64;
        Ok(())
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
