//! ANVL: lines of `label: value`, continued by indented lines, with `#` for comments.

use super::VALUE_BYTES_MAX;
use crate::ErrorCode;
use crate::{Error, Result};

/// A record has few lines; this many are not metadata.
const ELEMENTS_MAX: usize = 10_000;

/// One line, with what continued it, not decoded. `record` counts the records before it: a
/// blank line ends one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub record: usize,
    /// Counted from 1, for messages.
    pub line: usize,
    pub label: String,
    pub value: String,
}

pub(super) fn parse(text: &str) -> Result<Vec<Element>> {
    let mut elements: Vec<Element> = Vec::new();
    let mut record = 0;
    let mut ended = true;
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    for (number, line) in lines.enumerate().map(|(index, line)| (index + 1, line)) {
        if line.trim().is_empty() {
            record += usize::from(!ended);
            ended = true;
        } else if line.starts_with('#') {
            continue;
        } else if line.starts_with([' ', '\t']) {
            let Some(last) = elements.last_mut().filter(|_| !ended) else {
                return Err(wrong(number, "is indented, but there is no line that it continues"));
            };
            // A continued line is folded to one space, as in mail headers.
            if !last.value.is_empty() {
                last.value.push(' ');
            }
            last.value.push_str(line.trim());
            if last.value.len() > 4 * VALUE_BYTES_MAX {
                return Err(wrong(number, "makes its value too long"));
            }
        } else {
            let Some((label, value)) = line.split_once(':') else {
                return Err(wrong(number, "has no colon; write \"label: value\""));
            };
            if elements.len() == ELEMENTS_MAX {
                return Err(wrong(number, "is one too many"));
            }
            ended = false;
            elements.push(Element {
                record,
                line: number,
                label: label.trim().to_ascii_lowercase(),
                value: value.trim().to_owned(),
            });
        }
    }
    Ok(elements)
}

fn wrong(line: usize, why: &str) -> Error {
    Error::permanent(ErrorCode::MetadataAnvl, format!("line {line} of the metadata {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_lines_comments_and_records() {
        let text = "# about\r\nerc:\r\nWHO: A,\r\n  B\n#between\n\twhat\nwhen : 1\n\n\nx: y: z";
        let elements = parse(text).unwrap();
        let seen: Vec<_> =
            elements.iter().map(|e| (e.record, e.label.as_str(), e.value.as_str())).collect();
        assert_eq!(
            seen,
            [(0, "erc", ""), (0, "who", "A, B what"), (0, "when", "1"), (1, "x", "y: z")]
        );
        assert_eq!(elements[3].line, 10);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for (text, line) in
            [("erc:\nnonsense", "line 2"), (" x", "line 1"), ("a: b\n\n c", "line 3")]
        {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), "metadata.anvl");
            assert!(error.to_string().contains(line), "{error}");
        }
    }
}
