//! The report for browsers: one page that needs nothing else, that fits any width, and that a screen
//! reader can read. What went wrong comes first.

mod style;

use super::words::{
    all_preserved, class, count, cut, done, ended, facts, for_reader, headline, one_line, outcome,
    printable, problem, size, state,
};
use super::{
    CancelLine, ChangeLine, FailureLine, Head, Line, ObjectLine, Reader, Render, Section,
    UnfinishedLine,
};
use crate::xml;
use std::io::{self, Write};

pub(super) struct Html;

/// Lines of one list: a browser shows a page of so many well.
pub(super) const LINES_MAX: i64 = 1000;
/// Problems of one failure.
const PROBLEMS_MAX: usize = 20;

/// The columns of a list, each with the class that says what is in it.
type Columns = &'static [(&'static str, &'static str)];

fn columns(section: Section) -> Columns {
    match section {
        Section::Failures => &[],
        Section::Cancellations => {
            &[("Object", "name"), ("Cancelled by", "word"), ("Reason", "text"), ("Job", "number")]
        }
        Section::Changed => {
            &[("Object", "name"), ("Before", "word"), ("Now", "word"), ("Job", "number")]
        }
        Section::Unfinished => {
            &[("Object", "name"), ("State", "word"), ("Stage", "word"), ("Job", "number")]
        }
        Section::Objects => &[
            ("Object", "name"),
            ("Identifier", "identifier"),
            ("Version", "word"),
            ("Files", "word"),
            ("Size", "number"),
            ("Stores", "word"),
        ],
    }
}

const FORMATS: Columns =
    &[("Format", "name"), ("PUID", "word"), ("Files", "number"), ("Size", "number")];

/// Escaped, so that it is text wherever it is put.
fn text(text: &str) -> String {
    xml::text(&printable(text)).into_owned()
}

fn line_of(shown: &str) -> String {
    text(&one_line(shown))
}

impl Render for Html {
    fn start(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        let (outcome, batch) = (text(&outcome(head)), head.batch);
        let label = line_of(&head.label);
        let title = if label.is_empty() { String::new() } else { format!(" – {label}") };
        let (mood, word) = if all_preserved(head) {
            ("good", "OK".to_string())
        } else if ended(head) {
            ("bad", format!("Not everything is {}", done(head)))
        } else {
            ("open", one_line(&state(head)))
        };
        let label = if label.is_empty() { String::new() } else { format!("{label} · ") };
        writeln!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>Batch {batch}: {outcome}{title}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<p class=\"mood {mood}\">{}</p>\n<h1>{outcome}</h1>\n\
             <p class=\"label\">{label}batch {batch}</p>\n</header>",
            style::STYLE,
            text(&word)
        )?;
        if let Some(headline) = headline(head) {
            writeln!(
                out,
                "<section>\n<h2>What is wrong with the batch</h2>\n<div class=\"card\">\n<p>{}</p>",
                text(&headline)
            )?;
            list(out, head.problems.iter().map(|line| problem(head, line)))?;
            writeln!(out, "</div>\n</section>")?;
        }
        Ok(())
    }

    /// A list without lines has no heading either.
    fn open(&self, _: Section, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn line(&self, line: &Line<'_>, nth: i64, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        let section = line.section();
        if nth == 0 {
            writeln!(out, "<section>\n<h2>{}</h2>", section.title(head))?;
            if section != Section::Failures {
                table(out, section.title(head), columns(section))?;
            }
        }
        let cells = match line {
            Line::Failure(line) => return failure(out, head, line),
            Line::Cancel(line) => cancel(line),
            Line::Change(line) => change(line),
            Line::Unfinished(line) => unfinished(line),
            Line::Object(line) => object(line),
        };
        row(out, columns(section), &cells)
    }

    fn close(
        &self,
        section: Section,
        listed: i64,
        head: &Head,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let cut = cut(listed, section.total(head), head);
        match (listed, &cut) {
            (0, None) => return Ok(()),
            (0, Some(_)) => writeln!(out, "<section>\n<h2>{}</h2>", section.title(head))?,
            _ if section == Section::Failures => {}
            _ => writeln!(out, "</tbody>\n</table>")?,
        }
        if let Some(cut) = cut {
            writeln!(out, "<p class=\"cut\">{}</p>", text(&cut))?;
        }
        writeln!(out, "</section>")
    }

    fn end(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        if !head.formats.is_empty() {
            writeln!(out, "<section>\n<h2>Formats</h2>")?;
            table(out, "Formats", FORMATS)?;
            for format in &head.formats {
                let cells = [
                    line_of(&format.name),
                    line_of(&format.puid),
                    format.files.to_string(),
                    size(format.bytes),
                ];
                row(out, FORMATS, &cells)?;
            }
            writeln!(out, "</tbody>\n</table>\n</section>")?;
        }
        writeln!(out, "<section>\n<h2>About this batch</h2>\n<dl>")?;
        for (label, value) in facts(head) {
            writeln!(out, "<div><dt>{label}</dt><dd>{}</dd></div>", text(&value))?;
        }
        writeln!(out, "</dl>\n</section>\n</main>\n</body>\n</html>")
    }
}

