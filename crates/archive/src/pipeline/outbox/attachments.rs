//! Reports as files of a mail, in the formats that a collection asks for.

use crate::model::error::{Error, Result};
use crate::model::profile::ReportFormat;
use crate::report::{self, Attached, BatchReport, Format, Reader};
use crate::transfer::mail::Attachment;

/// Mail stays small however large the batch.
const BYTES_MAX: usize = 256 * 1024;

/// A file for each format but text, which is the mail itself. Who asked for none gets a table if the
/// mail cannot list everything. The files, and what the mail says of them.
pub(super) fn of(
    report: &BatchReport,
    formats: &[ReportFormat],
    name: &str,
) -> Result<(Vec<Attachment>, Vec<Attached>)> {
    let mut formats: Vec<ReportFormat> =
        formats.iter().copied().filter(|format| *format != ReportFormat::Text).collect();
    if formats.is_empty() && report::mail_is_cut(report) {
        formats.push(ReportFormat::Csv);
    }
    let (mut attachments, mut told) = (Vec::new(), Vec::new());
    for format in formats {
        let (format, extension, media_type) = match format {
            ReportFormat::Text => continue,
            ReportFormat::Html => (Format::Html, "html", "text/html; charset=utf-8"),
            ReportFormat::Csv => (Format::Csv, "csv", "text/csv; charset=utf-8"),
            ReportFormat::Json => (Format::Json, "json", "application/json"),
        };
        let (content, whole) = bounded(format, report)?;
        let name = format!("{name}.{extension}");
        told.push(Attached { name: name.clone(), whole });
        attachments.push(Attachment { name, media_type, content });
    }
    Ok((attachments, told))
}

/// The report with as many lines as there is room for, and whether those are all; its head says how
/// many there are.
fn bounded(format: Format, report: &BatchReport) -> Result<(Vec<u8>, bool)> {
    let mut report = report.clone();
    report.head.reader = Reader::Depositor;
    let whole = report.is_whole(format);
    let mut is_cut = false;
    loop {
        let mut content = Vec::new();
        report::render(format, &report, &mut content).map_err(Error::Output)?;
        let longest = report.longest_list();
        if content.len() <= BYTES_MAX || longest == 0 {
            return Ok((content, whole && !is_cut));
        }
        report.truncate(longest / 2);
        is_cut = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{FailureLine, Head, ObjectLine};
    use queue::JobId;

    const ALL: [ReportFormat; 4] =
        [ReportFormat::Text, ReportFormat::Html, ReportFormat::Csv, ReportFormat::Json];

    #[test]
    fn every_format_is_a_file_and_none_is_large() {
        let line = |job| FailureLine { job, message: "x".repeat(9000), ..FailureLine::default() };
        let head = Head { failures_total: 500, ..Head::default() };
        let failures = (0..500).map(JobId::new).map(line).collect();
        let report = BatchReport { head, failures, ..BatchReport::default() };
        let (made, told) = of(&report, &ALL, "r").unwrap();
        let names: Vec<&str> = made.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["r.html", "r.csv", "r.json"]);
        assert!(made.iter().all(|a| a.content.len() <= BYTES_MAX && a.content.len() > 9000));
        assert!(told.iter().all(|file| !file.whole), "{told:?}");
        let cut: serde_json::Value = serde_json::from_slice(&made[2].content).unwrap();
        let listed = cut["failures"].as_array().unwrap().len();
        assert_eq!(cut["failures_total"], 500);
        assert!((15..30).contains(&listed), "{listed}");
    }

    /// Who cannot run the archive's commands gets a table of what the mail leaves out.
    #[test]
    fn a_table_goes_with_a_mail_that_lists_not_everything() {
        let report = |objects: i64| BatchReport {
            head: Head { objects_total: objects, ..Head::default() },
            objects: (0..objects)
                .map(JobId::new)
                .map(|job| ObjectLine { job, ..ObjectLine::default() })
                .collect(),
            ..BatchReport::default()
        };
        assert_eq!(of(&report(50), &[ReportFormat::Text], "r").unwrap(), (vec![], vec![]));
        let (_, told) = of(&report(51), &[ReportFormat::Text], "r").unwrap();
        assert_eq!(told, [Attached { name: "r.csv".into(), whole: true }]);
        let (_, told) = of(&report(51), &[ReportFormat::Html], "r").unwrap();
        assert_eq!(told, [Attached { name: "r.html".into(), whole: true }], "as it is asked for");
    }
}
