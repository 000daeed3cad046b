//! Matching one sequence against a text that arrives in pieces, in bounded memory and in time
//! that grows with the text, whatever the text is.
//!
//! For every slot the offsets where the slot before it ended are remembered. They allow a set of
//! intervals in which the slot may begin; each piece of the text is searched there once. An end
//! that allows nothing its neighbours do not allow is forgotten, so a gap of a million bytes needs
//! three numbers, not a million. There is no backtracking, hence nothing to blow up.

use crate::model::Slot;
use crate::pattern::Pattern;
use memchr::memmem::Finder;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Most ends remembered for a slot. Only texts made to do so exceed it, with gaps of a fixed
/// width above this; then the oldest ends are forgotten.
const ENDS_MAX: usize = 1 << 16;
/// Intervals up to this many offsets are compared one by one rather than searched.
const SHORT_INTERVAL: usize = 8;

/// Where a sequence was found: its first byte and the byte after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub start: u64,
    pub end: u64,
}

/// How far a sequence has come.
#[derive(Debug)]
pub(crate) struct Progress<'s> {
    slots: &'s [Slot],
    /// For each slot but the first: where the one before it was found (end and first byte of all).
    ends: Vec<VecDeque<Hit>>,
    /// All text before this offset was looked at.
    seen: u64,
    hit: Option<Hit>,
}

