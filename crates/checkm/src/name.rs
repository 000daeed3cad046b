//! Whether a name is safe to join to a directory, on any system the archive may meet.

use crate::code::Code;
use std::borrow::Cow;
use unicode_normalization::{UnicodeNormalization, is_nfc_quick};

pub(crate) const PART_BYTES_MAX: usize = 255;
pub(crate) const NAME_BYTES_MAX: usize = 4096;

/// Calls `found` for everything wrong with a name; each code once.
pub(crate) fn check(name: &str, is_directory: bool, mut found: impl FnMut(Code)) {
    // A backslash separates on some systems, so it must not hide a `..` here.
    let parts = || name.split(['/', '\\']);
    let plain = if is_directory { name.strip_suffix('/').unwrap_or(name) } else { name };
    if is_absolute(name) {
        found(Code::NameAbsolute);
    } else if plain.split('/').any(|part| part.is_empty() || part == ".") {
        found(Code::NameSyntax);
    }
    if parts().any(|part| part == "..") {
        found(Code::NameEscape);
    }
    if name.contains('\\') {
        found(Code::NameBackslash);
    }
    if name.chars().any(char::is_control) {
        found(Code::ControlCharacter);
    }
    if name.len() > NAME_BYTES_MAX || name.split('/').any(|part| part.len() > PART_BYTES_MAX) {
        found(Code::NameTooLong);
    }
    if name.split('/').any(|part| part.trim() != part) {
        found(Code::NameSpace);
    }
}

/// From the root of a file system, of a drive, or of a share.
pub(crate) fn is_absolute(name: &str) -> bool {
    let bytes = name.as_bytes();
    matches!(bytes, [b'/' | b'\\', ..])
        || matches!(bytes, [drive, b':'] | [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

/// What is left of a name when case and Unicode normalisation are put aside: names with the same
/// fold are one file on some systems.
pub(crate) fn fold(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        return if name.bytes().any(|b| b.is_ascii_uppercase()) {
            Cow::Owned(name.to_ascii_lowercase())
        } else {
            Cow::Borrowed(name)
        };
    }
    let lower: String = name.nfc().flat_map(char::to_lowercase).collect();
    // Lower case can leave what normalisation would join.
    match is_nfc_quick(lower.chars()) {
        unicode_normalization::IsNormalized::Yes => Cow::Owned(lower),
        _ => Cow::Owned(lower.nfc().collect()),
    }
}

const CONTAINERS: &[&str] = &[".tar", ".tar.gz", ".tgz", ".tar.bz2", ".bz2", ".tar.zst", ".zip"];
const MANIFESTS: &[&str] = &[".checkm", ".json"];

pub(crate) fn is_container(name: &str) -> bool {
    has_ending(name, CONTAINERS)
}

/// Names that only containers have, and that are not unpacked here.
const FOREIGN: &[&str] = &[".tar.xz", ".txz", ".tar.lz", ".tar.z", ".7z", ".rar"];

/// Whether a name is that of a container, one that can be unpacked here or another.
pub(crate) fn looks_like_container(name: &str) -> bool {
    is_container(name) || has_ending(name, FOREIGN)
}

/// Whether a name is that of a manifest and of nothing else, unlike those of JSON.
pub(crate) fn is_checkm(name: &str) -> bool {
    has_ending(name, &[".checkm"])
}

pub(crate) fn is_manifest(name: &str) -> bool {
    has_ending(name, MANIFESTS)
}

fn has_ending(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| {
        let at = name.len().checked_sub(ending.len());
        at.and_then(|at| name.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(name: &str) -> Vec<Code> {
        let mut codes = Vec::new();
        check(name, false, |code| codes.push(code));
        codes
    }

    #[test]
    fn unsafe_names_are_found() {
        assert_eq!(codes("a/b c/ü..x/...txt"), []);
        assert_eq!(codes("../x"), [Code::NameEscape]);
        assert_eq!(codes("a/.."), [Code::NameEscape]);
        assert_eq!(codes("a\\..\\b"), [Code::NameEscape, Code::NameBackslash]);
        assert_eq!(codes("/etc/passwd"), [Code::NameAbsolute]);
        assert_eq!(codes("C:/x"), [Code::NameAbsolute]);
        assert_eq!(codes("\\\\host\\share"), [Code::NameAbsolute, Code::NameBackslash]);
        assert_eq!(codes("a//b"), [Code::NameSyntax]);
        assert_eq!(codes("a/"), [Code::NameSyntax]);
        assert_eq!(codes("a\0b"), [Code::ControlCharacter]);
        assert_eq!(codes(&"x".repeat(300)), [Code::NameTooLong]);
        assert_eq!(codes(&"x/".repeat(3000).as_str()[..5999]), [Code::NameTooLong]);
        assert_eq!(codes("a / b"), [Code::NameSpace]);
    }

    #[test]
    fn folding_joins_case_and_normalisation() {
        assert_eq!(fold("Ünder"), fold("u\u{308}NDER"));
        assert_eq!(fold("README"), "readme");
        assert_ne!(fold("a"), fold("b"));
    }

    #[test]
    fn endings_in_any_case_and_no_cut_characters() {
        assert!(is_container("x.TAR.GZ") && is_container("a.zip") && !is_container("ü"));
        assert!(is_manifest("A.CHECKM") && !is_manifest("checkm"));
    }
}
