//! Text for XML that stays well-formed whatever the text is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What XML 1.0 cannot have, not even as a reference.
fn forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Escapes text for an element or an attribute. Characters that XML cannot have become U+FFFD;
/// a carriage return is written as a reference, since a parser would make a newline of it.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !forbidden(c) && !matches!(c, '&' | '<' | '>' | '"' | '\'' | '\r');
    if text.chars().all(plain) {
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
#[cfg_attr(not(test), expect(dead_code, reason = "PREMIS uses it"))]
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

    /// The inverse, as a reader would write it.
    fn taken_back(name: &str) -> String {
        let bytes = name.as_bytes();
        let mut out = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let code = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
            match (bytes[at], code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
                (b'%', Some(byte)) => {
                    out.push(byte);
                    at += 3;
                }
                (byte, _) => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_can_be_taken_back() {
        assert_eq!(name("100%.txt"), "100%.txt");
        assert_eq!(name("a\nb"), "a%0Ab");
        assert_eq!(name("a%0Ab"), "a%250Ab");
        for hard in ["%", "%%0", "%4\u{1}", "%\u{1}25", "%2525", "\u{ffff}%ff", "é\u{85}", "%zz%4"]
        {
            assert_eq!(taken_back(&name(hard)), hard, "{hard:?}");
        }
    }
}
