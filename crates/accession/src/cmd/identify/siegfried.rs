//! Results in the shape of siegfried's JSON, for programs that read that.

use super::{Outcome, shown};
use pronom::{Basis, Match, SignatureSet, Span, Warning};
use serde_json::json;
use std::path::Path;
use std::time::SystemTime;

/// What comes after the last file.
pub const FOOT: &str = "]}";

/// All that comes before the first file. The tool's name is our own, in siegfried's place for it.
pub fn head(set: &SignatureSet) -> String {
    let origin = set.origin();
    let value = |text: &str| json!(text).to_string();
    format!(
        "{{\"siegfried\":{},\"scandate\":{},\"signature\":{},\"created\":{},\"identifiers\":[{{\"name\":\"pronom\",\"details\":{}}}],\"files\":[",
        value(concat!("accession ", env!("CARGO_PKG_VERSION"))),
        value(&timestamp(SystemTime::now())),
        value(&origin.name),
        value(&origin.created),
        value(&details(set)),
    )
}

fn details(set: &SignatureSet) -> String {
    let origin = set.origin();
    match &origin.container_version {
        Some(container) => {
            format!("DROID_SignatureFile_V{}.xml; container signatures {container}", origin.version)
        }
        None => origin.name.clone(),
    }
}

/// One file, as siegfried describes it.
pub fn file(outcome: &Outcome) -> serde_json::Value {
    let (errors, matches) = match &outcome.result {
        Err(error) => (error.clone(), vec![unknown("no match")]),
        Ok(found) => {
            let empty = found.warnings.contains(&Warning::Empty);
            let errors = if empty { "empty source".to_owned() } else { String::new() };
            let matches = if found.matches.is_empty() {
                vec![unknown("no match")]
            } else {
                found.matches.iter().map(|found| one(found, &outcome.path)).collect()
            };
            (errors, matches)
        }
    };
    let size = outcome.size.or(outcome.result.as_ref().ok().map(|found| found.size));
    json!({
        "filename": shown(&outcome.path),
        "filesize": size.unwrap_or(0),
        "modified": outcome.modified.map(timestamp).unwrap_or_default(),
        "errors": errors,
        "matches": matches,
    })
}

fn unknown(warning: &str) -> serde_json::Value {
    json!({"ns": "pronom", "id": "UNKNOWN", "format": "", "version": "", "mime": "", "class": "",
        "basis": "", "warning": warning})
}

fn one(found: &Match, path: &Path) -> serde_json::Value {
    let warning = match (&found.basis, found.extension_mismatch) {
        (Basis::Extension { .. }, _) => "match on extension only",
        (_, true) => "extension mismatch",
        _ => "",
    };
    let extension = path.extension().filter(|_| found.extension_match);
    let basis = match (&found.basis, extension) {
        (Basis::Extension { .. }, _) | (_, None) => basis(found),
        (_, Some(extension)) => {
            format!(
                "extension match {}; {}",
                extension.to_string_lossy().to_lowercase(),
                basis(found)
            )
        }
    };
    json!({"ns": "pronom", "id": found.puid, "format": found.name, "version": found.version,
        "mime": found.mime.join(", "), "class": "", "basis": basis, "warning": warning})
}

/// How a format was found, in siegfried's words.
pub fn basis(found: &Match) -> String {
    match &found.basis {
        Basis::Signature { spans, .. } => format!("byte match at {}", places(spans)),
        Basis::Container { members, .. } => {
            let member = |member: &pronom::MemberSpan| match member.spans.as_slice() {
                [] => format!("container name {} with name only", member.path),
                spans => {
                    format!("container name {} with byte match at {}", member.path, places(spans))
                }
            };
            members.iter().map(member).collect::<Vec<_>>().join("; ")
        }
        Basis::Extension { extension } => format!("extension match {extension}"),
    }
}

/// `0, 8` for one place, `[[0 8] [20 4]]` for several: offsets and lengths.
fn places(spans: &[Span]) -> String {
    match spans {
        [span] => format!("{}, {}", span.offset, span.length),
        _ => {
            let each = |span: &Span| format!("[{} {}]", span.offset, span.length);
            format!("[{}]", spans.iter().map(each).collect::<Vec<_>>().join(" "))
        }
    }
}

/// A time as `2026-11-15T20:50:00Z`.
fn timestamp(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn places_are_written_as_siegfried_does() {
        let span = |offset, length| Span { offset, length };
        assert_eq!(places(&[span(0, 8)]), "0, 8");
        assert_eq!(places(&[span(0, 16), span(36, 4)]), "[[0 16] [36 4]]");
    }
}
