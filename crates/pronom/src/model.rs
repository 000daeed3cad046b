//! Signatures as they are matched: formats, byte sequences and containers, free of any file format.

use crate::pattern::Pattern;
use serde::{Deserialize, Serialize};

/// A format of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Format {
    /// The PRONOM unique identifier, such as `fmt/412`.
    pub puid: String,
    /// What the registry calls it.
    pub name: String,
    /// The version of the format, or nothing.
    pub version: String,
    /// Media types, the preferred first; may be empty.
    pub mime: Vec<String>,
    /// File name extensions, in lower case, without a dot.
    pub extensions: Vec<String>,
    /// Whether a byte or container signature can find it; otherwise only its extension can.
    pub has_signature: bool,
    /// Formats (by place in the set) that this one is preferred to when both are found.
    pub(crate) priority_over: Vec<u32>,
}

/// Where a byte sequence is anchored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Anchor {
    Beginning,
    End,
    Anywhere,
}

/// A place in a sequence: any one of its choices stands there, so far from what comes before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slot {
    pub gap_min: u32,
    /// No upper bound when absent.
    pub gap_max: Option<u32>,
    pub choices: Vec<Pattern>,
}

/// Slots that follow one another from the anchor. A sequence anchored at the end is stored turned
/// around, bytes and all, and is matched against the reversed end of a file; so there is one way
/// of matching only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sequence {
    pub anchor: Anchor,
    pub slots: Vec<Slot>,
}

/// All sequences must be found for the signature to be found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signature {
    pub id: u32,
    /// The format it stands for, by place in the set.
    pub format: u32,
    pub sequences: Vec<Sequence>,
}

/// The kinds of container the signatures look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ContainerKind {
    /// PKWARE zip and all that is built on it.
    Zip,
    /// Microsoft's compound file: old Office, Outlook messages and others.
    Ole2,
}

/// What must be in one file inside a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub path: String,
    /// Signatures, each a list of sequences that must all be found; the file must exist in any case.
    pub signatures: Vec<Vec<Sequence>>,
}

/// All members must be there, and match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainerSignature {
    pub id: u32,
    pub format: u32,
    pub kind: ContainerKind,
    pub members: Vec<Member>,
}

/// A format that says "look inside".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trigger {
    pub format: u32,
    pub kind: ContainerKind,
}

/// Where a set of signatures comes from; results repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// `essential-2`, or `v122-20260119` for official files.
    pub name: String,
    /// The DROID signature file's version, or the essential set's.
    pub version: String,
    /// The container signature file's version, if there is one.
    pub container_version: Option<String>,
    /// When the signature file was made, as it says itself.
    pub created: String,
    /// Who is to be named when the data is used.
    pub attribution: String,
}

/// Everything that is known: formats, signatures, containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureSet {
    pub(crate) origin: Origin,
    pub(crate) formats: Vec<Format>,
    pub(crate) signatures: Vec<Signature>,
    pub(crate) containers: Vec<ContainerSignature>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) skipped: Vec<String>,
}

impl SignatureSet {
    /// Where the set comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// All formats of the set, in the order of its file.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// The formats of the set that one of them is preferred to when both are found.
    pub fn lesser<'a>(&'a self, format: &'a Format) -> impl Iterator<Item = &'a Format> {
        format.priority_over.iter().filter_map(|place| self.formats.get(*place as usize))
    }

    /// The format with this PUID.
    pub fn format(&self, puid: &str) -> Option<&Format> {
        self.formats.iter().find(|format| format.puid == puid)
    }

    /// The PUIDs of the formats that `format` is preferred to.
    pub fn preferred_to<'a>(&'a self, format: &'a Format) -> impl Iterator<Item = &'a str> {
        let lower = format.priority_over.iter();
        lower.filter_map(|index| Some(self.formats.get(*index as usize)?.puid.as_str()))
    }

    /// How many byte signatures there are.
    pub fn signature_count(&self) -> usize {
        self.signatures.len()
    }

    /// How many container signatures there are.
    pub fn container_count(&self) -> usize {
        self.containers.len()
    }

    /// Signatures of the file that could not be used, each with the reason; nothing is left out
    /// silently.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    pub(crate) fn position(&self, puid: &str) -> Option<u32> {
        let place = self.formats.iter().position(|format| format.puid == puid)?;
        u32::try_from(place).ok()
    }
}
