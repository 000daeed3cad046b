//! Lines of tag files in any declared encoding, read as a stream with a bound on their length.

use encoding_rs::{Decoder, UTF_8, UTF_16BE, UTF_16LE};
use std::io::{self, Read};

/// The longest line that is read; the rest of a longer one is passed over.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// A character encoding, by the name that `Tag-File-Character-Encoding` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    inner: &'static encoding_rs::Encoding,
    /// Plain `UTF-16` says that the byte order mark decides.
    marked: bool,
}

impl Encoding {
    pub const UTF_8: Encoding = Encoding { inner: UTF_8, marked: false };

    /// Knows the labels of the WHATWG Encoding Standard, which include the IANA names in use.
    pub fn named(label: &str) -> Option<Encoding> {
        if label.trim().eq_ignore_ascii_case("utf-16") {
            return Some(Encoding { inner: UTF_16BE, marked: true });
        }
        encoding_rs::Encoding::for_label(label.trim().as_bytes())
            .map(|inner| Encoding { inner, marked: false })
    }

    pub fn is_utf8(self) -> bool {
        self.inner == UTF_8
    }

    fn decoder(self, start: &[u8]) -> Decoder {
        let inner = match start {
            [0xff, 0xfe, ..] if self.marked => UTF_16LE,
            _ => self.inner,
        };
        inner.new_decoder_with_bom_removal()
    }
}

/// One line without its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Counted from one.
    pub number: u64,
    pub text: String,
    /// Some bytes were not of the encoding; they read as U+FFFD.
    pub malformed: bool,
    /// The line was longer than [`LINE_BYTES_MAX`] and is cut there.
    pub cut: bool,
}

/// Reads lines that end in LF, CR LF or CR.
pub struct Lines<R> {
    reader: R,
    encoding: Encoding,
    decoder: Option<Decoder>,
    raw: Vec<u8>,
    text: String,
    at: usize,
    number: u64,
    ended: bool,
    replaced: bool,
    after_cr: bool,
    bom: bool,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R, encoding: Encoding) -> Lines<R> {
        Lines {
            reader,
            encoding,
            decoder: None,
            raw: vec![0; 32 * 1024],
            text: String::new(),
            at: 0,
            number: 0,
            ended: false,
            replaced: false,
            after_cr: false,
            bom: false,
        }
    }

    /// Whether the file starts with a byte order mark in UTF-8, known after the first line.
    pub fn has_utf8_bom(&self) -> bool {
        self.bom
    }

    /// Reads the next line into `line`; false at the end.
    pub fn next(&mut self, line: &mut Line) -> io::Result<bool> {
        line.text.clear();
        line.cut = false;
        let mut any = false;
        loop {
            if self.at == self.text.len() && !self.fill()? {
                if any {
                    self.complete(line);
                }
                return Ok(any);
            }
            let mut rest = &self.text[self.at..];
            if self.after_cr {
                self.after_cr = false;
                if rest.starts_with('\n') {
                    self.at += 1;
                    rest = &rest[1..];
                    if rest.is_empty() {
                        continue;
                    }
                }
            }
            any = true;
            let end = rest.bytes().position(|b| b == b'\n' || b == b'\r');
            append(line, &rest[..end.unwrap_or(rest.len())]);
            match end {
                Some(end) => {
                    self.after_cr = rest.as_bytes()[end] == b'\r';
                    self.at += end + 1;
                    self.complete(line);
                    return Ok(true);
                }
                None => self.at = self.text.len(),
            }
        }
    }

    fn complete(&mut self, line: &mut Line) {
        self.number += 1;
        line.number = self.number;
        line.malformed = self.replaced && line.text.contains('\u{fffd}');
    }

    /// Decodes more text; false when there is none.
    fn fill(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.at = 0;
        while !self.ended && self.text.is_empty() {
            let read = read_some(&mut self.reader, &mut self.raw)?;
            self.ended = read == 0;
            let bytes = &self.raw[..read];
            let encoding = self.encoding;
            if self.decoder.is_none() {
                self.bom = encoding.is_utf8() && bytes.starts_with(b"\xef\xbb\xbf");
            }
            let decoder = self.decoder.get_or_insert_with(|| encoding.decoder(bytes));
            // One call takes all of the input, because there is room for the worst case.
            self.text.reserve(decoder.max_utf8_buffer_length(read).unwrap_or(read * 4));
            let (_, _, replaced) = decoder.decode_to_string(bytes, &mut self.text, self.ended);
            self.replaced |= replaced;
        }
        Ok(!self.text.is_empty())
    }
}

/// Fills the buffer as far as the reader can: a decoder must see the whole byte order mark.
fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn append(line: &mut Line, text: &str) {
    let room = LINE_BYTES_MAX.saturating_sub(line.text.len());
    if text.len() <= room {
        line.text.push_str(text);
        return;
    }
    line.cut = true;
    let mut end = room;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    line.text.push_str(&text[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], encoding: &str) -> Vec<Line> {
        let mut lines = Lines::new(bytes, Encoding::named(encoding).unwrap());
        let (mut line, mut all) = (Line::default(), Vec::new());
        while lines.next(&mut line).unwrap() {
            all.push(line.clone());
        }
        all
    }

    fn texts(bytes: &[u8], encoding: &str) -> Vec<String> {
        all(bytes, encoding).into_iter().map(|l| l.text).collect()
    }

    #[test]
    fn every_kind_of_line_end_counts_once() {
        assert_eq!(texts(b"a\nb\r\nc\rd\n\ne", "utf-8"), ["a", "b", "c", "d", "", "e"]);
        assert_eq!(texts(b"a\r\n", "utf-8"), ["a"]);
        assert_eq!(texts(b"", "utf-8"), Vec::<String>::new());
    }

    #[test]
    fn utf16_is_read_in_the_order_its_mark_says() {
        assert_eq!(texts(b"\xfe\xff\0a\0\n\0b", "UTF-16"), ["a", "b"]);
        assert_eq!(texts(b"\xff\xfea\0\n\0b\0", "UTF-16"), ["a", "b"]);
        assert_eq!(texts(b"\0a\0\n\0b", "UTF-16"), ["a", "b"]);
    }

    #[test]
    fn bad_bytes_are_reported_on_their_line() {
        let lines = all(b"good\nb\xffd\n", "UTF-8");
        assert!(!lines[0].malformed && lines[1].malformed);
    }

    #[test]
    fn a_line_without_end_does_not_fill_memory() {
        let endless = io::repeat(b'x').take(10_000_000);
        let mut lines = Lines::new(endless, Encoding::UTF_8);
        let mut line = Line::default();
        assert!(lines.next(&mut line).unwrap());
        assert!(line.cut);
        assert_eq!(line.text.len(), LINE_BYTES_MAX);
    }
}
