//! What became of a batch: one model, four renderings, and a short one for mail.
//!
//! A report has a [`Head`], which is small whatever the batch, and lines: what changed since the
//! last report, failures, and objects, in this order. [`Writer`] takes the lines one by one, so
//! that a report of millions of objects is written as it is read from the registry;
//! [`BatchReport`] holds those that are to be kept in one piece.

mod csv;
mod html;
mod json;
mod mail;
mod reviews;
#[cfg(test)]
mod tests;
mod text;

pub use mail::{MAIL_BYTES_MAX, mail_subject, mail_text};
pub use reviews::{ReviewLine, reviews_subject, reviews_text};

use db::Micros;
use serde::{Deserialize, Serialize};
use std::io;

/// What is said of the batch as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    pub batch: i64,
    /// What the submitter calls it: a file name, mostly.
    pub label: String,
    pub collection: Option<String>,
    pub submitter: String,
    /// Counted from 1: a batch whose failed jobs were run again is reported again.
    pub version: i64,
    pub state: String,
    pub submitted: i64,
    pub succeeded: i64,
    pub failed: i64,
    /// By people, and superseded ones.
    pub cancelled: i64,
    /// Of those cancelled, how many a later job took the place of.
    pub superseded: i64,
    /// Of those that succeeded, how many had nothing new.
    pub unchanged: i64,
    pub bytes: i64,
    /// Why the batch as a whole failed, if it did.
    pub error: Option<String>,
    /// Who stopped it and why, while it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Somebody holds it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    #[serde(with = "time")]
    pub created_at: Micros,
    #[serde(with = "time")]
    pub finished_at: Micros,
    pub formats: Vec<FormatCount>,
    /// How many lines of each kind there are, listed here or not.
    pub objects_total: i64,
    pub failures_total: i64,
    pub changed_total: i64,
}

/// A report in one piece. The lists may be cut; the totals of the head say by how much.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchReport {
    #[serde(flatten)]
    pub head: Head,
    pub changed: Vec<ChangeLine>,
    pub failures: Vec<FailureLine>,
    pub objects: Vec<ObjectLine>,
}

/// How many files of a format the batch brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatCount {
    pub puid: String,
    pub name: String,
    pub files: i64,
    pub bytes: i64,
}

/// An object that is preserved, or a deposit that was cancelled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectLine {
    pub job: i64,
    pub subject: String,
    pub identifier: String,
    pub local_ids: Vec<String>,
    pub version: i64,
    /// `new version`, `unchanged`, `cancelled` or `superseded`.
    pub state: String,
    pub files_new: i64,
    pub files_changed: i64,
    pub files_unchanged: i64,
    pub files_removed: i64,
    pub bytes: i64,
    pub stores: Vec<String>,
    /// What was found that is no reason to refuse it.
    pub warnings: Vec<String>,
    /// Who cancelled it and why, what superseded it, and what it superseded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A job that failed, and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureLine {
    pub job: i64,
    pub subject: String,
    pub stage: String,
    pub code: String,
    /// The cause and what to do.
    pub message: String,
    pub file: Option<String>,
    /// `permanent` or `transient`.
    pub class: String,
}

/// What is different from the last report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeLine {
    pub job: i64,
    pub subject: String,
    /// What the last report said of it: `failed`, mostly.
    pub before: String,
    /// What became of it since.
    pub after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    /// One row for each object and each failure. What changed and the counts of the head are
    /// not in it.
    Csv,
    Html,
    Text,
}

/// The lists of a report, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Changed,
    Failures,
    Objects,
}

impl Section {
    const ALL: [Section; 3] = [Section::Changed, Section::Failures, Section::Objects];

    fn total(self, head: &Head) -> i64 {
        match self {
            Section::Changed => head.changed_total,
            Section::Failures => head.failures_total,
            Section::Objects => head.objects_total,
        }
    }
}

