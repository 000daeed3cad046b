//! The report for terminals and paper.

use super::{
    ChangeLine, FailureLine, Head, Line, ObjectLine, Render, Section, count, cut, facts, one_line,
    size, verdict,
};
use std::io::{self, Write};

pub(super) struct Text;

impl Render for Text {
    fn start(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}\n", verdict(head))?;
        for (label, value) in facts(head) {
            // All that is wrong with a batch, one below the other.
            let value = value.replace('\n', &format!("\n{:14}", ""));
            writeln!(out, "{:<14}{value}", format!("{label}:"))?;
        }
        if !head.formats.is_empty() {
            writeln!(out, "\nFORMATS")?;
        }
        for format in &head.formats {
            let files = count(format.files, "file");
            let (puid, name) = (one_line(&format.puid), one_line(&format.name));
            writeln!(out, "  {puid:<12} {files}, {}  {name}", size(format.bytes))?;
        }
        Ok(())
    }

    fn open(&self, _: Section, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn line(&self, line: &Line<'_>, nth: i64, out: &mut dyn Write) -> io::Result<()> {
        let title = match line.section() {
            Section::Changed => "CHANGED SINCE THE LAST REPORT",
            Section::Failures => "FAILURES",
            Section::Objects => "OBJECTS",
        };
        if nth == 0 {
            writeln!(out, "\n{title}")?;
        }
        match line {
            Line::Change(line) => writeln!(out, "  {}", change(line)),
            Line::Failure(line) => writeln!(out, "  {}", failure(line)),
            Line::Object(line) => writeln!(out, "  {}", object(line)),
        }
    }

    fn close(
        &self,
        section: Section,
        listed: i64,
        head: &Head,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match cut(listed, section.total(head), head) {
            Some(cut) => writeln!(out, "  {cut}"),
            None => Ok(()),
        }
    }

    fn end(&self, _: &Head, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn change(line: &ChangeLine) -> String {
    let (subject, before, after) =
        (one_line(&line.subject), one_line(&line.before), one_line(&line.after));
    format!("{subject}: {before}, now {after} (job {})", line.job)
}

pub(super) fn failure(line: &FailureLine) -> String {
    let file = line.file.as_deref().map_or(String::new(), |file| format!(", {}", one_line(file)));
    let mut told = format!(
        "{} failed in {}{file} (job {}, {})",
        one_line(&line.subject),
        one_line(&line.stage),
        line.job,
        one_line(&line.code)
    );
    for said in line.message.lines() {
        told.push_str(&format!("\n    {}", one_line(said)));
    }
    told
}

fn object(line: &ObjectLine) -> String {
    let subject = one_line(&line.subject);
    if matches!(line.state.as_str(), "cancelled" | "superseded") {
        let mut told = format!("{subject}: {} (job {})", line.state, line.job);
        line.notes.iter().for_each(|note| told.push_str(&format!("\n    {}", one_line(note))));
        return told;
    }
    let mut told = format!("{subject}: {}, {}", one_line(&line.identifier), one_line(&line.state));
    told.push_str(&format!(" v{}, {}", line.version, size(line.bytes)));
    let kinds = [
        (line.files_new, "new"),
        (line.files_changed, "changed"),
        (line.files_unchanged, "unchanged"),
        (line.files_removed, "removed"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!("{n} {kind}")).collect();
    if !kinds.is_empty() {
        told.push_str(&format!(", files: {}", kinds.join(", ")));
    }
    if !line.local_ids.is_empty() {
        told.push_str(&format!(", local ids: {}", one_line(&line.local_ids.join("; "))));
    }
    if !line.stores.is_empty() {
        told.push_str(&format!(", in {}", one_line(&line.stores.join(", "))));
    }
    for note in &line.notes {
        told.push_str(&format!("\n    {}", one_line(note)));
    }
    for warning in &line.warnings {
        told.push_str(&format!("\n    warning: {}", one_line(warning)));
    }
    told
}

/// What is said of an object that there are warnings about.
pub(super) fn warned(line: &ObjectLine) -> String {
    let mut told = format!("{} (job {})", one_line(&line.subject), line.job);
    for warning in &line.warnings {
        told.push_str(&format!("\n    {}", one_line(warning)));
    }
    told
}
