//! Byte signatures against one file: first its beginning, then, if the whole file is wanted and
//! something is still open, the rest as it comes, then its end.

use crate::index::Index;
use crate::model::{Anchor, Sequence, Signature};
use crate::pattern::Pattern;
use crate::progress::{Hit, Progress};
use crate::search::{LITERAL_BYTES_MIN, Search};
use crate::source::{self, Source};

/// From this many open sequences on, one search for all of them decides which to try on a piece.
const TOGETHER_MIN: usize = 8;
/// How much of the end is read at a time when sequences reach back further.
const BACKWARDS_BYTES: usize = 256 * 1024;

/// A signature that was found, and where each of its sequences is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// By place in the set.
    pub signature: u32,
    pub spans: Vec<Hit>,
}

/// A signature none of whose sequences has failed yet.
#[derive(Debug)]
struct Open<'s> {
    signature: u32,
    sequences: &'s [Sequence],
    /// Progress of each sequence; those anchored at the end begin when the end is known.
    progress: Vec<Option<Progress<'s>>>,
    /// No sequence has failed.
    alive: bool,
}

impl Open<'_> {
    fn pending(&self) -> bool {
        self.alive && self.progress.iter().flatten().any(|p| !p.settled())
    }

    /// Whether a sequence can no longer be found.
    fn failed(&self) -> bool {
        self.progress.iter().flatten().any(|p| p.settled() && p.hit().is_none())
    }

    fn feed(&mut self, start: u64, text: &[u8]) {
        for progress in self.progress.iter_mut().flatten() {
            progress.feed(start, text);
        }
    }
}

/// The state of a search through one file.
#[derive(Debug)]
pub(crate) struct Scan<'s> {
    signatures: &'s [Signature],
    index: &'s Index,
    open: Vec<Open<'s>>,
    /// For many open sequences: one search for all, which calls them by their place in `open`.
    together: Option<Search>,
    /// The last bytes seen, long enough for any pattern that goes on in the next piece.
    view: Vec<u8>,
    overlap: usize,
    seen: u64,
    /// Whether signatures keyed by the end of the file were tried from the beginning on.
    end_keys_open: bool,
}

