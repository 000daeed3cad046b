//! The report that is mailed: small however large the batch.

use super::text::{change, failure, warned};
use super::{BatchReport, Head, ObjectLine, command, cut, facts, one_line, shortened, verdict};

/// No mail is longer.
pub const MAIL_BYTES_MAX: usize = 32 << 10;
pub(super) const LINES_MAX: usize = 15;
/// Lines that each of them may have: what failed, how many problems there are, and the first.
const PARTS_MAX: usize = 3;
const FORMATS_MAX: usize = 10;
/// Objects whose warnings are told.
const WARNED_MAX: usize = 5;
/// A line that would be longer is cut; the full lists have all of it.
pub(super) const LINE_BYTES_MAX: usize = 400;

/// One line that says how it went.
pub fn mail_subject(head: &Head) -> String {
    let sign = if head.state == "completed" { "OK" } else { "FAILED" };
    let collection = head.collection.as_deref().map_or(String::new(), |name| format!(" ({name})"));
    let update = if head.version > 1 { " (update)" } else { "" };
    shortened(&format!("{sign}: {}{collection}{update}", verdict(head)), 150)
}

/// Counts, the first problems, and where the full lists are.
pub fn mail_text(report: &BatchReport) -> String {
    let head = &report.head;
    let mut mail = format!("{}\n\n", shortened(&verdict(head), LINE_BYTES_MAX));
    for (label, value) in facts(head) {
        mail.push_str(&format!(
            "{:<14}{}\n",
            format!("{label}:"),
            shortened(&one_line(&value), LINE_BYTES_MAX)
        ));
    }
    let changes = report.changed.iter().map(change);
    list(&mut mail, "WHAT CHANGED SINCE THE LAST REPORT", head.changed_total, head, changes);
    let failures = report.failures.iter().map(failure);
    list(&mut mail, "WHAT WENT WRONG", head.failures_total, head, failures);
    superseded(&mut mail, report);
    warnings(&mut mail, report);
    formats(&mut mail, head);
    mail.push_str(&format!(
        "\nThe full lists: {}\nOther formats: json, html, text.\n",
        command(head, "csv")
    ));
    mail
}

fn list(
    mail: &mut String,
    title: &str,
    total: i64,
    head: &Head,
    lines: impl ExactSizeIterator<Item = String>,
) {
    // The head may count more than are held here, and here may be more than it counts.
    let total = total.max(i64::try_from(lines.len()).unwrap_or(i64::MAX));
    if total == 0 {
        return;
    }
    mail.push_str(&format!("\n{title}\n"));
    let mut listed = 0;
    for line in lines.take(LINES_MAX) {
        put(mail, &line);
        listed += 1;
    }
    if let Some(cut) = cut(listed, total, head) {
        mail.push_str(&format!("  {cut}\n"));
    }
}

/// What was cancelled or superseded, and what was replaced: the first of them.
fn superseded(mail: &mut String, report: &BatchReport) {
    let noted: Vec<&ObjectLine> = report.objects.iter().filter(|o| !o.notes.is_empty()).collect();
    if noted.is_empty() {
        return;
    }
    mail.push_str("\nCANCELLED, SUPERSEDED AND REPLACED\n");
    for object in noted.iter().take(LINES_MAX) {
        let told = format!("{}: {}", one_line(&object.subject), one_line(&object.notes.join("; ")));
        put(mail, &told);
    }
    if let Some(more) = noted.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        mail.push_str(&format!("  and {more} more\n"));
    }
}

/// Of the first objects; the full lists have all of them.
fn warnings(mail: &mut String, report: &BatchReport) {
    let all: Vec<&ObjectLine> =
        report.objects.iter().filter(|object| !object.warnings.is_empty()).collect();
    if all.is_empty() {
        return;
    }
    mail.push_str("\nWARNINGS\n");
    all.iter().take(WARNED_MAX).for_each(|object| put(mail, &warned(object)));
    let held = i64::try_from(report.objects.len()).unwrap_or(i64::MAX);
    let is_cut = all.iter().take(WARNED_MAX).any(|object| object.warnings.len() >= PARTS_MAX);
    if is_cut || all.len() > WARNED_MAX || held < report.head.objects_total {
        mail.push_str("  There may be more; the full lists have all.\n");
    }
}

/// The first lines of what is said of one.
fn put(mail: &mut String, told: &str) {
    for part in told.lines().take(PARTS_MAX) {
        let indent = if part.starts_with(' ') { "    " } else { "  " };
        mail.push_str(&format!("{indent}{}\n", shortened(part, LINE_BYTES_MAX)));
    }
}

fn formats(mail: &mut String, head: &Head) {
    if head.formats.is_empty() {
        return;
    }
    mail.push_str("\nFORMATS\n");
    for format in head.formats.iter().take(FORMATS_MAX) {
        let line =
            format!("{} {}: {}", format.puid, format.name, super::count(format.files, "file"));
        mail.push_str(&format!("  {}\n", shortened(&line, 120)));
    }
    if let Some(more) = head.formats.len().checked_sub(FORMATS_MAX).filter(|more| *more > 0) {
        mail.push_str(&format!("  and {more} more\n"));
    }
}
