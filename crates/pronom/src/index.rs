//! Which signatures are worth trying on a file: a look at a few words at fixed offsets and one
//! pass of a multi-pattern search leave a handful out of thousands.
//!
//! Each signature is entered under one key, the most telling of its sequences. Keys near a fixed
//! offset are found in tables of eight-byte words; keys that may stand anywhere in a range are
//! found by one search for all of them; the few that have no literal at all are always tried.

use crate::model::{Anchor, Sequence, Signature, Slot};
use crate::pattern::{Pattern, telling};
use crate::search::{LITERAL_BYTES_MIN, Search};
use std::collections::BTreeMap;

/// Ranges up to this wide are entered in the tables once for each offset.
const SPREAD_MAX: u32 = 16;
/// How far from the anchor the literals that are searched for may stand.
pub(crate) const REACH_BYTES_MAX: usize = 256 * 1024;

/// The keys of all signatures, for the beginning and for the (reversed) end of a file.
#[derive(Debug)]
pub(crate) struct Index {
    pub beginning: Keys,
    pub end: Keys,
}

impl Index {
    pub fn new(signatures: &[Signature]) -> Index {
        let (mut beginning, mut end) = (Builder::default(), Builder::default());
        for (number, signature) in (0u32..).zip(signatures) {
            let Some(key) = signature.sequences.iter().max_by_key(|sequence| value(sequence))
            else {
                continue;
            };
            match key.anchor {
                Anchor::End => end.add(number, key),
                Anchor::Beginning | Anchor::Anywhere => beginning.add(number, key),
            }
        }
        Index { beginning: beginning.build(), end: end.build() }
    }
}

/// How a signature may be found by one of its sequences.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// No bytes that tell anything: it is always tried.
    Nowhere,
    /// A byte or so at a known offset.
    Vague,
    /// Literals within reach.
    InReach,
    /// Telling bytes at a known offset.
    Fixed,
}

/// How good a key a sequence is: at a known place first, at the beginning rather than the end,
/// then by how telling its bytes are.
fn value(sequence: &Sequence) -> (Place, bool, usize) {
    let Some(slot) = sequence.slots.first() else { return (Place::Nowhere, false, 0) };
    let known = spread(slot).map(|_| prefix_value(slot));
    let place = match known {
        Some(prefix) if prefix >= 16 => Place::Fixed,
        _ => match (literals(sequence), known) {
            (Some((_, score, _)), _) if score >= 16 => Place::InReach,
            (_, Some(_)) => Place::Vague,
            (Some(_), None) => Place::InReach,
            (None, None) => Place::Nowhere,
        },
    };
    (place, sequence.anchor != Anchor::End, known.unwrap_or(0).min(24))
}

fn prefix_value(slot: &Slot) -> usize {
    slot.choices.iter().map(Pattern::prefix_telling).min().unwrap_or(0)
}

/// The offsets a slot may stand at, if they are few.
fn spread(slot: &Slot) -> Option<std::ops::RangeInclusive<u32>> {
    let max = slot.gap_max.filter(|max| max - slot.gap_min.min(*max) <= SPREAD_MAX)?;
    Some(slot.gap_min..=max)
}

/// The most telling literals one of which must stand within reach of the anchor, how telling the
/// least of them is, and how far from the anchor they end at most.
fn literals(sequence: &Sequence) -> Option<(&Slot, usize, usize)> {
    let mut reach = 0usize;
    let mut best: Option<(&Slot, usize, usize)> = None;
    for slot in &sequence.slots {
        let longest = slot.choices.iter().map(Pattern::len).max().unwrap_or(0);
        let Some(gap) = slot.gap_max else { break };
        reach = reach.saturating_add(gap as usize).saturating_add(longest);
        if reach > REACH_BYTES_MAX {
            break;
        }
        let score = |pattern: &Pattern| {
            let needle =
                pattern.needle().map(|(_, needle)| needle).filter(|n| n.len() >= LITERAL_BYTES_MIN);
            needle.map(telling)
        };
        let least = slot.choices.iter().map(score).min().flatten().unwrap_or(0);
        if least > best.map_or(0, |(_, score, _)| score) {
            best = Some((slot, least, reach));
        }
    }
    best
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    value: u64,
    mask: u64,
    signature: u32,
}