impl<'s> Scan<'s> {
    /// Looks at the beginning of a file. If `more`, what goes on beyond it stays open; then
    /// signatures that are recognised by their end are followed from the start too, unless the
    /// end is already known.
    pub fn begin(
        signatures: &'s [Signature],
        index: &'s Index,
        head: &[u8],
        more: bool,
        tail: Option<&[u8]>,
    ) -> Scan<'s> {
        let mut scan = Scan {
            signatures,
            index,
            open: Vec::new(),
            together: None,
            view: Vec::new(),
            overlap: 0,
            seen: head.len() as u64,
            end_keys_open: false,
        };
        let mut candidates = Vec::new();
        index.beginning.candidates(head, &mut candidates);
        candidates.iter().for_each(|number| scan.open(*number, head, more));
        if more {
            scan.end_keys_open = true;
            match tail {
                None => candidates.clone_from(&index.end.all),
                Some(tail) => index.end.candidates(&reversed(tail), &mut candidates),
            }
            candidates.iter().for_each(|number| scan.open(*number, head, more));
            scan.prepare(head);
        }
        scan
    }

    /// Opens a signature with what the beginning says, unless that rules it out.
    fn open(&mut self, number: u32, head: &[u8], more: bool) {
        let Some(signature) = self.signatures.get(number as usize) else { return };
        let mut progress = Vec::with_capacity(signature.sequences.len());
        for sequence in &signature.sequences {
            if sequence.anchor == Anchor::End {
                progress.push(None);
                continue;
            }
            let mut step = Progress::new(&sequence.slots);
            step.feed(0, head);
            if step.hit().is_none() && (!more || step.settled()) {
                return;
            }
            progress.push(Some(step));
        }
        let sequences = &signature.sequences;
        self.open.push(Open { signature: number, sequences, progress, alive: true });
    }

    /// Gets ready for the rest of the file.
    fn prepare(&mut self, head: &[u8]) {
        let pending: Vec<usize> =
            (0..self.open.len()).filter(|number| self.open[*number].pending()).collect();
        let patterns = |open: &Open<'s>| -> Vec<&'s Pattern> {
            let forward = open.sequences.iter().filter(|s| s.anchor != Anchor::End);
            forward.flat_map(|s| &s.slots).flat_map(|slot| &slot.choices).collect()
        };
        let longest = |number: &usize| patterns(&self.open[*number]).iter().map(|p| p.len()).max();
        self.overlap = pending.iter().filter_map(longest).max().unwrap_or(0);
        self.view = head[head.len().saturating_sub(self.overlap)..].to_vec();
        if pending.len() < TOGETHER_MIN {
            return;
        }
        let mut needles = Vec::new();
        for number in pending {
            for pattern in patterns(&self.open[number]) {
                match (pattern.needle(), u32::try_from(number)) {
                    (Some((_, needle)), Ok(id)) if needle.len() >= LITERAL_BYTES_MIN => {
                        needles.push((needle, id));
                    }
                    // Something without a literal cannot be searched for; try all each time.
                    _ => return,
                }
            }
        }
        self.together = Some(Search::new(needles));
    }

    /// Whether the rest of the file can still change anything.
    pub fn wants_more(&self) -> bool {
        self.open.iter().any(Open::pending)
    }

    /// The signatures that the rest of the file can still complete.
    pub fn pending(&self) -> impl Iterator<Item = u32> {
        self.open.iter().filter(|open| open.pending()).map(|open| open.signature)
    }

    /// Takes the next piece of the file.
    pub fn feed(&mut self, piece: &[u8]) {
        let start = self.seen - self.view.len() as u64;
        self.seen += piece.len() as u64;
        if !self.wants_more() {
            self.view.clear();
            return;
        }
        self.view.extend_from_slice(piece);
        match &self.together {
            None => {
                let pending = self.open.iter_mut().filter(|open| open.pending());
                pending.for_each(|open| open.feed(start, &self.view));
            }
            Some(search) => {
                let (open, view) = (&mut self.open, &self.view);
                search.run(view, |number| open[number as usize].feed(start, view));
            }
        }
        self.open.iter_mut().for_each(|open| open.alive &= !open.failed());
        self.view.drain(..self.view.len().saturating_sub(self.overlap));
    }

    /// Looks at the end of the file, and back beyond it through `object` if that is given and
    /// sequences reach back further. Returns what was found, and the signatures of which all was
    /// found but the end.
    pub fn finish(
        mut self,
        head: &[u8],
        tail: &[u8],
        len: u64,
        mut object: Option<&mut dyn Source>,
    ) -> crate::error::Result<(Vec<Found>, Vec<u32>)> {
        let tail = reversed(tail);
        if !self.end_keys_open {
            let mut candidates = Vec::new();
            self.index.end.candidates(&tail, &mut candidates);
            candidates.iter().for_each(|number| self.open(*number, head, false));
        }
        let (mut found, mut cut) = (Vec::new(), Vec::new());
        for open in &mut self.open {
            if open.progress.iter().flatten().any(|p| p.hit().is_none()) {
                continue;
            }
            let mut spans = Vec::new();
            for (sequence, progress) in open.sequences.iter().zip(&open.progress) {
                let hit = match progress {
                    Some(progress) => progress.hit(),
                    None => backwards(sequence, &tail, len, again(&mut object))?,
                };
                match hit {
                    Some(hit) => spans.push(hit),
                    None => break,
                }
            }
            if spans.len() == open.sequences.len() {
                found.push(Found { signature: open.signature, spans });
            } else if open.sequences.iter().any(|sequence| sequence.anchor == Anchor::Beginning) {
                cut.push(open.signature);
            }
        }
        found.sort_by_key(|found| found.signature);
        Ok((found, cut))
    }
}

/// Matches a sequence anchored at the end, and turns the place around again.
fn backwards(
    sequence: &Sequence,
    tail: &[u8],
    len: u64,
    object: Option<&mut dyn Source>,
) -> crate::error::Result<Option<Hit>> {
    let mut progress = Progress::new(&sequence.slots);
    progress.feed(0, tail);
    if let Some(object) = object {
        let patterns = sequence.slots.iter().flat_map(|slot| &slot.choices);
        let overlap = patterns.map(Pattern::len).max().unwrap_or(0);
        let mut view = tail[tail.len().saturating_sub(overlap)..].to_vec();
        let mut seen = tail.len() as u64;
        while !progress.settled() && seen < len {
            let wanted = (len - seen).min(BACKWARDS_BYTES as u64);
            let mut piece = vec![0; wanted as usize];
            if !source::read_exact(object, len - seen - wanted, &mut piece)? {
                break;
            }
            piece.reverse();
            let start = seen - view.len() as u64;
            view.append(&mut piece);
            progress.feed(start, &view);
            seen += wanted;
            view.drain(..view.len().saturating_sub(overlap));
        }
    }
    Ok(progress.hit().map(|hit| Hit { start: len - hit.end, end: len - hit.start }))
}

/// Lends an object that is lent already, for a shorter time.
fn again<'a>(object: &'a mut Option<&mut dyn Source>) -> Option<&'a mut dyn Source> {
    match object {
        Some(object) => Some(&mut **object),
        None => None,
    }
}

fn reversed(text: &[u8]) -> Vec<u8> {
    let mut turned = text.to_vec();
    turned.reverse();
    turned
}