enum Line<'a> {
    Change(&'a ChangeLine),
    Failure(&'a FailureLine),
    Object(&'a ObjectLine),
}

impl Line<'_> {
    fn section(&self) -> Section {
        match self {
            Line::Change(_) => Section::Changed,
            Line::Failure(_) => Section::Failures,
            Line::Object(_) => Section::Objects,
        }
    }
}

/// What each rendering knows: how a report, its lists and their lines begin and end.
trait Render {
    fn start(&self, head: &Head, out: &mut dyn io::Write) -> io::Result<()>;
    fn open(&self, section: Section, out: &mut dyn io::Write) -> io::Result<()>;
    fn line(&self, line: &Line<'_>, nth: i64, out: &mut dyn io::Write) -> io::Result<()>;
    fn close(
        &self,
        section: Section,
        listed: i64,
        head: &Head,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;
    fn end(&self, head: &Head, out: &mut dyn io::Write) -> io::Result<()>;
}

/// Writes a report line by line, with memory for one line.
pub struct Writer<'h, W: io::Write> {
    render: &'static dyn Render,
    head: &'h Head,
    out: W,
    /// The list being written and how many lines it has; none before the first.
    at: Option<(Section, i64)>,
}

impl<'h, W: io::Write> Writer<'h, W> {
    pub fn new(format: Format, head: &'h Head, mut out: W) -> io::Result<Writer<'h, W>> {
        let render: &dyn Render = match format {
            Format::Json => &json::Json,
            Format::Csv => &csv::Csv,
            Format::Html => &html::Html,
            Format::Text => &text::Text,
        };
        render.start(head, &mut out)?;
        Ok(Writer { render, head, out, at: None })
    }

    pub fn change(&mut self, line: &ChangeLine) -> io::Result<()> {
        self.line(&Line::Change(line))
    }

    pub fn failure(&mut self, line: &FailureLine) -> io::Result<()> {
        self.line(&Line::Failure(line))
    }

    pub fn object(&mut self, line: &ObjectLine) -> io::Result<()> {
        self.line(&Line::Object(line))
    }

    /// Writes what follows the last line. A report without this is cut off.
    pub fn finish(mut self) -> io::Result<W> {
        self.advance(Section::Objects)?;
        if let Some((section, listed)) = self.at {
            self.render.close(section, listed, self.head, &mut self.out)?;
        }
        self.render.end(self.head, &mut self.out)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        let nth = self.advance(line.section())?;
        self.render.line(line, nth, &mut self.out)?;
        self.at = Some((line.section(), nth + 1));
        Ok(())
    }

    /// Ends and begins lists until this one is open; says how many lines it has.
    fn advance(&mut self, wanted: Section) -> io::Result<i64> {
        if let Some((section, listed)) = self.at {
            if section == wanted {
                return Ok(listed);
            }
            if section > wanted {
                return Err(io::Error::other(
                    "changes come before failures, and these before objects",
                ));
            }
        }
        let next =
            |section: Section| section <= wanted && self.at.is_none_or(|(at, _)| section > at);
        for section in Section::ALL.into_iter().filter(|section| next(*section)).collect::<Vec<_>>()
        {
            if let Some((open, listed)) = self.at {
                self.render.close(open, listed, self.head, &mut self.out)?;
            }
            self.render.open(section, &mut self.out)?;
            self.at = Some((section, 0));
        }
        Ok(0)
    }
}

/// Writes a report that is in one piece.
pub fn render(format: Format, report: &BatchReport, out: impl io::Write) -> io::Result<()> {
    let mut writer = Writer::new(format, &report.head, out)?;
    report.changed.iter().try_for_each(|line| writer.change(line))?;
    report.failures.iter().try_for_each(|line| writer.failure(line))?;
    report.objects.iter().try_for_each(|line| writer.object(line))?;
    writer.finish().map(|_| ())
}

/// Times in JSON as RFC 3339, to the microsecond.
mod time {
    use db::Micros;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn show(at: Micros) -> String {
        match jiff::Timestamp::from_microsecond(at) {
            Ok(time) => format!("{time:.6}"),
            Err(_) => at.to_string(),
        }
    }

    pub(super) fn serialize<S: Serializer>(at: &Micros, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&show(*at))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Micros, D::Error> {
        let text = String::deserialize(from)?;
        let time: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
        Ok(time.as_microsecond())
    }
}

/// Text that can do nothing where it is shown: control characters and the marks that reorder or
/// hide text become visible.
fn printable(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// The same on one line.
fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same, cut if it is longer.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> String {
    let line = one_line(text);
    if line.len() <= bytes_max {
        return line;
    }
    let end = (0..=bytes_max).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &line[..end])
}

/// `1536` as `1.5 KiB`.
fn size(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `3 objects`, `1 object`.
fn count(number: i64, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// The sentence that every rendering for people starts with.
fn verdict(head: &Head) -> String {
    let mut parts = Vec::new();
    let fresh = head.succeeded - head.unchanged;
    if head.succeeded > 0 {
        parts.push(match (fresh, head.unchanged) {
            (_, 0) => format!("{} preserved", count(head.succeeded, "object")),
            (0, unchanged) => format!("{} unchanged", count(unchanged, "object")),
            (fresh, unchanged) => {
                format!("{} preserved, {unchanged} unchanged", count(fresh, "object"))
            }
        });
    }
    if head.failed > 0 {
        parts.push(format!("{} failed", head.failed));
    }
    if head.cancelled > head.superseded {
        parts.push(format!("{} cancelled", head.cancelled - head.superseded));
    }
    if head.superseded > 0 {
        parts.push(format!("{} superseded", head.superseded));
    }
    if parts.is_empty() {
        let nothing = if ended(head) { "nothing was preserved" } else { "nothing is done yet" };
        parts.push(nothing.to_owned());
    }
    format!("Batch {} {}: {}", head.batch, one_line(&state(head)), parts.join(", "))
}

fn state(head: &Head) -> String {
    if head.held { format!("held ({})", head.state) } else { head.state.clone() }
}

/// A report is written when all has ended; but people look at batches before that.
fn ended(head: &Head) -> bool {
    !(head.state.starts_with("pending") || head.state.starts_with("processing"))
}

/// The facts of the head, as labels and values.
fn facts(head: &Head) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Batch", head.batch.to_string())];
    if !head.label.is_empty() {
        facts.push(("Label", one_line(&head.label)));
    }
    if let Some(collection) = &head.collection {
        facts.push(("Collection", one_line(collection)));
    }
    facts.push(("Submitted by", one_line(&head.submitter)));
    facts.push(("Submitted at", queue::view::show_time(head.created_at)));
    let last = if ended(head) { "Finished at" } else { "Last change" };
    facts.push((last, queue::view::show_time(head.finished_at)));
    facts.push(("State", one_line(&state(head))));
    if let Some(waits) = &head.waits {
        facts.push(("Waits", one_line(waits)));
    }
    facts.push(("Submitted", count(head.submitted, "object")));
    facts.push(("Succeeded", format!("{} (unchanged: {})", head.succeeded, head.unchanged)));
    facts.push(("Failed", head.failed.to_string()));
    facts.push(("Cancelled", (head.cancelled - head.superseded).to_string()));
    if head.superseded > 0 {
        facts.push(("Superseded", format!("{}, by later deposits", head.superseded)));
    }
    facts.push(("Size", format!("{} ({})", size(head.bytes), count(head.bytes, "byte"))));
    if head.version > 1 {
        facts.push(("Report", format!("version {}, an update of the one before", head.version)));
    }
    if let Some(error) = &head.error {
        facts.push(("Error", error.lines().map(one_line).collect::<Vec<_>>().join("\n")));
    }
    facts
}

/// Where all lines are, if a list is cut.
fn cut(listed: i64, total: i64, head: &Head) -> Option<String> {
    (total > listed)
        .then(|| format!("{listed} of {total} are listed. All of them: {}", command(head, "csv")))
}

fn command(head: &Head, format: &str) -> String {
    format!("accession batches report {} --format {format}", head.batch)
}
