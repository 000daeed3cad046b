//! The report that is mailed: small however large the batch. Its readers are depositors and
//! curators, who cannot run the archive's commands.

use super::text::{cancel, change, failure, warned};
use super::words::{
    all_preserved, count, facts, headline, one_line, outcome, problem, shortened, size, verdict,
};
use super::{BatchReport, Head, ObjectLine, Reader};

/// No mail is longer: the limits below see to it.
#[cfg(test)]
pub(crate) const MAIL_BYTES_MAX: usize = 64 << 10;
pub(super) const LINES_MAX: usize = 15;
/// Preserved objects that are named.
const OBJECTS_MAX: usize = 50;
/// Lines that each of many may have: what failed, how many problems there are, and the first.
const PARTS_MAX: usize = 3;
/// Lines that a few may have together.
const PARTS_TOTAL: usize = LINES_MAX * PARTS_MAX;
/// Problems of a batch that could not be read.
const PROBLEMS_MAX: usize = 20;
const FORMATS_MAX: usize = 10;
/// Objects whose warnings are told.
const WARNED_MAX: usize = 5;
/// A line that would be longer is cut; the full lists have all of it.
pub(super) const LINE_BYTES_MAX: usize = 400;
/// A line about a preserved object, of which there are more.
const OBJECT_BYTES_MAX: usize = 250;
/// What a subject may take of a name, so that the counts before it are always in sight.
const SUBJECT_LABEL_MAX: usize = 60;

/// A file that goes with the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    pub name: String,
    /// It has every line of the report.
    pub whole: bool,
}

/// One line that says how it went: `FAILED: 4 of 6 objects preserved, 2 failed: maps.checkm …`.
pub fn mail_subject(head: &Head) -> String {
    let sign = match head.state.as_str() {
        _ if all_preserved(head) => "OK",
        "completed" => "INCOMPLETE",
        _ => "FAILED",
    };
    let label = shortened(&head.label, SUBJECT_LABEL_MAX);
    let label = if label.is_empty() { label } else { format!(": {label}") };
    let collection = head
        .collection
        .as_deref()
        .map_or(String::new(), |name| format!("{}, ", shortened(name, SUBJECT_LABEL_MAX / 2)));
    let update = if head.version > 1 { ", update" } else { "" };
    format!("{sign}: {}{label} ({collection}batch {}{update})", outcome(head), head.batch)
}

/// What went wrong first, then what is preserved, and where the full lists are.
pub fn mail_text(report: &BatchReport, attached: &[Attached]) -> String {
    let head = Head { reader: Reader::Depositor, ..report.head.clone() };
    let Lists { mut mail, is_cut } = Lists::of(report, &head);
    formats(&mut mail, &head);
    pointer(&mut mail, &head, is_cut, attached);
    mail
}

/// Whether the text of the mail leaves anything out.
pub fn mail_is_cut(report: &BatchReport) -> bool {
    Lists::of(report, &report.head).is_cut
}

/// `box-17: ark:/99999/fk4sccxvj, new version v2, 1.5 MiB`
fn preserved(line: &ObjectLine) -> String {
    // What a depositor calls it is first; a line that is cut still has the identifier.
    let (subject, identifier) = (shortened(&line.subject, 100), shortened(&line.identifier, 80));
    let own: Vec<&str> =
        line.local_ids.iter().map(String::as_str).filter(|id| *id != line.subject).collect();
    let own = if own.is_empty() { String::new() } else { format!(" ({})", own.join("; ")) };
    let (state, version, size) = (one_line(&line.state), line.version, size(line.bytes));
    let notes =
        if line.notes.is_empty() { String::new() } else { format!("; {}", line.notes.join("; ")) };
    let told = format!("{subject}: {identifier}, {state} v{version}, {size}{own}{notes}");
    shortened(&told, OBJECT_BYTES_MAX)
}

/// The lists of a mail as they are written.
struct Lists {
    mail: String,
    /// Something was left out.
    is_cut: bool,
}

impl Lists {
    fn of(report: &BatchReport, head: &Head) -> Lists {
        let mail = format!("{}\n\n", shortened(&verdict(head), LINE_BYTES_MAX));
        let mut lists = Lists { mail, is_cut: false };
        for (label, value) in facts(head) {
            let value = shortened(&one_line(&value), LINE_BYTES_MAX);
            lists.mail.push_str(&format!("{:<14}{value}\n", format!("{label}:")));
        }
        lists.problems(head);
        let failures = report.failures.iter().map(|line| failure(head, line));
        lists.list("WHAT WENT WRONG", head.failures_total, LINES_MAX, failures);
        let cancellations = report.cancellations.iter().map(cancel);
        lists.list("CANCELLED AND SUPERSEDED", head.cancellations_total, LINES_MAX, cancellations);
        let changes = report.changed.iter().map(change);
        lists.list("CHANGED SINCE THE LAST REPORT", head.changed_total, LINES_MAX, changes);
        let objects = report.objects.iter().map(preserved);
        let title = if head.is_restore { "DELIVERED" } else { "PRESERVED" };
        lists.list(title, head.objects_total, OBJECTS_MAX, objects);
        lists.warnings(report);
        lists
    }

