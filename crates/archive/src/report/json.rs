//! The report for programs.

use super::{Head, Line, Render, Section};
use std::io::{self, Write};

pub(super) struct Json;

impl Render for Json {
    /// The fields of the head, without the brace that ends them: the lists follow.
    fn start(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        let mut fields = serde_json::to_vec(head)?;
        fields.pop();
        out.write_all(&fields)
    }

    fn open(&self, section: Section, out: &mut dyn Write) -> io::Result<()> {
        let name = match section {
            Section::Failures => "failures",
            Section::Cancellations => "cancellations",
            Section::Changed => "changed",
            Section::Unfinished => "unfinished",
            Section::Objects => "objects",
        };
        write!(out, ",\n\"{name}\":[")
    }

    fn line(&self, line: &Line<'_>, nth: i64, _: &Head, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if nth == 0 { b"\n" } else { b",\n" })?;
        match line {
            Line::Failure(line) => serde_json::to_writer(out, line)?,
            Line::Cancel(line) => serde_json::to_writer(out, line)?,
            Line::Change(line) => serde_json::to_writer(out, line)?,
            Line::Unfinished(line) => serde_json::to_writer(out, line)?,
            Line::Object(line) => serde_json::to_writer(out, line)?,
        }
        Ok(())
    }

    fn close(&self, _: Section, _: i64, _: &Head, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"]")
    }

    fn end(&self, _: &Head, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"}\n")
    }
}
