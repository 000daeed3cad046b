//! Digests, and several of them computed over one reading of the bytes.

use crate::algorithm::{Algorithm, Algorithms};
use sha2::Digest as _;
use std::fmt;
use std::io::{self, Read};

/// How much is read and hashed at a time: small enough that every algorithm finds it in the
/// cache, large enough that system calls do not count.
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// The value of a checksum.
#[derive(Clone, Copy)]
pub struct Digest {
    len: u8,
    bytes: [u8; 64],
}

impl Digest {
    /// Takes up to 64 bytes; none of the algorithms gives more.
    pub fn from_bytes(bytes: &[u8]) -> Option<Digest> {
        let mut all = [0; 64];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Digest { len: bytes.len() as u8, bytes: all })
    }

    /// Takes what an algorithm has computed, which is never more than 64 bytes.
    fn copy(bytes: &[u8]) -> Digest {
        let mut all = [0; 64];
        all[..bytes.len()].copy_from_slice(bytes);
        Digest { len: bytes.len() as u8, bytes: all }
    }

    /// Reads hexadecimal digits of either case.
    pub fn from_hex(hex: &str) -> Option<Digest> {
        let mut all = [0; 64];
        if hex.is_empty() || !hex.len().is_multiple_of(2) || hex.len() > 128 {
            return None;
        }
        for (byte, pair) in all.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(Digest { len: (hex.len() / 2) as u8, bytes: all })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Digest {}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = String::with_capacity(128);
        for byte in self.as_bytes() {
            hex.push(DIGITS[usize::from(byte >> 4)].into());
            hex.push(DIGITS[usize::from(byte & 15)].into());
        }
        f.write_str(&hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The digests of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digests(Vec<(Algorithm, Digest)>);

impl Digests {
    pub fn get(&self, algorithm: Algorithm) -> Option<Digest> {
        self.0.iter().find(|(a, _)| *a == algorithm).map(|(_, d)| *d)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Algorithm, Digest)> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<(Algorithm, Digest)> for Digests {
    fn from_iter<I: IntoIterator<Item = (Algorithm, Digest)>>(pairs: I) -> Digests {
        Digests(pairs.into_iter().collect())
    }
}

/// One running computation. SHA-256, 384 and 512 come from ring, whose assembly is the fastest
/// of the libraries measured (`docs/decisions/bagit.md`).
enum State {
    Md5(Box<md5::Md5>),
    Sha1(Box<sha1::Sha1>),
    Sha224(Box<sha2::Sha224>),
    Ring(Box<ring::digest::Context>),
    Blake2b(Box<blake2::Blake2b512>),
}

impl State {
    fn new(algorithm: Algorithm) -> State {
        let ring = |a| State::Ring(Box::new(ring::digest::Context::new(a)));
        match algorithm {
            Algorithm::Md5 => State::Md5(Box::default()),
            Algorithm::Sha1 => State::Sha1(Box::default()),
            Algorithm::Sha224 => State::Sha224(Box::default()),
            Algorithm::Sha256 => ring(&ring::digest::SHA256),
            Algorithm::Sha384 => ring(&ring::digest::SHA384),
            Algorithm::Sha512 => ring(&ring::digest::SHA512),
            Algorithm::Blake2b512 => State::Blake2b(Box::default()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            State::Md5(h) => h.update(bytes),
            State::Sha1(h) => h.update(bytes),
            State::Sha224(h) => h.update(bytes),
            State::Ring(h) => h.update(bytes),
            State::Blake2b(h) => h.update(bytes),
        }
    }

    fn finish(self) -> Digest {
        match self {
            State::Md5(h) => Digest::copy(&h.finalize()),
            State::Sha1(h) => Digest::copy(&h.finalize()),
            State::Sha224(h) => Digest::copy(&h.finalize()),
            State::Ring(h) => Digest::copy(h.finish().as_ref()),
            State::Blake2b(h) => Digest::copy(&h.finalize()),
        }
    }
}

/// Computes several digests over the same bytes.
pub struct Hasher {
    /// SHA-256 and SHA-512, where both are asked for: together they take less time than one after
    /// the other.
    pair: Option<Box<shapair::Pair>>,
    states: Vec<(Algorithm, State)>,
}

impl Hasher {
    pub fn new(algorithms: Algorithms) -> Hasher {
        let is_paired = |a| matches!(a, Algorithm::Sha256 | Algorithm::Sha512);
        let has_pair = algorithms.iter().filter(|a| is_paired(*a)).count() == 2;
        let alone = algorithms.iter().filter(|a| !(has_pair && is_paired(*a)));
        Hasher {
            states: alone.map(|a| (a, State::new(a))).collect(),
            pair: has_pair.then(Box::default),
        }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        if let Some(pair) = &mut self.pair {
            pair.update(bytes);
        }
        self.states.iter_mut().for_each(|(_, state)| state.update(bytes));
    }

    /// The digests, in the order of [`Algorithm::ALL`].
    pub fn finish(self) -> Digests {
        let alone = self.states.into_iter().map(|(a, state)| (a, state.finish()));
        let mut digests: Vec<_> = alone.collect();
        if let Some(pair) = self.pair {
            let both = pair.finish();
            digests.push((Algorithm::Sha256, Digest::copy(&both.sha256)));
            digests.push((Algorithm::Sha512, Digest::copy(&both.sha512)));
            digests.sort_unstable_by_key(|(algorithm, _)| *algorithm);
        }
        Digests(digests)
    }
}

/// Reads to the end through `buffer`, and gives the number of bytes and their digests. `progress`
/// hears of every chunk, and stops the reading by an error.
pub(crate) fn hash_reader(
    reader: &mut dyn Read,
    algorithms: Algorithms,
    buffer: &mut [u8],
    progress: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(u64, Digests)> {
    let mut hasher = Hasher::new(algorithms);
    let mut total = 0;
    loop {
        let read = match reader.read(buffer) {
            Ok(0) => return Ok((total, hasher.finish())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..read]);
        total += read as u64;
        progress(&buffer[..read])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_digests_of_abc() {
        let mut hasher = Hasher::new(Algorithm::ALL.into_iter().collect());
        hasher.update(b"ab");
        hasher.update(b"c");
        let digests = hasher.finish();
        let starts: Vec<String> =
            digests.iter().map(|(_, d)| d.to_string()[..8].to_owned()).collect();
        assert_eq!(
            starts,
            ["90015098", "a9993e36", "23097d22", "ba7816bf", "cb00753f", "ddaf35a1", "ba80a53f"]
        );
        for (algorithm, digest) in digests.iter() {
            assert_eq!(digest.as_bytes().len(), algorithm.digest_len());
            assert_eq!(Digest::from_hex(&digest.to_string().to_uppercase()), Some(digest));
        }
    }

    #[test]
    fn algorithms_do_not_disturb_each_other() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|i| ((i * i) >> 5) as u8).collect();
        let digest = |algorithms: Algorithms| {
            let mut hasher = Hasher::new(algorithms);
            bytes.chunks(999).for_each(|chunk| hasher.update(chunk));
            hasher.finish()
        };
        let alone: Digests =
            Algorithm::ALL.iter().flat_map(|a| digest([*a].into_iter().collect()).0).collect();
        for set in 0..1_u32 << Algorithm::ALL.len() {
            let wanted = || Algorithm::ALL.into_iter().filter(|a| (set >> *a as u32) & 1 == 1);
            let expected: Digests = wanted().map(|a| (a, alone.get(a).unwrap())).collect();
            assert_eq!(digest(wanted().collect()), expected);
        }
    }

    #[test]
    fn what_is_not_hexadecimal_is_no_digest() {
        for bad in ["", "a", "xy", "é0", &"0".repeat(130)] {
            assert_eq!(Digest::from_hex(bad), None, "{bad:?}");
        }
    }
}
