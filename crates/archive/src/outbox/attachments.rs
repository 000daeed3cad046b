//! Reports as files of a mail, in the formats that a collection asks for.

use super::mail::Attachment;
use crate::error::{Error, Result};
use crate::profile::ReportFormat;
use crate::report::{self, BatchReport, Format};

/// Mail stays small however large the batch.
const BYTES_MAX: usize = 64 * 1024;

/// A file for each format but text, which is the mail itself.
pub(super) fn of(
    report: &BatchReport,
    formats: &[ReportFormat],
    name: &str,
) -> Result<Vec<Attachment>> {
    let mut attachments = Vec::new();
    for format in formats {
        let (format, extension, media_type) = match format {
            ReportFormat::Text => continue,
            ReportFormat::Html => (Format::Html, "html", "text/html; charset=utf-8"),
            ReportFormat::Csv => (Format::Csv, "csv", "text/csv; charset=utf-8"),
            ReportFormat::Json => (Format::Json, "json", "application/json"),
        };
        let (name, content) = (format!("{name}.{extension}"), bounded(format, report)?);
        attachments.push(Attachment { name, media_type, content });
    }
    Ok(attachments)
}

/// The report with as many lines as there is room for; its head says how many there are.
fn bounded(format: Format, report: &BatchReport) -> Result<Vec<u8>> {
    let mut report = report.clone();
    loop {
        let mut content = Vec::new();
        report::render(format, &report, &mut content).map_err(Error::Output)?;
        let listed = [report.changed.len(), report.failures.len(), report.objects.len()];
        let longest = listed.into_iter().max().unwrap_or(0);
        if content.len() <= BYTES_MAX || longest == 0 {
            return Ok(content);
        }
        report.changed.truncate(longest / 2);
        report.failures.truncate(longest / 2);
        report.objects.truncate(longest / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{FailureLine, Head};

    #[test]
    fn every_format_is_a_file_and_none_is_large() {
        let line = |job| FailureLine { job, message: "x".repeat(9000), ..FailureLine::default() };
        let head = Head { failures_total: 50, ..Head::default() };
        let failures = (0..50).map(line).collect();
        let report = BatchReport { head, failures, ..BatchReport::default() };
        let all = [ReportFormat::Text, ReportFormat::Html, ReportFormat::Csv, ReportFormat::Json];
        let made = of(&report, &all, "r").unwrap();
        let names: Vec<&str> = made.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["r.html", "r.csv", "r.json"]);
        assert!(made.iter().all(|a| a.content.len() <= BYTES_MAX && a.content.len() > 9000));
        let cut: serde_json::Value = serde_json::from_slice(&made[2].content).unwrap();
        assert_eq!(
            (cut["failures_total"].as_i64(), cut["failures"].as_array().unwrap().len()),
            (Some(50), 6)
        );
    }
}