/// What failed, where, and each of its problems in a list.
fn failure(out: &mut dyn Write, head: &Head, line: &FailureLine) -> io::Result<()> {
    writeln!(
        out,
        "<article class=\"card\">\n<h3>{}</h3>\n<p class=\"meta\">",
        line_of(&line.subject)
    )?;
    write!(out, "<span>{}</span>", line_of(&format!("failed in {}", line.stage)))?;
    if let Some(file) = &line.file {
        write!(out, " <span class=\"file\">{}</span>", line_of(file))?;
    }
    write!(out, " <code>{}</code>", line_of(&line.code))?;
    writeln!(out, " <span>job {}</span>\n</p>", line.job)?;
    let message = for_reader(head, &line.message);
    let mut lines = message.lines();
    writeln!(out, "<p>{}</p>", line_of(lines.next().unwrap_or_default()))?;
    let rest: Vec<&str> = lines.collect();
    list(out, rest.iter().take(PROBLEMS_MAX).map(|line| one_line(line)))?;
    if let Some(more) = rest.len().checked_sub(PROBLEMS_MAX).filter(|more| *more > 0) {
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let all = match head.reader {
            Reader::Operator => format!("; all of them: accession jobs show {}", line.job),
            Reader::Depositor => String::new(),
        };
        writeln!(out, "<p class=\"cut\">and {}{all}</p>", count(more, "more line"))?;
    }
    writeln!(out, "<p class=\"next\">Next: {}</p>\n</article>", line_of(&class(head, line)))
}

fn list(out: &mut dyn Write, lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "<ul>")?;
    for line in lines {
        writeln!(out, "<li>{}</li>", text(&line))?;
    }
    writeln!(out, "</ul>")
}

fn cancel(line: &CancelLine) -> Vec<String> {
    vec![
        line_of(&line.subject),
        line_of(&line.by),
        line_of(&line.reason),
        line.job.map_or(String::new(), |job| job.to_string()),
    ]
}

fn change(line: &ChangeLine) -> Vec<String> {
    vec![line_of(&line.subject), line_of(&line.before), line_of(&line.after), line.job.to_string()]
}

fn unfinished(line: &UnfinishedLine) -> Vec<String> {
    vec![
        line_of(&line.subject),
        line_of(&line.state),
        line_of(&line.stage),
        line.job.map_or(String::new(), |job| job.to_string()),
    ]
}

fn object(line: &ObjectLine) -> Vec<String> {
    let mut name = line_of(&line.subject);
    let own: Vec<&str> =
        line.local_ids.iter().map(String::as_str).filter(|id| *id != line.subject).collect();
    if !own.is_empty() {
        name.push_str(&format!("<br><small>{}</small>", line_of(&own.join("; "))));
    }
    for note in &line.notes {
        name.push_str(&format!("<br><small>{}</small>", line_of(note)));
    }
    if !line.warnings.is_empty() {
        let items = line.warnings.iter().map(|w| format!("<li>{}</li>", line_of(w)));
        name.push_str(&format!("<ul class=\"warnings\">{}</ul>", items.collect::<String>()));
    }
    vec![
        name,
        line_of(&line.identifier),
        format!("{} <small>{}</small>", line.version, line_of(&line.state)),
        text(&super::text::files(line)),
        size(line.bytes),
        line_of(&line.stores.join(", ")),
    ]
}

/// The roles are said, because a table that is shown as blocks loses them in some browsers.
fn table(out: &mut dyn Write, title: &str, columns: Columns) -> io::Result<()> {
    writeln!(
        out,
        "<table role=\"table\" aria-label=\"{title}\" class=\"of{}\">\n<thead role=\"rowgroup\"><tr role=\"row\">",
        columns.len()
    )?;
    for (name, class) in columns {
        write!(out, "<th role=\"columnheader\" scope=\"col\" class=\"{class}\">{name}</th>")?;
    }
    writeln!(out, "</tr></thead>\n<tbody role=\"rowgroup\">")
}

/// Cells are HTML already.
fn row(out: &mut dyn Write, columns: Columns, cells: &[String]) -> io::Result<()> {
    out.write_all(b"<tr role=\"row\">")?;
    for ((label, class), cell) in columns.iter().zip(cells) {
        // Where there is one column only, each cell says which it was.
        write!(out, "<td role=\"cell\" class=\"{class}\" data-label=\"{label}\">{cell}</td>")?;
    }
    out.write_all(b"</tr>\n")
}
