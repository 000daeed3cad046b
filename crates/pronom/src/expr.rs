//! The notation PRONOM writes byte patterns in, as the registry, DROID's signature file and the
//! container signature file use it.
//!
//! ```text
//! 255044462D    bytes in hexadecimal, blanks allowed     'PK' "PK"  text
//! ??            any byte                                 {4} {0-9} {2-*} *  gaps
//! [61:7A] ['a'-'z'] [!00] [&01] [~03] [09 0A 20]         one byte of a set
//! [!0000] [0000:1000]                                    several bytes: not these; from, to
//! (22|27)                                                alternatives
//! ```

use crate::error::{Error, Result};
use crate::model::Slot;
use crate::pattern::{ByteSet, Part, Pattern};

/// Longest pattern accepted, as written: ten times the longest of the official ones.
const EXPRESSION_BYTES_MAX: usize = 64 * 1024;
/// Most slots a single expression may have; the official ones have some twenty.
const SLOTS_MAX: usize = 512;

/// Reads an expression into slots. The first slot's gap is whatever stands before it.
pub(crate) fn parse(text: &str) -> Result<Vec<Slot>> {
    let fail = |message: &str| Error::Pattern {
        pattern: text.chars().take(80).collect(),
        message: message.to_owned(),
    };
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(fail("it is longer than 64 KiB"));
    }
    let mut parser =
        Parser { rest: text, slots: Vec::new(), run: Pattern::default(), gap: (0, Some(0)) };
    parser.expression().map_err(fail)?;
    Ok(parser.slots)
}

/// Reads an expression that has no gaps and no alternatives: one fragment of DROID's file.
pub(crate) fn parse_fragment(text: &str) -> Result<Pattern> {
    let mut slots = parse(text)?;
    match slots.pop() {
        Some(mut slot) if slots.is_empty() && slot.choices.len() == 1 => {
            Ok(slot.choices.pop().unwrap_or_default())
        }
        _ => Err(Error::Pattern {
            pattern: text.chars().take(80).collect(),
            message: "a fragment has neither gaps nor alternatives".to_owned(),
        }),
    }
}

struct Parser<'t> {
    rest: &'t str,
    slots: Vec<Slot>,
    /// The pattern under construction.
    run: Pattern,
    /// The gap before it.
    gap: (u32, Option<u32>),
}

type Parsed<T> = std::result::Result<T, &'static str>;

