//! Percent-escapes. General Checkm has all of RFC 3986's; the Merritt profiles have exactly two,
//! `%7c` for a bar and `%20` for a space, so that `%41` in a name is the name.

use std::borrow::Cow;

/// Which escapes a manifest uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    General,
    Merritt,
}

/// Why a value could not be decoded as it was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A `%` that begins no escape; the value is usable.
    Stray,
    /// The decoded bytes are not UTF-8; the value is not usable.
    NotUtf8,
}

pub(crate) fn decode(value: &str, dialect: Dialect) -> (Cow<'_, str>, Option<Flaw>) {
    if memchr::memchr(b'%', value.as_bytes()).is_none() {
        return (Cow::Borrowed(value), None);
    }
    match dialect {
        Dialect::Merritt => (decode_two(value), None),
        Dialect::General => decode_all(value),
    }
}

fn decode_two(value: &str) -> Cow<'_, str> {
    let mut decoded = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at..at + 3).unwrap_or(b"");
        let (text, used) = match escape {
            b"%7c" | b"%7C" => ("|", 3),
            b"%20" => (" ", 3),
            _ => ("%", 1),
        };
        decoded.push_str(text);
        rest = &rest[at + used..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

fn decode_all(value: &str) -> (Cow<'_, str>, Option<Flaw>) {
    let bytes = value.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut flaw = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            decoded.push(byte);
            at += 1;
            continue;
        }
        match (hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (Some(high), Some(low)) => {
                decoded.push(high << 4 | low);
                at += 3;
            }
            _ => {
                flaw = Some(Flaw::Stray);
                decoded.push(byte);
                at += 1;
            }
        }
    }
    match String::from_utf8(decoded) {
        Ok(text) => (Cow::Owned(text), flaw),
        Err(_) => (Cow::Borrowed(value), Some(Flaw::NotUtf8)),
    }
}

pub(crate) fn hex(byte: Option<&u8>) -> Option<u8> {
    // A hexadecimal digit is below 16, so the conversion keeps it whole.
    byte.and_then(|b| (*b as char).to_digit(16)).map(|digit| digit as u8)
}

/// Why a value cannot be written, or the value as it is written.
pub(crate) fn encode(
    value: &str,
    dialect: Dialect,
    is_path: bool,
) -> Result<Cow<'_, str>, &'static str> {
    match dialect {
        Dialect::Merritt => encode_two(value),
        Dialect::General => Ok(encode_all(value, is_path)),
    }
}

fn encode_two(value: &str) -> Result<Cow<'_, str>, &'static str> {
    if value.chars().any(char::is_control) {
        return Err("it has a control character, and the Merritt profiles have no escape for it");
    }
    let decoded = decode_two(value);
    if decoded != value {
        return Err("it has %7c or %20 in it as plain text, which the Merritt profiles cannot say");
    }
    let inner = value.trim_matches(' ');
    if inner.len() == value.len() && !value.contains('|') {
        return Ok(Cow::Borrowed(value));
    }
    let spaces = |text: &str| "%20".repeat(text.len());
    let start = value.len() - value.trim_start_matches(' ').len();
    if inner.is_empty() {
        return Ok(Cow::Owned(spaces(value)));
    }
    let end = start + inner.len();
    Ok(Cow::Owned(format!(
        "{}{}{}",
        spaces(&value[..start]),
        inner.replace('|', "%7c"),
        spaces(&value[end..])
    )))
}

fn encode_all(value: &str, is_path: bool) -> Cow<'_, str> {
    let last = value.len().saturating_sub(1);
    let must = |at: usize, byte: u8| {
        let edge = at == 0 || at == last;
        let leading = at == 0 && matches!(byte, b'#' | b'@');
        matches!(byte, b'%' | b'|' | 0..=0x1f | 0x7f)
            || leading
            || byte == b' ' && (edge || is_path)
            || is_path && matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'}')
    };
    if !value.bytes().enumerate().any(|(at, byte)| must(at, byte)) {
        return Cow::Borrowed(value);
    }
    let mut encoded = String::with_capacity(value.len() + 16);
    for (at, c) in value.char_indices() {
        match u8::try_from(c) {
            // Only ASCII is ever escaped; everything else stays readable.
            Ok(byte) if c.is_ascii() && must(at, byte) => {
                encoded.push_str(&format!("%{byte:02x}"));
            }
            _ => encoded.push(c),
        }
    }
    Cow::Owned(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merritt_has_two_escapes_and_no_more() {
        let (value, flaw) = decode("%20a%7Cb%41%7c%", Dialect::Merritt);
        assert_eq!((&*value, flaw), (" a|b%41|%", None));
        assert_eq!(&*encode(" a|b%41 ", Dialect::Merritt, true).unwrap(), "%20a%7cb%41%20");
        assert_eq!(&*encode("  ", Dialect::Merritt, true).unwrap(), "%20%20");
        assert!(encode("a%20b", Dialect::Merritt, true).is_err());
        assert!(encode("a\nb", Dialect::Merritt, true).is_err());
    }

    #[test]
    fn general_checkm_has_all_escapes() {
        assert_eq!(decode("%c3%bc", Dialect::General).0, "ü");
        assert_eq!(decode("100%", Dialect::General), (Cow::Borrowed("100%"), Some(Flaw::Stray)));
        assert_eq!(decode("%ff", Dialect::General).1, Some(Flaw::NotUtf8));
        assert_eq!(encode("#a b|ü\n", Dialect::General, true).unwrap(), "%23a%20b%7cü%0a");
        assert_eq!(encode("a title", Dialect::General, false).unwrap(), "a title");
    }
}
