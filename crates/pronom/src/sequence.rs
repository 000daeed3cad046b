//! From the byte sequences of the official files, with their subsequences and fragments, to slots.

use crate::error::Result;
use crate::expr;
use crate::model::{Anchor, Sequence, Slot};
use crate::pattern::Pattern;
use crate::xml::Element;

/// A gap: at least, and at most if there is a bound.
type Gap = (u32, Option<u32>);

/// Places in the order of the file, and the gap before each.
#[derive(Default)]
struct Chain {
    places: Vec<(Gap, Vec<Pattern>)>,
}

impl Chain {
    fn push(&mut self, gap: Gap, choices: Vec<Pattern>) {
        self.places.push((gap, choices));
    }
}

/// Reads one `<ByteSequence>`.
pub(crate) fn read(element: &Element) -> Result<Sequence> {
    let anchor = match element.attribute("Reference") {
        Some("BOFoffset") => Anchor::Beginning,
        Some("EOFoffset") => Anchor::End,
        None | Some("Variable" | "NOFoffset" | "") => Anchor::Anywhere,
        Some(other) => return Err(element.error(format!("unknown reference {other}"))),
    };
    let mut subsequences = Vec::new();
    for (place, sub) in element.children("SubSequence").enumerate() {
        let position = sub.number("Position")?.unwrap_or(u32::try_from(place).unwrap_or(u32::MAX));
        subsequences.push((position, sub));
    }
    subsequences.sort_by_key(|(position, _)| *position);
    let count = subsequences.len();
    let mut chain = Chain::default();
    let mut after: Gap = (0, Some(0));
    for (place, (_, sub)) in subsequences.into_iter().enumerate() {
        let min = sub.number("SubSeqMinOffset")?.unwrap_or(0);
        let max = sub.number("SubSeqMaxOffset")?;
        // An upper bound below the lower one is a slip of the pen in the file; the lower is meant.
        let gap = (min, max.map(|max| max.max(min)));
        match anchor {
            // Offsets are counted from the end: the gap stands behind the subsequence.
            Anchor::End => {
                let between = if place == 0 { (0, Some(0)) } else { after };
                subsequence(sub, between, &mut chain)?;
                after = gap;
            }
            Anchor::Beginning => subsequence(sub, gap, &mut chain)?,
            Anchor::Anywhere if place == 0 => subsequence(sub, (min, None), &mut chain)?,
            Anchor::Anywhere => subsequence(sub, gap, &mut chain)?,
        }
    }
    if count == 0 {
        return Err(element.error("a byte sequence has no subsequence".to_owned()));
    }
    Ok(finish(anchor, chain, after))
}

/// A sequence written as one expression, anchored with an offset: the notation of the essential set.
pub(crate) fn from_expression(anchor: Anchor, offset: Gap, expression: &str) -> Result<Sequence> {
    let mut chain = Chain::default();
    for (index, slot) in expr::parse(expression)?.into_iter().enumerate() {
        let own = (slot.gap_min, slot.gap_max);
        let gap = if index == 0 && anchor != Anchor::End { offset } else { own };
        chain.push(gap, slot.choices);
    }
    Ok(finish(anchor, chain, offset))
}

/// Turns the chain around if it is anchored at the end, where `after` follows the last place.
fn finish(anchor: Anchor, mut chain: Chain, after: Gap) -> Sequence {
    if anchor == Anchor::End {
        let mut gap = after;
        for (before, choices) in chain.places.iter_mut().rev() {
            std::mem::swap(before, &mut gap);
            choices.iter_mut().for_each(|pattern| *pattern = std::mem::take(pattern).reversed());
        }
        chain.places.reverse();
    }
    let slot = |((gap_min, gap_max), choices)| Slot { gap_min, gap_max, choices };
    Sequence { anchor, slots: chain.places.into_iter().map(slot).collect() }
}

/// Appends one subsequence: left fragments from the outermost in, the sequence itself, right
/// fragments from the innermost out.
fn subsequence(sub: &Element, gap: Gap, chain: &mut Chain) -> Result<()> {
    let mut gap = gap;
    for (offset, choices) in fragments(sub, "LeftFragment")?.into_iter().rev() {
        chain.push(gap, choices);
        gap = offset;
    }
    let text = sub.child("Sequence").map(|sequence| sequence.text.as_str()).unwrap_or_default();
    for (index, slot) in expr::parse(text)?.into_iter().enumerate() {
        let own = (slot.gap_min, slot.gap_max);
        let gap = if index == 0 { gap } else { own };
        chain.push(gap, slot.choices);
    }
    for (offset, choices) in fragments(sub, "RightFragment")? {
        chain.push(offset, choices);
    }
    Ok(())
}

/// The fragments on one side by position, innermost first; those at the same position are
/// alternatives.
fn fragments(sub: &Element, name: &str) -> Result<Vec<(Gap, Vec<Pattern>)>> {
    let mut found: Vec<(u32, Gap, Vec<Pattern>)> = Vec::new();
    for fragment in sub.children(name) {
        let position = fragment.number("Position")?.unwrap_or(1);
        let min = fragment.number("MinOffset")?.unwrap_or(0);
        let gap = (min, fragment.number("MaxOffset")?.map(|max| max.max(min)));
        let pattern = expr::parse_fragment(&fragment.text)?;
        match found.iter_mut().find(|(other, ..)| *other == position) {
            None => found.push((position, gap, vec![pattern])),
            Some((_, same, choices)) if *same == gap => choices.push(pattern),
            Some(_) => {
                return Err(fragment.error(format!(
                    "alternatives at position {position} stand at different offsets"
                )));
            }
        }
    }
    found.sort_by_key(|(position, ..)| *position);
    Ok(found.into_iter().map(|(_, gap, choices)| (gap, choices)).collect())
}