impl Parser<'_> {
    fn expression(&mut self) -> Parsed<()> {
        loop {
            self.blanks();
            match self.rest.chars().next() {
                None => break,
                Some('*') => {
                    self.take(1);
                    self.widen(0, None)?;
                }
                Some('{') => {
                    let (min, max) = self.gap()?;
                    self.widen(min, max)?;
                }
                Some('(') => self.alternatives()?,
                Some(_) => {
                    let part = self.part()?;
                    self.run.push(part);
                }
            }
            if self.slots.len() > SLOTS_MAX {
                return Err("it has too many pieces");
            }
        }
        self.close();
        if self.slots.is_empty() {
            return Err("it is empty");
        }
        Ok(())
    }

    /// Ends the pattern under construction, if there is one.
    fn close(&mut self) {
        if !self.run.is_empty() {
            let pattern = std::mem::take(&mut self.run);
            let (gap_min, gap_max) = std::mem::replace(&mut self.gap, (0, Some(0)));
            self.slots.push(Slot { gap_min, gap_max, choices: vec![pattern] });
        }
    }

    fn widen(&mut self, min: u32, max: Option<u32>) -> Parsed<()> {
        self.close();
        let sum = |a: u32, b: u32| a.checked_add(b).ok_or("a gap is too wide");
        let upper = match (self.gap.1, max) {
            (Some(a), Some(b)) => Some(sum(a, b)?),
            _ => None,
        };
        self.gap = (sum(self.gap.0, min)?, upper);
        Ok(())
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// `{n}`, `{n-m}`, `{n-*}`
    fn gap(&mut self) -> Parsed<(u32, Option<u32>)> {
        let end = self.rest.find('}').ok_or("a gap has no closing brace")?;
        let inside = &self.rest[1..end];
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| "a gap is not a number");
        let gap = match inside.split_once('-') {
            None => (number(inside)?, Some(number(inside)?)),
            Some((low, high)) if high.trim() == "*" => (number(low)?, None),
            Some((low, high)) => (number(low)?, Some(number(high)?)),
        };
        self.take(end + 1);
        if gap.1.is_some_and(|max| max < gap.0) {
            return Err("a gap ends before it begins");
        }
        Ok(gap)
    }

    /// `(a|b|…)`: single bytes become a set, anything longer a slot of its own.
    fn alternatives(&mut self) -> Parsed<()> {
        self.take(1);
        let mut choices = vec![Pattern::default()];
        loop {
            self.blanks();
            match self.rest.chars().next().ok_or("alternatives have no closing parenthesis")? {
                '|' => {
                    self.take(1);
                    choices.push(Pattern::default());
                }
                ')' => {
                    self.take(1);
                    break;
                }
                '(' | '*' | '{' => return Err("alternatives contain a gap or other alternatives"),
                _ => {
                    let part = self.part()?;
                    choices.last_mut().ok_or("no alternative")?.push(part);
                }
            }
        }
        if choices.iter().any(Pattern::is_empty) {
            return Err("an alternative is empty");
        }
        if let Some(sets) = choices.iter().map(Pattern::as_set).collect::<Option<Vec<_>>>() {
            self.run.push(Part::Set(sets.into_iter().fold(ByteSet::default(), ByteSet::union)));
            return Ok(());
        }
        self.close();
        let (gap_min, gap_max) = std::mem::replace(&mut self.gap, (0, Some(0)));
        self.slots.push(Slot { gap_min, gap_max, choices });
        Ok(())
    }

    fn part(&mut self) -> Parsed<Part> {
        match self.rest.chars().next().ok_or("it ends too early")? {
            '?' => {
                if !self.rest.starts_with("??") {
                    return Err("a single question mark");
                }
                self.take(2);
                Ok(Part::Set(ByteSet::all()))
            }
            '\'' | '"' => self.text().map(Part::Bytes),
            '[' => self.set(),
            _ => self.hex(true).map(Part::Bytes),
        }
    }

    fn text(&mut self) -> Parsed<Vec<u8>> {
        let quote = self.rest.chars().next().ok_or("it ends too early")?;
        let inside = &self.rest[1..];
        let end = inside.find(quote).ok_or("a text has no closing quote")?;
        let bytes = inside.as_bytes()[..end].to_vec();
        self.take(end + 2);
        Ok(bytes)
    }

    /// Pairs of hexadecimal digits; with `blanks`, blanks between pairs are skipped.
    fn hex(&mut self, blanks: bool) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(pair) =
            self.rest.get(..2).filter(|p| p.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            bytes.push(u8::from_str_radix(pair, 16).map_err(|_| "a bad hexadecimal digit")?);
            self.take(2);
            if blanks {
                self.blanks();
            }
        }
        if bytes.is_empty() {
            Err("something that is not a byte, a text, a set or a gap")
        } else {
            Ok(bytes)
        }
    }

    /// `[…]`
    fn set(&mut self) -> Parsed<Part> {
        self.take(1);
        self.blanks();
        let negated = self.rest.starts_with(['!', '^']);
        if negated {
            self.take(1);
        }
        let mut set = ByteSet::default();
        let mut items = 0;
        loop {
            self.blanks();
            if self.rest.starts_with(']') {
                self.take(1);
                break;
            }
            let item = self.item()?;
            items += 1;
            match item {
                Item::Set(more) => set = set.union(more),
                long if items == 1 && self.rest.trim_start().starts_with(']') => {
                    self.blanks();
                    self.take(1);
                    return long.alone(negated);
                }
                Item::Bytes(bytes) if !negated => bytes.into_iter().for_each(|b| set.insert(b)),
                _ => return Err("a set mixes single bytes and longer ones"),
            }
        }
        match (items, negated) {
            (0, _) => Err("a set is empty"),
            (_, true) => Ok(Part::Set(set.inverted())),
            (_, false) => Ok(Part::Set(set)),
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        if let Some(kind) = self.rest.chars().next().filter(|c| matches!(c, '&' | '~')) {
            self.take(1);
            let mask = match self.hex(false)?.as_slice() {
                [mask] => *mask,
                _ => return Err("a bit mask is one byte"),
            };
            let wanted =
                |byte: u8| if kind == '&' { byte & mask == mask } else { byte & mask != 0 };
            return Ok(Item::Set(ByteSet::from_fn(wanted)));
        }
        let low = self.value()?;
        if !self.rest.starts_with([':', '-']) {
            return Ok(match low.as_slice() {
                [byte] => Item::Set(ByteSet::from_fn(|b| b == *byte)),
                _ => Item::Bytes(low),
            });
        }
        self.take(1);
        let high = self.value()?;
        match (low.as_slice(), high.as_slice()) {
            (a, b) if a.len() != b.len() => Err("a range has ends of different lengths"),
            ([a], [b]) => {
                let (a, b) = (*a.min(b), *a.max(b));
                Ok(Item::Set(ByteSet::from_fn(|byte| (a..=b).contains(&byte))))
            }
            _ => Ok(Item::Range(low, high)),
        }
    }

    fn value(&mut self) -> Parsed<Vec<u8>> {
        if self.rest.starts_with(['\'', '"']) { self.text() } else { self.hex(false) }
    }
}

