//! Digest algorithms: those of the specification, and those of its digest extension.

use blake2::Blake2b;
use blake2::digest::consts::{U20, U32, U48, U64};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A digest algorithm. `sha512` and `sha256` address content; all can be in a fixity block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Blake2b512,
    Blake2b160,
    Blake2b256,
    Blake2b384,
    Sha512_256,
}

impl Algorithm {
    pub const ALL: [Algorithm; 9] = [
        Algorithm::Md5,
        Algorithm::Sha1,
        Algorithm::Sha256,
        Algorithm::Sha512,
        Algorithm::Blake2b512,
        Algorithm::Blake2b160,
        Algorithm::Blake2b256,
        Algorithm::Blake2b384,
        Algorithm::Sha512_256,
    ];

    /// The name in inventories and sidecars.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
            Algorithm::Blake2b512 => "blake2b-512",
            Algorithm::Blake2b160 => "blake2b-160",
            Algorithm::Blake2b256 => "blake2b-256",
            Algorithm::Blake2b384 => "blake2b-384",
            Algorithm::Sha512_256 => "sha512/256",
        }
    }

    /// How many hexadecimal digits a digest has.
    pub fn hex_length(self) -> usize {
        match self {
            Algorithm::Md5 => 32,
            Algorithm::Sha1 | Algorithm::Blake2b160 => 40,
            Algorithm::Sha256 | Algorithm::Blake2b256 | Algorithm::Sha512_256 => 64,
            Algorithm::Blake2b384 => 96,
            Algorithm::Sha512 | Algorithm::Blake2b512 => 128,
        }
    }

    /// Whether inventories may use it for manifests and states.
    pub fn addresses_content(self) -> bool {
        matches!(self, Algorithm::Sha256 | Algorithm::Sha512)
    }

    /// Whether `text` has the form of a digest of this algorithm.
    pub fn is_digest(self, text: &str) -> bool {
        text.len() == self.hex_length() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// The digest of some bytes, in lower case.
    pub fn hex(self, bytes: &[u8]) -> String {
        let mut hasher = Hasher::new(self);
        hasher.update(bytes);
        hasher.finish()
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Algorithm, UnknownAlgorithm> {
        let known = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        known.ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

/// The name is not one of a digest algorithm known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no digest algorithm known here; use one of md5, sha1, sha256, sha512, blake2b-512"
)]
pub struct UnknownAlgorithm(pub String);

/// A digest on its way.
#[derive(Clone)]
pub struct Hasher(Inner);

#[derive(Clone)]
enum Inner {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
    Sha512_256(sha2::Sha512_256),
    Blake2b160(Blake2b<U20>),
    Blake2b256(Blake2b<U32>),
    Blake2b384(Blake2b<U48>),
    Blake2b512(Blake2b<U64>),
}

macro_rules! each {
    ($inner:expr, $hasher:ident => $then:expr) => {
        match $inner {
            Inner::Md5($hasher) => $then,
            Inner::Sha1($hasher) => $then,
            Inner::Sha256($hasher) => $then,
            Inner::Sha512($hasher) => $then,
            Inner::Sha512_256($hasher) => $then,
            Inner::Blake2b160($hasher) => $then,
            Inner::Blake2b256($hasher) => $then,
            Inner::Blake2b384($hasher) => $then,
            Inner::Blake2b512($hasher) => $then,
        }
    };
}

impl Hasher {
    pub fn new(algorithm: Algorithm) -> Hasher {
        Hasher(match algorithm {
            Algorithm::Md5 => Inner::Md5(Default::default()),
            Algorithm::Sha1 => Inner::Sha1(Default::default()),
            Algorithm::Sha256 => Inner::Sha256(Default::default()),
            Algorithm::Sha512 => Inner::Sha512(Default::default()),
            Algorithm::Sha512_256 => Inner::Sha512_256(Default::default()),
            Algorithm::Blake2b160 => Inner::Blake2b160(Default::default()),
            Algorithm::Blake2b256 => Inner::Blake2b256(Default::default()),
            Algorithm::Blake2b384 => Inner::Blake2b384(Default::default()),
            Algorithm::Blake2b512 => Inner::Blake2b512(Default::default()),
        })
    }

    pub fn update(&mut self, bytes: &[u8]) {
        each!(&mut self.0, hasher => hasher.update(bytes));
    }

    /// The digest in lower-case hexadecimal.
    pub fn finish(self) -> String {
        each!(self.0, hasher => to_hex(&hasher.finalize()))
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

/// Digests by several algorithms over the same bytes.
pub(crate) struct Hashers {
    /// SHA-256 and SHA-512, where both are asked for: together they take less time than one after
    /// the other.
    pair: Option<Box<shapair::Pair>>,
    alone: Vec<(Algorithm, Hasher)>,
}

impl Hashers {
    pub(crate) fn new(algorithms: &[Algorithm]) -> Hashers {
        let paired = [Algorithm::Sha256, Algorithm::Sha512];
        let has_pair = paired.iter().all(|algorithm| algorithms.contains(algorithm));
        let alone = algorithms.iter().filter(|a| !(has_pair && paired.contains(a)));
        Hashers {
            alone: alone.map(|algorithm| (*algorithm, Hasher::new(*algorithm))).collect(),
            pair: has_pair.then(Box::default),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(pair) = &mut self.pair {
            pair.update(bytes);
        }
        for (_, hasher) in &mut self.alone {
            hasher.update(bytes);
        }
    }

    /// The digests in lower-case hexadecimal.
    pub(crate) fn finish(self) -> BTreeMap<Algorithm, String> {
        let alone = self.alone.into_iter().map(|(algorithm, hasher)| (algorithm, hasher.finish()));
        let mut digests: BTreeMap<_, _> = alone.collect();
        if let Some(pair) = self.pair {
            let both = pair.finish();
            digests.insert(Algorithm::Sha256, to_hex(&both.sha256));
            digests.insert(Algorithm::Sha512, to_hex(&both.sha512));
        }
        digests
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(HEX[usize::from(byte >> 4)] as char);
        text.push(HEX[usize::from(byte & 15)] as char);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_nothing_are_the_known_ones() {
        assert_eq!(Algorithm::Md5.hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(Algorithm::Sha1.hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert!(Algorithm::Sha256.hex(b"").starts_with("e3b0c44298fc1c14"));
        assert!(Algorithm::Sha512.hex(b"").starts_with("cf83e1357eefb8bd"));
        assert!(Algorithm::Sha512_256.hex(b"").starts_with("c672b8d1ef56ed28"));
        assert!(Algorithm::Blake2b512.hex(b"").starts_with("786a02f742015903"));
        for algorithm in Algorithm::ALL {
            assert!(algorithm.is_digest(&algorithm.hex(b"x")), "{algorithm}");
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
        }
    }

    #[test]
    fn several_at_once_are_the_same_as_each_alone() {
        let bytes: Vec<u8> = (0..5000_u32).map(|i| ((i * i) >> 4) as u8).collect();
        let (sha256, sha512) = (Algorithm::Sha256, Algorithm::Sha512);
        for algorithms in [&[sha256][..], &[sha512], &[sha512, sha256], &Algorithm::ALL] {
            let mut hashers = Hashers::new(algorithms);
            bytes.chunks(777).for_each(|chunk| hashers.update(chunk));
            let expected = algorithms.iter().map(|a| (*a, a.hex(&bytes))).collect();
            assert_eq!(hashers.finish(), expected);
        }
    }
}
