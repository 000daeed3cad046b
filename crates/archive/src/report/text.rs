//! The report for terminals and paper.

use super::words::{count, cut, facts, for_reader, headline, one_line, problem, size, verdict};
use super::{
    CancelLine, ChangeLine, FailureLine, Head, Line, ObjectLine, Render, SUPERSEDED, Section,
    UnfinishedLine,
};
use std::io::{self, Write};

pub(super) struct Text;

impl Render for Text {
    fn start(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}\n", verdict(head))?;
        for (label, value) in facts(head) {
            writeln!(out, "{:<14}{value}", format!("{label}:"))?;
        }
        if let Some(headline) = headline(head) {
            writeln!(out, "\nWHAT IS WRONG WITH THE BATCH\n  {headline}")?;
        }
        for line in &head.problems {
            writeln!(out, "    {}", problem(head, line))?;
        }
        Ok(())
    }

    fn open(&self, _: Section, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn line(&self, line: &Line<'_>, nth: i64, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        if nth == 0 {
            writeln!(out, "\n{}", line.section().title(head).to_uppercase())?;
        }
        match line {
            Line::Failure(line) => writeln!(out, "  {}", failure(head, line)),
            Line::Cancel(line) => writeln!(out, "  {}", cancel(line)),
            Line::Change(line) => writeln!(out, "  {}", change(line)),
            Line::Unfinished(line) => writeln!(out, "  {}", unfinished(line)),
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
        let Some(cut) = cut(listed, section.total(head), head) else { return Ok(()) };
        if listed == 0 {
            writeln!(out, "\n{}", section.title(head).to_uppercase())?;
        }
        writeln!(out, "  {cut}")
    }

    fn end(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
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
}

pub(super) fn change(line: &ChangeLine) -> String {
    let (subject, before, after) =
        (one_line(&line.subject), one_line(&line.before), one_line(&line.after));
    format!("{subject}: {before}, now {after} (job {})", line.job)
}

pub(super) fn cancel(line: &CancelLine) -> String {
    let (subject, by, reason) =
        (one_line(&line.subject), one_line(&line.by), one_line(&line.reason));
    let job = line.job.map_or(String::new(), |job| format!(" (job {job})"));
    if line.state == SUPERSEDED {
        return format!("{subject}: {reason}{job}");
    }
    let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("{subject}: cancelled{by}{reason}{job}")
}

fn unfinished(line: &UnfinishedLine) -> String {
    let (subject, state, stage) =
        (one_line(&line.subject), one_line(&line.state), one_line(&line.stage));
    match line.job {
        Some(job) => format!("{subject}: {state} in {stage} (job {job})"),
        None => format!("{subject}: {state}"),
    }
}

pub(super) fn failure(head: &Head, line: &FailureLine) -> String {
    let file = line.file.as_deref().map_or(String::new(), |file| format!(", {}", one_line(file)));
    let mut told = format!(
        "{} failed in {}{file} (job {}, {})",
        one_line(&line.subject),
        one_line(&line.stage),
        line.job,
        one_line(&line.code)
    );
    for said in for_reader(head, &line.message).lines() {
        told.push_str(&format!("\n    {}", one_line(said)));
    }
    told
}

fn object(line: &ObjectLine) -> String {
    let mut told = format!(
        "{}: {}, {} v{}, {}",
        one_line(&line.subject),
        one_line(&line.identifier),
        one_line(&line.state),
        line.version,
        size(line.bytes)
    );
    let files = files(line);
    if !files.is_empty() {
        told.push_str(&format!(", files: {files}"));
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

/// `1 new, 2 changed`: what became of the files.
pub(super) fn files(line: &ObjectLine) -> String {
    let kinds = [
        (line.files_new, "new"),
        (line.files_changed, "changed"),
        (line.files_unchanged, "unchanged"),
        (line.files_removed, "removed"),
    ];
    let kinds = kinds.iter().filter(|(number, _)| *number > 0);
    kinds.map(|(number, kind)| format!("{number} {kind}")).collect::<Vec<_>>().join(", ")
}

/// What is said of an object that there are warnings about.
pub(super) fn warned(line: &ObjectLine) -> String {
    let mut told = format!("{} (job {})", one_line(&line.subject), line.job);
    for warning in &line.warnings {
        told.push_str(&format!("\n    {}", one_line(warning)));
    }
    told
}
