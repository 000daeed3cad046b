//! `bag-info.txt`: what people say about a bag, as labels and values in order.

use crate::text::{Line, Lines};
use serde::Serialize;
use std::io::{self, Read};

/// How many tags are kept; a file with more is cut there and reported.
pub const TAGS_MAX: usize = 10_000;
/// How many bytes of labels and values are kept.
pub const TAG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One label and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tag {
    pub label: String,
    pub value: String,
    /// Where it starts, counted from one; zero for tags that were not read from a file.
    pub line: u64,
}

/// The tags of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Tags(pub Vec<Tag>);

/// `Payload-Oxum`: octets and number of payload files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Oxum {
    pub octets: u64,
    pub files: u64,
}

impl Oxum {
    pub fn parse(text: &str) -> Option<Oxum> {
        let (octets, files) = text.trim().split_once('.')?;
        let plain = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !plain(octets) || !plain(files) {
            return None;
        }
        Some(Oxum { octets: octets.parse().ok()?, files: files.parse().ok()? })
    }
}

impl std::fmt::Display for Oxum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.octets, self.files)
    }
}

/// A line that is not a tag, or not as RFC 8493 wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    NoColon,
    NoLabel,
    /// Whitespace around the colon other than one space or tab after it.
    Whitespace,
    FoldWithoutTag,
    Encoding,
    TooLong,
    TooMany,
}

impl Tags {
    /// Values of a label; labels compare without regard to case.
    pub fn values<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a str> {
        self.all(label).map(|tag| tag.value.as_str())
    }

    /// Tags with a label, which compare without regard to case.
    pub fn all<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a Tag> {
        self.0.iter().filter(move |tag| tag.label.eq_ignore_ascii_case(label))
    }

    /// Replaces every value of a label by one.
    pub fn set(&mut self, label: &str, value: impl Into<String>) {
        let tag = Tag { label: label.to_owned(), value: value.into(), line: 0 };
        match self.0.iter().position(|t| t.label.eq_ignore_ascii_case(label)) {
            Some(at) => {
                self.0[at] = tag;
                let mut index = 0;
                self.0.retain(|t| {
                    index += 1;
                    index - 1 <= at || !t.label.eq_ignore_ascii_case(label)
                });
            }
            None => self.0.push(tag),
        }
    }

    pub fn push(&mut self, label: impl Into<String>, value: impl Into<String>) {
        self.0.push(Tag { label: label.into(), value: value.into(), line: 0 });
    }

    /// The declared Oxum and its line; `Err` holds the line of a value that is none.
    pub fn oxum(&self) -> Option<Result<(Oxum, u64), u64>> {
        let tag = self.all("Payload-Oxum").next()?;
        Some(Oxum::parse(&tag.value).map(|oxum| (oxum, tag.line)).ok_or(tag.line))
    }

    /// The file; a line break inside a value becomes a folded line.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for tag in &self.0 {
            let value = tag.value.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\n  ");
            text.push_str(&format!("{}: {}\n", tag.label, value));
        }
        text
    }

    /// Reads a tag file; `flaw` hears of every line that is not as it should be.
    pub fn read<R: Read>(
        lines: &mut Lines<R>,
        flaw: &mut dyn FnMut(Flaw, u64),
    ) -> io::Result<Tags> {
        let mut tags = Tags::default();
        let mut line = Line::default();
        let mut room = TAG_BYTES_MAX;
        while lines.next(&mut line)? {
            if line.malformed {
                flaw(Flaw::Encoding, line.number);
            }
            if line.cut {
                flaw(Flaw::TooLong, line.number);
            }
            room = match room.checked_sub(line.text.len()) {
                Some(room) if tags.0.len() < TAGS_MAX => room,
                _ => {
                    flaw(Flaw::TooMany, line.number);
                    break;
                }
            };
            tags.line(&line, flaw);
        }
        Ok(tags)
    }

    fn line(&mut self, line: &Line, flaw: &mut dyn FnMut(Flaw, u64)) {
        let text = line.text.as_str();
        if text.trim().is_empty() {
            return;
        }
        if text.starts_with([' ', '\t']) {
            match self.0.last_mut() {
                Some(tag) => {
                    tag.value.push(' ');
                    tag.value.push_str(text.trim());
                }
                None => flaw(Flaw::FoldWithoutTag, line.number),
            }
            return;
        }
        let Some((label, value)) = text.split_once(':') else {
            flaw(Flaw::NoColon, line.number);
            return;
        };
        let bare = label.trim();
        if bare.is_empty() {
            flaw(Flaw::NoLabel, line.number);
            return;
        }
        let after = value.strip_prefix([' ', '\t']);
        if bare != label || after.is_none_or(|v| v.starts_with([' ', '\t'])) && !value.is_empty() {
            flaw(Flaw::Whitespace, line.number);
        }
        let tag = Tag { label: bare.into(), value: value.trim().into(), line: line.number };
        self.0.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Encoding;

    fn read(text: &str) -> (Tags, Vec<(Flaw, u64)>) {
        let mut flaws = Vec::new();
        let mut lines = Lines::new(text.as_bytes(), Encoding::UTF_8);
        let tags = Tags::read(&mut lines, &mut |flaw, line| flaws.push((flaw, line))).unwrap();
        (tags, flaws)
    }

    #[test]
    fn values_fold_and_repeat() {
        let (tags, flaws) = read("A: one\n  two\nB:\na: three: four\n");
        assert_eq!(flaws, []);
        assert_eq!(tags.values("a").collect::<Vec<_>>(), ["one two", "three: four"]);
        assert_eq!(tags.values("B").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn odd_lines_are_named() {
        let (_, flaws) = read("  fold\nno colon\n: x\nT : 1\nT:  2\n");
        let expected = [
            (Flaw::FoldWithoutTag, 1),
            (Flaw::NoColon, 2),
            (Flaw::NoLabel, 3),
            (Flaw::Whitespace, 4),
            (Flaw::Whitespace, 5),
        ];
        assert_eq!(flaws, expected);
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let mut tags = Tags::default();
        tags.push("A", "x");
        tags.push("B", "y z");
        tags.push("a", "w");
        tags.set("A", "only");
        let (again, flaws) = read(&tags.render());
        assert_eq!(flaws, []);
        let pairs: Vec<_> = again.0.iter().map(|t| (t.label.as_str(), t.value.as_str())).collect();
        assert_eq!(pairs, [("A", "only"), ("B", "y z")]);
    }

    #[test]
    fn an_oxum_is_two_plain_numbers() {
        assert_eq!(Oxum::parse("58.2"), Some(Oxum { octets: 58, files: 2 }));
        for bad in ["58", "58.", ".2", "+5.2", "5.2.1", "99999999999999999999.1"] {
            assert_eq!(Oxum::parse(bad), None, "{bad}");
        }
    }
}