/// What can stand in square brackets.
enum Item {
    Set(ByteSet),
    Bytes(Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
}

impl Item {
    /// The meaning of a longer item that is alone in its brackets.
    fn alone(self, negated: bool) -> Parsed<Part> {
        match (self, negated) {
            (Item::Bytes(bytes), true) => Ok(Part::Not(bytes)),
            (Item::Bytes(bytes), false) => Ok(Part::Bytes(bytes)),
            (Item::Range(low, high), false) if low <= high => {
                Ok(Part::Between { low, high, backwards: false })
            }
            (Item::Range(..), false) => Err("a range ends before it begins"),
            (Item::Range(..), true) => Err("a range of several bytes cannot be negated"),
            (Item::Set(set), negated) => Ok(Part::Set(if negated { set.inverted() } else { set })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(expression: &str, text: &[u8]) -> bool {
        parse_fragment(expression).unwrap().fits_at(text, 0)
    }

    #[test]
    fn the_notation_of_both_official_files_is_read() {
        assert!(fits("10 00 'Word.' ['6'-'7'] 00", b"\x10\0Word.7\0"));
        assert!(fits("'office:version=' (22|27) '1.0' (22|27)", b"office:version=\"1.0'"));
        assert!(fits("[!&01]00", &[0xfe, 0]) && !fits("[!&01]00", &[0x03, 0]));
        assert!(fits("[!0000]", &[0, 1]) && !fits("[!0000]", &[0, 0]));
        assert!(fits("[0000:1000]", &[0x0f, 0xff]) && !fits("[0000:1000]", &[0x10, 1]));
        assert!(fits("[09 0A 20]", b" ") && !fits("[09 0A 20]", b"x"));
        assert!(fits("[41:5A]", b"K") && !fits("[41:5A]", b"k"));
        assert!(fits("[~03]", &[2]) && !fits("[&03]", &[2]));
        assert!(fits("'M'00'S'002000", b"M\0S\0 \0"));
    }

    #[test]
    fn gaps_and_alternatives_make_slots() {
        let slots = parse("'RIFF'{4}'WAVE'*('fmt '|'bext'){0-9}00{2-*}01").unwrap();
        let gaps: Vec<_> = slots.iter().map(|s| (s.gap_min, s.gap_max)).collect();
        assert_eq!(gaps, [(0, Some(0)), (4, Some(4)), (0, None), (0, Some(9)), (2, None)]);
        assert_eq!(slots[2].choices.len(), 2);
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for bad in [
            "",
            "4",
            "4G",
            "[",
            "[]",
            "{",
            "{x}",
            "{9-1}",
            "(",
            "(|)",
            "(41",
            "'a",
            "?",
            "[41:4142]",
            "[4142 43:44",
            "é",
            "*",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
