//! The algorithms, their names, and sets of them.

use crate::hasher::SingleHasher;
use crate::value::Digest;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// MD5: broken, and still in manifests.
    Md5,
    /// SHA-1: broken, and still in manifests.
    Sha1,
    /// SHA-224 of FIPS 180-4.
    Sha224,
    /// SHA-256 of FIPS 180-4.
    Sha256,
    /// SHA-384 of FIPS 180-4.
    Sha384,
    /// SHA-512 of FIPS 180-4.
    Sha512,
    /// SHA-512/256 of FIPS 180-4.
    Sha512_256,
    /// BLAKE2b with 160 bits (RFC 7693).
    Blake2b160,
    /// BLAKE2b with 256 bits (RFC 7693).
    Blake2b256,
    /// BLAKE2b with 384 bits (RFC 7693).
    Blake2b384,
    /// BLAKE2b with 512 bits (RFC 7693).
    Blake2b512,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 11] = [
        Algorithm::Md5,
        Algorithm::Sha1,
        Algorithm::Sha224,
        Algorithm::Sha256,
        Algorithm::Sha384,
        Algorithm::Sha512,
        Algorithm::Sha512_256,
        Algorithm::Blake2b160,
        Algorithm::Blake2b256,
        Algorithm::Blake2b384,
        Algorithm::Blake2b512,
    ];

    /// Returns the name in lower-case letters and digits, as RFC 8493 §2.4 and the Checkm
    /// specification normalise it.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha224 => "sha224",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha384 => "sha384",
            Algorithm::Sha512 => "sha512",
            Algorithm::Sha512_256 => "sha512256",
            Algorithm::Blake2b160 => "blake2b160",
            Algorithm::Blake2b256 => "blake2b256",
            Algorithm::Blake2b384 => "blake2b384",
            Algorithm::Blake2b512 => "blake2b512",
        }
    }

    /// Returns the length of a digest in bytes.
    pub fn digest_len(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 | Algorithm::Blake2b160 => 20,
            Algorithm::Sha224 => 28,
            Algorithm::Sha256 | Algorithm::Sha512_256 | Algorithm::Blake2b256 => 32,
            Algorithm::Sha384 | Algorithm::Blake2b384 => 48,
            Algorithm::Sha512 | Algorithm::Blake2b512 => 64,
        }
    }

    /// Returns how many hexadecimal digits a digest has.
    pub fn hex_length(self) -> usize {
        self.digest_len() * 2
    }

    /// Tells whether `text` has the form of a digest of this algorithm.
    pub fn is_digest(self, text: &str) -> bool {
        text.len() == self.hex_length() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Computes the digest of bytes that are in memory.
    pub fn digest(self, bytes: &[u8]) -> Digest {
        let mut hasher = SingleHasher::new(self);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Computes the digest of bytes that are in memory, in lower-case hexadecimal.
    pub fn hex(self, bytes: &[u8]) -> String {
        self.digest(bytes).to_string()
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A name of none of the algorithms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a known digest algorithm; use one of md5, sha1, sha224, sha256, sha384, sha512, \
     sha512256, blake2b160, blake2b256, blake2b384, blake2b512"
)]
pub struct UnknownAlgorithm(pub String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Compares as RFC 8493 §2.4 says: lower case, letters and digits only (`SHA-256` is sha256).
    fn from_str(name: &str) -> Result<Algorithm, UnknownAlgorithm> {
        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        // hashlib calls the 64-byte variant plain `blake2b`, and bags made with it do too.
        let plain = if plain == "blake2b" { "blake2b512" } else { &plain };
        Algorithm::ALL
            .into_iter()
            .find(|a| a.name() == plain)
            .ok_or_else(|| UnknownAlgorithm(name.chars().take(64).collect()))
    }
}

/// A set of algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Algorithms(u16);

impl Algorithms {
    /// The empty set.
    pub const NONE: Algorithms = Algorithms(0);
    /// The four algorithms that most bags have: what to compute over a stream whose manifests may
    /// come after the payload.
    pub const LIKELY: Algorithms = Algorithms(
        Algorithm::Md5.bit()
            | Algorithm::Sha1.bit()
            | Algorithm::Sha256.bit()
            | Algorithm::Sha512.bit(),
    );

    /// Adds an algorithm.
    pub fn insert(&mut self, algorithm: Algorithm) {
        self.0 |= algorithm.bit();
    }

    /// Tells whether an algorithm is in the set.
    pub fn contains(self, algorithm: Algorithm) -> bool {
        self.0 & algorithm.bit() != 0
    }

    /// Tells whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the algorithms of either set.
    pub fn union(self, other: Algorithms) -> Algorithms {
        Algorithms(self.0 | other.0)
    }

    /// Lists the algorithms in the order of [`Algorithm::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.into_iter().filter(move |a| self.contains(*a))
    }
}

impl From<Algorithm> for Algorithms {
    fn from(algorithm: Algorithm) -> Algorithms {
        Algorithms(algorithm.bit())
    }
}

impl FromIterator<Algorithm> for Algorithms {
    fn from_iter<I: IntoIterator<Item = Algorithm>>(algorithms: I) -> Algorithms {
        let mut set = Algorithms::NONE;
        algorithms.into_iter().for_each(|a| set.insert(a));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_as_the_rfc_says() {
        assert_eq!("SHA-256".parse(), Ok(Algorithm::Sha256));
        assert_eq!("SHA-512/256".parse(), Ok(Algorithm::Sha512_256));
        assert_eq!("blake2b-512".parse(), Ok(Algorithm::Blake2b512));
        assert_eq!("blake2b".parse(), Ok(Algorithm::Blake2b512));
        assert!("crc32".parse::<Algorithm>().is_err());
    }

    #[test]
    fn the_error_lists_every_name() {
        let error = "crc32".parse::<Algorithm>().unwrap_err().to_string();
        for algorithm in Algorithm::ALL {
            assert!(error.contains(&format!(" {algorithm}")), "{algorithm}");
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
        }
    }

    #[test]
    fn likely_algorithms_are_the_four_that_bags_have() {
        let names: Vec<_> = Algorithms::LIKELY.iter().map(Algorithm::name).collect();
        assert_eq!(names, ["md5", "sha1", "sha256", "sha512"]);
    }
}
