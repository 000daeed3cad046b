//! Records that a file of a copy was found bad while it was read for something else than a check.

use crate::model::error::Result;
use crate::model::event::Event;
use crate::model::id::ObjectId;
use crate::premis::{EventType, Role};
use crate::registry::events;
use db::{Statement, Tx, statement};
use queue::JobId;

/// A copy that is not what the registry says.
#[derive(Debug, Clone)]
pub struct BadCopy {
    pub installation: String,
    pub object: ObjectId,
    pub identifier: String,
    pub store: String,
    /// The digest of the copy's inventory, by which a copy that has become another one is told.
    pub inventory_digest: String,
    /// The file that differs, and the version that brought it; none if the object cannot be read.
    pub file: Option<(String, i64)>,
    pub key: String,
    /// What is wrong, as the end of a sentence.
    pub fault: String,
    pub is_missing: bool,
    /// Who had it read.
    pub operator: String,
}

/// K2: the copy counts as bad from now on, and is due to be checked at once.
pub fn record(tx: &mut Tx<'_>, bad: &BadCopy) -> Result<()> {
    const FOUND_BAD: Statement = statement!(copies::copy_found_bad);
    let now = tx.now();
    let changed =
        tx.execute(&FOUND_BAD, &db::params![bad.object, &bad.store, &bad.inventory_digest, now])?;
    if changed == 0 {
        // The copy is another one by now: what was read of it says nothing about that.
        return Ok(());
    }
    let (path, version) = bad.file.clone().unzip();
    let aspect = format!("{} {} {now} {}", bad.store, bad.identifier, bad.key);
    let event =
        Event::of(&bad.installation, JobId::default(), EventType::FixityCheck, &aspect, now)
            .outcome("failure")
            .detail(if bad.is_missing { "missing" } else { "damaged" })
            .note(format!(
                "store {}: {} {}; found while it was read for a restore",
                bad.store, bad.key, bad.fault
            ))
            .person(bad.operator.clone(), Role::Operator);
    events::insert(tx, Some(bad.object), version, None, &[Event { path, ..event }])
}
