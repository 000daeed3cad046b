//! Lines of a file of any size, in bounded memory.

use std::io::{self, BufRead};

/// What a call of [`Lines::advance`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line; [`Lines::line`] has it.
    Line,
    /// A line that is longer than allowed and was skipped.
    TooLong,
    /// The end of the file.
    End,
}

pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    line_bytes_max: usize,
    pub number: u64,
    pub bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(source: R, line_bytes_max: usize) -> Lines<R> {
        Lines { source, buffer: Vec::new(), line_bytes_max, number: 0, bytes: 0 }
    }

    /// The line last found, without its line end.
    pub fn line(&self) -> &[u8] {
        &self.buffer
    }

    /// Drops the first bytes of the line last found.
    pub fn drop_front(&mut self, bytes: usize) {
        self.buffer.drain(..bytes.min(self.buffer.len()));
    }

    /// Reads one line, up to LF or the end; a CR before the LF belongs to the line end.
    pub fn advance(&mut self) -> io::Result<Found> {
        self.buffer.clear();
        let mut length: usize = 0;
        loop {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let newline = memchr::memchr(b'\n', chunk);
            let piece = &chunk[..newline.unwrap_or(chunk.len())];
            // What is beyond the limit is counted and dropped, never kept.
            let room = self.line_bytes_max.saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&piece[..piece.len().min(room)]);
            length = length.saturating_add(piece.len());
            let at_end = chunk.is_empty();
            let used = piece.len() + usize::from(newline.is_some());
            self.source.consume(used);
            self.bytes += used as u64;
            if newline.is_some() || at_end {
                return Ok(self.found(length, newline.is_some()));
            }
        }
    }

    fn found(&mut self, length: usize, has_newline: bool) -> Found {
        if length == 0 && !has_newline {
            return Found::End;
        }
        self.number += 1;
        if length > self.line_bytes_max {
            return Found::TooLong;
        }
        if has_newline && self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        Found::Line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_lf_crlf_or_the_end() {
        let mut lines =
            Lines::new(io::BufReader::with_capacity(3, &b"one\r\n\ntoo-long\ntwo\r"[..]), 5);
        let mut all = Vec::new();
        loop {
            match lines.advance().unwrap() {
                Found::End => break,
                found => all.push((lines.number, found, lines.line().to_vec())),
            }
        }
        assert_eq!(all[0], (1, Found::Line, b"one".to_vec()));
        assert_eq!(all[1], (2, Found::Line, b"".to_vec()));
        assert_eq!((all[2].0, all[2].1), (3, Found::TooLong));
        assert_eq!(all[3], (4, Found::Line, b"two\r".to_vec()));
        assert_eq!(lines.bytes, 19);
    }
}
