//! Byte patterns of a fixed length: what one fragment of a signature looks for.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A set of byte values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    pub fn all() -> ByteSet {
        ByteSet([u64::MAX; 4])
    }

    pub fn from_fn(mut wanted: impl FnMut(u8) -> bool) -> ByteSet {
        let mut set = ByteSet::default();
        for byte in 0..=255u8 {
            if wanted(byte) {
                set.insert(byte);
            }
        }
        set
    }

    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }

    pub fn inverted(self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }

    pub fn union(self, other: ByteSet) -> ByteSet {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
        ByteSet(words)
    }

    fn only(&self) -> Option<u8> {
        let count: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        if count != 1 {
            return None;
        }
        (0..=255u8).find(|byte| self.contains(*byte))
    }
}

/// A run of bytes within a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// One byte out of a set.
    Set(ByteSet),
    /// As many bytes as these, but not these.
    Not(Vec<u8>),
    /// Bytes that sort between two others, both included. `backwards` when the text that is
    /// searched was reversed, because order is about the bytes as they stand in the file.
    Between { low: Vec<u8>, high: Vec<u8>, backwards: bool },
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Part::Bytes(bytes) | Part::Not(bytes) => bytes.len(),
            Part::Set(_) => 1,
            Part::Between { low, .. } => low.len(),
        }
    }

    /// Whether `text`, which is as long as the part, fits it.
    fn fits(&self, text: &[u8]) -> bool {
        match self {
            Part::Bytes(bytes) => text == bytes,
            Part::Set(set) => text.first().is_some_and(|byte| set.contains(*byte)),
            Part::Not(bytes) => text != bytes,
            Part::Between { low, high, backwards } => {
                order(text, low, *backwards) != Ordering::Less
                    && order(text, high, *backwards) != Ordering::Greater
            }
        }
    }

    fn reversed(self) -> Part {
        let turn = |mut bytes: Vec<u8>| {
            bytes.reverse();
            bytes
        };
        match self {
            Part::Bytes(bytes) => Part::Bytes(turn(bytes)),
            Part::Set(set) => Part::Set(set),
            Part::Not(bytes) => Part::Not(turn(bytes)),
            Part::Between { low, high, backwards } => {
                Part::Between { low, high, backwards: !backwards }
            }
        }
    }
}

fn order(text: &[u8], bound: &[u8], backwards: bool) -> Ordering {
    if backwards { text.iter().rev().cmp(bound.iter()) } else { text.cmp(bound) }
}

/// A pattern of a fixed length. What is stored is checked when it is loaded, so that a damaged
/// store cannot make length, needle and parts disagree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    len: usize,
    /// The most telling literal and where it stands in the pattern: what a search looks for first.
    needle: Option<(usize, usize)>,
}

/// A pattern as it is stored: its parts, and which of them is the needle.
type Stored = (Vec<Part>, Option<u32>);

impl From<Stored> for Pattern {
    fn from((parts, needle): Stored) -> Pattern {
        let (mut len, mut place) = (0, None);
        for (index, part) in parts.iter().enumerate() {
            if needle.is_some_and(|needle| needle as usize == index) {
                place = Some((len, index));
            }
            len += part.len();
        }
        Pattern { parts, len, needle: place }
    }
}

impl From<Pattern> for Stored {
    fn from(pattern: Pattern) -> Stored {
        let needle = pattern.needle.and_then(|(_, index)| u32::try_from(index).ok());
        (pattern.parts, needle)
    }
}

