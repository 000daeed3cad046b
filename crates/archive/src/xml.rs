//! Text for XML that stays well-formed whatever the text is.

use quick_xml::events::BytesRef;
use std::borrow::Cow;
use std::fmt::Write as _;

/// What XML 1.0 cannot have, not even as a reference.
fn forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Escapes text for an element or an attribute. Characters that XML cannot have become U+FFFD;
/// a carriage return is written as a reference, since a parser would make a newline of it.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    // U+FFFE and U+FFFF begin with this byte; text that has it is looked at again, below.
    let plain = |b: u8| b >= b' ' && !matches!(b, b'&' | b'<' | b'>' | b'"' | b'\'' | 0xef);
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&#39;"),
            '\r' => written.push_str("&#13;"),
            c if forbidden(c) => written.push(char::REPLACEMENT_CHARACTER),
            c => written.push(c),
        }
    }
    Cow::Owned(written)
}

/// A name of a file, as text that can be taken back exactly: control characters, U+FFFE and
/// U+FFFF are percent-encoded, and so is a `%` that is followed by two hexadecimal digits.
/// Other names, which are nearly all, stay as they are. Not yet escaped for XML.
pub(crate) fn name(name: &str) -> Cow<'_, str> {
    let bytes = name.as_bytes();
    let escape_like = |at: usize| {
        bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    };
    let changed = |at: usize, c: char| match c {
        '%' => escape_like(at),
        c => c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'),
    };
    if !name.char_indices().any(|(at, c)| changed(at, c)) {
        return Cow::Borrowed(name);
    }
    let mut written = String::with_capacity(name.len() + 16);
    for (at, c) in name.char_indices() {
        if changed(at, c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(written, "%{byte:02X}");
            }
        } else {
            written.push(c);
        }
    }
    Cow::Owned(written)
}

/// The name that [`name`] wrote.
pub(crate) fn name_taken_back(written: &str) -> String {
    let bytes = written.as_bytes();
    let mut name = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 3).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let decoded = code
            .filter(|_| *byte == b'%')
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        name.push(decoded.unwrap_or(*byte));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(name)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What a reference stands for: a character by its number, or one of XML's own five. Others would
/// be a document's own, and those are not read.
pub(crate) fn resolve(reference: &BytesRef<'_>) -> Result<char, String> {
    match reference.resolve_char_ref() {
        Ok(Some(character)) if !forbidden(character) => return Ok(character),
        Ok(Some(_)) => return Err("a reference to a character that XML cannot have".to_owned()),
        Ok(None) => {}
        Err(error) => return Err(error.to_string()),
    }
    match &**reference {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        other => {
            let name: String = other.chars().take(40).collect();
            Err(format!("the entity {name:?} is not one of XML's own; write it out"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_what_xml_cannot_have_is_replaced() {
        assert_eq!(text("plain"), "plain");
        assert_eq!(
            text("<a & \"b\">\r\n'\0\u{ffff}"),
            "&lt;a &amp; &quot;b&quot;&gt;&#13;\n&#39;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn names_can_be_taken_back() {
        assert_eq!(name("100%.txt"), "100%.txt");
        assert_eq!(name("a\nb"), "a%0Ab");
        assert_eq!(name("a%0Ab"), "a%250Ab");
        for hard in ["%", "%%0", "%4\u{1}", "%\u{1}25", "%2525", "\u{ffff}%ff", "é\u{85}", "%zz%4"]
        {
            assert_eq!(name_taken_back(&name(hard)), hard, "{hard:?}");
        }
    }
}
