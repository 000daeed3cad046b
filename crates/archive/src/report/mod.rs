//! What became of a batch: one model, four renderings, and a short one for mail.
//!
//! A report has a [`Head`], which is small whatever the batch, and lines: failures, cancellations,
//! what changed since the last report, what is not done yet, and objects, in this order. [`Writer`]
//! takes the lines one by one, so that a report of millions of objects is written as it is read from
//! the registry; [`BatchReport`] holds those that are to be kept in one piece.

mod csv;
mod depositor;
mod html;
mod json;
mod mail;
mod reviews;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub(crate) use depositor::without_commands;
#[cfg(test)]
pub(crate) use mail::MAIL_BYTES_MAX;
pub use mail::{Attached, mail_is_cut, mail_subject, mail_text};
pub use reviews::{ReviewLine, reviews_subject, reviews_text};
pub use words::{all_preserved, problems, verdict};

use db::Micros;
use queue::{BatchId, JobId};
use serde::{Deserialize, Serialize};
use std::io;

/// What is said of the batch as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    pub batch: BatchId,
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
    /// Of those superseded, how many have the same content, which is preserved.
    pub superseded_same: i64,
    /// Of those that succeeded, how many had nothing new.
    pub unchanged: i64,
    pub bytes: i64,
    /// It is a batch of restores: what succeeded is delivered, where others are preserved.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_restore: bool,
    /// Of those that were delivered, how many lack files that no store has intact.
    #[serde(skip_serializing_if = "is_zero")]
    pub incomplete: i64,
    /// Why the batch as a whole failed, if it did.
    pub error: Option<String>,
    /// Everything that is wrong with what was submitted, where that is why it failed.
    pub problems: Vec<ProblemLine>,
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
    pub cancellations_total: i64,
    pub changed_total: i64,
    pub unfinished_total: i64,
    /// Decides which commands the renderings name.
    #[serde(skip)]
    pub reader: Reader,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Who reads a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    /// Works at the archive and can run its commands.
    #[default]
    Operator,
    /// Gets the report by mail, and has no account at the archive.
    Depositor,
}

/// A report in one piece. The lists may be cut; the totals of the head say by how much.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchReport {
    #[serde(flatten)]
    pub head: Head,
    pub failures: Vec<FailureLine>,
    pub cancellations: Vec<CancelLine>,
    pub changed: Vec<ChangeLine>,
    pub unfinished: Vec<UnfinishedLine>,
    pub objects: Vec<ObjectLine>,
}

impl BatchReport {
    /// Whether a rendering lists everything that there is.
    pub fn is_whole(&self, format: Format) -> bool {
        let lists = [
            (self.failures.len(), self.head.failures_total),
            (self.cancellations.len(), self.head.cancellations_total),
            (self.changed.len(), self.head.changed_total),
            (self.unfinished.len(), self.head.unfinished_total),
            (self.objects.len(), self.head.objects_total),
        ];
        lists.iter().all(|(held, total)| {
            i64::try_from(*held).is_ok_and(|held| held >= *total && held <= format.lines_max())
        })
    }

    /// The number of lines in the longest of the lists.
    pub fn longest_list(&self) -> usize {
        let lists = [
            self.failures.len(),
            self.cancellations.len(),
            self.changed.len(),
            self.unfinished.len(),
            self.objects.len(),
        ];
        lists.into_iter().max().unwrap_or(0)
    }

    /// Cuts every list; the totals of the head stay.
    pub fn truncate(&mut self, lines_max: usize) {
        self.failures.truncate(lines_max);
        self.cancellations.truncate(lines_max);
        self.changed.truncate(lines_max);
        self.unfinished.truncate(lines_max);
        self.objects.truncate(lines_max);
    }
}

/// One thing that is wrong with what was submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemLine {
    pub code: String,
    /// What is wrong, where, and what to do.
    pub message: String,
}

/// How many files of a format the batch brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatCount {
    pub puid: String,
    pub name: String,
    pub files: i64,
    pub bytes: i64,
}

/// An object that is preserved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectLine {
    pub job: JobId,
    pub subject: String,
    pub identifier: String,
    pub local_ids: Vec<String>,
    pub version: i64,
    /// `new version`, `unchanged` or `delivered`.
    pub state: String,
    pub files_new: i64,
    pub files_changed: i64,
    pub files_unchanged: i64,
    pub files_removed: i64,
    pub bytes: i64,
    pub stores: Vec<String>,
    /// What was found that is no reason to refuse it.
    pub warnings: Vec<String>,
    /// What it superseded, or where it was delivered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A job that failed, and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureLine {
    pub job: JobId,
    pub subject: String,
    pub stage: String,
    pub code: String,
    /// The cause and what to do.
    pub message: String,
    pub file: Option<String>,
    /// Whether it can be run again or has to be deposited again.
    pub class: String,
}

