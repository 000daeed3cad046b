//! Records of a zip archive: the end of the central directory, its entries, and local headers.

use super::Kind;
use super::read_at::ReadAt;
use super::zip_time;
use std::io;

pub(crate) const LOCAL_HEADER_BYTES: usize = 30;
pub(crate) const ENTRY_BYTES: usize = 46;
const END_BYTES: usize = 22;
const END64_BYTES: usize = 56;
const LOCATOR64_BYTES: usize = 20;
const COMMENT_BYTES_MAX: u64 = 65_535;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Where the central directory lies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub start: u64,
    pub end: u64,
    pub entries: u64,
    /// Where the archive ends, its comment included. Data between the directory and its end record
    /// belong to no archive.
    pub archive_end: u64,
}

/// Finds the central directory from the end of the archive.
pub(crate) fn find_directory(inner: &dyn ReadAt) -> io::Result<Result<Directory, &'static str>> {
    let size = inner.size()?;
    let tail_bytes = size.min(COMMENT_BYTES_MAX + (END_BYTES + LOCATOR64_BYTES) as u64);
    let tail_at = size - tail_bytes;
    let mut tail = vec![0; tail_bytes as usize];
    inner.read_exact_at(&mut tail, tail_at)?;
    // The record lies before a comment of a length that it states; the last that fits is meant.
    let found = (0..(tail.len() + 1).saturating_sub(END_BYTES)).rev().find(|at| {
        tail[*at..].starts_with(b"PK\x05\x06")
            && at + END_BYTES + usize::from(u16_at(&tail, at + 20)) <= tail.len()
    });
    let Some(at) = found else {
        return Ok(Err("there is no end of the central directory: cut off, or not a zip file"));
    };
    let end = &tail[at..];
    if u16_at(end, 4) != 0 && u16_at(end, 4) != u16::MAX {
        return Ok(Err("it is one part of a split archive"));
    }
    let mut directory = Directory {
        start: u64::from(u32_at(end, 16)),
        end: tail_at + at as u64,
        entries: u64::from(u16_at(end, 10)),
        archive_end: tail_at + (at + END_BYTES) as u64 + u64::from(u16_at(end, 20)),
    };
    let mut len = u64::from(u32_at(end, 12));
    let locator = at.checked_sub(LOCATOR64_BYTES).map(|l| &tail[l..at]);
    if let Some(locator) = locator.filter(|l| l.starts_with(b"PK\x06\x07")) {
        let end64_at = u64_at(locator, 8).unwrap_or(u64::MAX);
        if end64_at.checked_add(END64_BYTES as u64).is_none_or(|e| e > directory.end) {
            return Ok(Err("the zip64 record lies outside the archive"));
        }
        let mut end64 = [0; END64_BYTES];
        inner.read_exact_at(&mut end64, end64_at)?;
        if !end64.starts_with(b"PK\x06\x06") {
            return Ok(Err("the zip64 record is damaged"));
        }
        let word = |at| u64_at(&end64, at).unwrap_or(u64::MAX);
        directory = Directory { start: word(48), end: end64_at, entries: word(32), ..directory };
        len = word(40);
    }
    match directory.start.checked_add(len) {
        Some(end) if end == directory.end => Ok(Ok(directory)),
        // Archives were joined: the last one's end leads to the directory of an earlier one.
        Some(end) if end < directory.end => {
            Ok(Ok(Directory { end, archive_end: end, ..directory }))
        }
        _ => Ok(Err("the central directory lies outside the archive")),
    }
}

/// The fixed part of an entry of the central directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub flags: u16,
    pub method: u16,
    pub crc32: u32,
    pub stored: u64,
    pub size: u64,
    pub header_at: u64,
    made_by_unix: bool,
    attributes: u32,
    /// Microseconds since 1970. Where an archive has only the local time that MS-DOS kept, it is
    /// taken for UTC: nothing says which zone it was.
    pub modified: Option<i64>,
    pub name_len: usize,
    pub extra_len: usize,
    pub comment_len: usize,
}

