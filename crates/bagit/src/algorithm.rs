//! The checksum algorithms of manifests.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An algorithm a manifest may be named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Blake2b512,
}

impl Algorithm {
    /// Every algorithm, weakest first.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Md5,
        Algorithm::Sha1,
        Algorithm::Sha224,
        Algorithm::Sha256,
        Algorithm::Sha384,
        Algorithm::Sha512,
        Algorithm::Blake2b512,
    ];

    /// The name as it stands in `manifest-<name>.txt`.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha224 => "sha224",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha384 => "sha384",
            Algorithm::Sha512 => "sha512",
            Algorithm::Blake2b512 => "blake2b512",
        }
    }

    /// The length of a digest in bytes; its hexadecimal form is twice as long.
    pub fn digest_len(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha224 => 28,
            Algorithm::Sha256 => 32,
            Algorithm::Sha384 => 48,
            Algorithm::Sha512 | Algorithm::Blake2b512 => 64,
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
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

/// The name is of no algorithm this crate computes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of md5, sha1, sha224, sha256, sha384, sha512, blake2b512")]
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
pub struct Algorithms(u8);

impl Algorithms {
    pub const NONE: Algorithms = Algorithms(0);
    /// What to compute over a stream whose manifests may come after the payload.
    pub const LIKELY: Algorithms = Algorithms(1 | 1 << 1 | 1 << 3 | 1 << 5);

    pub fn insert(&mut self, algorithm: Algorithm) {
        self.0 |= algorithm.bit();
    }

    pub fn contains(self, algorithm: Algorithm) -> bool {
        self.0 & algorithm.bit() != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn union(self, other: Algorithms) -> Algorithms {
        Algorithms(self.0 | other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.into_iter().filter(move |a| self.contains(*a))
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
        assert_eq!("blake2b-512".parse(), Ok(Algorithm::Blake2b512));
        assert_eq!("blake2b".parse(), Ok(Algorithm::Blake2b512));
        assert!("crc32".parse::<Algorithm>().is_err());
    }

    #[test]
    fn likely_algorithms_are_the_four_that_bags_have() {
        let names: Vec<_> = Algorithms::LIKELY.iter().map(Algorithm::name).collect();
        assert_eq!(names, ["md5", "sha1", "sha256", "sha512"]);
    }
}
