//! The records, as the registry has them.

use super::EventType;
use db::Micros;
use serde::{Deserialize, Serialize};

/// An object as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Object {
    pub identifier: String,
    pub local_ids: Vec<String>,
    pub collection: Option<String>,
    pub title: Option<String>,
}

/// One version of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Version {
    pub number: i64,
    pub created_at: Micros,
    pub note: Option<String>,
}

/// The content of a file, under the version that brought it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRecord {
    /// The version in which this content was first at this path.
    pub version: i64,
    /// Later versions that still have it.
    pub also_in: Vec<i64>,
    pub path: String,
    pub size: i64,
    /// Algorithm and digest in hexadecimal.
    pub digests: Vec<(String, String)>,
    /// The key in the registry PRONOM, as `fmt/353`.
    pub puid: Option<String>,
    pub format_name: Option<String>,
    pub format_version: Option<String>,
    /// How the format was found.
    pub basis: Option<String>,
    pub warnings: Vec<String>,
    /// What it may be, where that cannot be decided.
    pub candidates: Vec<String>,
    pub copies: Vec<Location>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    #[default]
    Success,
    Warning,
    Failure,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Warning => "warning",
            Outcome::Failure => "failure",
        }
    }

    /// In the vocabulary of the Library of Congress.
    pub(super) fn code(self) -> &'static str {
        match self {
            Outcome::Success => "suc",
            Outcome::Warning => "war",
            Outcome::Failure => "fai",
        }
    }
}

impl std::str::FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Outcome, String> {
        let all = [Outcome::Success, Outcome::Warning, Outcome::Failure];
        let found = all.into_iter().find(|outcome| outcome.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no outcome of an event"))
    }
}

/// Something that happened to an object, a version or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// A UUID, see [`super::event_id`].
    pub id: String,
    pub kind: EventType,
    pub at: Micros,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_note: Option<String>,
    /// Who had a part in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<LinkedAgent>,
    /// The identifier of the object.
    pub object: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The path, for events of one file; `version` is then the one of its [`FileRecord`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The part that an agent had in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The program that did it.
    Program,
    /// Who deposited.
    Submitter,
    /// Who had it done.
    Operator,
    /// Who allowed it.
    Approver,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Program, Role::Submitter, Role::Operator, Role::Approver];

    /// The term and, if it is one of the vocabulary of the Library of Congress, its code there.
    pub(super) fn term(self) -> (&'static str, Option<&'static str>) {
        match self {
            Role::Program => ("executing program", Some("exe")),
            Role::Submitter => ("submitter", None),
            Role::Operator => ("implementer", Some("imp")),
            Role::Approver => ("authorizer", Some("aut")),
        }
    }
}

/// An agent of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedAgent {
    /// The id of its [`Agent`].
    pub id: String,
    pub role: Role,
}

/// Where a copy of a file's content is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub store: String,
    pub key: String,
    /// The key is that of the object as a whole: where the file is in it could not be looked up.
    #[serde(default)]
    pub is_object: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentType {
    Software,
    Person,
    Organization,
}

/// Who or what did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub id: String,
    pub name: String,
    pub kind: AgentType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
