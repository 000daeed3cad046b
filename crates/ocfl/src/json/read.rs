//! Reads JSON as a stream, with bounds on strings, depth and length.

use std::io::Read;

/// Why the JSON could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// It is not JSON.
    #[error("line {line}, column {column}: {what}")]
    Syntax { line: u64, column: u64, what: &'static str },
    /// It exceeds a limit.
    #[error("{what} exceeds the limit of {limit}")]
    Limit { what: &'static str, limit: u64 },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

type Result<T> = std::result::Result<T, Fault>;

const BUFFER_BYTES: usize = 64 * 1024;

/// What a value is, by its first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    /// A number, `true`, `false` or `null`: no inventory has a use for one.
    Other,
}

/// Pulls JSON out of a reader, token by token.
pub(crate) struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes were in buffers before this one.
    before: u64,
    bytes_max: u64,
    string_max: usize,
    depth_max: usize,
    line: u64,
    /// The offset at which the current line starts.
    line_start: u64,
}

impl<R: Read> Reader<R> {
    pub(crate) fn new(source: R, limits: &crate::Limits) -> Reader<R> {
        Reader {
            source,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            before: 0,
            bytes_max: limits.inventory_bytes_max,
            string_max: limits.string_bytes_max,
            depth_max: limits.json_depth_max,
            line: 1,
            line_start: 0,
        }
    }

    fn offset(&self) -> u64 {
        self.before + self.start as u64
    }

    fn syntax<T>(&self, what: &'static str) -> Result<T> {
        let column = self.offset() - self.line_start + 1;
        Err(Fault::Syntax { line: self.line, column, what })
    }

