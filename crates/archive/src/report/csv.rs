//! The report for spreadsheets: one row for each object and each failure.

use super::{Head, Line, Render, Section, printable};
use std::io::{self, Write};

pub(super) struct Csv;

const COLUMNS: [&str; 17] = [
    "job",
    "subject",
    "state",
    "identifier",
    "local_ids",
    "version",
    "files_new",
    "files_changed",
    "files_unchanged",
    "files_removed",
    "bytes",
    "stores",
    "stage",
    "code",
    "class",
    "file",
    "message",
];

impl Render for Csv {
    fn start(&self, _: &Head, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}\r\n", COLUMNS.join(","))
    }

    fn open(&self, _: Section, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn line(&self, line: &Line<'_>, _: i64, out: &mut dyn Write) -> io::Result<()> {
        let number = |number: i64| number.to_string();
        let none = String::new;
        let cells: [String; COLUMNS.len()] = match line {
            Line::Change(_) => return Ok(()),
            Line::Failure(failure) => [
                number(failure.job),
                cell(&failure.subject),
                "failed".to_owned(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                cell(&failure.stage),
                cell(&failure.code),
                cell(&failure.class),
                cell(failure.file.as_deref().unwrap_or_default()),
                cell(&failure.message),
            ],
            Line::Object(object) => [
                number(object.job),
                cell(&object.subject),
                cell(&object.state),
                cell(&object.identifier),
                cell(&object.local_ids.join("; ")),
                number(object.version),
                number(object.files_new),
                number(object.files_changed),
                number(object.files_unchanged),
                number(object.files_removed),
                number(object.bytes),
                cell(&object.stores.join("; ")),
                none(),
                none(),
                none(),
                none(),
                cell(&[&object.notes[..], &object.warnings[..]].concat().join("\n")),
            ],
        };
        write!(out, "{}\r\n", cells.join(","))
    }

    fn close(&self, _: Section, _: i64, _: &Head, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&self, _: &Head, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Text as a cell. Spreadsheets run what looks like a formula, so such text gets an apostrophe
/// before it, which they take for "this is text".
fn cell(text: &str) -> String {
    let text = printable(text);
    let formula = text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        || text.starts_with(['\t', '\n']);
    let text = if formula { format!("'{text}") } else { text };
    let quoted = text.contains(['"', ',', '\n', '\r', ';', '\t'])
        || text.starts_with(' ')
        || text.ends_with(' ');
    if quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_text() {
        let cases = [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"\nnow", "\"say \"\"x\"\"\nnow\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "'+1"),
            ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\"'\t=1\""),
            (" =1", "' =1"),
            ("a\u{1b}[2J", "a\\u{1b}[2J"),
            ("a\rb", "a\\u{d}b"),
        ];
        for (text, written) in cases {
            assert_eq!(cell(text), written);
        }
    }
}
