//! Paths inside a bag: what is safe, how they are written in manifests, and when two spellings
//! mean the same file.

use std::borrow::Cow;
use std::fmt;
use unicode_normalization::{UnicodeNormalization, is_nfc_quick};

/// The longest path that is read; longer ones are reported and left out.
pub const PATH_BYTES_MAX: usize = 32 * 1024;

/// Why a path must not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsafe {
    Empty,
    Absolute,
    Parent,
    Home,
    Nul,
    TooLong,
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsafe::Empty => "it is empty",
            Unsafe::Absolute => "it is absolute",
            Unsafe::Parent => "it leads out of the bag with '..'",
            Unsafe::Home => "it starts with '~', which shells expand",
            Unsafe::Nul => "it contains a NUL",
            Unsafe::TooLong => "it is longer than 32 KiB",
        })
    }
}

/// Says whether a path could name something outside the bag, on any platform.
pub fn check(path: &str) -> Result<(), Unsafe> {
    let bytes = path.as_bytes();
    let drive = bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    if path.is_empty() || path.chars().all(|c| c == '/' || c == '.') {
        return Err(if path.contains("..") { Unsafe::Parent } else { Unsafe::Empty });
    }
    if bytes.len() > PATH_BYTES_MAX {
        return Err(Unsafe::TooLong);
    }
    if bytes.contains(&0) {
        return Err(Unsafe::Nul);
    }
    if matches!(bytes[0], b'/' | b'\\') || (drive && matches!(bytes.get(2), Some(b'/' | b'\\'))) {
        return Err(Unsafe::Absolute);
    }
    if bytes[0] == b'~' {
        return Err(Unsafe::Home);
    }
    // A backslash separates on Windows, so `..\` is as dangerous as `../`.
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err(Unsafe::Parent);
    }
    Ok(())
}

/// Removes `./` and doubled slashes, which mean nothing. Only for paths that [`check`] accepts.
pub fn tidy(path: &str) -> Cow<'_, str> {
    let clean = !path.starts_with("./")
        && !path.contains("//")
        && !path.contains("/./")
        && !path.ends_with("/.");
    if clean {
        return Cow::Borrowed(path);
    }
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    Cow::Owned(parts.join("/"))
}

/// Decodes what RFC 8493 §2.1.3 encodes in manifests: `%0A`, `%0D` and `%25`, nothing else.
pub fn percent_decode(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let code = rest.as_bytes().get(at + 1..at + 3);
        let plain = match code {
            Some([b'0', b'a' | b'A']) => Some('\n'),
            Some([b'0', b'd' | b'D']) => Some('\r'),
            Some([b'2', b'5']) => Some('%'),
            _ => None,
        };
        decoded.push(plain.unwrap_or('%'));
        rest = &rest[if plain.is_some() { at + 3 } else { at + 1 }..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Encodes a path for a manifest, the reverse of [`percent_decode`].
pub fn percent_encode(path: &str) -> Cow<'_, str> {
    if !path.contains(['%', '\n', '\r']) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(path.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D"))
}

/// The Unicode normal form in which paths are compared.
pub fn normal(path: &str) -> Cow<'_, str> {
    if path.is_ascii() || is_nfc_quick(path.chars()) == unicode_normalization::IsNormalized::Yes {
        return Cow::Borrowed(path);
    }
    Cow::Owned(path.nfc().collect())
}

/// What all spellings of a path share: percent-encoding, normal form and case are taken away.
/// Two files with one key may be one file on another system.
pub fn key(path: &str) -> String {
    let decoded = decode_all(path);
    if decoded.is_ascii() {
        return decoded.to_ascii_lowercase();
    }
    normal(&decoded).to_lowercase()
}

/// Decodes until nothing is left to decode, in one pass: a name may have been encoded, and be one
/// that looks encoded, any number of times.
fn decode_all(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        while let Some(after) = rest.strip_prefix("25") {
            rest = after;
        }
        let plain = match rest.as_bytes() {
            [b'0', b'a' | b'A', ..] => '\n',
            [b'0', b'd' | b'D', ..] => '\r',
            _ => '%',
        };
        decoded.push(plain);
        rest = &rest[if plain == '%' { 0 } else { 2 }..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Shows the bytes of a name that is not UTF-8: what cannot be read becomes `%XX`.
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Files that operating systems leave behind and that come and go without anyone's doing.
pub fn is_system_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = ["Thumbs.db", "ehthumbs.db", ".DS_Store", "desktop.ini", ".Spotlight-V100"];
    known.iter().any(|k| k.eq_ignore_ascii_case(name))
        || name.starts_with("._")
        || path.split('/').any(|part| part == "__MACOSX" || part == ".Trashes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_bag_are_unsafe() {
        for (path, why) in [
            ("", Unsafe::Empty),
            ("./", Unsafe::Empty),
            ("..", Unsafe::Parent),
            ("/etc/passwd", Unsafe::Absolute),
            ("\\\\server\\share", Unsafe::Absolute),
            ("C:\\x", Unsafe::Absolute),
            ("data/../../x", Unsafe::Parent),
            ("data\\..\\..\\x", Unsafe::Parent),
            ("~root/x", Unsafe::Home),
            ("data/a\0b", Unsafe::Nul),
        ] {
            assert_eq!(check(path), Err(why), "{path:?}");
        }
        for path in ["data/a", "data/..a", "data/a..", "data/~x", "C:x", "data/..."] {
            assert_eq!(check(path), Ok(()), "{path:?}");
        }
    }

    #[test]
    fn only_three_escapes_are_decoded() {
        assert_eq!(percent_decode("a%0Ab%0d%25%7E%2"), "a\nb\r%%7E%2");
        assert_eq!(percent_decode(&percent_encode("100%25\r\n%")), "100%25\r\n%");
        assert_eq!(percent_decode("é%é"), "é%é");
    }

    #[test]
    fn spellings_of_one_name_share_a_key() {
        assert_eq!(key("data/N\u{fa}\u{f1}ez"), key("data/nu\u{301}n\u{303}EZ"));
        assert_eq!(key("100%25"), key("100%"));
        for path in ["%25", "%2525%", "%250A", "%%250d25", "%2%255", "%0a%25%0D"] {
            assert_eq!(key(&percent_encode(path)), key(path), "{path}");
            assert_eq!(key(&percent_decode(path)), key(path), "{path}");
        }
        assert_ne!(key("a"), key("b"));
    }

    #[test]
    fn dots_and_slashes_without_meaning_go() {
        assert_eq!(tidy("./data//a/./b"), "data/a/b");
        assert_eq!(tidy("data/.hidden"), "data/.hidden");
    }

    #[test]
    fn unreadable_bytes_are_shown() {
        assert_eq!(from_bytes(b"a\xffb"), "a%FFb");
    }
}
