//! How an object is cut into parts, and the digest that S3 keeps for one that was.

use crate::checksum::{Digest, Sha256Digest, Sha256Hasher};

/// After so many parts the size of a part doubles, so that a stream of unknown length may grow
/// large within the 10,000 parts that S3 allows, while small ones stay small.
const PARTS_OF_A_SIZE: u64 = 2500;
pub(super) const PARTS_MAX: u64 = 10_000;

/// The size of a part, counted from 0.
pub(super) fn part_bytes(base: u64, index: u64) -> u64 {
    base << (index.min(PARTS_MAX - 1) / PARTS_OF_A_SIZE)
}

/// The least size of the first parts, but not below `least`, that lets `length` bytes fit.
pub(super) fn base_for(length: u64, least: u64) -> u64 {
    const MIB: u64 = 1024 * 1024;
    // 2500 parts each of 1, 2, 4 and 8 times the base.
    let needed = length.div_ceil(PARTS_OF_A_SIZE * 15);
    if needed <= least { least } else { needed.div_ceil(MIB) * MIB }
}

/// Hashes a stream part by part, as S3 does.
pub(super) struct PartsHasher {
    base: u64,
    parts: u64,
    left: u64,
    part: Sha256Hasher,
    all: Sha256Hasher,
}

impl PartsHasher {
    pub(super) fn new(base: u64) -> PartsHasher {
        let (part, all) = (Sha256Hasher::new(), Sha256Hasher::new());
        PartsHasher { base, parts: 0, left: part_bytes(base, 0), part, all }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.part.update(&bytes[..count]);
            bytes = &bytes[count..];
            self.left -= count as u64;
            if self.left == 0 {
                self.end_part();
            }
        }
    }

    fn end_part(&mut self) {
        let digest = std::mem::take(&mut self.part).finish();
        self.all.update(&digest.0);
        self.parts += 1;
        self.left = part_bytes(self.base, self.parts);
    }

    pub(super) fn finish(mut self) -> Digest {
        if self.left < part_bytes(self.base, self.parts) || self.parts == 0 {
            self.end_part();
        }
        let parts = u32::try_from(self.parts).unwrap_or(u32::MAX);
        Digest::Sha256OfParts { digest: self.all.finish(), parts }
    }
}

/// The digest of an object from those of its parts.
pub(super) fn digest_of_parts(digests: impl Iterator<Item = Sha256Digest>) -> Digest {
    let mut all = Sha256Hasher::new();
    let mut parts = 0;
    for digest in digests {
        all.update(&digest.0);
        parts += 1;
    }
    Digest::Sha256OfParts { digest: all.finish(), parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_tebibytes_fit_into_ten_thousand_parts() {
        const TIB: u64 = 1 << 40;
        for length in [0, 1, 600 << 30, TIB, 5 * TIB] {
            let base = base_for(length, 16 << 20);
            let capacity: u64 = (0..PARTS_MAX).map(|index| part_bytes(base, index)).sum();
            assert!(capacity >= length, "{length}");
            assert!(part_bytes(base, PARTS_MAX - 1) <= 5 << 30);
        }
        assert_eq!(base_for(TIB / 2, 16 << 20), 16 << 20);
    }

    #[test]
    fn hashing_a_stream_is_hashing_its_parts() {
        let content: Vec<u8> = (0..1000_u32).map(|n| n as u8).collect();
        for length in [0, 1, 99, 100, 101, 300, 1000] {
            let content = &content[..length];
            let mut hasher = PartsHasher::new(100);
            content.chunks(37).for_each(|chunk| hasher.update(chunk));
            let expected = match length {
                0 => digest_of_parts(std::iter::once(Sha256Digest::of(b""))),
                _ => digest_of_parts(content.chunks(100).map(Sha256Digest::of)),
            };
            assert_eq!(hasher.finish(), expected, "{length}");
        }
    }
}
