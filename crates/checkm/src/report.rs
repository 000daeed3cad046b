//! Everything found in one manifest: exact counts of all problems, and the first of each kind.

use crate::code::{Code, Severity};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;

/// Where in the file something is. Lines and rows count from one; zero stands for the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The line of the file.
    pub line: u64,
    /// The row of the manifest; in JSON, several rows may share a line.
    pub row: u64,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The line it is about; absent when it is about the file as a whole.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: u64,
    /// The row it is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub row: u64,
    /// Whether it makes the manifest unfit.
    pub severity: Severity,
    /// Its stable code.
    pub code: Code,
    /// The column it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What is wrong, for a person.
    pub message: String,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{} {}: ", self.severity, self.code)?;
        if let Some(column) = &self.column {
            write!(f, "{column}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Problems of one kind: all are counted, and those nearest the beginning are kept.
#[derive(Debug, Default)]
struct Kind {
    count: u64,
    // A max-heap, because duplicates are found in no order: the farthest gives way to a nearer one.
    kept: BinaryHeap<Problem>,
}

/// How many problems of one code there are, and how many of them the report shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The code.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// How many there are in the manifest.
    pub count: u64,
    /// How many of them are in [`Report::problems`].
    pub shown: u64,
}

/// What reading a manifest to its end found.
#[derive(Debug)]
pub struct Report {
    kinds: BTreeMap<(Severity, Code), Kind>,
    kept_max: usize,
    pub(crate) rows: u64,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) content_bytes: u64,
    pub(crate) content_unknown: u64,
}

impl Report {
    pub(crate) fn new(kept_max: usize) -> Report {
        Report {
            kinds: BTreeMap::new(),
            kept_max,
            rows: 0,
            lines: 0,
            bytes: 0,
            content_bytes: 0,
            content_unknown: 0,
        }
    }

    /// No errors; there may be warnings.
    pub fn is_valid(&self) -> bool {
        self.errors() == 0
    }

    /// How many errors there are, shown or not.
    pub fn errors(&self) -> u64 {
        self.total(Severity::Error)
    }

    /// How many warnings there are, shown or not.
    pub fn warnings(&self) -> u64 {
        self.total(Severity::Warning)
    }

    fn total(&self, severity: Severity) -> u64 {
        self.kinds.iter().filter(|((s, _), _)| *s == severity).map(|(_, k)| k.count).sum()
    }

    /// How many problems there are beyond those that [`Report::problems`] shows.
    pub fn not_shown(&self) -> u64 {
        self.kinds.values().map(|k| k.count - k.kept.len() as u64).sum()
    }

    /// The problems kept, in the order of the file.
    pub fn problems(&self) -> Vec<&Problem> {
        let mut all: Vec<_> = self.kinds.values().flat_map(|k| k.kept.iter()).collect();
        all.sort();
        all
    }

    /// Counts by code, errors first.
    pub fn counts(&self) -> Vec<Count> {
        self.kinds
            .iter()
            .map(|(&(severity, code), kind)| Count {
                code,
                severity,
                count: kind.count,
                shown: kind.kept.len() as u64,
            })
            .collect()
    }

    /// How many problems of this code there are.
    pub fn count(&self, code: Code) -> u64 {
        self.kinds.iter().filter(|((_, c), _)| *c == code).map(|(_, k)| k.count).sum()
    }

    /// How many rows the manifest has, good and bad.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many lines it has.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// How many bytes the manifest itself has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The sum of the sizes that good rows declare; it stops at the largest number there is.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// How many good rows do not declare a size.
    pub fn content_unknown(&self) -> u64 {
        self.content_unknown
    }

    pub(crate) fn add(
        &mut self,
        code: Code,
        at: Place,
        column: Option<&str>,
        message: impl FnOnce() -> String,
    ) {
        self.add_as(code.severity(), code, at, column, message);
    }

    /// The message is made only when it is kept: a million bad rows must not cost a million
    /// strings.
    pub(crate) fn add_as(
        &mut self,
        severity: Severity,
        code: Code,
        at: Place,
        column: Option<&str>,
        message: impl FnOnce() -> String,
    ) {
        let kind = self.kinds.entry((severity, code)).or_default();
        kind.count += 1;
        let full = kind.kept.len() >= self.kept_max;
        let nearer = kind.kept.peek().is_some_and(|far| (at.line, at.row) < (far.line, far.row));
        if full && !nearer {
            return;
        }
        if full {
            kind.kept.pop();
        }
        kind.kept.push(Problem {
            line: at.line,
            row: at.row,
            severity,
            code,
            column: column.map(|c| excerpt(c).to_string()),
            message: message(),
        });
    }
}

/// A value as it may be shown in a message: the beginning of it when it is long.
pub(crate) fn excerpt(value: &str) -> std::borrow::Cow<'_, str> {
    const CHARS_MAX: usize = 100;
    match value.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]).into(),
        None => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_nearest_are_kept() {
        let mut report = Report::new(3);
        for line in [50, 10, 40, 20, 30] {
            report.add(Code::NameDuplicate, Place { line, row: line }, None, || line.to_string());
        }
        report.add(Code::Empty, Place::default(), None, String::new);
        let lines: Vec<_> = report.problems().iter().map(|p| p.line).collect();
        assert_eq!(lines, [0, 10, 20, 30]);
        assert_eq!((report.errors(), report.not_shown()), (6, 2));
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(excerpt(&"ü".repeat(500)).chars().count(), 101);
    }
}