impl Entry {
    pub fn parse(fixed: &[u8; ENTRY_BYTES]) -> Result<Entry, &'static str> {
        if !fixed.starts_with(b"PK\x01\x02") {
            return Err("an entry of the central directory is damaged");
        }
        Ok(Entry {
            made_by_unix: fixed[5] == 3,
            flags: u16_at(fixed, 8),
            method: u16_at(fixed, 10),
            crc32: u32_at(fixed, 16),
            stored: u64::from(u32_at(fixed, 20)),
            size: u64::from(u32_at(fixed, 24)),
            name_len: usize::from(u16_at(fixed, 28)),
            extra_len: usize::from(u16_at(fixed, 30)),
            comment_len: usize::from(u16_at(fixed, 32)),
            attributes: u32_at(fixed, 38),
            modified: zip_time::of_dos(u16_at(fixed, 14), u16_at(fixed, 12)),
            header_at: u64::from(u32_at(fixed, 42)),
        })
    }

    /// Takes the 64-bit values from the extra field, for those that did not fit.
    pub fn read_extra(&mut self, mut extra: &[u8]) -> Result<(), &'static str> {
        while extra.len() >= 4 {
            let (id, len) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
            let Some(data) = extra.get(4..4 + len) else { break };
            if id == 1 {
                let mut at = 0;
                for value in [&mut self.size, &mut self.stored, &mut self.header_at] {
                    if *value == u64::from(u32::MAX) {
                        *value = u64_at(data, at).ok_or("a zip64 field is too short")?;
                        at += 8;
                    }
                }
            }
            self.modified = zip_time::of_extra(id, data).or(self.modified);
            extra = &extra[4 + len..];
        }
        if i64::try_from(self.size).is_err() || i64::try_from(self.stored).is_err() {
            return Err("a size is beyond what files can have");
        }
        Ok(())
    }

    pub fn kind(&self, name: &[u8]) -> Kind {
        let mode = if self.made_by_unix { self.attributes >> 16 & 0o170_000 } else { 0 };
        match mode {
            0o120_000 => return Kind::Symlink,
            0o040_000 => return Kind::Directory,
            0o100_000 | 0 => {}
            _ => return Kind::Special,
        }
        if name.ends_with(b"/") {
            return Kind::Directory;
        }
        if self.flags & 1 != 0 {
            return Kind::Unsupported("it is encrypted");
        }
        match self.method {
            0 | 8 | 12 | 93 => Kind::File,
            _ => Kind::Unsupported(
                "its compression method is none of stored, deflate, bzip2 and zstd",
            ),
        }
    }
}

/// The length of what lies between a local header and the data, and the name's length.
pub(crate) fn local_lengths(header: &[u8; LOCAL_HEADER_BYTES]) -> Option<(usize, usize)> {
    let lengths = (usize::from(u16_at(header, 26)), usize::from(u16_at(header, 28)));
    header.starts_with(b"PK\x03\x04").then_some(lengths)
}

/// The upper half of code page 437, in which names without the UTF-8 flag are by the standard.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

pub(crate) fn decode_cp437(bytes: &[u8]) -> String {
    let upper: Vec<char> = CP437.chars().collect();
    let decode = |b: &u8| match b {
        0..=127 => char::from(*b),
        _ => upper.get(usize::from(*b) - 128).copied().unwrap_or('\u{fffd}'),
    };
    bytes.iter().map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_page_437_has_128_upper_characters() {
        assert_eq!(CP437.chars().count(), 128);
        assert_eq!(decode_cp437(b"M\x81ller"), "Müller");
    }

    #[test]
    fn no_directory_is_found_in_what_is_no_zip() {
        assert!(find_directory(&vec![0; 10]).unwrap().is_err());
        assert!(find_directory(&vec![0; 100_000]).unwrap().is_err());
        let mut outside = b"PK\x05\x06".to_vec();
        outside.extend_from_slice(&[0xfe; 18]);
        assert!(find_directory(&outside).unwrap().is_err());
    }
}
