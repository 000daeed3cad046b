//! Subjects: any bytes, kept as printable UTF-8 by percent-encoding what is not.
//!
//! A `%` that could be read as an escape is encoded too, so encoding can always be undone.

use crate::error::{Error, Result};

/// A subject is at most this long, before encoding.
pub const SUBJECT_BYTES_MAX: usize = 4096;

/// Encodes a subject as it is stored and shown.
pub fn encode(bytes: &[u8]) -> Result<String> {
    if bytes.is_empty() {
        return Err(Error::BadInput(
            "a subject is empty; give each job something to be about".to_string(),
        ));
    }
    if bytes.len() > SUBJECT_BYTES_MAX {
        return Err(Error::BadInput(format!(
            "a subject of {} bytes is longer than {SUBJECT_BYTES_MAX}: `{}…`; use a shorter name and put the rest in the payload",
            bytes.len(),
            String::from_utf8_lossy(&bytes[..40.min(bytes.len())]).escape_debug()
        )));
    }
    let mut encoded = String::with_capacity(bytes.len());
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let ambiguous = c == '%' && is_escape(&bytes[at..]);
            if ambiguous || !is_printable(c) {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().for_each(|b| push_escape(&mut encoded, b));
            } else {
                encoded.push(c);
            }
            at += c.len_utf8();
        }
        chunk.invalid().iter().for_each(|b| push_escape(&mut encoded, *b));
        at += chunk.invalid().len();
    }
    Ok(encoded)
}

/// The bytes a stored subject stands for.
pub fn decode(encoded: &str) -> Vec<u8> {
    let bytes = encoded.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match is_escape(&bytes[at..]) {
            true => {
                decoded.push(hex(bytes[at + 1]) << 4 | hex(bytes[at + 2]));
                at += 3;
            }
            false => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

fn is_printable(c: char) -> bool {
    // Marks that hide or reorder text would let one subject look like another.
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffd}')
}

fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

fn push_escape(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_names_stay_as_they_are() {
        for name in ["a.fits", "Übersicht 2024.pdf", "50%.txt", "名前", "a%zz"] {
            assert_eq!(encode(name.as_bytes()).unwrap(), name);
        }
    }

    #[test]
    fn every_byte_string_comes_back() {
        let hostile: [&[u8]; 8] = [
            b"a\nb",
            b"%41",
            b"%%0A",
            b"\xff\xfe",
            b"%4\x01",
            "\u{202e}txt".as_bytes(),
            b"%25",
            b"100%\n",
        ];
        for bytes in hostile {
            let encoded = encode(bytes).unwrap();
            assert!(encoded.chars().all(is_printable), "{encoded}");
            assert_eq!(decode(&encoded), bytes, "{encoded}");
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all).unwrap()), all);
    }

    #[test]
    fn empty_and_overlong_subjects_are_refused() {
        assert!(encode(b"").is_err());
        assert!(encode(&[b'a'; SUBJECT_BYTES_MAX]).is_ok());
        assert!(encode(&[b'a'; SUBJECT_BYTES_MAX + 1]).unwrap_err().to_string().contains("4096"));
    }
}