impl Pattern {
    #[cfg(test)]
    pub fn literal(bytes: &[u8]) -> Pattern {
        let mut pattern = Pattern::default();
        pattern.push(Part::Bytes(bytes.to_vec()));
        pattern
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a part; neighbouring literals become one, so that comparisons are long.
    pub fn push(&mut self, part: Part) {
        let part = match part {
            Part::Set(set) => set.only().map_or(Part::Set(set), |byte| Part::Bytes(vec![byte])),
            other => other,
        };
        self.len += part.len();
        match (self.parts.last_mut(), part) {
            (Some(Part::Bytes(last)), Part::Bytes(more)) => last.extend(more),
            (_, part) => self.parts.push(part),
        }
        self.needle = self.best_needle();
    }

    pub fn reversed(self) -> Pattern {
        let mut turned = Pattern::default();
        self.parts.into_iter().rev().for_each(|part| turned.push(part.reversed()));
        turned
    }

    /// The set of bytes the pattern allows, if it is one byte long.
    pub fn as_set(&self) -> Option<ByteSet> {
        match (self.len, self.parts.first()?) {
            (1, part) => Some(ByteSet::from_fn(|byte| part.fits(&[byte]))),
            _ => None,
        }
    }

    /// Whether the pattern stands at `at` in `text`.
    pub fn fits_at(&self, text: &[u8], at: usize) -> bool {
        let Some(mut rest) = text.get(at..).filter(|rest| rest.len() >= self.len) else {
            return false;
        };
        for part in &self.parts {
            let (now, later) = rest.split_at(part.len());
            if !part.fits(now) {
                return false;
            }
            rest = later;
        }
        true
    }

    /// The most telling literal in the pattern and its offset there.
    pub fn needle(&self) -> Option<(usize, &[u8])> {
        let (offset, index) = self.needle?;
        match self.parts.get(index)? {
            Part::Bytes(bytes) => Some((offset, bytes)),
            _ => None,
        }
    }

    fn best_needle(&self) -> Option<(usize, usize)> {
        let mut best: Option<(usize, (usize, usize))> = None;
        let mut offset = 0;
        for (index, part) in self.parts.iter().enumerate() {
            if let Part::Bytes(bytes) = part {
                let score = telling(bytes);
                if best.is_none_or(|(other, _)| score > other) {
                    best = Some((score, (offset, index)));
                }
            }
            offset += part.len();
        }
        best.map(|(_, place)| place)
    }

    /// The first up to eight bytes as a word and a mask of the bytes that are certain.
    pub fn prefix(&self) -> (u64, u64) {
        let (mut value, mut mask) = ([0u8; 8], [0u8; 8]);
        let mut at = 0;
        for part in &self.parts {
            if let Part::Bytes(bytes) = part {
                for (i, byte) in bytes.iter().enumerate().take_while(|(i, _)| at + i < 8) {
                    value[at + i] = *byte;
                    mask[at + i] = 0xff;
                }
            }
            at += part.len();
            if at >= 8 {
                break;
            }
        }
        (u64::from_le_bytes(value), u64::from_le_bytes(mask))
    }

    /// How telling the bytes are that are certain among the first eight.
    pub fn prefix_telling(&self) -> usize {
        let (value, mask) = self.prefix();
        let (value, mask) = (value.to_le_bytes(), mask.to_le_bytes());
        let mut known = [0u8; 8];
        let mut count = 0;
        for (byte, _) in value.iter().zip(mask).filter(|(_, mask)| *mask != 0) {
            known[count] = *byte;
            count += 1;
        }
        telling(&known[..count])
    }

    /// Any text that fits the pattern.
    #[cfg(test)]
    pub fn example(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len);
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => text.extend(bytes),
                Part::Set(set) => text.extend((0..=255u8).find(|byte| set.contains(*byte))),
                Part::Not(bytes) => text.extend(bytes.iter().map(|byte| !byte)),
                Part::Between { low, backwards: false, .. } => text.extend(low),
                Part::Between { low, .. } => text.extend(low.iter().rev()),
            }
        }
        text
    }
}

/// How much a literal narrows a search: bytes that are everywhere count little.
pub(crate) fn telling(bytes: &[u8]) -> usize {
    let mut seen = ByteSet::default();
    let mut score = 0;
    for byte in bytes.iter().take(16) {
        let common = matches!(byte, 0 | 0xff | b' ' | b'\n' | b'\r' | b'e' | b't' | b'a');
        score += match (seen.contains(*byte), common) {
            (false, false) => 8,
            (false, true) => 4,
            (true, _) => 2,
        };
        seen.insert(*byte);
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fit_where_they_should() {
        let mut pattern = Pattern::literal(b"ab");
        pattern.push(Part::Set(ByteSet::from_fn(|b| b.is_ascii_digit())));
        pattern.push(Part::Not(b"xy".to_vec()));
        assert!(pattern.fits_at(b"-ab7xz", 1));
        assert!(!pattern.fits_at(b"-ab7xy", 1), "the forbidden bytes");
        assert!(!pattern.fits_at(b"-ab7x", 1), "too short");
        assert!(!pattern.fits_at(b"", usize::MAX));
    }

    #[test]
    fn order_is_that_of_the_file_also_backwards() {
        let mut pattern = Pattern::default();
        let (low, high) = (vec![0x00, 0x10], vec![0x10, 0x00]);
        pattern.push(Part::Between { low, high, backwards: false });
        assert!(pattern.fits_at(&[0x01, 0xff], 0));
        assert!(!pattern.fits_at(&[0x10, 0x01], 0));
        let turned = pattern.reversed();
        assert!(turned.fits_at(&[0xff, 0x01], 0));
        assert!(!turned.fits_at(&[0x01, 0x10], 0));
    }

    #[test]
    fn the_needle_is_the_telling_part() {
        let mut pattern = Pattern::literal(&[0, 0, 0, 0]);
        pattern.push(Part::Set(ByteSet::all()));
        pattern.push(Part::Bytes(b"WAVE".to_vec()));
        assert_eq!(pattern.needle(), Some((5, &b"WAVE"[..])));
        assert!(pattern.fits_at(&pattern.example(), 0));
    }
}
