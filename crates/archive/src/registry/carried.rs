//! What every version carries of its own: a record of itself, from which the registry can be
//! rebuilt, and descriptive metadata as others read it.
//!
//! `accession/record.jsonl` has one JSON object a line, each with `record` saying what it is:
//! first `object` and `version`, then `event`s, then `file`s: those that are new or changed in
//! this version; then `directory`: every empty one.

use crate::metadata::Metadata;
use crate::model::event::Event;
use crate::package::empty::EmptyDirectory;
use db::Micros;
use queue::{BatchId, JobId};
use serde::{Deserialize, Serialize};

/// Where these files are in an object.
pub const DIRECTORY: &str = "accession";
pub const RECORD: &str = "accession/record.jsonl";

/// One line of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum Line {
    Object {
        identifier: String,
        collection: String,
        local_ids: Vec<String>,
        lock: String,
    },
    Version {
        number: i64,
        at: Micros,
        job: JobId,
        batch: Option<BatchId>,
        submitter: String,
        message: Option<String>,
        /// Where the package came from; older records do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// How the package looked in its drop folder, if it came from one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fingerprint: Option<String>,
        metadata: Metadata,
        replaces: bool,
        files_new: i64,
        files_changed: i64,
        files_absent: i64,
    },
    Event(Event),
    File {
        path: String,
        size: i64,
        sha512: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digests: Option<serde_json::Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        puid: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<serde_json::Value>,
        /// When the package says it was last written to; microseconds, as all times here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified: Option<Micros>,
    },
    /// A directory with nothing in it, which a store cannot keep.
    Directory(EmptyDirectory),
}