    fn problems(&mut self, head: &Head) {
        let Some(headline) = headline(head) else { return };
        let headline = shortened(&headline, LINE_BYTES_MAX);
        self.mail.push_str(&format!("\nWHAT IS WRONG WITH THE BATCH\n  {headline}\n"));
        for line in head.problems.iter().take(PROBLEMS_MAX) {
            self.mail
                .push_str(&format!("  - {}\n", shortened(&problem(head, line), LINE_BYTES_MAX)));
        }
        self.cut(head.problems.len().min(PROBLEMS_MAX), head.problems.len());
    }

    fn list(
        &mut self,
        title: &str,
        total: i64,
        lines_max: usize,
        lines: impl ExactSizeIterator<Item = String>,
    ) {
        // The head may count more than are held here, and here may be more than it counts.
        let total = usize::try_from(total).unwrap_or(0).max(lines.len());
        if total == 0 {
            return;
        }
        self.mail.push_str(&format!("\n{title}\n"));
        let mut listed = 0;
        let parts_max = (PARTS_TOTAL / lines.len().max(1)).max(PARTS_MAX);
        for line in lines.take(lines_max) {
            self.put(&line, parts_max);
            listed += 1;
        }
        self.cut(listed, total);
    }

    /// Of the first objects; the full lists have all of them.
    fn warnings(&mut self, report: &BatchReport) {
        let all: Vec<&ObjectLine> =
            report.objects.iter().filter(|object| !object.warnings.is_empty()).collect();
        if all.is_empty() {
            return;
        }
        self.mail.push_str("\nWARNINGS\n");
        all.iter().take(WARNED_MAX).for_each(|object| self.put(&warned(object), PARTS_MAX));
        let held = i64::try_from(report.objects.len()).unwrap_or(i64::MAX);
        let lines_cut = all.iter().take(WARNED_MAX).any(|o| o.warnings.len() >= PARTS_MAX);
        if lines_cut || all.len() > WARNED_MAX || held < report.head.objects_total {
            self.mail.push_str("  There may be more.\n");
            self.is_cut = true;
        }
    }

    /// The first lines of what is said of one.
    fn put(&mut self, told: &str, parts_max: usize) {
        for (nth, part) in told.lines().enumerate() {
            if nth == parts_max {
                self.mail.push_str("    …\n");
                self.is_cut = true;
                return;
            }
            let indent = if part.starts_with(' ') { "    " } else { "  " };
            self.mail.push_str(&format!("{indent}{}\n", shortened(part, LINE_BYTES_MAX)));
        }
    }

    fn cut(&mut self, listed: usize, total: usize) {
        if total > listed {
            self.mail.push_str(&format!("  {listed} of {total} are listed.\n"));
            self.is_cut = true;
        }
    }
}

fn formats(mail: &mut String, head: &Head) {
    if head.formats.is_empty() {
        return;
    }
    mail.push_str("\nFORMATS\n");
    for format in head.formats.iter().take(FORMATS_MAX) {
        let line = format!("{} {}: {}", format.puid, format.name, count(format.files, "file"));
        mail.push_str(&format!("  {}\n", shortened(&line, 120)));
    }
    if let Some(more) = head.formats.len().checked_sub(FORMATS_MAX).filter(|more| *more > 0) {
        mail.push_str(&format!("  and {more} more\n"));
    }
}

/// Where the full lists are, for someone who has this mail and nothing else.
fn pointer(mail: &mut String, head: &Head, is_cut: bool, attached: &[Attached]) {
    let names = |whole: bool| -> Vec<&str> {
        attached.iter().filter(|file| file.whole == whole).map(|file| file.name.as_str()).collect()
    };
    let (whole, parts) = (names(true), names(false));
    let ask = format!("ask the archive for the full report of batch {}", head.batch);
    let said = match (is_cut, whole.is_empty(), parts.is_empty()) {
        (_, false, _) => format!("The full report is attached: {}.", whole.join(", ")),
        (_, true, false) => format!(
            "More of the report is attached: {}. It is too large to be mailed whole: {ask}.",
            parts.join(", ")
        ),
        (true, true, true) => format!("This mail does not list everything: {ask}."),
        (false, true, true) => return,
    };
    mail.push_str(&format!("\n{said}\n"));
}
