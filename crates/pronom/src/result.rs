//! What identification says: which formats, how they were found and where, and what to be wary of.

use crate::model::ContainerKind;
use crate::progress::Hit;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How much of a file is scanned for byte signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This many bytes from each end.
    Ends(u32),
    /// All of it.
    Whole,
}

impl Default for Scope {
    /// What DROID scans unless it is told otherwise.
    fn default() -> Scope {
        Scope::Ends(65_535)
    }
}

/// A stretch of bytes that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Of the first byte.
    pub offset: u64,
    /// How many bytes, from the first to the last that matched, gaps included.
    pub length: u64,
}

impl From<Hit> for Span {
    fn from(hit: Hit) -> Span {
        Span { offset: hit.start, length: hit.end - hit.start }
    }
}

/// What matched in one member of a container. No spans: that it is there was enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpan {
    /// The member's path inside the container.
    pub path: String,
    /// Where in the member's own bytes.
    pub spans: Vec<Span>,
}

/// How a format was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "method")]
pub enum Basis {
    /// By a byte signature.
    Signature {
        /// The signature's number in the signature file.
        signature: u32,
        /// Where each of its sequences is.
        spans: Vec<Span>,
    },
    /// By what is in the container.
    Container {
        /// The signature's number in the container signature file.
        signature: u32,
        /// What kind of container.
        container: ContainerKind,
        /// The members that decided.
        members: Vec<MemberSpan>,
    },
    /// By nothing but the file's name.
    Extension {
        /// The extension, in lower case.
        extension: String,
    },
}

/// A format the file is in, or may be in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// The PRONOM unique identifier.
    pub puid: String,
    /// The format's name in the registry.
    pub name: String,
    /// The format's version, or nothing.
    pub version: String,
    /// Media types, the preferred first.
    pub mime: Vec<String>,
    /// How it was found.
    pub basis: Basis,
    /// Whether the file's name has an extension that the format uses.
    pub extension_match: bool,
    /// Whether the file's name has an extension that the format does not use.
    pub extension_mismatch: bool,
}

/// Something the reader of a result should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "code")]
pub enum Warning {
    /// Nothing matched, not even the extension.
    Unknown,
    /// The file has no bytes.
    Empty,
    /// Only the name was a clue.
    ExtensionOnly,
    /// The name says something else than the bytes.
    ExtensionMismatch {
        /// The file's extension.
        extension: String,
    },
    /// More than one format fits, and none is preferred to the others.
    SeveralCandidates {
        /// How many.
        count: usize,
    },
    /// It begins like these formats but does not end like them.
    Truncated {
        /// Their PUIDs.
        puids: Vec<String>,
    },
    /// The bytes fit several formats, and only those named have the file's extension.
    ChosenByExtension {
        /// The PUIDs of all that the bytes fit.
        puids: Vec<String>,
    },
    /// So much of the file was scanned, and more of it may say that it is one of these.
    Incomplete {
        /// How many bytes from the beginning.
        scanned: u64,
        /// Their PUIDs.
        puids: Vec<String>,
    },
    /// It is a container that could not be looked into.
    ContainerUnreadable {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Unknown => f.write_str("no match"),
            Warning::Empty => f.write_str("empty file"),
            Warning::ExtensionOnly => f.write_str("match on extension only"),
            Warning::ExtensionMismatch { extension } => {
                write!(f, "extension mismatch: .{extension}")
            }
            Warning::SeveralCandidates { count } => write!(f, "{count} formats fit"),
            Warning::Truncated { puids } => {
                write!(f, "truncated? begins but does not end like {}", puids.join(", "))
            }
            Warning::ChosenByExtension { puids } => {
                write!(f, "chosen by extension among {}", puids.join(", "))
            }
            Warning::Incomplete { scanned, puids } => {
                // There may be dozens, of which the first say what kind of thing it may be.
                const SHOWN: usize = 6;
                let list = puids.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
                let more = if puids.len() > SHOWN { " and others" } else { "" };
                write!(
                    f,
                    "may be incomplete: of its beginning {scanned} bytes were scanned, and more of it may say that it is {list}{more}"
                )
            }
            Warning::ContainerUnreadable { reason } => {
                write!(f, "the container cannot be looked into: {reason}")
            }
        }
    }
}

/// The answer for one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identification {
    /// The formats that fit; none if nothing is known.
    pub matches: Vec<Match>,
    /// What to be wary of.
    pub warnings: Vec<Warning>,
    /// The set of signatures that was used, such as `essential-2` or `v122-20260119`.
    pub signatures: String,
    /// How much was scanned.
    pub scope: Scope,
    /// How many bytes the file has.
    pub size: u64,
}

impl Identification {
    /// The PUIDs of all matches.
    pub fn puids(&self) -> impl Iterator<Item = &str> {
        self.matches.iter().map(|found| found.puid.as_str())
    }

    /// Whether the bytes themselves, not only the name, said what the file is.
    pub fn by_content(&self) -> bool {
        self.matches.iter().any(|found| !matches!(found.basis, Basis::Extension { .. }))
    }
}
