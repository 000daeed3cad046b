//! Writes everything that a store knows of one object into the registry.

use super::record::Record;
use super::{NEVER, find_id};
use crate::model::codes::ObjectState;
use crate::model::error::Result;
use crate::model::id::ObjectId;
use crate::registry::carried::Line;
use crate::registry::collection;
use crate::registry::events;
use crate::registry::logs::LoggedEvent;
use db::{Micros, Statement, Tx, Value, statement};
use ocfl::Object;
use queue::JobId;
use std::sync::Arc;

/// Everything about one object, ready to be written.
pub(super) struct Facts {
    pub store: String,
    pub object: Arc<Object>,
    pub versions: Vec<Record>,
    /// Events after the versions were sealed.
    pub logged: Vec<LoggedEvent>,
}

pub(super) fn restore(tx: &mut Tx<'_>, facts: &Facts) -> Result<()> {
    const FORGET: [Statement; 6] = [
        statement!(rebuild::forget_directories),
        statement!(rebuild::forget_versions),
        statement!(rebuild::forget_files),
        statement!(rebuild::forget_copies),
        statement!(rebuild::forget_local_ids),
        statement!(rebuild::forget_object),
    ];
    const OBJECT: Statement = statement!(rebuild::restore_object);
    const LOCAL_ID: Statement = statement!(objects::add_local_id);
    let (Some(first), Some(last)) = (facts.versions.first(), facts.versions.last()) else {
        return Ok(());
    };
    let Record { identifier, collection, local_ids, lock, .. } = last;
    // An older state of it gives way: the store has all of it, and more.
    if let Some((old,)) = find_id(tx, identifier)? {
        for statement in &FORGET {
            tx.send(statement, &db::params![old])?;
        }
    }
    let id: ObjectId = tx.next_ids("object_ids", 1)?[0];
    // Its name was probably minted; so the next to be minted is a new one, or nearly.
    tx.next_ids::<i64>("ark_numbers", 1)?;
    let (metadata, title, job, place, fingerprint) = match &last.version {
        Line::Version { metadata, job, place, fingerprint, .. } => (
            serde_json::json!(metadata).to_string(),
            metadata.what.clone(),
            *job,
            place.clone(),
            fingerprint.clone(),
        ),
        _ => (String::from("{}"), None, JobId::default(), None, None),
    };
    let head = i64::try_from(facts.versions.len()).unwrap_or(0);
    tx.send(
        &OBJECT,
        &db::params![
            id,
            identifier,
            collection,
            lock,
            ObjectState::Active,
            job,
            head,
            &title,
            &metadata,
            first.at(),
            last.at(),
            &place,
            &fingerprint
        ],
    )?;
    for local in local_ids {
        tx.send(&LOCAL_ID, &db::params![collection, local, id])?;
    }
    restore_files(tx, id, facts)?;
    restore_versions(tx, id, facts)?;
    // A registry that is rebuilt may not have the collection.
    let profile = collection::find(tx, collection)?.unwrap_or_default();
    restore_copy(tx, id, head, last.at(), facts, profile.fixity_micros())
}

/// So many rows are sent together.
const PORTION: usize = 1000;

/// A file's row is valid from the version that brought it to the last one that has it, by the
/// inventory: that is what others believe too.
fn restore_files(tx: &mut Tx<'_>, id: ObjectId, facts: &Facts) -> Result<()> {
    const COUNT: Statement = statement!(rebuild::count_object);
    for (index, record) in facts.versions.iter().enumerate() {
        let mut portion = Vec::with_capacity(PORTION);
        record.for_each_file(|line| {
            portion.push(line);
            if portion.len() == PORTION {
                send_files(tx, id, facts, index, &portion)?;
                portion.clear();
            }
            Ok(())
        })?;
        send_files(tx, id, facts, index, &portion)?;
    }
    tx.send(&COUNT, &db::params![id])?;
    Ok(())
}

fn send_files(
    tx: &mut Tx<'_>,
    id: ObjectId,
    facts: &Facts,
    index: usize,
    lines: &[Line],
) -> Result<()> {
    const FILE: Statement = statement!(rebuild::restore_files);
    let inventory = facts.object.inventory();
    let later = inventory.versions().get(index..).unwrap_or_default();
    let text = |v: &Option<serde_json::Value>| v.as_ref().map(ToString::to_string);
    let rows = lines.iter().filter_map(|line| {
        let Line::File { path, size, sha512, digests, puid, format, modified } = line else {
            return None;
        };
        let has = |version: &&ocfl::Version| {
            let file = inventory.find(version, path);
            file.is_some_and(|file| file.digest.eq_ignore_ascii_case(sha512))
        };
        let kept = later.iter().take_while(has).count();
        let until = (kept < later.len()).then(|| i64::try_from(index + kept).unwrap_or(0));
        let since = i64::try_from(index + 1).unwrap_or(0);
        Some((path, since, until, *size, sha512, text(digests), puid, text(format), *modified))
    });
    let rows: Vec<_> = rows.collect();
    let values: Vec<[Value<'_>; 9]> = rows
        .iter()
        .map(|(path, since, until, size, sha512, digests, puid, format, modified)| {
            db::params![*path, *since, *until, *size, *sha512, digests, *puid, format, *modified]
        })
        .collect();
    tx.send_each(&FILE, &db::params![id], &values)?;
    Ok(())
}

fn restore_versions(tx: &mut Tx<'_>, id: ObjectId, facts: &Facts) -> Result<()> {
    const VERSION: Statement = statement!(record::insert_version);
    const COUNT: Statement = statement!(rebuild::count_old_version);
    const DIRECTORIES: Statement = statement!(rebuild::restore_directories);
    for carried in &facts.versions {
        let Line::Version {
            number,
            at,
            job,
            batch,
            submitter,
            message,
            metadata,
            files_new,
            files_changed,
            files_absent,
            ..
        } = &carried.version
        else {
            continue;
        };
        let metadata = serde_json::json!(metadata).to_string();
        tx.send(
            &VERSION,
            &db::params![
                id,
                *number,
                *job,
                *batch,
                submitter,
                message,
                &metadata,
                *files_new,
                *files_changed,
                *files_absent,
                *at
            ],
        )?;
        tx.send(&COUNT, &db::params![id, *number])?;
        let rows: Vec<[Value<'_>; 2]> =
            carried.directories.iter().map(|d| db::params![&d.path, d.modified]).collect();
        tx.send_each(&DIRECTORIES, &db::params![id, *number], &rows)?;
        for event in &carried.events {
            events::insert(tx, Some(id), Some(*number), Some(*job), std::slice::from_ref(event))?;
            events::adopt(tx, id, event)?;
        }
    }
    for LoggedEvent { event, version, job, .. } in &facts.logged {
        events::insert(tx, Some(id), *version, *job, std::slice::from_ref(event))?;
        events::adopt(tx, id, event)?;
    }
    Ok(())
}

fn restore_copy(
    tx: &mut Tx<'_>,
    id: ObjectId,
    head: i64,
    at: Micros,
    facts: &Facts,
    fixity_micros: Micros,
) -> Result<()> {
    const COPY: Statement = statement!(copies::put_copy);
    // What came first is due first.
    let first = facts.versions.first().map_or(at, Record::at);
    let due = first.saturating_add(fixity_micros);
    let (key, digest) = (facts.object.path(), facts.object.digest());
    tx.send(&COPY, &db::params![id, &facts.store, head, key, digest, at, due, NEVER, NEVER])?;
    Ok(())
}
