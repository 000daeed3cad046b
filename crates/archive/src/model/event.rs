//! PREMIS events as they are kept: with an id derived from job, kind and path, so that a stage
//! that runs again writes the same ones.

use crate::premis::{EventType, Role, event_id};
use db::Micros;
use queue::JobId;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub id: String,
    pub kind: String,
    pub at: Micros,
    pub agent: String,
    /// `success`, `warning` or `failure`.
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The file it is about; `None` for the whole version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Who had a part in it, beside the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<Person>,
}

/// A person, and their part in an event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Person {
    pub name: String,
    pub role: Role,
}

/// The program that does what events tell of.
pub fn agent() -> String {
    format!("accession {}", env!("CARGO_PKG_VERSION"))
}

impl Event {
    /// An event about the whole version. `aspect` tells several of one kind apart: a store, a
    /// check; it is part of the id.
    pub fn of(installation: &str, job: JobId, kind: EventType, aspect: &str, at: Micros) -> Event {
        Event {
            id: event_id(installation, job, kind, (!aspect.is_empty()).then_some(aspect)),
            kind: kind.to_string(),
            at,
            agent: agent(),
            outcome: "success".to_string(),
            detail: None,
            note: None,
            path: None,
            people: Vec::new(),
        }
    }

    pub fn detail(self, detail: impl Into<String>) -> Event {
        Event { detail: Some(detail.into()), ..self }
    }

    pub fn note(self, note: impl Into<String>) -> Event {
        Event { note: Some(note.into()), ..self }
    }

    /// Names a person who had a part in it.
    pub fn person(mut self, name: impl Into<String>, role: Role) -> Event {
        self.people.push(Person { name: name.into(), role });
        self
    }

    pub fn outcome(self, outcome: &str) -> Event {
        Event { outcome: outcome.to_string(), ..self }
    }
}

/// When the version was ingested, as its event says.
pub fn ingested_at(events: &[Event]) -> Micros {
    events.iter().find(|e| e.kind == EventType::Ingestion.as_str()).map_or(0, |e| e.at)
}