/// What may stand at one offset: entries by their first byte.
#[derive(Debug)]
struct Table {
    offset: usize,
    entries: Vec<Entry>,
    /// Where the entries of each first byte begin; the last is where all end.
    starts: Vec<u32>,
    /// Entries whose first byte is not certain.
    open: Vec<Entry>,
}

impl Table {
    fn new(offset: usize, entries: Vec<Entry>) -> Table {
        let (mut entries, open): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.mask & 0xff != 0);
        entries.sort_by_key(|entry| entry.value & 0xff);
        let before = |byte: u64| entries.partition_point(|entry| entry.value & 0xff < byte) as u32;
        let starts = (0..=256).map(before).collect();
        Table { offset, entries, starts, open }
    }

    fn candidates(&self, text: &[u8], found: &mut Vec<u32>) {
        let Some(rest) = text.get(self.offset..).filter(|rest| !rest.is_empty()) else { return };
        let mut word = [0u8; 8];
        match rest.first_chunk::<8>() {
            Some(chunk) => word = *chunk,
            None => word[..rest.len()].copy_from_slice(rest),
        }
        let first = usize::from(word[0]);
        let word = u64::from_le_bytes(word);
        let bucket = self.starts[first] as usize..self.starts[first + 1] as usize;
        for entry in self.entries[bucket].iter().chain(&self.open) {
            if word & entry.mask == entry.value {
                found.push(entry.signature);
            }
        }
    }
}

/// The keys at one end of a file.
#[derive(Debug)]
pub(crate) struct Keys {
    tables: Vec<Table>,
    /// Literals, called by the signatures that need them, and how far they may be from the anchor.
    search: Search,
    reach: usize,
    /// Signatures without a usable key.
    always: Vec<u32>,
    /// All signatures entered here.
    pub all: Vec<u32>,
}

impl Keys {
    /// The signatures worth trying on this text, in order, each once.
    pub fn candidates(&self, text: &[u8], found: &mut Vec<u32>) {
        found.clear();
        for table in &self.tables {
            table.candidates(text, found);
        }
        self.search.run(text.get(..self.reach).unwrap_or(text), |signature| found.push(signature));
        found.extend(&self.always);
        found.sort_unstable();
        found.dedup();
    }
}

#[derive(Default)]
struct Builder {
    tables: BTreeMap<u32, Vec<Entry>>,
    literals: Vec<(Vec<u8>, u32)>,
    reach: usize,
    always: Vec<u32>,
    all: Vec<u32>,
}

impl Builder {
    fn add(&mut self, signature: u32, key: &Sequence) {
        self.all.push(signature);
        let (place, ..) = value(key);
        match (key.slots.first().and_then(|slot| Some((slot, spread(slot)?))), literals(key)) {
            (Some((slot, offsets)), _) if place != Place::InReach => {
                for offset in offsets {
                    let entries = self.tables.entry(offset).or_default();
                    entries.extend(slot.choices.iter().map(|pattern| {
                        let (value, mask) = pattern.prefix();
                        Entry { value, mask, signature }
                    }));
                }
            }
            (_, Some((slot, _, reach))) => {
                self.reach = self.reach.max(reach);
                for (_, needle) in slot.choices.iter().filter_map(Pattern::needle) {
                    self.literals.push((needle.to_vec(), signature));
                }
            }
            _ => self.always.push(signature),
        }
    }

    fn build(self) -> Keys {
        let search =
            Search::new(self.literals.iter().map(|(literal, id)| (literal.as_slice(), *id)));
        let tables = self.tables.into_iter();
        let tables = tables.map(|(offset, entries)| Table::new(offset as usize, entries)).collect();
        Keys { tables, search, reach: self.reach, always: self.always, all: self.all }
    }
}
