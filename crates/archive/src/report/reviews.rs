//! One gathered mail for operators about the jobs that need a person since the last one.

use super::mail::{LINE_BYTES_MAX, LINES_MAX};
use super::words::{count, shortened};
use db::Micros;
use queue::JobId;
use std::collections::BTreeMap;

/// A job that needs a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewLine {
    pub job: JobId,
    pub pipeline: String,
    pub stage: String,
    pub subject: String,
    pub collection: Option<String>,
    pub code: String,
    /// The cause and what to do.
    pub message: String,
    pub at: Micros,
}

pub fn reviews_subject(total: i64) -> String {
    match total {
        1 => "1 job needs review".to_owned(),
        total => format!("{total} jobs need review"),
    }
}

/// How many there are of each kind, and the first of them. `total` counts those that are not
/// among the lines, too; the text is small however many there are.
pub fn reviews_text(total: i64, lines: &[ReviewLine]) -> String {
    let total = total.max(i64::try_from(lines.len()).unwrap_or(i64::MAX));
    let mut text = format!("{}.\n\nBY CAUSE\n", reviews_subject(total));
    let mut causes: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for line in lines {
        *causes.entry((&line.code, &line.stage)).or_default() += 1;
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(cause, number)| (-number, *cause));
    for ((code, stage), number) in causes.iter().take(LINES_MAX) {
        let line = format!("{}: {code} in {stage}", count(*number, "job"));
        text.push_str(&format!("  {}\n", shortened(&line, LINE_BYTES_MAX)));
    }
    if let Some(more) = causes.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("  and {}\n", count(more as i64, "other cause")));
    }
    text.push_str("\nTHE FIRST OF THEM\n");
    for line in lines.iter().take(LINES_MAX) {
        let of = line.collection.as_deref().map_or(String::new(), |name| format!(" of {name}"));
        let head = format!(
            "job {}: {}{of}, {} {}, {}",
            line.job,
            shortened(&line.subject, 200),
            line.pipeline,
            line.stage,
            queue::view::show_time(line.at)
        );
        text.push_str(&format!("  {}\n", shortened(&head, LINE_BYTES_MAX)));
        let why = format!("{}: {}", line.code, line.message);
        text.push_str(&format!("    {}\n", shortened(&why, LINE_BYTES_MAX)));
    }
    text.push_str("\nAll of them: accession jobs review\nOne of them, with its history: accession jobs show JOB\nTo try again when the cause is fixed: accession jobs requeue JOB\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::MAIL_BYTES_MAX;

    fn line(job: JobId, code: &str) -> ReviewLine {
        ReviewLine {
            job,
            pipeline: "ingest".into(),
            stage: "validating".into(),
            subject: format!("box-{job}\n"),
            collection: Some("maps".into()),
            code: code.into(),
            message: "what is wrong; what to do".into(),
            at: 0,
        }
    }

    #[test]
    fn causes_are_counted_and_the_first_are_told() {
        let lines = [
            line(JobId::new(1), "bag.a"),
            line(JobId::new(2), "bag.b"),
            line(JobId::new(3), "bag.b"),
        ];
        let expected = "\
3 jobs need review.

BY CAUSE
  2 jobs: bag.b in validating
  1 job: bag.a in validating

THE FIRST OF THEM
  job 1: box-1 of maps, ingest validating, 1970-01-01 00:00:00Z
    bag.a: what is wrong; what to do
  job 2: box-2 of maps, ingest validating, 1970-01-01 00:00:00Z
    bag.b: what is wrong; what to do
  job 3: box-3 of maps, ingest validating, 1970-01-01 00:00:00Z
    bag.b: what is wrong; what to do

All of them: accession jobs review
One of them, with its history: accession jobs show JOB
To try again when the cause is fixed: accession jobs requeue JOB
";
        assert_eq!(reviews_text(3, &lines), expected);
        assert_eq!(reviews_subject(1), "1 job needs review");
    }

    #[test]
    fn the_mail_stays_small() {
        let long = "𝔸\u{1b}é ".repeat(3000);
        let lines: Vec<ReviewLine> = (0..500)
            .map(|n| ReviewLine {
                message: long.clone(),
                subject: long.clone(),
                ..line(JobId::new(n), &format!("{n}{long}"))
            })
            .collect();
        let text = reviews_text(1_000_000, &lines);
        assert!(text.len() < MAIL_BYTES_MAX, "{}", text.len());
        assert!(text.starts_with("1000000 jobs need review") && !text.contains('\u{1b}'));
    }
}