/// What a [`FailureLine`] says of a job that can be run again.
pub const REQUEUE: &str = "requeue when the cause is fixed";
/// What it says of one that cannot.
pub const DEPOSIT_AGAIN: &str = "deposit again";

/// The state of a [`CancelLine`] that a later job took the place of.
pub const SUPERSEDED: &str = "superseded";

/// A row that was cancelled, by whom and why, or that a later job took the place of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CancelLine {
    /// None if it had not become a job.
    pub job: Option<JobId>,
    pub subject: String,
    /// `cancelled` or `superseded`.
    pub state: String,
    /// Who cancelled it; empty if it was superseded.
    pub by: String,
    /// Why, or what took its place and whether the content is the same.
    pub reason: String,
}

/// A row of a batch that is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnfinishedLine {
    /// None while it has not become a job.
    pub job: Option<JobId>,
    pub subject: String,
    /// `queued`, `running`, `held`, or `not begun` while it has not become a job.
    pub state: String,
    /// Where it is; empty while it has not become a job.
    pub stage: String,
}

/// What is different from the last report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeLine {
    pub job: JobId,
    pub subject: String,
    /// What the last report said of it: `failed`, mostly.
    pub before: String,
    /// What became of it since.
    pub after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    /// One row for each problem, failure, cancellation, unfinished row and object. What changed and
    /// the counts of the head are not in it.
    Csv,
    Html,
    Text,
}

impl Format {
    /// How many lines of each list are written. Browsers and people cannot use pages of millions
    /// of lines; the other formats have them all.
    pub fn lines_max(self) -> i64 {
        match self {
            Format::Html => html::LINES_MAX,
            Format::Json | Format::Csv | Format::Text => i64::MAX,
        }
    }
}

/// The lists of a report, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Failures,
    Cancellations,
    Changed,
    Unfinished,
    Objects,
}

impl Section {
    const ALL: [Section; 5] = [
        Section::Failures,
        Section::Cancellations,
        Section::Changed,
        Section::Unfinished,
        Section::Objects,
    ];

    fn total(self, head: &Head) -> i64 {
        match self {
            Section::Failures => head.failures_total,
            Section::Cancellations => head.cancellations_total,
            Section::Changed => head.changed_total,
            Section::Unfinished => head.unfinished_total,
            Section::Objects => head.objects_total,
        }
    }

    /// What people call the list.
    fn title(self, head: &Head) -> &'static str {
        match self {
            Section::Objects if head.is_restore => "Delivered objects",
            Section::Failures => "Failures",
            Section::Cancellations => "Cancelled and superseded",
            Section::Changed => "Changed since the last report",
            Section::Unfinished => "Not finished",
            Section::Objects => "Preserved objects",
        }
    }
}

enum Line<'a> {
    Failure(&'a FailureLine),
    Cancel(&'a CancelLine),
    Change(&'a ChangeLine),
    Unfinished(&'a UnfinishedLine),
    Object(&'a ObjectLine),
}

impl Line<'_> {
    fn section(&self) -> Section {
        match self {
            Line::Failure(_) => Section::Failures,
            Line::Cancel(_) => Section::Cancellations,
            Line::Change(_) => Section::Changed,
            Line::Unfinished(_) => Section::Unfinished,
            Line::Object(_) => Section::Objects,
        }
    }
}

/// What each rendering knows: how a report, its lists and their lines begin and end.
trait Render {
    fn start(&self, head: &Head, out: &mut dyn io::Write) -> io::Result<()>;
    fn open(&self, section: Section, out: &mut dyn io::Write) -> io::Result<()>;
    fn line(
        &self,
        line: &Line<'_>,
        nth: i64,
        head: &Head,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;
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
    lines_max: i64,
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
        Ok(Writer { render, lines_max: format.lines_max(), head, out, at: None })
    }

    pub fn failure(&mut self, line: &FailureLine) -> io::Result<()> {
        self.line(&Line::Failure(line))
    }

    pub fn cancel(&mut self, line: &CancelLine) -> io::Result<()> {
        self.line(&Line::Cancel(line))
    }

    pub fn change(&mut self, line: &ChangeLine) -> io::Result<()> {
        self.line(&Line::Change(line))
    }

    pub fn unfinished(&mut self, line: &UnfinishedLine) -> io::Result<()> {
        self.line(&Line::Unfinished(line))
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

    /// Writes a line, unless its list has as many as the format takes: the end of the list says so.
    fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        let nth = self.advance(line.section())?;
        if nth >= self.lines_max {
            return Ok(());
        }
        self.render.line(line, nth, self.head, &mut self.out)?;
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
                    "the lists of a report are written in their order: failures, cancellations, changes, unfinished, objects",
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
    report.failures.iter().try_for_each(|line| writer.failure(line))?;
    report.cancellations.iter().try_for_each(|line| writer.cancel(line))?;
    report.changed.iter().try_for_each(|line| writer.change(line))?;
    report.unfinished.iter().try_for_each(|line| writer.unfinished(line))?;
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
