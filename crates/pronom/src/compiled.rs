//! Signatures in a form that loads in milliseconds: read from XML once, kept, and checked when
//! they are loaded.

use crate::error::{Error, Result};
use crate::model::SignatureSet;
use flate2::Crc;

/// Changes whenever the stored form does; files of another version are compiled again.
const MAGIC: &[u8; 8] = b"pronom\0\x01";

impl SignatureSet {
    /// The set as bytes for [`SignatureSet::from_compiled`].
    ///
    /// # Errors
    /// None that is known; the encoder may refuse.
    pub fn to_compiled(&self) -> Result<Vec<u8>> {
        let body = postcard::to_stdvec(self).map_err(|e| Error::Compiled(e.to_string()))?;
        let mut bytes = Vec::with_capacity(body.len() + 12);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&checksum(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Loads what [`SignatureSet::to_compiled`] made.
    ///
    /// # Errors
    /// When another version of this crate made it, or it is damaged.
    pub fn from_compiled(bytes: &[u8]) -> Result<SignatureSet> {
        let fail = |message: &str| Error::Compiled(message.to_owned());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| fail("another version made them"))?;
        let (sum, body) = rest.split_first_chunk().ok_or_else(|| fail("the file is cut off"))?;
        if u32::from_le_bytes(*sum) != checksum(body) {
            return Err(fail("the checksum does not match"));
        }
        postcard::from_bytes(body).map_err(|e| Error::Compiled(e.to_string()))
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back_and_damage_is_noticed() {
        let set = SignatureSet::essential();
        let bytes = set.to_compiled().unwrap();
        assert_eq!(&SignatureSet::from_compiled(&bytes).unwrap(), set);
        for at in [0, 7, 9, 20, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(SignatureSet::from_compiled(&damaged).is_err(), "byte {at}");
        }
        assert!(SignatureSet::from_compiled(&bytes[..11]).is_err());
    }
}
