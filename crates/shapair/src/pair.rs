//! The running computation: bytes in any portions become blocks, and the end is padded.

use crate::constants::{START256, START512};
use crate::kernel::{Stitched, chosen};
use ring::digest::{Context, SHA256, SHA512};
use sha2::block_api::{compress256, compress512};

/// Both digests of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Both {
    pub sha256: [u8; 32],
    pub sha512: [u8; 64],
}

impl Both {
    /// Both digests of bytes that are in memory.
    pub fn of(bytes: &[u8]) -> Both {
        let mut pair = Pair::new();
        pair.update(bytes);
        pair.finish()
    }
}

/// SHA-256 and SHA-512 of the same bytes, on their way.
#[derive(Clone)]
pub struct Pair(Inner);

#[derive(Clone)]
enum Inner {
    Separate(Context, Context),
    Stitched(Blocks),
}

impl Pair {
    /// Goes the way that is the fastest here.
    pub fn new() -> Pair {
        match chosen() {
            Some(stitched) => Pair::stitched(stitched),
            None => Pair::separate(),
        }
    }

    pub(crate) fn stitched(stitched: Stitched) -> Pair {
        Pair(Inner::Stitched(Blocks::new(stitched)))
    }

    pub(crate) fn separate() -> Pair {
        Pair(Inner::Separate(Context::new(&SHA256), Context::new(&SHA512)))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Separate(sha256, sha512) => {
                sha256.update(bytes);
                sha512.update(bytes);
            }
            Inner::Stitched(blocks) => blocks.update(bytes),
        }
    }

    pub fn finish(self) -> Both {
        match self.0 {
            Inner::Separate(sha256, sha512) => {
                let mut both = Both { sha256: [0; 32], sha512: [0; 64] };
                both.sha256.copy_from_slice(sha256.finish().as_ref());
                both.sha512.copy_from_slice(sha512.finish().as_ref());
                both
            }
            Inner::Stitched(blocks) => blocks.finish(),
        }
    }
}

impl Default for Pair {
    fn default() -> Pair {
        Pair::new()
    }
}

/// The states after all whole blocks of 128 bytes, and the bytes since.
#[derive(Clone)]
struct Blocks {
    stitched: Stitched,
    state256: [u32; 8],
    state512: [u64; 8],
    rest: [u8; 128],
    /// How many bytes of `rest` count; always fewer than all.
    rest_bytes: usize,
    total_bytes: u64,
}

impl Blocks {
    fn new(stitched: Stitched) -> Blocks {
        let (state256, state512) = (START256, START512);
        Blocks { stitched, state256, state512, rest: [0; 128], rest_bytes: 0, total_bytes: 0 }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        if self.rest_bytes > 0 {
            let taken = bytes.len().min(128 - self.rest_bytes);
            let (fill, more) = bytes.split_at(taken);
            self.rest[self.rest_bytes..][..taken].copy_from_slice(fill);
            self.rest_bytes += taken;
            if self.rest_bytes < 128 {
                return;
            }
            self.stitched.compress(&mut self.state256, &mut self.state512, &[self.rest]);
            bytes = more;
        }
        let (blocks, rest) = bytes.as_chunks();
        self.stitched.compress(&mut self.state256, &mut self.state512, blocks);
        self.rest[..rest.len()].copy_from_slice(rest);
        self.rest_bytes = rest.len();
    }

    /// The ends of the two differ, because their blocks do, so each goes alone.
    fn finish(mut self) -> Both {
        let rest = &self.rest[..self.rest_bytes];
        let bits = u128::from(self.total_bytes) * 8;

        // SHA-256 counts the bits in 64 bits, and is not defined beyond.
        let (padded, used) = pad(rest, 64, &(bits as u64).to_be_bytes());
        compress256(&mut self.state256, padded[..used].as_chunks().0);
        let (padded, used) = pad(rest, 128, &bits.to_be_bytes());
        compress512(&mut self.state512, padded[..used].as_chunks().0);

        let mut both = Both { sha256: [0; 32], sha512: [0; 64] };
        for (bytes, word) in both.sha256.as_chunks_mut().0.iter_mut().zip(self.state256) {
            *bytes = word.to_be_bytes();
        }
        for (bytes, word) in both.sha512.as_chunks_mut().0.iter_mut().zip(self.state512) {
            *bytes = word.to_be_bytes();
        }
        both
    }
}

/// The last bytes, a one, zeros to the end of a block, and there the length. Fewer than 128 bytes
/// and at most 16 of length fit into two of the larger blocks.
fn pad(rest: &[u8], block_bytes: usize, length: &[u8]) -> ([u8; 256], usize) {
    let mut padded = [0; 256];
    padded[..rest.len()].copy_from_slice(rest);
    padded[rest.len()] = 0x80;
    let used = (rest.len() + 1 + length.len()).next_multiple_of(block_bytes);
    padded[used - length.len()..used].copy_from_slice(length);
    (padded, used)
}
