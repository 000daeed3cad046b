//! Many strings in little memory: each distinct one is kept once, and is a number from then on.

use hashbrown::HashTable;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Distinct byte strings, numbered from zero in the order they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    /// Where each string ends; it starts where the one before ends.
    ends: Vec<u32>,
    table: HashTable<u32>,
    hasher: RandomState,
}

/// What one string costs beside its bytes: its end, and its place in a table that is half full.
const OVERHEAD_BYTES: u64 = 4 + 10;

impl Interner {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// About how much memory this takes.
    pub(crate) fn memory(&self) -> u64 {
        self.bytes.len() as u64 + self.ends.len() as u64 * OVERHEAD_BYTES
    }

    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.bytes[start..self.ends[number] as usize]
    }

    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.table.find(hash, |number| self.get(*number) == text).copied()
    }

    /// The number of `text`, which is kept if it is new; `None` when four gibibytes are full.
    pub(crate) fn add(&mut self, text: &[u8]) -> Option<u32> {
        if let Some(number) = self.find(text) {
            return Some(number);
        }
        let end = u32::try_from(self.bytes.len() + text.len()).ok()?;
        let number = u32::try_from(self.ends.len()).ok()?;
        self.bytes.extend_from_slice(text);
        self.ends.push(end);
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        let hash_of = |number: &u32| {
            let number = *number as usize;
            let start = if number == 0 { 0 } else { ends[number - 1] as usize };
            hasher.hash_one(&bytes[start..ends[number] as usize])
        };
        self.table.insert_unique(hasher.hash_one(text), number, hash_of);
        Some(number)
    }
}

/// Paths, which are text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paths(Interner);

impl Paths {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn memory(&self) -> u64 {
        self.0.memory()
    }

    pub(crate) fn bytes(&self, number: u32) -> &[u8] {
        self.0.get(number)
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        // Only `add` puts bytes in, and it puts in whole strings.
        std::str::from_utf8(self.0.get(number)).unwrap_or_default()
    }

    pub(crate) fn find(&self, path: &str) -> Option<u32> {
        self.0.find(path.as_bytes())
    }

    pub(crate) fn add(&mut self, path: &str) -> Option<u32> {
        self.0.add(path.as_bytes())
    }
}

/// Digests. Lower-case hexadecimal, which nearly all are, takes half a byte a digit; any other
/// text is kept as it is, because the specification compares digests in manifests by case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digests {
    packed: Interner,
    /// The digests that are not in lower case, by what they would be there.
    by_lower_case: HashMap<String, u32>,
}

const PACKED: u8 = 0;
const TEXT: u8 = 1;

impl Digests {
    pub(crate) fn len(&self) -> usize {
        self.packed.len()
    }

    pub(crate) fn memory(&self) -> u64 {
        // A string, its number, and its place in a table; digests of text are about this long.
        const UNPACKED_BYTES: u64 = 200;
        self.packed.memory() + self.by_lower_case.len() as u64 * UNPACKED_BYTES
    }

    /// Whether some digest is not in lower case.
    pub(crate) fn any_unpacked(&self) -> bool {
        !self.by_lower_case.is_empty()
    }

    pub(crate) fn is_packed(&self, number: u32) -> bool {
        self.packed.get(number)[0] == PACKED
    }

    pub(crate) fn get(&self, number: u32) -> String {
        let kept = self.packed.get(number);
        match kept[0] {
            PACKED => digest::to_hex(&kept[1..]),
            _ => String::from_utf8_lossy(&kept[1..]).into_owned(),
        }
    }

    /// Something to order digests by: the text's own order where all are lower case.
    pub(crate) fn key(&self, number: u32) -> &[u8] {
        self.packed.get(number)
    }

    pub(crate) fn find(&self, digest: &str) -> Option<u32> {
        self.packed.find(&pack(digest))
    }

    /// Finds a digest whatever its case.
    pub(crate) fn find_any_case(&self, digest: &str) -> Option<u32> {
        let lower = digest.to_ascii_lowercase();
        self.find(&lower).or_else(|| self.by_lower_case.get(&lower).copied())
    }

    pub(crate) fn add(&mut self, digest: &str) -> Option<u32> {
        let packed = pack(digest);
        let number = self.packed.add(&packed)?;
        if packed[0] == TEXT {
            self.by_lower_case.entry(digest.to_ascii_lowercase()).or_insert(number);
        }
        Some(number)
    }
}

fn pack(digest: &str) -> Vec<u8> {
    let digits = digest.as_bytes();
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut packed = Vec::with_capacity(1 + digits.len());
    packed.push(PACKED);
    let pairs = digits.chunks_exact(2);
    let even = pairs.remainder().is_empty();
    let bytes = pairs.map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?));
    for byte in bytes {
        match byte {
            Some(byte) if even => packed.push(byte),
            _ => {
                packed.clear();
                packed.push(TEXT);
                packed.extend_from_slice(digits);
                return packed;
            }
        }
    }
    if !even {
        packed.clear();
        packed.push(TEXT);
        packed.extend_from_slice(digits);
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_number() {
        let mut interner = Interner::default();
        assert_eq!(interner.add(b"a"), Some(0));
        assert_eq!(interner.add(b""), Some(1));
        assert_eq!(interner.add(b"a"), Some(0));
        assert_eq!(interner.get(1), b"");
        assert_eq!(interner.find(b"b"), None);
        for n in 0..10_000 {
            interner.add(format!("{n}").as_bytes());
        }
        assert_eq!(interner.len(), 10_002);
        assert_eq!(interner.get(interner.find(b"777").unwrap()), b"777");
    }

    #[test]
    fn digests_keep_their_text() {
        let mut digests = Digests::default();
        for text in ["00ff", "00FF", "0", "", "xyz", "0f0", "zz"] {
            let number = digests.add(text).unwrap();
            assert_eq!(digests.get(number), text);
            assert_eq!(digests.find(text), Some(number));
        }
        assert_ne!(digests.find("00ff"), digests.find("00FF"));
        assert_eq!(digests.find_any_case("00Ff"), digests.find("00ff"));
        assert_eq!(digests.find_any_case("XyZ"), digests.find("xyz"));
        assert_eq!(digests.find_any_case("abcd"), None);
    }
}
