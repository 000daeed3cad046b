//! Writes JSON strings.

use std::io::{Result, Write};

/// Writes `text` as a JSON string, quotes included. Only what JSON forbids is escaped.
pub(crate) fn write_string(out: &mut impl Write, text: &str) -> Result<()> {
    out.write_all(b"\"")?;
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..=0x1f => b"",
            _ => continue,
        };
        out.write_all(&bytes[done..at])?;
        match escaped {
            b"" => write!(out, "\\u{byte:04x}")?,
            known => out.write_all(known)?,
        }
        done = at + 1;
    }
    out.write_all(&bytes[done..])?;
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in ["", "plain", "\"\\\n\r\t\u{0}\u{1f}", "ü名🦀", "a\"b"] {
            let mut out = Vec::new();
            write_string(&mut out, text).unwrap();
            let back: String = serde_json::from_slice(&out).unwrap();
            assert_eq!(back, text);
        }
    }
}