impl<'s> Progress<'s> {
    pub fn new(slots: &'s [Slot]) -> Progress<'s> {
        Progress { slots, ends: Vec::new(), seen: 0, hit: None }
    }

    pub fn hit(&self) -> Option<Hit> {
        self.hit
    }

    /// Whether no further text can change the answer.
    pub fn settled(&self) -> bool {
        if self.hit.is_some() {
            return true;
        }
        let first = self.slots.first().is_some_and(|slot| match slot.gap_max {
            None => true,
            Some(max) => u64::from(max) >= unseen(self.seen, longest(slot)),
        });
        !first && self.ends.iter().all(VecDeque::is_empty)
    }

    /// Takes the text from `start` on, which overlaps what was seen before by at least the longest
    /// pattern less one byte.
    pub fn feed(&mut self, start: u64, text: &[u8]) {
        let end = start + text.len() as u64;
        if self.hit.is_some() || end <= self.seen || self.cannot_begin(start, text) {
            self.seen = self.seen.max(end);
            return;
        }
        self.ends.resize_with(self.slots.len(), VecDeque::new);
        for index in 0..self.slots.len() {
            self.step(index, start, text);
            if self.hit.is_some() {
                break;
            }
        }
        self.seen = end;
    }

    /// The common case, without any memory: a sequence at a fixed offset that is not there.
    fn cannot_begin(&self, start: u64, text: &[u8]) -> bool {
        let Some(slot) = self.slots.first().filter(|_| self.seen == 0 && start == 0) else {
            return false;
        };
        let at = slot.gap_min as usize;
        slot.gap_max == Some(slot.gap_min)
            && text.len() >= at + longest(slot) as usize
            && !slot.choices.iter().any(|pattern| pattern.fits_at(text, at))
    }

    /// Looks for one slot in the part of the text that is new.
    fn step(&mut self, index: usize, start: u64, text: &[u8]) {
        let slots = self.slots;
        let (Some(slot), next) = (slots.get(index), slots.get(index + 1)) else { return };
        let first_only = next.is_none_or(|next| next.gap_max.is_none());
        if first_only && self.ends.get(index + 1).is_some_and(|ends| !ends.is_empty()) {
            // The earliest end is known, and nothing later allows more.
            return;
        }
        let mut found = Vec::new();
        for pattern in &slot.choices {
            self.search(index, slot, pattern, (start, text), first_only, &mut found);
        }
        found.sort_unstable_by_key(|hit: &Hit| (hit.end, hit.start));
        found.dedup_by_key(|hit| hit.end);
        match next {
            None => self.hit = found.first().copied(),
            Some(_) if first_only => self.ends[index + 1].extend(found.first()),
            Some(next) => remember(&mut self.ends[index + 1], found, next),
        }
        let reach = unseen(start + text.len() as u64, longest(slot));
        if let (Some(max), Some(ends)) = (slot.gap_max, self.ends.get_mut(index)) {
            while ends.front().is_some_and(|hit| hit.end + u64::from(max) < reach) {
                ends.pop_front();
            }
        }
    }

    /// Finds a pattern wherever the slot may begin and has not been looked for.
    fn search(
        &self,
        index: usize,
        slot: &Slot,
        pattern: &Pattern,
        (start, text): (u64, &[u8]),
        first_only: bool,
        found: &mut Vec<Hit>,
    ) {
        let len = pattern.len() as u64;
        let Some(last) = (start + text.len() as u64).checked_sub(len) else { return };
        let mut cursor = start.max(unseen(self.seen, len));
        let (min, max) = (u64::from(slot.gap_min), slot.gap_max.map(u64::from));
        let anchor = [Hit { start: 0, end: 0 }];
        let (front, back) =
            if index == 0 { (&anchor[..], &[][..]) } else { self.ends[index].as_slices() };
        for before in front.iter().chain(back) {
            let from = cursor.max(before.end + min);
            let to = max.map_or(last, |max| last.min(before.end + max));
            if from > last {
                break;
            }
            if from > to {
                continue;
            }
            // Offsets lie within the text, so they fit a `usize`.
            let range = ((from - start) as usize, (to - start) as usize);
            let stopped = find_all(pattern, text, range, |at| {
                let at = start + at as u64;
                let first = if index == 0 { at } else { before.start };
                found.push(Hit { start: first, end: at + len });
                if first_only { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if stopped.is_break() {
                break;
            }
            cursor = to + 1;
        }
    }
}

/// The first offset where something `len` long has not been looked for when `seen` bytes were.
fn unseen(seen: u64, len: u64) -> u64 {
    (seen + 1).saturating_sub(len)
}

fn longest(slot: &Slot) -> u64 {
    slot.choices.iter().map(Pattern::len).max().unwrap_or(0) as u64
}

/// Adds ends, in order, and forgets those whose neighbours allow `next` all they do.
fn remember(ends: &mut VecDeque<Hit>, found: Vec<Hit>, next: &Slot) {
    let width = next.gap_max.map_or(u64::MAX - 1, |max| u64::from(max - next.gap_min.min(max)));
    for hit in found {
        if ends.len() >= 2 && hit.end - ends[ends.len() - 2].end <= width + 1 {
            ends.pop_back();
        }
        if ends.len() >= ENDS_MAX {
            ends.pop_front();
        }
        ends.push_back(hit);
    }
}

/// Calls `each` with every offset in `range` (both ends included) where the pattern stands.
fn find_all(
    pattern: &Pattern,
    text: &[u8],
    (from, to): (usize, usize),
    mut each: impl FnMut(usize) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let needle = pattern.needle().filter(|_| to - from >= SHORT_INTERVAL);
    let Some((offset, needle)) = needle else {
        for at in from..=to {
            if pattern.fits_at(text, at) {
                each(at)?;
            }
        }
        return ControlFlow::Continue(());
    };
    let finder = Finder::new(needle);
    let end = (to + offset + needle.len()).min(text.len());
    let mut at = from;
    while let Some(place) = text.get(at + offset..end).and_then(|rest| finder.find(rest)) {
        at += place;
        if pattern.fits_at(text, at) {
            each(at)?;
        }
        at += 1;
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr;

    fn whole(expression: &str, text: &[u8]) -> Option<Hit> {
        let slots = expr::parse(expression).unwrap();
        let mut progress = Progress::new(&slots);
        progress.feed(0, text);
        progress.hit()
    }

    /// The same answer when the text comes in pieces of any size.
    fn pieces(expression: &str, text: &[u8], size: usize) -> Option<Hit> {
        let slots = expr::parse(expression).unwrap();
        let overlap = slots.iter().map(longest).max().unwrap() as usize;
        let mut progress = Progress::new(&slots);
        let mut at = 0;
        while at < text.len() {
            let from = at.saturating_sub(overlap);
            let to = (at + size).min(text.len());
            progress.feed(from as u64, &text[from..to]);
            at = to;
        }
        progress.hit()
    }

    #[test]
    fn slots_follow_each_other_at_their_distances() {
        assert_eq!(whole("'ab'{2}'cd'", b"abxxcd"), Some(Hit { start: 0, end: 6 }));
        assert_eq!(whole("'ab'{2}'cd'", b"abxcd"), None);
        assert_eq!(whole("'ab'*'cd'", b"abab----cd"), Some(Hit { start: 0, end: 10 }));
        assert_eq!(whole("'ab'{1-3}('c'|'dd')'e'", b"ab..dde"), Some(Hit { start: 0, end: 7 }));
        assert_eq!(whole("'ab'", b"xab"), None, "anchored");
    }

    #[test]
    fn an_early_wrong_turn_does_not_hide_a_later_right_one() {
        // A greedy matcher takes the first `b` and fails; the second is the right one.
        assert_eq!(whole("'a'{0-9}'b'{1}'c'", b"ab.b.c"), Some(Hit { start: 0, end: 6 }));
    }

    #[test]
    fn pieces_of_any_size_give_the_answer_of_the_whole() {
        let text = b"head..ab...abab..q.cdx.cd..ee.ffgff";
        for expression in [
            "'head'*'ab'{1-6}'cd'{0-2}'ee'*'gff'",
            "'head'{2-5}'ab'{3}'ab'",
            "'head'*'zz'",
            "'h'*('abab'|'ab')'.'",
        ] {
            for size in 1..text.len() {
                assert_eq!(
                    pieces(expression, text, size),
                    whole(expression, text),
                    "{expression} {size}"
                );
            }
        }
    }

    #[test]
    fn memory_stays_small_when_everything_matches() {
        let slots = expr::parse("00{0-99999}00{0-99999}00{7}01").unwrap();
        let mut progress = Progress::new(&slots);
        let text = vec![0u8; 300_000];
        progress.feed(0, &text);
        assert_eq!(progress.hit(), None);
        let kept: Vec<usize> = progress.ends.iter().map(VecDeque::len).collect();
        assert!(kept.iter().all(|count| *count <= ENDS_MAX), "{kept:?}");
        assert!(kept[1] <= 3 && kept[2] <= 8, "{kept:?}");
    }

    #[test]
    fn settled_means_that_more_text_cannot_help() {
        let slots = expr::parse("'ab'{0-4}'cd'").unwrap();
        let mut progress = Progress::new(&slots);
        progress.feed(0, b"a");
        assert!(!progress.settled(), "the first two bytes are not complete");
        progress.feed(0, b"ab..");
        assert!(!progress.settled());
        progress.feed(0, b"ab........");
        assert!(progress.settled() && progress.hit().is_none());
    }

    /// All ends that a naive search, which tries everything, finds.
    fn naive(slots: &[Slot], text: &[u8], at: usize) -> bool {
        let Some(slot) = slots.first() else { return true };
        let last = slot.gap_max.map_or(text.len(), |max| at + max as usize);
        (at + slot.gap_min as usize..=last.min(text.len())).any(|start| {
            slot.choices.iter().any(|pattern| {
                pattern.fits_at(text, start) && naive(&slots[1..], text, start + pattern.len())
            })
        })
    }

    #[test]
    fn random_patterns_agree_with_trying_everything() {
        let mut state = 7u64;
        let mut random = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut found = 0;
        for _ in 0..4000 {
            let mut expression = String::from("{0-3}");
            for _ in 0..1 + random(4) {
                expression +=
                    ["'a'", "'b'", "'ab'", "('aa'|'b')", "[!61]", "'ba'??"][random(6) as usize];
                let (low, wide) = (random(3), random(4));
                expression += &match random(4) {
                    0 => "*".to_owned(),
                    1 => format!("{{{low}}}"),
                    _ => format!("{{{low}-{}}}", low + wide),
                };
            }
            let text: Vec<u8> = (0..random(20)).map(|_| b"ab"[random(2) as usize]).collect();
            let slots = expr::parse(&expression).unwrap();
            let expected = naive(&slots, &text, 0);
            assert_eq!(whole(&expression, &text).is_some(), expected, "{expression} {text:?}");
            let size = 1 + random(5) as usize;
            assert_eq!(
                pieces(&expression, &text, size).is_some(),
                expected,
                "{expression} {text:?}"
            );
            found += usize::from(expected);
        }
        assert!((500..3500).contains(&found), "{found}");
    }
}
