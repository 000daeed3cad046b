//! SHA-256, as stores send, keep and check it.

use digest::{Sha256, to_hex};
use std::fmt;

/// A SHA-256 digest; it prints as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256Digest(pub [u8; 32]);

impl Sha256Digest {
    pub fn of(bytes: &[u8]) -> Sha256Digest {
        Sha256Digest(Sha256::of(bytes))
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Sha256Digest> {
        let text = text.as_bytes();
        if text.len() != 64 {
            return None;
        }
        let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Sha256Digest(bytes))
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

/// The digest that a store keeps beside an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Digest {
    /// Of the whole content.
    Sha256(Sha256Digest),
    /// Of the digests of the parts in which the content was sent: what S3 keeps for an object
    /// that was uploaded in parts.
    Sha256OfParts { digest: Sha256Digest, parts: u32 },
}

impl Digest {
    /// The digest of the whole content, where that is what the store keeps.
    pub fn whole(&self) -> Option<Sha256Digest> {
        match self {
            Digest::Sha256(digest) => Some(*digest),
            Digest::Sha256OfParts { .. } => None,
        }
    }
}

/// Hashes what streams by.
#[derive(Clone, Default)]
pub struct Sha256Hasher(Sha256);

impl Sha256Hasher {
    pub fn new() -> Sha256Hasher {
        Sha256Hasher::default()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Sha256Digest {
        Sha256Digest(self.0.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_there_and_back() {
        let digest = Sha256Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(Sha256Digest::from_hex(text), Some(digest));
        assert_eq!(Sha256Digest::from_hex(&text[1..]), None);
        assert_eq!(Sha256Digest::from_hex(&text.replace('b', "g")), None);
        assert_eq!(Sha256Digest::from_hex(&"é".repeat(32)), None);
    }
}
