//! The report for browsers: one page that needs nothing else, and that a screen reader can read.

use super::{Head, Line, Render, Section, cut, facts, one_line, printable, size, verdict};
use crate::xml;
use std::io::{self, Write};

pub(super) struct Html;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1a1a1a;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{font-weight:600}dd{margin:0}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}caption{text-align:left;padding:.3rem 0}\
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #bbb;overflow-wrap:anywhere}\
td.n,th.n{text-align:right;overflow-wrap:normal;white-space:nowrap}\
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}th,td{border-color:#555}}\
@media print{body{margin:0;max-width:none}}";

/// The columns of a list: their names, and whether they are numbers.
fn columns(section: Section) -> &'static [(&'static str, bool)] {
    match section {
        Section::Changed => &[("Job", true), ("Subject", false), ("Before", false), ("Now", false)],
        Section::Failures => &[
            ("Job", true),
            ("Subject", false),
            ("Stage", false),
            ("File", false),
            ("What is wrong and what to do", false),
            ("Code", false),
            ("Class", false),
        ],
        Section::Objects => &[
            ("Job", true),
            ("Subject", false),
            ("Identifier", false),
            ("Local ids", false),
            ("Version", true),
            ("State", false),
            ("New files", true),
            ("Changed", true),
            ("Unchanged", true),
            ("Removed", true),
            ("Size", true),
            ("Stores", false),
            ("Notes and warnings", false),
        ],
    }
}

fn title(section: Section) -> &'static str {
    match section {
        Section::Changed => "Changed since the last report",
        Section::Failures => "Failures",
        Section::Objects => "Objects",
    }
}

fn text(text: &str) -> String {
    xml::text(&printable(text)).into_owned()
}

impl Render for Html {
    fn start(&self, head: &Head, out: &mut dyn Write) -> io::Result<()> {
        let verdict = text(&verdict(head));
        writeln!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{verdict}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{verdict}</h1>\n<dl>"
        )?;
        for (label, value) in facts(head) {
            writeln!(out, "<dt>{label}</dt><dd>{}</dd>", text(&value))?;
        }
        writeln!(out, "</dl>")?;
        if head.formats.is_empty() {
            return Ok(());
        }
        let names = [("PUID", false), ("Name", false), ("Files", true), ("Size", true)];
        table(out, "Formats", &names)?;
        for format in &head.formats {
            let cells = [
                format.puid.clone(),
                format.name.clone(),
                format.files.to_string(),
                size(format.bytes),
            ];
            row(out, &names, &cells)?;
        }
        writeln!(out, "</tbody>\n</table></div>")
    }

    /// A list without lines has no table either.
    fn open(&self, _: Section, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn line(&self, line: &Line<'_>, nth: i64, out: &mut dyn Write) -> io::Result<()> {
        let section = line.section();
        if nth == 0 {
            table(out, title(section), columns(section))?;
        }
        let n = |number: i64| number.to_string();
        let cells = match line {
            Line::Change(line) => {
                vec![n(line.job), one_line(&line.subject), line.before.clone(), line.after.clone()]
            }
            Line::Failure(line) => vec![
                n(line.job),
                one_line(&line.subject),
                line.stage.clone(),
                line.file.clone().unwrap_or_default(),
                line.message.clone(),
                line.code.clone(),
                line.class.clone(),
            ],
            Line::Object(line) => vec![
                n(line.job),
                one_line(&line.subject),
                line.identifier.clone(),
                line.local_ids.join("; "),
                n(line.version),
                line.state.clone(),
                n(line.files_new),
                n(line.files_changed),
                n(line.files_unchanged),
                n(line.files_removed),
                size(line.bytes),
                line.stores.join(", "),
                [&line.notes[..], &line.warnings[..]].concat().join("; "),
            ],
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
        if listed > 0 {
            writeln!(out, "</tbody>\n</table></div>")?;
        }
        match cut(listed, section.total(head), head) {
            Some(cut) => writeln!(out, "<p>{}</p>", text(&cut)),
            None => Ok(()),
        }
    }

    fn end(&self, _: &Head, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "</main>\n</body>\n</html>")
    }
}

fn class(number: bool) -> &'static str {
    if number { " class=\"n\"" } else { "" }
}

/// A table wide enough to scroll must be reachable by keyboard, and so has a name of its own.
fn table(out: &mut dyn Write, title: &str, columns: &[(&str, bool)]) -> io::Result<()> {
    writeln!(
        out,
        "<h2>{title}</h2>\n<div class=\"wide\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\"><table>\n\
         <caption>{title}</caption>\n<thead><tr>"
    )?;
    for (name, number) in columns {
        write!(out, "<th scope=\"col\"{}>{name}</th>", class(*number))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")
}

fn row(out: &mut dyn Write, columns: &[(&str, bool)], cells: &[String]) -> io::Result<()> {
    out.write_all(b"<tr>")?;
    for ((_, number), cell) in columns.iter().zip(cells) {
        write!(out, "<td{}>{}</td>", class(*number), text(cell))?;
    }
    out.write_all(b"</tr>\n")
}
