//! `bagit.txt`: which version of BagIt a bag follows, and in which encoding its tags are.

use crate::text::Encoding;
use serde::{Serialize, Serializer};
use std::fmt;

/// A published version of BagIt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    pub const V0_97: Version = Version { major: 0, minor: 97 };
    pub const V1_0: Version = Version { major: 1, minor: 0 };

    /// Reads `M.N`; both sides must have digits.
    pub fn parse(text: &str) -> Option<Version> {
        let (major, minor) = text.split_once('.')?;
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            if plain { digits.parse().ok() } else { None }
        };
        Some(Version { major: number(major)?, minor: number(minor)? })
    }

    /// The versions that were published and that this crate knows the rules of.
    pub fn is_known(self) -> bool {
        self == Version::V1_0 || (self.major == 0 && (93..=97).contains(&self.minor))
    }

    /// RFC 8493 turned several habits of the drafts into errors.
    pub fn is_strict(self) -> bool {
        self >= Version::V1_0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What `bagit.txt` declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declaration {
    pub version: Option<Version>,
    /// The encoding as it is named.
    pub encoding_name: Option<String>,
    pub encoding: Option<Encoding>,
}

/// What is wrong with a line of `bagit.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    pub line: Option<u64>,
    pub kind: FlawKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawKind {
    Malformed,
    Bom,
    Version,
    Encoding,
    /// Not as the standard says, but clear.
    Lax,
}

const VERSION: &str = "BagIt-Version";
const ENCODING: &str = "Tag-File-Character-Encoding";

impl Declaration {
    /// Reads the whole file; every deviation is a flaw, and what can be understood is kept.
    pub fn parse(bytes: &[u8]) -> (Declaration, Vec<Flaw>) {
        let mut reader = Reader::default();
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => {
                reader.flaw(Some(1), FlawKind::Bom, "it starts with a byte order mark");
                rest
            }
            None => bytes,
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => reader.lines(text),
            Err(_) => reader.flaw(None, FlawKind::Malformed, "it is not UTF-8"),
        }
        (reader.declaration, reader.flaws)
    }

    /// The file for a new bag.
    pub fn render(version: Version) -> String {
        format!("{VERSION}: {version}\n{ENCODING}: UTF-8\n")
    }
}

#[derive(Default)]
struct Reader {
    declaration: Declaration,
    flaws: Vec<Flaw>,
}

impl Reader {
    fn flaw(&mut self, line: Option<u64>, kind: FlawKind, message: impl Into<String>) {
        // Sixteen deviations in two lines say enough.
        if self.flaws.len() < 16 {
            self.flaws.push(Flaw { line, kind, message: message.into() });
        }
    }

    fn lines(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        for (number, line) in (1..).zip(text.strip_suffix('\n').unwrap_or(&text).split('\n')) {
            if number > 2 {
                let kind = if line.trim().is_empty() { FlawKind::Lax } else { FlawKind::Malformed };
                self.flaw(Some(number), kind, "there are more than two lines");
                break;
            }
            self.line(number, line);
        }
        if self.declaration.version.is_none() && !self.has(FlawKind::Version) {
            self.flaw(None, FlawKind::Version, format!("the line {VERSION} is missing"));
        }
        if self.declaration.encoding_name.is_none() {
            self.flaw(None, FlawKind::Encoding, format!("the line {ENCODING} is missing"));
        }
    }

    fn has(&self, kind: FlawKind) -> bool {
        self.flaws.iter().any(|f| f.kind == kind)
    }

    fn line(&mut self, number: u64, line: &str) {
        let Some((label, value)) = line.split_once(':') else {
            self.flaw(Some(number), FlawKind::Malformed, "there is no colon");
            return;
        };
        let (name, value_trimmed) = (label.trim(), value.trim());
        let exact = name == label && value == format!(" {value_trimmed}");
        let first = name.eq_ignore_ascii_case(VERSION);
        if !first && !name.eq_ignore_ascii_case(ENCODING) {
            let shown: String = name.chars().take(60).collect();
            self.flaw(Some(number), FlawKind::Malformed, format!("unexpected label {shown:?}"));
            return;
        }
        if first {
            self.version(number, value_trimmed)
        } else {
            self.encoding(number, value_trimmed)
        }
        let in_place = number == if first { 1 } else { 2 };
        let spelled = name == if first { VERSION } else { ENCODING };
        if !in_place || !spelled {
            self.flaw(
                Some(number),
                FlawKind::Lax,
                "order or case of the labels is not as specified",
            );
        }
        if !exact {
            // RFC 8493 fixes the form; the drafts did not.
            let strict = self.declaration.version.is_none_or(Version::is_strict);
            let kind = if strict { FlawKind::Malformed } else { FlawKind::Lax };
            let message = "the colon must follow the label and be followed by one space";
            self.flaw(Some(number), kind, message);
        }
    }

    fn version(&mut self, number: u64, value: &str) {
        let shown: String = value.chars().take(60).collect();
        match Version::parse(value) {
            Some(version) => {
                self.declaration.version = Some(version);
                if !version.is_known() {
                    let message = format!("version {shown} is none of 0.93 to 0.97 and 1.0");
                    self.flaw(Some(number), FlawKind::Version, message);
                }
            }
            None => {
                let message = format!("{shown:?} is not a version number such as 1.0");
                self.flaw(Some(number), FlawKind::Version, message);
            }
        }
    }

    fn encoding(&mut self, number: u64, value: &str) {
        self.declaration.encoding = Encoding::named(value);
        let shown: String = value.chars().take(60).collect();
        if self.declaration.encoding.is_none() {
            let message = format!("encoding {shown:?} is unknown");
            self.flaw(Some(number), FlawKind::Encoding, message);
        }
        self.declaration.encoding_name = Some(shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<FlawKind> {
        Declaration::parse(text.as_bytes()).1.into_iter().map(|f| f.kind).collect()
    }

    #[test]
    fn a_new_declaration_has_no_flaw() {
        let text = Declaration::render(Version::V1_0);
        let (declaration, flaws) = Declaration::parse(text.as_bytes());
        assert_eq!(flaws, []);
        assert_eq!(declaration.version, Some(Version::V1_0));
        assert!(declaration.encoding.is_some_and(Encoding::is_utf8));
    }

    #[test]
    fn whitespace_is_an_error_since_the_rfc_and_a_habit_before() {
        let text = "BagIt-Version : 1.0\nTag-File-Character-Encoding: UTF-8\n";
        assert_eq!(kinds(text), [FlawKind::Malformed]);
        assert_eq!(kinds(&text.replace("1.0", "0.97")), [FlawKind::Lax]);
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        assert_eq!(kinds("BagIt-Version: 0.97"), [FlawKind::Encoding]);
        assert_eq!(
            kinds("BagIt-Version: .97\nTag-File-Character-Encoding: UTF-8"),
            [FlawKind::Version]
        );
        assert_eq!(
            kinds("\u{feff}BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8"),
            [FlawKind::Bom]
        );
    }
}
