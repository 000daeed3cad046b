//! Packages as zip archives: each file compressed by itself, its digest and length after it, so that
//! the archive is written from its beginning to its end, whatever its size.

use super::Member;
use super::sink::Sink;
use super::writer::{PackageWriter, WriteError};
use db::Micros;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::fs::File;
use std::io::{self, BufWriter, Write};

const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const ZIP64_END: u32 = 0x0606_4b50;
const ZIP64_LOCATOR: u32 = 0x0706_4b50;
const END: u32 = 0x0605_4b50;
/// The sizes follow the content; names are UTF-8.
const FLAGS: u16 = 0x0808;
const DEFLATE: u16 = 8;
const STORED: u16 = 0;
/// Made on Unix, by version 4.5, which has large files.
const MADE_BY: u16 = 3 << 8 | 45;
/// What stands in a field of four bytes for a value in the extra field.
const ELSEWHERE: u32 = u32::MAX;

/// Writes a zip archive.
pub struct ZipWriter<S: Sink> {
    /// None while the encoder has it.
    sink: Option<Counted<S>>,
    encoder: Option<DeflateEncoder<Counted<S>>>,
    mark: Option<u64>,
    /// Where the current entry begins, and where its content does.
    entry_at: u64,
    content_at: u64,
    crc: Crc,
    size: u64,
    /// The central directory, which is written at the end.
    directory: BufWriter<File>,
    entries: u64,
    directory_bytes: u64,
}

/// Counts what was written.
struct Counted<S: Sink> {
    inner: S,
    at: u64,
}

impl<S: Sink> Write for Counted<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn ended() -> WriteError {
    WriteError::Io(io::Error::other("the archive has ended"))
}

impl<S: Sink> ZipWriter<S> {
    pub fn new(sink: S) -> io::Result<ZipWriter<S>> {
        Ok(ZipWriter {
            sink: Some(Counted { inner: sink, at: 0 }),
            encoder: None,
            mark: None,
            entry_at: 0,
            content_at: 0,
            crc: Crc::new(),
            size: 0,
            directory: BufWriter::new(tempfile::tempfile()?),
            entries: 0,
            directory_bytes: 0,
        })
    }

    fn sink(&mut self) -> Result<&mut Counted<S>, WriteError> {
        self.sink.as_mut().ok_or_else(ended)
    }

    fn begin_content(&mut self) -> Result<(), WriteError> {
        let sink = self.sink.take().ok_or_else(ended)?;
        self.content_at = sink.at;
        self.crc = Crc::new();
        self.size = 0;
        self.encoder = Some(DeflateEncoder::new(sink, Compression::fast()));
        Ok(())
    }

