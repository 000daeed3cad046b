//! Digest algorithms: their names, however written, and the lengths of their digests.

use std::borrow::Cow;

/// Normal name, hexadecimal digits of a digest, whether it withstands changes made on purpose.
const KNOWN: &[(&str, usize, bool)] = &[
    ("md5", 32, true),
    ("sha1", 40, true),
    ("sha256", 64, true),
    ("sha512", 128, true),
    ("sha384", 96, true),
    ("sha224", 56, true),
    ("sha512256", 64, true),
    ("sha3224", 56, true),
    ("sha3256", 64, true),
    ("sha3384", 96, true),
    ("sha3512", 128, true),
    ("blake2b512", 128, true),
    ("blake3", 64, true),
    ("crc32", 8, false),
    ("adler32", 8, false),
    ("md2", 32, false),
];

/// What is known of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownAlgorithm {
    pub digits: usize,
    pub is_strong: bool,
}

/// The name in small letters and digits, as the Checkm specification normalises it.
pub(crate) fn normal(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        return name;
    }
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    Cow::Owned(kept.flat_map(char::to_lowercase).collect())
}

pub(crate) fn find(normal: &str) -> Option<KnownAlgorithm> {
    KNOWN
        .iter()
        .find(|(name, ..)| *name == normal)
        .map(|&(_, digits, is_strong)| KnownAlgorithm { digits, is_strong })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_written() {
        for name in ["SHA-256", "sha256", "Sha_256", "SHA 256"] {
            assert_eq!(find(&normal(name.into())).map(|a| a.digits), Some(64), "{name}");
        }
        assert_eq!(find(&normal("rot13".into())), None);
    }
}
