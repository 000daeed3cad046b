//! Running computations.

use crate::algorithm::{Algorithm, Algorithms};
use crate::value::{Digest, Digests};
use blake2::Blake2b;
use blake2::digest::consts::{U20, U32, U48};
use ring::digest::{Context, SHA256, SHA384, SHA512};
use sha2::Digest as _;
use std::fmt;

/// Computes the digest of one algorithm.
#[derive(Clone)]
pub struct SingleHasher(State);

/// The states are boxed because their sizes differ by a factor of four.
#[derive(Clone)]
enum State {
    Ring(Box<Context>),
    Md5(Box<md5::Md5>),
    Sha1(Box<sha1::Sha1>),
    Sha224(Box<sha2::Sha224>),
    Sha512_256(Box<sha2::Sha512_256>),
    Blake2b160(Box<Blake2b<U20>>),
    Blake2b256(Box<Blake2b<U32>>),
    Blake2b384(Box<Blake2b<U48>>),
    Blake2b512(Box<blake2::Blake2b512>),
}

impl SingleHasher {
    /// Starts a computation.
    pub fn new(algorithm: Algorithm) -> SingleHasher {
        let ring = |algorithm| State::Ring(Box::new(Context::new(algorithm)));
        SingleHasher(match algorithm {
            Algorithm::Md5 => State::Md5(Box::default()),
            Algorithm::Sha1 => State::Sha1(Box::default()),
            Algorithm::Sha224 => State::Sha224(Box::default()),
            Algorithm::Sha256 => ring(&SHA256),
            Algorithm::Sha384 => ring(&SHA384),
            Algorithm::Sha512 => ring(&SHA512),
            Algorithm::Sha512_256 => State::Sha512_256(Box::default()),
            Algorithm::Blake2b160 => State::Blake2b160(Box::default()),
            Algorithm::Blake2b256 => State::Blake2b256(Box::default()),
            Algorithm::Blake2b384 => State::Blake2b384(Box::default()),
            Algorithm::Blake2b512 => State::Blake2b512(Box::default()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Ring(state) => state.update(bytes),
            State::Md5(state) => state.update(bytes),
            State::Sha1(state) => state.update(bytes),
            State::Sha224(state) => state.update(bytes),
            State::Sha512_256(state) => state.update(bytes),
            State::Blake2b160(state) => state.update(bytes),
            State::Blake2b256(state) => state.update(bytes),
            State::Blake2b384(state) => state.update(bytes),
            State::Blake2b512(state) => state.update(bytes),
        }
    }

    /// Returns the digest.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Ring(state) => Digest::computed(state.finish().as_ref()),
            State::Md5(state) => Digest::computed(&state.finalize()),
            State::Sha1(state) => Digest::computed(&state.finalize()),
            State::Sha224(state) => Digest::computed(&state.finalize()),
            State::Sha512_256(state) => Digest::computed(&state.finalize()),
            State::Blake2b160(state) => Digest::computed(&state.finalize()),
            State::Blake2b256(state) => Digest::computed(&state.finalize()),
            State::Blake2b384(state) => Digest::computed(&state.finalize()),
            State::Blake2b512(state) => Digest::computed(&state.finalize()),
        }
    }
}

impl fmt::Debug for SingleHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleHasher")
    }
}

/// Computes the digests of a set of algorithms over the same bytes. Portions of up to about 128 KiB
/// are the fastest: every algorithm finds them in the processor's cache.
#[derive(Debug, Clone)]
pub struct Hasher(Vec<(Algorithm, SingleHasher)>);

impl Hasher {
    /// Starts a computation.
    pub fn new(algorithms: Algorithms) -> Hasher {
        let algorithms = algorithms.iter();
        Hasher(algorithms.map(|algorithm| (algorithm, SingleHasher::new(algorithm))).collect())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.iter_mut().for_each(|(_, hasher)| hasher.update(bytes));
    }

    /// Returns the digests, in the order of [`Algorithm::ALL`].
    pub fn finish(self) -> Digests {
        self.0.into_iter().map(|(algorithm, hasher)| (algorithm, hasher.finish())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_digests_of_abc() {
        let mut hasher = Hasher::new(Algorithm::ALL.into_iter().collect::<Algorithms>());
        hasher.update(b"ab");
        hasher.update(b"c");
        let digests = hasher.finish();
        let starts: Vec<String> =
            digests.iter().map(|(_, d)| d.to_string()[..8].to_owned()).collect();
        assert_eq!(
            starts,
            [
                "90015098", "a9993e36", "23097d22", "ba7816bf", "cb00753f", "ddaf35a1", "53048e26",
                "384264f6", "bddd813c", "6f56a82c", "ba80a53f"
            ]
        );
        for (algorithm, digest) in digests.iter() {
            assert_eq!(digest.as_bytes().len(), algorithm.digest_len());
            assert!(algorithm.is_digest(&digest.to_string()));
            assert_eq!(Digest::from_hex(&digest.to_string().to_uppercase()), Some(digest));
        }
    }

    #[test]
    fn the_published_digests_of_nothing() {
        let starts = |algorithm: Algorithm, start: &str| {
            assert!(algorithm.hex(b"").starts_with(start), "{algorithm}");
        };
        starts(Algorithm::Md5, "d41d8cd98f00b204e9800998ecf8427e");
        starts(Algorithm::Sha1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        starts(Algorithm::Sha256, "e3b0c44298fc1c14");
        starts(Algorithm::Sha512, "cf83e1357eefb8bd");
        starts(Algorithm::Sha512_256, "c672b8d1ef56ed28");
        starts(Algorithm::Blake2b512, "786a02f742015903");
    }

    #[test]
    fn algorithms_do_not_disturb_each_other() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|i| ((i * i) >> 5) as u8).collect();
        let alone: Digests = Algorithm::ALL.iter().map(|a| (*a, a.digest(&bytes))).collect();
        for set in 0..1_u32 << Algorithm::ALL.len() {
            let wanted = || Algorithm::ALL.into_iter().filter(|a| (set >> *a as u32) & 1 == 1);
            let mut hasher = Hasher::new(wanted().collect::<Algorithms>());
            bytes.chunks(999).for_each(|chunk| hasher.update(chunk));
            let expected: Digests = wanted().map(|a| (a, alone.get(a).unwrap())).collect();
            assert_eq!(hasher.finish(), expected);
        }
    }

    // The two libraries compute SHA-256 and SHA-512 independently of each other.
    #[test]
    fn ring_and_rustcrypto_agree_at_every_length() {
        let bytes: Vec<u8> =
            (0..1000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for length in 0..bytes.len() {
            let part = &bytes[..length];
            assert_eq!(Algorithm::Sha256.digest(part).as_bytes(), &sha2::Sha256::digest(part)[..]);
            assert_eq!(Algorithm::Sha384.digest(part).as_bytes(), &sha2::Sha384::digest(part)[..]);
            assert_eq!(Algorithm::Sha512.digest(part).as_bytes(), &sha2::Sha512::digest(part)[..]);
        }
    }
}
