//! The kinds of events, in the vocabulary for preservation of the Library of Congress.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kinds that this archive records. All but one are terms of the vocabulary at
/// `id.loc.gov/vocabulary/preservation/eventType`; *identifier assignment* is not among them and
/// is used as other archives use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum EventType {
    Accession,
    Deaccession,
    Deletion,
    Dissemination,
    FixityCheck,
    FormatIdentification,
    IdentifierAssignment,
    Ingestion,
    MessageDigestCalculation,
    MetadataModification,
    Recovery,
    Replication,
    Transfer,
    Unpacking,
    Validation,
    VirusCheck,
}

impl EventType {
    pub const ALL: [EventType; 16] = [
        EventType::Accession,
        EventType::Deaccession,
        EventType::Deletion,
        EventType::Dissemination,
        EventType::FixityCheck,
        EventType::FormatIdentification,
        EventType::IdentifierAssignment,
        EventType::Ingestion,
        EventType::MessageDigestCalculation,
        EventType::MetadataModification,
        EventType::Recovery,
        EventType::Replication,
        EventType::Transfer,
        EventType::Unpacking,
        EventType::Validation,
        EventType::VirusCheck,
    ];

    /// The term and, if it is one of the vocabulary, its code there.
    fn term(self) -> (&'static str, Option<&'static str>) {
        match self {
            EventType::Accession => ("accession", Some("acc")),
            EventType::Deaccession => ("deaccession", Some("dea")),
            EventType::Deletion => ("deletion", Some("del")),
            EventType::Dissemination => ("dissemination", Some("dis")),
            EventType::FixityCheck => ("fixity check", Some("fix")),
            EventType::FormatIdentification => ("format identification", Some("for")),
            EventType::IdentifierAssignment => ("identifier assignment", None),
            EventType::Ingestion => ("ingestion", Some("ing")),
            EventType::MessageDigestCalculation => ("message digest calculation", Some("mes")),
            EventType::MetadataModification => ("metadata modification", Some("mem")),
            EventType::Recovery => ("recovery", Some("rec")),
            EventType::Replication => ("replication", Some("rep")),
            EventType::Transfer => ("transfer", Some("tra")),
            EventType::Unpacking => ("unpacking", Some("unp")),
            EventType::Validation => ("validation", Some("val")),
            EventType::VirusCheck => ("virus check", Some("vir")),
        }
    }

    pub fn as_str(self) -> &'static str {
        self.term().0
    }

    pub(super) fn code(self) -> Option<&'static str> {
        self.term().1
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventType {
    type Err = String;

    fn from_str(text: &str) -> Result<EventType, String> {
        let found = EventType::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no kind of event that this archive records"))
    }
}

impl TryFrom<String> for EventType {
    type Error = String;

    fn try_from(text: String) -> Result<EventType, String> {
        text.parse()
    }
}

impl From<EventType> for String {
    fn from(kind: EventType) -> String {
        kind.as_str().to_owned()
    }
}
