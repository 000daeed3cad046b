//! SHA-256 with a result of known length, and message authentication with it.

use ring::{digest, hmac};
use std::fmt;

/// Computes SHA-256 as an array of 32 bytes.
#[derive(Clone)]
pub struct Sha256(digest::Context);

impl Sha256 {
    /// Starts a computation.
    pub fn new() -> Sha256 {
        Sha256(digest::Context::new(&digest::SHA256))
    }

    /// Computes the digest of bytes that are in memory.
    pub fn of(bytes: &[u8]) -> [u8; 32] {
        array(digest::digest(&digest::SHA256, bytes).as_ref())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest.
    pub fn finish(self) -> [u8; 32] {
        array(self.0.finish().as_ref())
    }
}

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256::new()
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sha256")
    }
}

/// Computes the HMAC-SHA-256 tag (RFC 2104) of a message, with a key of any length.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    array(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref())
}

/// Tells whether `tag` is the HMAC-SHA-256 tag of a message; compares in constant time.
pub fn verify_hmac_sha256(key: &[u8], message: &[u8], tag: &[u8]) -> bool {
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), message, tag).is_ok()
}

fn array(bytes: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::to_hex;

    #[test]
    fn the_published_digest_of_abc() {
        let published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let mut hasher = Sha256::new();
        hasher.update(b"ab");
        hasher.update(b"c");
        assert_eq!(to_hex(&hasher.finish()), published);
        assert_eq!(to_hex(&Sha256::of(b"abc")), published);
    }

    // RFC 4231, test cases 2 and 6 (a key longer than a block).
    #[test]
    fn the_published_tags() {
        let message = b"what do ya want for nothing?";
        let tag = hmac_sha256(b"Jefe", message);
        let published = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(to_hex(&tag), published);
        assert!(verify_hmac_sha256(b"Jefe", message, &tag));
        let mut wrong = tag;
        wrong[31] ^= 1;
        assert!(!verify_hmac_sha256(b"Jefe", message, &wrong));
        assert!(!verify_hmac_sha256(b"Jefe", message, &tag[..31]));

        let message = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let published = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(to_hex(&hmac_sha256(&[0xaa; 131], message)), published);
    }
}
