//! The values that algorithms compute.

use crate::algorithm::Algorithm;
use crate::hex;
use std::fmt;

/// The value of a digest: up to 64 bytes. Prints as lower-case hexadecimal.
#[derive(Clone, Copy)]
pub struct Digest {
    len: u8,
    bytes: [u8; 64],
}

impl Digest {
    /// Makes a digest of up to 64 bytes; no algorithm gives more.
    pub fn from_bytes(bytes: &[u8]) -> Option<Digest> {
        (bytes.len() <= 64).then(|| Digest::computed(bytes))
    }

    /// Copies what an algorithm has computed, which is never more than 64 bytes.
    pub(crate) fn computed(bytes: &[u8]) -> Digest {
        let mut all = [0; 64];
        all[..bytes.len()].copy_from_slice(bytes);
        Digest { len: bytes.len() as u8, bytes: all }
    }

    /// Reads hexadecimal digits of either case.
    pub fn from_hex(text: &str) -> Option<Digest> {
        let mut bytes = [0; 64];
        let length = hex::read_into(text, &mut bytes)?;
        Some(Digest { len: length as u8, bytes })
    }

    /// Returns the bytes of the value.
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
        f.write_str(&hex::to_hex(self.as_bytes()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The digests of the same bytes by several algorithms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digests(Vec<(Algorithm, Digest)>);

impl Digests {
    /// Returns the digest by `algorithm`, if it was computed.
    pub fn get(&self, algorithm: Algorithm) -> Option<Digest> {
        self.0.iter().find(|(a, _)| *a == algorithm).map(|(_, digest)| *digest)
    }

    /// Returns the digest by `algorithm` in lower-case hexadecimal, if it was computed.
    pub fn hex(&self, algorithm: Algorithm) -> Option<String> {
        self.get(algorithm).map(|digest| digest.to_string())
    }

    /// Lists the digests in the order of [`Algorithm::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Algorithm, Digest)> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<(Algorithm, Digest)> for Digests {
    fn from_iter<I: IntoIterator<Item = (Algorithm, Digest)>>(pairs: I) -> Digests {
        Digests(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_of_either_case_is_read() {
        let digest = Digest::from_bytes(&[0xba, 0x78, 0x00]).unwrap();
        assert_eq!(digest.to_string(), "ba7800");
        assert_eq!(Digest::from_hex("BA7800"), Some(digest));
        assert_eq!(Digest::from_bytes(&[0; 65]), None);
    }

    #[test]
    fn other_text_is_refused() {
        for bad in ["", "a", "xy", "é0", &"0".repeat(130)] {
            assert_eq!(Digest::from_hex(bad), None, "{bad:?}");
        }
    }
}
