//! Results as a table, as JSON lines, as CSV, or as siegfried writes them.

use super::{Outcome, shown, siegfried};
use crate::output;
use pronom::{Basis, Identification, Match, SignatureSet};
use serde_json::json;
use std::io::Write;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Style {
    /// For people
    Table,
    /// One JSON object a line
    Json,
    /// Comma-separated values
    Csv,
    /// The JSON that siegfried writes
    Siegfried,
}

/// How many files ended how.
#[derive(Default)]
pub struct Counts {
    pub content: usize,
    pub extension: usize,
    pub unknown: usize,
    pub failed: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { content, extension, unknown, failed } = self;
        let all = content + extension + unknown + failed;
        let files = if all == 1 { "file" } else { "files" };
        write!(
            f,
            "{all} {files}: {content} by content, {extension} by extension only, {unknown} unknown"
        )?;
        if *failed > 0 { write!(f, ", {failed} could not be read") } else { Ok(()) }
    }
}

/// Writes results as they come.
pub struct Report {
    style: Style,
    counts: Counts,
    written: usize,
}

impl Report {
    pub fn begin(style: Style, set: &SignatureSet) -> std::io::Result<Report> {
        match style {
            Style::Table | Style::Json => {}
            Style::Csv => output::line(
                "path,size,puid,name,version,mime,method,basis,warnings,error,signatures",
            )?,
            Style::Siegfried => output::line(&siegfried::head(set))?,
        }
        Ok(Report { style, counts: Counts::default(), written: 0 })
    }

    pub fn write(&mut self, outcomes: &[Outcome]) -> std::io::Result<()> {
        for outcome in outcomes {
            match &outcome.result {
                Err(_) => self.counts.failed += 1,
                Ok(found) if found.by_content() => self.counts.content += 1,
                Ok(found) if found.matches.is_empty() => self.counts.unknown += 1,
                Ok(_) => self.counts.extension += 1,
            }
        }
        if outcomes.is_empty() {
            return Ok(());
        }
        if self.style == Style::Table {
            let headers = ["path", "puid", "format", "version", "found by", "notes"];
            return output::table(&headers, outcomes.iter().flat_map(rows));
        }
        let mut text = Vec::new();
        for outcome in outcomes {
            match self.style {
                Style::Table => {}
                Style::Json => writeln!(text, "{}", json_line(outcome))?,
                Style::Csv => csv_rows(&mut text, outcome)?,
                Style::Siegfried => {
                    let comma = if self.written == 0 { "" } else { "," };
                    writeln!(text, "{comma}{}", siegfried::file(outcome))?;
                }
            }
            self.written += 1;
        }
        anstream::stdout().lock().write_all(&text)
    }

    pub fn finish(self) -> std::io::Result<Counts> {
        if self.style == Style::Siegfried {
            output::line(siegfried::FOOT)?;
        }
        Ok(self.counts)
    }
}

fn rows(outcome: &Outcome) -> Vec<Vec<String>> {
    let path = shown(&outcome.path);
    let row = |puid: &str, name: &str, version: &str, basis: String, notes: String| {
        vec![path.clone(), puid.to_owned(), name.to_owned(), version.to_owned(), basis, notes]
    };
    match &outcome.result {
        Err(error) => vec![row("", "", "", String::new(), format!("not read: {error}"))],
        Ok(found) if found.matches.is_empty() => {
            vec![row("UNKNOWN", "", "", String::new(), notes(found))]
        }
        Ok(found) => {
            let each = |m: &Match| row(&m.puid, &m.name, &m.version, basis(m), notes(found));
            found.matches.iter().map(each).collect()
        }
    }
}

fn notes(found: &Identification) -> String {
    found.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// How a format was found, in a few words.
fn basis(found: &Match) -> String {
    let at = |spans: &[pronom::Span]| {
        spans.iter().map(|span| span.offset.to_string()).collect::<Vec<_>>().join(", ")
    };
    match &found.basis {
        Basis::Signature { spans, .. } => format!("signature at {}", at(spans)),
        Basis::Container { members, .. } => {
            let paths: Vec<&str> = members.iter().map(|member| member.path.as_str()).collect();
            format!("container: {}", paths.join(", "))
        }
        Basis::Extension { extension } => format!("extension .{extension}"),
    }
}

fn json_line(outcome: &Outcome) -> serde_json::Value {
    let path = shown(&outcome.path);
    match &outcome.result {
        Err(error) => json!({"path": path, "error": error}),
        Ok(found) => {
            let mut value = json!(found);
            if let Some(object) = value.as_object_mut() {
                object.insert("path".to_owned(), json!(path));
            }
            value
        }
    }
}

fn csv_rows(text: &mut Vec<u8>, outcome: &Outcome) -> std::io::Result<()> {
    let path = shown(&outcome.path);
    let found = match &outcome.result {
        Ok(found) => found,
        Err(error) => {
            return csv(text, &[&path, "", "", "", "", "", "", "", "", error, ""]);
        }
    };
    let (size, warnings) = (found.size.to_string(), notes(found));
    if found.matches.is_empty() {
        let set = &found.signatures;
        return csv(text, &[&path, &size, "UNKNOWN", "", "", "", "", "", &warnings, "", set]);
    }
    for m in &found.matches {
        let method = match m.basis {
            Basis::Signature { .. } => "signature",
            Basis::Container { .. } => "container",
            Basis::Extension { .. } => "extension",
        };
        let (mime, basis) = (m.mime.join(", "), siegfried::basis(m));
        let set = &found.signatures;
        csv(
            text,
            &[
                &path, &size, &m.puid, &m.name, &m.version, &mime, method, &basis, &warnings, "",
                set,
            ],
        )?;
    }
    Ok(())
}

fn csv(text: &mut Vec<u8>, fields: &[&str]) -> std::io::Result<()> {
    for (place, field) in fields.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let field = crate::output::printable(field);
        if field.contains([',', '"']) {
            write!(text, "{comma}\"{}\"", field.replace('"', "\"\""))?;
        } else {
            write!(text, "{comma}{field}")?;
        }
    }
    text.extend_from_slice(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        let mut text = Vec::new();
        csv(&mut text, &["a", "b,c", "d\"e", ""]).unwrap();
        assert_eq!(text, b"a,\"b,c\",\"d\"\"e\",\r\n");
    }

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        let mut text = Vec::new();
        csv(&mut text, &["a\u{1b}[31mb\nc\rd"]).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.trim_end().contains(char::is_control), "{text:?}");
    }
}