    /// Ends the content of the entry.
    fn end_content(&mut self) -> Result<(), WriteError> {
        if let Some(encoder) = self.encoder.take() {
            self.sink = Some(encoder.finish()?);
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), WriteError> {
        self.end_content()?;
        let (mark, at) = (self.mark.ok_or(WriteError::CannotRewind)?, self.entry_at);
        let sink = self.sink()?;
        sink.inner.rewind(mark)?;
        sink.at = at;
        Ok(())
    }

    fn local_header(&mut self, member: &Member) -> Result<(), WriteError> {
        let name = name(member);
        let (date, time) = dos_time(member.modified);
        let extra = extra(member.modified);
        let mut header = Vec::with_capacity(30 + name.len() + extra.len() + 20);
        put32(&mut header, LOCAL);
        put16(&mut header, 45);
        put16(&mut header, if member.is_directory() { FLAGS & 0x0800 } else { FLAGS });
        put16(&mut header, if member.is_directory() { STORED } else { DEFLATE });
        put16(&mut header, time);
        put16(&mut header, date);
        put32(&mut header, 0);
        // A reader knows by the extra field that the lengths after the content have eight bytes.
        let is_large = is_large(member);
        put32(&mut header, if is_large { ELSEWHERE } else { 0 });
        put32(&mut header, if is_large { ELSEWHERE } else { 0 });
        put16(&mut header, short(name.len())?);
        put16(&mut header, short(extra.len() + if is_large { 20 } else { 0 })?);
        header.extend_from_slice(name.as_bytes());
        if is_large {
            put16(&mut header, 1);
            put16(&mut header, 16);
            put64(&mut header, 0);
            put64(&mut header, 0);
        }
        header.extend_from_slice(&extra);
        Ok(self.sink()?.write_all(&header)?)
    }

    fn central_entry(&mut self, member: &Member, crc: u32, packed: u64) -> Result<(), WriteError> {
        let name = name(member);
        let (date, time) = dos_time(member.modified);
        let mut large = Vec::new();
        let mut field = |value: u64| match u32::try_from(value) {
            Ok(small) if small != ELSEWHERE => small,
            _ => {
                put64(&mut large, value);
                ELSEWHERE
            }
        };
        let (size, stored, at) = (field(self.size), field(packed), field(self.entry_at));
        let mut extra_field = Vec::new();
        if !large.is_empty() {
            put16(&mut extra_field, 1);
            put16(&mut extra_field, short(large.len())?);
            extra_field.extend_from_slice(&large);
        }
        extra_field.extend_from_slice(&extra(member.modified));
        let mut entry = Vec::with_capacity(46 + name.len() + extra_field.len());
        let is_directory = member.is_directory();
        put32(&mut entry, CENTRAL);
        put16(&mut entry, MADE_BY);
        put16(&mut entry, 45);
        put16(&mut entry, if is_directory { FLAGS & 0x0800 } else { FLAGS });
        put16(&mut entry, if is_directory { STORED } else { DEFLATE });
        put16(&mut entry, time);
        put16(&mut entry, date);
        put32(&mut entry, crc);
        put32(&mut entry, stored);
        put32(&mut entry, size);
        put16(&mut entry, short(name.len())?);
        put16(&mut entry, short(extra_field.len())?);
        put16(&mut entry, 0);
        put16(&mut entry, 0);
        put16(&mut entry, 0);
        // The type and the permissions of Unix, in the upper half.
        put32(&mut entry, if is_directory { 0o040_755 << 16 | 0x10 } else { 0o100_644 << 16 });
        put32(&mut entry, at);
        entry.extend_from_slice(name.as_bytes());
        entry.extend_from_slice(&extra_field);
        self.directory.write_all(&entry)?;
        self.directory_bytes += entry.len() as u64;
        self.entries += 1;
        Ok(())
    }
}

impl<S: Sink> PackageWriter for ZipWriter<S> {
    fn begin(&mut self, member: &Member) -> Result<(), WriteError> {
        let sink = self.sink()?;
        let at = sink.at;
        self.mark = match member.may_restart() {
            true => Some(sink.inner.mark()?),
            false => None,
        };
        self.entry_at = at;
        self.local_header(member)?;
        match member.is_directory() {
            true => {
                (self.crc, self.size) = (Crc::new(), 0);
                self.content_at = self.sink()?.at;
                Ok(())
            }
            false => self.begin_content(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.crc.update(bytes);
        self.size += bytes.len() as u64;
        Ok(self.encoder.as_mut().ok_or_else(ended)?.write_all(bytes)?)
    }

    fn restart(&mut self, member: &Member) -> Result<(), WriteError> {
        self.rewind()?;
        self.local_header(member)?;
        self.begin_content()
    }

    fn abandon(&mut self, _: &Member) -> Result<(), WriteError> {
        self.rewind()
    }

    fn end(&mut self, member: &Member) -> Result<(), WriteError> {
        self.end_content()?;
        let content_at = self.content_at;
        let packed = self.sink()?.at - content_at;
        let (crc, size) = (self.crc.sum(), self.size);
        if !member.is_directory() {
            let mut descriptor = Vec::with_capacity(24);
            put32(&mut descriptor, DESCRIPTOR);
            put32(&mut descriptor, crc);
            match is_large(member) {
                true => {
                    put64(&mut descriptor, packed);
                    put64(&mut descriptor, size);
                }
                false => {
                    put32(&mut descriptor, u32::try_from(packed).map_err(io::Error::other)?);
                    put32(&mut descriptor, u32::try_from(size).map_err(io::Error::other)?);
                }
            }
            self.sink()?.write_all(&descriptor)?;
        }
        self.central_entry(member, crc, packed)
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        let (entries, bytes) = (self.entries, self.directory_bytes);
        let directory =
            std::mem::replace(&mut self.directory, BufWriter::new(tempfile::tempfile()?));
        let directory = directory.into_inner().map_err(io::IntoInnerError::into_error)?;
        let sink = self.sink()?;
        let at = sink.at;
        io::copy(&mut super::from_start(&directory)?, sink)?;
        let mut end = Vec::new();
        let zip64_at = at + bytes;
        put32(&mut end, ZIP64_END);
        put64(&mut end, 44);
        put16(&mut end, MADE_BY);
        put16(&mut end, 45);
        put32(&mut end, 0);
        put32(&mut end, 0);
        put64(&mut end, entries);
        put64(&mut end, entries);
        put64(&mut end, bytes);
        put64(&mut end, at);
        put32(&mut end, ZIP64_LOCATOR);
        put32(&mut end, 0);
        put64(&mut end, zip64_at);
        put32(&mut end, 1);
        let needs_zip64 = entries >= u64::from(u16::MAX) || at + bytes >= u64::from(ELSEWHERE);
        if !needs_zip64 {
            end.clear();
        }
        let count = u16::try_from(entries).unwrap_or(u16::MAX);
        put32(&mut end, END);
        put16(&mut end, 0);
        put16(&mut end, 0);
        put16(&mut end, count);
        put16(&mut end, count);
        put32(&mut end, u32::try_from(bytes).unwrap_or(ELSEWHERE));
        put32(&mut end, u32::try_from(at).unwrap_or(ELSEWHERE));
        put16(&mut end, 0);
        sink.write_all(&end)?;
        Ok(sink.inner.finish()?)
    }
}

/// Whether lengths of the entry may not fit into four bytes. What cannot be compressed grows a little.
fn is_large(member: &Member) -> bool {
    const MOST: u64 = 0xf000_0000;
    member.size() > MOST
}

fn name(member: &Member) -> String {
    match member.is_directory() {
        true => format!("{}/", member.path),
        false => member.path.clone(),
    }
}

/// The exact time, for readers that know more than that of MS-DOS.
fn extra(modified: Option<Micros>) -> Vec<u8> {
    let mut extra = Vec::new();
    let Some(modified) = modified else { return extra };
    if let Ok(seconds) = i32::try_from(modified.div_euclid(1_000_000)) {
        put16(&mut extra, 0x5455);
        put16(&mut extra, 5);
        extra.push(1);
        extra.extend_from_slice(&seconds.to_le_bytes());
    }
    // That of Windows has fractions: units of 100 ns since 1601.
    if let Some(units) =
        modified.checked_mul(10).and_then(|u| u.checked_add(116_444_736_000_000_000))
    {
        put16(&mut extra, 0x000a);
        put16(&mut extra, 32);
        put32(&mut extra, 0);
        put16(&mut extra, 1);
        put16(&mut extra, 24);
        for _ in 0..3 {
            extra.extend_from_slice(&units.to_le_bytes());
        }
    }
    extra
}

/// Date and time of MS-DOS, in UTC; its first moment where there is none.
fn dos_time(modified: Option<Micros>) -> (u16, u16) {
    const NONE: (u16, u16) = (1 << 5 | 1, 0);
    let at = modified.and_then(|at| jiff::Timestamp::from_microsecond(at).ok());
    let Some(at) = at.map(|at| jiff::tz::TimeZone::UTC.to_datetime(at)) else { return NONE };
    let Ok(year) = u16::try_from(i32::from(at.year()) - 1980) else { return NONE };
    if year > 127 {
        return NONE;
    }
    let part = |value: i8| u16::from(value.unsigned_abs());
    let date = year << 9 | part(at.month()) << 5 | part(at.day());
    let time = part(at.hour()) << 11 | part(at.minute()) << 5 | (part(at.second()) / 2);
    (date, time)
}

fn short(length: usize) -> Result<u16, WriteError> {
    let message = "a path is longer than a zip archive can have; restore as tar";
    u16::try_from(length).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, message).into())
}

fn put16(to: &mut Vec<u8>, value: u16) {
    to.extend_from_slice(&value.to_le_bytes());
}

fn put32(to: &mut Vec<u8>, value: u32) {
    to.extend_from_slice(&value.to_le_bytes());
}

fn put64(to: &mut Vec<u8>, value: u64) {
    to.extend_from_slice(&value.to_le_bytes());
}
