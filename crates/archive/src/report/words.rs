//! The words that all renderings share: safe text, counts, and the sentences about a whole batch.

pub(super) use crate::model::text::{one_line, printable, shortened};

use super::{FailureLine, Head, ProblemLine, REQUEUE, Reader, depositor};

/// `1536` as `1.5 KiB`.
pub(super) fn size(bytes: i64) -> String {
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
pub(super) fn count(number: i64, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// The problems among the lines of a batch's error: the first line counts them, and each of the
/// others is one.
pub fn problems(error: &str) -> Vec<ProblemLine> {
    let split = |line: &str| {
        let coded = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        let (code, message) = coded.unwrap_or(("", line));
        ProblemLine { code: code.to_string(), message: message.to_string() }
    };
    error.lines().skip(1).filter(|line| !line.trim().is_empty()).map(split).collect()
}

/// The first line of a batch's error, for a heading above its problems.
pub(super) fn headline(head: &Head) -> Option<String> {
    let error = head.error.as_deref()?;
    Some(for_reader(head, &one_line(error.lines().next().unwrap_or_default())))
}

/// A problem as one line.
pub(super) fn problem(head: &Head, line: &ProblemLine) -> String {
    let message = for_reader(head, &one_line(&line.message));
    if line.code.is_empty() { message } else { format!("[{}] {message}", one_line(&line.code)) }
}

/// A message without the commands that its reader cannot run.
pub(super) fn for_reader(head: &Head, text: &str) -> String {
    match head.reader {
        Reader::Operator => text.to_string(),
        Reader::Depositor => depositor::without_commands(text),
    }
}

/// What can be done about a failure.
pub(super) fn class(head: &Head, line: &FailureLine) -> String {
    match head.reader {
        Reader::Depositor if line.class == REQUEUE => {
            "the archive can run it again when the cause is fixed".to_string()
        }
        _ => line.class.clone(),
    }
}

/// Everything that was submitted is preserved: what `OK` means. A superseded row counts if its content
/// is known to be the same.
pub fn all_preserved(head: &Head) -> bool {
    head.error.is_none()
        && head.submitted > 0
        && head.incomplete == 0
        && head.succeeded + head.superseded_same == head.submitted
}

/// What is said of what succeeded.
pub(super) fn done(head: &Head) -> &'static str {
    if head.is_restore { "delivered" } else { "preserved" }
}

/// `4 of 6 objects preserved (1 unchanged), 2 failed`
pub(super) fn outcome(head: &Head) -> String {
    let mut parts = Vec::new();
    let unchanged =
        if head.unchanged > 0 { format!(" ({} unchanged)", head.unchanged) } else { String::new() };
    if head.submitted > 0 && (ended(head) || head.succeeded > 0) {
        parts.push(format!(
            "{} of {} {}{unchanged}",
            head.succeeded,
            count(head.submitted, "object"),
            done(head)
        ));
    }
    if head.incomplete > 0 {
        parts.push(format!("{} of them incomplete", head.incomplete));
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
        parts.push(match ended(head) {
            true => format!("nothing was {}", done(head)),
            false => "nothing is done yet".to_owned(),
        });
    }
    let problems = head.problems.len();
    if problems > 0 {
        let found = count(i64::try_from(problems).unwrap_or(i64::MAX), "problem");
        parts.push(format!("{found} in what was submitted"));
    }
    parts.join(", ")
}

/// The sentence that every rendering for people starts with.
pub fn verdict(head: &Head) -> String {
    format!("Batch {} {}: {}", head.batch, one_line(&state(head)), outcome(head))
}

pub(super) fn state(head: &Head) -> String {
    if head.held { format!("held ({})", head.state) } else { head.state.clone() }
}

/// A report is written when all has ended; but people look at batches before that.
pub(super) fn ended(head: &Head) -> bool {
    !(head.state.starts_with("pending") || head.state.starts_with("processing"))
}

/// The facts of the head, as labels and values. What is wrong with the batch is not among them.
pub(super) fn facts(head: &Head) -> Vec<(&'static str, String)> {
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
        facts.push(("Waits", for_reader(head, &one_line(waits))));
    }
    facts.push(("Submitted", count(head.submitted, "object")));
    let unchanged = if head.unchanged > 0 {
        format!(" (unchanged: {})", head.unchanged)
    } else {
        String::new()
    };
    let succeeded = if head.is_restore { "Delivered" } else { "Preserved" };
    facts.push((succeeded, format!("{}{unchanged}", head.succeeded)));
    facts.push(("Failed", head.failed.to_string()));
    facts.push(("Cancelled", (head.cancelled - head.superseded).to_string()));
    if head.superseded > 0 {
        let same = head.superseded_same;
        facts.push(("Superseded", format!("{} (same content: {same})", head.superseded)));
    }
    facts.push(("Size", format!("{} ({})", size(head.bytes), count(head.bytes, "byte"))));
    if head.version > 1 {
        facts.push(("Report", format!("version {}, an update of the one before", head.version)));
    }
    facts
}

/// Where all lines are, if a list is cut.
pub(super) fn cut(listed: i64, total: i64, head: &Head) -> Option<String> {
    let all = match head.reader {
        Reader::Operator => format!("All of them: {}", command(head, "csv")),
        Reader::Depositor => {
            format!("The archive has all of them in its report of batch {}.", head.batch)
        }
    };
    (total > listed).then(|| format!("{listed} of {total} are listed. {all}"))
}

pub(super) fn command(head: &Head, format: &str) -> String {
    format!("accession batches report {} --format {format}", head.batch)
}
