#![doc = include_str!("../README.md")]

mod algorithm;
mod hasher;
mod hex;
mod sha256;
mod value;

pub use algorithm::{Algorithm, Algorithms, UnknownAlgorithm};
pub use hasher::{Hasher, SingleHasher};
pub use hex::to_hex;
pub use sha256::{Sha256, hmac_sha256, verify_hmac_sha256};
pub use value::{Digest, Digests};