    /// Reads the next buffer; false at the end of the input.
    fn fill(&mut self) -> Result<bool> {
        self.before += self.end as u64;
        self.start = 0;
        self.end = 0;
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(count) => {
                    self.end = count;
                    if self.before + count as u64 > self.bytes_max {
                        let limit = self.bytes_max;
                        return Err(Fault::Limit { what: "the inventory's length", limit });
                    }
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn byte(&mut self) -> Result<Option<u8>> {
        if self.start == self.end && !self.fill()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.start]))
    }

    /// The next byte that is not white space, without taking it.
    fn peek(&mut self) -> Result<Option<u8>> {
        while let Some(byte) = self.byte()? {
            match byte {
                b'\n' => {
                    self.start += 1;
                    self.line += 1;
                    self.line_start = self.offset();
                }
                b' ' | b'\t' | b'\r' => self.start += 1,
                _ => return Ok(Some(byte)),
            }
        }
        Ok(None)
    }

    fn expect(&mut self, wanted: u8, what: &'static str) -> Result<()> {
        if self.peek()? != Some(wanted) {
            return self.syntax(what);
        }
        self.start += 1;
        Ok(())
    }

    /// What comes next.
    pub(crate) fn kind(&mut self) -> Result<Kind> {
        match self.peek()? {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => Ok(Kind::Other),
            Some(_) => self.syntax("a value is expected here"),
            None => self.syntax("the text ends where a value is expected"),
        }
    }

    pub(crate) fn begin_object(&mut self) -> Result<()> {
        self.expect(b'{', "an object is expected here")
    }

    /// Reads the next key of an object into `key`; false at its end.
    pub(crate) fn key(&mut self, first: &mut bool, key: &mut String) -> Result<bool> {
        if !self.more(first, b'}', "`,` or `}` is expected here")? {
            return Ok(false);
        }
        self.string(key)?;
        self.expect(b':', "`:` is expected here")?;
        Ok(true)
    }

    pub(crate) fn begin_array(&mut self) -> Result<()> {
        self.expect(b'[', "an array is expected here")
    }

    /// Whether an array has another element.
    pub(crate) fn element(&mut self, first: &mut bool) -> Result<bool> {
        self.more(first, b']', "`,` or `]` is expected here")
    }

    fn more(&mut self, first: &mut bool, close: u8, what: &'static str) -> Result<bool> {
        match self.peek()? {
            Some(byte) if byte == close && *first => {
                self.start += 1;
                return Ok(false);
            }
            Some(_) if *first => *first = false,
            Some(b',') => self.start += 1,
            Some(byte) if byte == close => {
                self.start += 1;
                return Ok(false);
            }
            _ => return self.syntax(what),
        }
        Ok(true)
    }

    /// Nothing but white space may follow the outermost value.
    pub(crate) fn end(&mut self) -> Result<()> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => self.syntax("there is more text after the end"),
        }
    }

    /// Reads a string into `text`, replacing what was there.
    pub(crate) fn string(&mut self, text: &mut String) -> Result<()> {
        self.expect(b'"', "a string is expected here")?;
        let mut bytes = std::mem::take(text).into_bytes();
        bytes.clear();
        loop {
            if self.start == self.end && !self.fill()? {
                return self.syntax("the text ends within a string");
            }
            let rest = &self.buffer[self.start..self.end];
            let plain = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
                .unwrap_or(rest.len());
            bytes.extend_from_slice(&rest[..plain]);
            self.start += plain;
            if bytes.len() > self.string_max {
                let limit = self.string_max as u64;
                return Err(Fault::Limit { what: "the length of a string", limit });
            }
            match rest.get(plain).copied() {
                None => {}
                Some(b'"') => {
                    self.start += 1;
                    break;
                }
                Some(b'\\') => {
                    self.start += 1;
                    self.escape(&mut bytes)?;
                }
                Some(_) => return self.syntax("a control character stands in a string"),
            }
        }
        match String::from_utf8(bytes) {
            Ok(string) => *text = string,
            Err(_) => return self.syntax("a string is not UTF-8"),
        }
        Ok(())
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let Some(byte) = self.byte()? else { return self.syntax("the text ends in an escape") };
        self.start += 1;
        bytes.push(match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let c = self.unicode_escape()?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return self.syntax("there is no such escape"),
        });
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let mut code = self.four_digits()?;
        if (0xd800..0xdc00).contains(&code) {
            for wanted in *b"\\u" {
                if self.byte()? != Some(wanted) {
                    return self.syntax("half of a surrogate pair stands alone");
                }
                self.start += 1;
            }
            let low = self.four_digits()?;
            if !(0xdc00..0xe000).contains(&low) {
                return self.syntax("half of a surrogate pair stands alone");
            }
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.syntax("half of a surrogate pair stands alone"),
        }
    }

    fn four_digits(&mut self) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.byte()?.and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return self.syntax("\\u needs four digits") };
            code = code * 16 + digit;
            self.start += 1;
        }
        Ok(code)
    }

    /// Passes over one value of whatever kind.
    pub(crate) fn skip(&mut self) -> Result<()> {
        self.skip_within(0)
    }

    fn skip_within(&mut self, depth: usize) -> Result<()> {
        if depth >= self.depth_max {
            let limit = self.depth_max as u64;
            return Err(Fault::Limit { what: "the nesting of the JSON", limit });
        }
        let mut first = true;
        let mut text = String::new();
        match self.kind()? {
            Kind::Object => {
                self.begin_object()?;
                while self.key(&mut first, &mut text)? {
                    self.skip_within(depth + 1)?;
                }
                Ok(())
            }
            Kind::Array => {
                self.begin_array()?;
                while self.element(&mut first)? {
                    self.skip_within(depth + 1)?;
                }
                Ok(())
            }
            Kind::String => self.string(&mut text),
            Kind::Other => self.skip_other(),
        }
    }

    fn skip_other(&mut self) -> Result<()> {
        const LONGEST: usize = 400;
        let mut text = Vec::new();
        while let Some(byte @ (b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E')) =
            self.byte()?
        {
            if text.len() == LONGEST {
                let limit = LONGEST as u64;
                return Err(Fault::Limit { what: "the length of a number", limit });
            }
            text.push(byte);
            self.start += 1;
        }
        match text.as_slice() {
            b"true" | b"false" | b"null" => Ok(()),
            number if is_number(number) => Ok(()),
            _ => self.syntax("this is no number, true, false or null"),
        }
    }
}

/// The grammar of numbers: an optional minus, digits without leading zeros, fraction, exponent.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let signed = exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-"));
        let exponent = signed.unwrap_or(exponent);
        let count = digits(exponent);
        if count == 0 {
            return false;
        }
        rest = &exponent[count..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(text: &[u8]) -> bool {
        let mut reader = Reader::new(text, &crate::Limits::default());
        reader.skip().and_then(|()| reader.end()).is_ok()
    }

    /// `serde_json` is the judge of what JSON is.
    #[test]
    fn accepts_and_refuses_what_others_do() {
        let cases: &[&str] = &[
            "{}",
            "[]",
            "[1,2]",
            "[1,]",
            "{\"a\":1,}",
            "{,}",
            "[,]",
            "{\"a\" 1}",
            "\"\\u00e9\"",
            "\"\\ud83e\\udd80\"",
            "\"\\ud83e\"",
            "\"\\udd80\"",
            "\"\\ud83e\\u0041\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "01",
            "-1",
            "-",
            "1.",
            "1.5e+3",
            ".5",
            "1e",
            "true",
            "tru",
            "null",
            "nul",
            "",
            " ",
            "[1] 2",
            "{\"a\":{\"b\":[{}]}}",
            "\"abc",
            "[\"a\"",
            "{\"a\":",
            "\u{feff}{}",
        ];
        for case in cases {
            let judged = serde_json::from_str::<serde_json::Value>(case).is_ok();
            assert_eq!(skips(case.as_bytes()), judged, "{case:?}");
        }
        assert!(!skips(b"\"\xff\""));
    }

    #[test]
    fn errors_say_where() {
        let mut reader = Reader::new(&b"{\n \"a\": !"[..], &crate::Limits::default());
        let fault = reader.skip().unwrap_err().to_string();
        assert_eq!(fault, "line 2, column 7: a value is expected here");
    }

    #[test]
    fn deep_nesting_and_long_strings_are_refused_not_followed() {
        let deep = "[".repeat(1_000_000);
        let mut reader = Reader::new(deep.as_bytes(), &crate::Limits::default());
        assert!(matches!(reader.skip(), Err(Fault::Limit { limit: 64, .. })));
        let long = format!("\"{}\"", "x".repeat(10 << 20));
        let mut reader = Reader::new(long.as_bytes(), &crate::Limits::default());
        assert!(matches!(reader.skip(), Err(Fault::Limit { .. })));
    }
}
