//! Cuts a JSON document of any size into values of bounded size, without understanding them.
//!
//! A parser of whole documents would stop at the first bad row; cutting first lets each row be
//! parsed, and fail, by itself.

use std::io::{self, BufRead};

/// What a call of [`Frames::value`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A value; the buffer has it.
    Value,
    /// A value that is longer than allowed and was skipped.
    TooLong,
    /// The document ended within the value, or before it.
    End,
}

pub(crate) struct Frames<R> {
    source: R,
    value_bytes_max: usize,
    pub line: u64,
    pub bytes: u64,
}

/// Where the scanner is within a value.
#[derive(Default)]
struct Scan {
    depth: u64,
    in_string: bool,
    is_escaped: bool,
    is_started: bool,
    /// A number, a literal, or rubbish: it ends where something else begins.
    is_bare: bool,
}

enum Step {
    /// The byte belongs to the value.
    Take,
    /// The byte belongs to the value and ends it.
    TakeLast,
    /// The value ended before the byte.
    Before,
}

impl Scan {
    fn step(&mut self, byte: u8) -> Step {
        if self.in_string {
            return self.within_string(byte);
        }
        let is_end = matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | b':');
        if self.depth == 0 && is_end {
            return Step::Before;
        }
        match byte {
            b'"' if self.is_bare && self.depth == 0 => return Step::Before,
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Step::TakeLast;
                }
            }
            _ if !self.is_started => self.is_bare = true,
            _ => {}
        }
        self.is_started = true;
        Step::Take
    }

    fn within_string(&mut self, byte: u8) -> Step {
        if self.is_escaped {
            self.is_escaped = false;
        } else if byte == b'\\' {
            self.is_escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            if self.depth == 0 {
                return Step::TakeLast;
            }
        }
        Step::Take
    }
}

impl<R: BufRead> Frames<R> {
    pub fn new(source: R, value_bytes_max: usize) -> Frames<R> {
        Frames { source, value_bytes_max, line: 1, bytes: 0 }
    }

    fn chunk(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.source.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Asking again is free, and lets the borrow end above.
                Ok(_) => return self.source.fill_buf(),
                Err(error) => return Err(error),
            }
        }
    }

    fn consume(&mut self, bytes: usize, lines: u64) {
        self.source.consume(bytes);
        self.bytes += bytes as u64;
        self.line += lines;
    }

    /// The next byte that is not white space, without taking it.
    pub fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let white =
                chunk.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
            let lines = memchr::memchr_iter(b'\n', &chunk[..white]).count() as u64;
            let next = chunk.get(white).copied();
            self.consume(white, lines);
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Takes the byte that [`Frames::peek`] showed.
    pub fn take(&mut self) {
        self.consume(1, 0);
    }

    /// Takes the next byte if it is this one.
    pub fn take_if(&mut self, wanted: u8) -> io::Result<bool> {
        let is_there = self.peek()? == Some(wanted);
        if is_there {
            self.take();
        }
        Ok(is_there)
    }

    /// Takes the next value. What is too long is skipped to its end and not kept.
    pub fn value(&mut self, buffer: &mut Vec<u8>) -> io::Result<Cut> {
        buffer.clear();
        if self.peek()?.is_none() {
            return Ok(Cut::End);
        }
        let mut scan = Scan::default();
        let mut length: usize = 0;
        loop {
            let value_bytes_max = self.value_bytes_max;
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                // A bare value may end with the document; all others are cut short.
                return Ok(if scan.is_bare { Cut::Value } else { Cut::End });
            }
            let (used, is_done) = scan_chunk(&mut scan, chunk);
            let room = value_bytes_max.saturating_sub(buffer.len());
            buffer.extend_from_slice(&chunk[..used.min(room)]);
            length = length.saturating_add(used);
            let lines = memchr::memchr_iter(b'\n', &chunk[..used]).count() as u64;
            self.consume(used, lines);
            if is_done {
                return Ok(if length > self.value_bytes_max { Cut::TooLong } else { Cut::Value });
            }
        }
    }
}

/// How many bytes of the chunk belong to the value, and whether the value ends there.
fn scan_chunk(scan: &mut Scan, chunk: &[u8]) -> (usize, bool) {
    let mut at = 0;
    while let Some(&byte) = chunk.get(at) {
        match scan.step(byte) {
            Step::Take => at += 1,
            Step::TakeLast => return (at + 1, true),
            Step::Before => return (at, true),
        }
        // Most of a manifest is inside strings, where only two bytes matter.
        if scan.in_string && !scan.is_escaped {
            at += memchr::memchr2(b'"', b'\\', &chunk[at..]).unwrap_or(chunk.len() - at);
        }
    }
    (at, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, max: usize) -> Vec<(Cut, String, u64)> {
        let mut frames = Frames::new(io::BufReader::with_capacity(2, text.as_bytes()), max);
        let (mut buffer, mut all) = (Vec::new(), Vec::new());
        while frames.peek().unwrap().is_some() {
            let line = frames.line;
            let found = frames.value(&mut buffer).unwrap();
            all.push((found, String::from_utf8_lossy(&buffer).into_owned(), line));
            if !frames.take_if(b',').unwrap() {
                break;
            }
        }
        all
    }

    #[test]
    fn values_are_cut_where_they_end() {
        let found = cut("{\"a\\\"}\": [1,{}]} ,\n 12 , \"x,\\\\\", true", 100);
        let texts: Vec<_> = found.iter().map(|f| f.1.as_str()).collect();
        assert_eq!(texts, ["{\"a\\\"}\": [1,{}]}", "12", "\"x,\\\\\"", "true"]);
        assert_eq!(found[1].2, 2);
    }

    #[test]
    fn long_values_are_skipped_and_short_ends_noticed() {
        let found = cut("\"0123456789\",1", 5);
        assert_eq!((found[0].0, found[1].0), (Cut::TooLong, Cut::Value));
        assert_eq!(cut("{\"a\":1", 50)[0].0, Cut::End);
    }
}
