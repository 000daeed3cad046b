//! The report for spreadsheets: a row for each problem, failure, cancellation, unfinished row and
//! object.

use super::words::{class, for_reader, printable};
use super::{Head, Line, Render, Section};
use queue::JobId;
use std::io::{self, Write};

pub(super) struct Csv;

const COLUMNS: [&str; 18] = [
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
    "by",
];

/// A row: what its columns hold, in any order. Columns that are not named are empty.
struct Cells([String; COLUMNS.len()]);

impl Cells {
    fn new(job: Option<JobId>, subject: &str, state: &str) -> Cells {
        let mut cells = Cells(std::array::from_fn(|_| String::new()));
        if let Some(job) = job {
            cells = cells.number("job", job.number());
        }
        cells.text("subject", subject).text("state", state)
    }

    fn text(self, column: &str, text: &str) -> Cells {
        self.put(column, cell(text))
    }

    fn number(self, column: &str, number: i64) -> Cells {
        self.put(column, number.to_string())
    }

    fn put(mut self, column: &str, written: String) -> Cells {
        if let Some(at) = COLUMNS.iter().position(|name| *name == column) {
            self.0[at] = written;
        }
        self
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}\r\n", self.0.join(","))
    }
}

impl Render for Csv {
    /// A batch that failed before it had jobs has a row for each of its problems.
    fn start(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}\r\n", COLUMNS.join(","))?;
        let failed = || Cells::new(None, &head.label, "failed");
        for problem in &head.problems {
            let message = for_reader(head, &problem.message);
            failed().text("code", &problem.code).text("message", &message).write(out)?;
        }
        match &head.error {
            Some(error) if head.problems.is_empty() => {
                failed().text("message", &for_reader(head, error)).write(out)
            }
            _ => Ok(()),
        }
    }

    fn open(&self, _: Section, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn line(&self, line: &Line<'_>, _: i64, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        let cells = match line {
            Line::Change(_) => return Ok(()),
            Line::Failure(failure) => Cells::new(Some(failure.job), &failure.subject, "failed")
                .text("stage", &failure.stage)
                .text("code", &failure.code)
                .text("class", &class(head, failure))
                .text("file", failure.file.as_deref().unwrap_or_default())
                .text("message", &for_reader(head, &failure.message)),
            Line::Cancel(cancel) => Cells::new(cancel.job, &cancel.subject, &cancel.state)
                .text("message", &cancel.reason)
                .text("by", &cancel.by),
            Line::Unfinished(row) => {
                Cells::new(row.job, &row.subject, &row.state).text("stage", &row.stage)
            }
            Line::Object(object) => Cells::new(Some(object.job), &object.subject, &object.state)
                .text("identifier", &object.identifier)
                .text("local_ids", &object.local_ids.join("; "))
                .number("version", object.version)
                .number("files_new", object.files_new)
                .number("files_changed", object.files_changed)
                .number("files_unchanged", object.files_unchanged)
                .number("files_removed", object.files_removed)
                .number("bytes", object.bytes)
                .text("stores", &object.stores.join("; "))
                .text("message", &[&object.notes[..], &object.warnings[..]].concat().join("\n")),
        };
        cells.write(out)
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
