//! Which of many literals occur in a text: one pass that looks at each word of four bytes (and of
//! two, for literals shorter than four), and at more only where a bitmap of a few kilobytes says
//! that it could be worth it.
//!
//! Beside an automaton this needs next to no time to build and no memory to speak of, which is
//! what counts when most files are a few kilobytes long and match nothing.

use crate::pattern::telling;
use std::collections::HashMap;

/// Shorter literals cannot be searched for.
pub(crate) const LITERAL_BYTES_MIN: usize = 2;
const WORD: usize = 4;

/// A literal, what it is called, and where in it the word stands that it is found by.
#[derive(Debug)]
struct Entry {
    literal: Vec<u8>,
    offset: usize,
    id: u32,
}

/// A set of literals to search for together.
#[derive(Debug)]
pub(crate) struct Search {
    words: Bitmap,
    pairs: Bitmap,
    by_word: HashMap<u32, Vec<Entry>>,
    by_pair: HashMap<u16, Vec<Entry>>,
    ids: u32,
}

/// One bit for each value of sixteen bits.
#[derive(Debug)]
struct Bitmap(Box<[u64; 1024]>);

impl Bitmap {
    fn new() -> Bitmap {
        Bitmap(Box::new([0; 1024]))
    }

    fn insert(&mut self, value: u16) {
        self.0[usize::from(value >> 6)] |= 1 << (value & 63);
    }

    fn contains(&self, value: u16) -> bool {
        self.0[usize::from(value >> 6)] & (1 << (value & 63)) != 0
    }
}

/// Sixteen bits that depend on all of a word.
fn hash(word: u32) -> u16 {
    (word.wrapping_mul(0x9e37_79b1) >> 16) as u16
}

impl Search {
    /// Literals with the numbers they are called by, which should be small. Those that are too
    /// short are left out; see [`LITERAL_BYTES_MIN`].
    pub fn new<'l>(literals: impl IntoIterator<Item = (&'l [u8], u32)>) -> Search {
        let mut search = Search {
            words: Bitmap::new(),
            pairs: Bitmap::new(),
            by_word: HashMap::new(),
            by_pair: HashMap::new(),
            ids: 0,
        };
        for (literal, id) in literals {
            search.ids = search.ids.max(id + 1);
            let size = if literal.len() >= WORD { WORD } else { LITERAL_BYTES_MIN };
            let Some((offset, part)) =
                literal.windows(size).enumerate().max_by_key(|(_, part)| telling(part))
            else {
                continue;
            };
            let entry = Entry { literal: literal.to_vec(), offset, id };
            if let Ok(word) = part.try_into().map(u32::from_le_bytes) {
                search.words.insert(hash(word));
                search.by_word.entry(word).or_default().push(entry);
            } else if let Ok(pair) = part.try_into().map(u16::from_le_bytes) {
                search.pairs.insert(pair);
                search.by_pair.entry(pair).or_default().push(entry);
            }
        }
        search
    }

    /// The next place where the bitmaps say that something could begin, and the word there. This
    /// loop sees every byte of every file, and is kept apart so that it stays in registers.
    #[inline(never)]
    fn next(&self, text: &[u8], from: usize) -> Option<(usize, u32)> {
        let (words, pairs) = (&self.words, &self.pairs);
        let mut rest = text.get(from..)?;
        while let Some(word) = rest.first_chunk::<WORD>() {
            let word = u32::from_le_bytes(*word);
            if words.contains(hash(word)) | pairs.contains(word as u16) {
                return Some((text.len() - rest.len(), word));
            }
            rest = &rest[1..];
        }
        None
    }

    /// Calls `found` once for each number one of whose literals occurs.
    pub fn run(&self, text: &[u8], mut found: impl FnMut(u32)) {
        let mut seen = vec![false; self.ids as usize];
        let mut check = |entries: Option<&Vec<Entry>>, at: usize| {
            for entry in entries.into_iter().flatten() {
                let there = || at.checked_sub(entry.offset).and_then(|from| text.get(from..));
                if !seen[entry.id as usize]
                    && there().is_some_and(|rest| rest.starts_with(&entry.literal))
                {
                    seen[entry.id as usize] = true;
                    found(entry.id);
                }
            }
        };
        let mut from = 0;
        while let Some((at, word)) = self.next(text, from) {
            check(self.by_word.get(&word), at);
            check(self.by_pair.get(&(word as u16)), at);
            from = at + 1;
        }
        // The last pairs have no word of four behind them.
        let last = text.len().saturating_sub(WORD - 1);
        for (at, pair) in text[last..].windows(LITERAL_BYTES_MIN).enumerate() {
            let pair = u16::from_le_bytes([pair[0], pair[1]]);
            check(self.by_pair.get(&pair), last + at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_wherever_they_stand() {
        let literals: [&[u8]; 6] = [b"WAVEfmt ", b"PK", b"abc", b"\0\0\0\x01", b"abcabc", b"xy"];
        let search = Search::new(literals.iter().copied().zip(0..));
        let naive = |text: &[u8]| {
            let there = |l: &&[u8]| text.windows(l.len()).any(|window| window == *l);
            (0..6u32).filter(|i| there(&literals[*i as usize])).collect::<Vec<_>>()
        };
        let texts: [&[u8]; 8] = [
            b"",
            b"P",
            b"PK",
            b"..abc",
            b"abcabc",
            b"WAVEfmt \0\0\0\x01xy",
            b"zzPKabcxy",
            b"\0\0\0\0\x01",
        ];
        for text in texts {
            let mut found = Vec::new();
            search.run(text, |id| found.push(id));
            found.sort_unstable();
            assert_eq!(found, naive(text), "{text:?}");
        }
    }
}
