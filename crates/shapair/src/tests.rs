//! The stitched code against published digests, and against two libraries that know nothing of it.
//!
//! The trial at first use may choose ring, for instance in a build without optimisation. So these
//! tests ask for the stitched code, wherever the processor can run it.

use crate::kernel::Stitched;
use crate::{Both, Pair};
use sha2::Digest as _;

type Begin = fn() -> Pair;

/// Every way there is on this machine.
fn ways() -> Vec<(&'static str, Begin)> {
    let mut ways: Vec<(_, Begin)> = vec![("chosen", Pair::new), ("ring", Pair::separate)];
    match Stitched::detect() {
        Some(_) => ways.push(("stitched", || Pair::stitched(Stitched::detect().unwrap()))),
        None => eprintln!("skipped: this processor cannot run the stitched code"),
    }
    ways
}

fn by_sha2(bytes: &[u8]) -> Both {
    Both { sha256: sha2::Sha256::digest(bytes).into(), sha512: sha2::Sha512::digest(bytes).into() }
}

fn by_ring(bytes: &[u8]) -> Both {
    let digest = |algorithm| ring::digest::digest(algorithm, bytes);
    Both {
        sha256: digest(&ring::digest::SHA256).as_ref().try_into().unwrap(),
        sha512: digest(&ring::digest::SHA512).as_ref().try_into().unwrap(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A generator of numbers, the same for the same seed (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 32) as u8).collect()
    }
}

/// The examples of FIPS 180-4 and its companion pages: text, SHA-256, SHA-512.
const PUBLISHED: [(&str, &str, &str); 3] = [
    (
        "",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
         47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
    ),
    (
        "abc",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ),
    (
        "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
        "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018\
         501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909",
    ),
];

#[test]
fn the_published_digests() {
    for (name, new) in ways() {
        for (text, sha256, sha512) in PUBLISHED {
            let mut pair = new();
            pair.update(text.as_bytes());
            let both = pair.finish();
            assert_eq!(hex(&both.sha256), sha256, "{name}, {text:?}");
            assert_eq!(hex(&both.sha512), sha512, "{name}, {text:?}");
        }
    }
}

#[test]
fn a_million_times_the_letter_a() {
    for (name, new) in ways() {
        let mut pair = new();
        for _ in 0..1000 {
            pair.update(&[b'a'; 1000]);
        }
        let both = pair.finish();
        assert_eq!(
            hex(&both.sha256),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
            "{name}"
        );
        assert_eq!(
            hex(&both.sha512),
            "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb\
             de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b",
            "{name}"
        );
    }
}

#[test]
fn every_length_to_a_thousand() {
    let bytes = Random::new(1).bytes(1000);
    for length in 0..=bytes.len() {
        let bytes = &bytes[..length];
        let expected = by_ring(bytes);
        assert_eq!(by_sha2(bytes), expected, "{length} bytes");
        for (name, new) in ways() {
            let mut pair = new();
            pair.update(bytes);
            assert_eq!(pair.finish(), expected, "{name}, {length} bytes");
        }
    }
}

#[test]
fn portions_of_any_size_give_the_same() {
    for seed in 1..=600 {
        let mut random = Random::new(seed);
        let length = random.below(6000);
        let bytes = random.bytes(length);
        let largest = [1, 3, 64, 129, 700, 6000][random.below(6)];
        let expected = by_sha2(&bytes);
        for (name, new) in ways() {
            let (mut pair, mut left) = (new(), &bytes[..]);
            while !left.is_empty() {
                // None at all is a portion too.
                let (portion, more) = left.split_at(random.below(largest + 1).min(left.len()));
                pair.update(portion);
                left = more;
            }
            assert_eq!(pair.finish(), expected, "{name}, seed {seed}, {length} bytes");
        }
    }
}

#[test]
fn megabytes_of_anything() {
    // Besides random bytes those that carry, or do not carry, through every addition.
    let mut random = Random::new(7);
    let inputs = [random.bytes(5_000_001), vec![0; 3_000_127], vec![0xff; 3 << 20]];
    for bytes in inputs {
        let expected = by_ring(&bytes);
        for (name, new) in ways() {
            let mut pair = new();
            bytes.chunks(128 * 1024).for_each(|chunk| pair.update(chunk));
            assert_eq!(pair.finish(), expected, "{name}, {} bytes", bytes.len());
        }
    }
}

#[test]
fn a_copy_goes_its_own_way() {
    for (name, new) in ways() {
        let mut pair = new();
        pair.update(&[1; 200]);
        let mut copy = pair.clone();
        copy.update(b"more");
        assert_eq!(pair.finish(), by_sha2(&[1; 200]), "{name}");
        assert_eq!(copy.finish(), by_sha2(&[&[1; 200][..], b"more"].concat()), "{name}");
    }
}
