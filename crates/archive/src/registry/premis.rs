//! An object's PREMIS record, from the registry, page by page.

use super::view::{self, EventView, FileView, ObjectView};
use crate::error::{Error, Result};
use crate::event;
use crate::premis::{Agent, AgentType, Event, FileRecord, Format, Object, Version, Writer};
use db::Db;
use std::collections::BTreeSet;
use std::io;

const PAGE: i64 = 1000;

/// Writes the record of one object to `out`, in memory for a page of it.
pub fn export<W: io::Write>(db: &Db, name: &str, format: Format, out: W) -> Result<W> {
    let name = name.to_string();
    let (object, local_ids, versions, copies) = db
        .read_blocking(move |tx| {
            let object: ObjectView = view::find(tx, &name)?;
            Ok::<_, Error>((
                super::resolve::local_ids(tx, object.id)?,
                view::versions(tx, object.id)?,
                view::copies(tx, object.id)?,
                object,
            ))
        })
        .map(|(local_ids, versions, copies, object)| (object, local_ids, versions, copies))?;
    let head = Object {
        identifier: object.identifier.clone(),
        local_ids,
        collection: Some(object.collection.clone()),
        title: object.title.clone(),
    };
    let mut writer = Writer::new(format, &head, out).map_err(Error::Output)?;
    for version in &versions {
        let version = Version {
            number: version.version,
            created_at: version.created_at,
            note: version.message.clone(),
        };
        writer.version(&version).map_err(Error::Output)?;
    }
    let stores: Vec<(String, String)> =
        copies.iter().map(|c| (c.store.clone(), c.key.clone())).collect();
    let (id, last) = (object.id, object.version);
    let mut after = (String::new(), 0);
    loop {
        let from = after.clone();
        let page: Vec<FileView> = db.read_blocking(move |tx| all_files(tx, id, &from.0, from.1))?;
        let Some(end) = page.last().map(|f| (f.path.clone(), f.since)) else { break };
        for file in &page {
            writer.file(&record(file, last, &stores)).map_err(Error::Output)?;
        }
        after = end;
    }
    let mut agents = BTreeSet::new();
    let mut after = (i64::MIN, String::new());
    loop {
        let from = after.clone();
        let page: Vec<EventView> =
            db.read_blocking(move |tx| view::events(tx, id, (from.0, &from.1), PAGE))?;
        let Some(end) = page.last().map(|e| (e.at, e.id.clone())) else { break };
        for event in page {
            agents.insert(event.agent.clone());
            writer.event(&premis_event(event, &object.identifier)?).map_err(Error::Output)?;
        }
        after = end;
    }
    for agent in agents {
        let (name, version) = agent.rsplit_once(' ').unwrap_or((&agent, ""));
        let kind = if agent == event::agent() || name == "accession" {
            AgentType::Software
        } else {
            AgentType::Person
        };
        let agent = Agent {
            id: agent.clone(),
            name: name.to_string(),
            kind,
            version: (!version.is_empty()).then(|| version.to_string()),
            note: None,
        };
        writer.agent(&agent).map_err(Error::Output)?;
    }
    writer.finish().map_err(Error::Output)
}

fn all_files(tx: &mut db::Tx<'_>, object: i64, path: &str, since: i64) -> Result<Vec<FileView>> {
    const FILES: db::Statement = db::statement!("sql/list_all_files");
    Ok(tx.query(&FILES, &db::params![object, path, since, PAGE])?)
}

fn record(file: &FileView, last: i64, stores: &[(String, String)]) -> FileRecord {
    let text = |key: &str| {
        let value = file.format.as_ref().and_then(|f| f[key].as_str());
        value.filter(|v| !v.is_empty()).map(str::to_string)
    };
    let mut digests = vec![("sha512".to_string(), file.sha512.clone())];
    if let Some(serde_json::Value::Object(others)) = &file.digests {
        digests.extend(
            others.iter().map(|(a, d)| (a.clone(), d.as_str().unwrap_or_default().to_string())),
        );
    }
    let warnings = file.format.as_ref().and_then(|f| f["warnings"].as_array());
    FileRecord {
        version: file.since,
        also_in: (file.since + 1..=file.until.unwrap_or(last)).collect(),
        path: file.path.clone(),
        size: file.size,
        digests,
        puid: file.puid.clone(),
        format_name: text("name"),
        format_version: text("version"),
        basis: text("basis"),
        warnings: warnings
            .into_iter()
            .flatten()
            .filter_map(|w| w.as_str().map(str::to_string))
            .collect(),
        copies: stores.to_vec(),
    }
}

fn premis_event(event: EventView, object: &str) -> Result<Event> {
    let wrong = |e: String| Error::permanent("bad_event", format!("event {}: {e}", event.id));
    Ok(Event {
        kind: event.kind.parse().map_err(wrong)?,
        outcome: event.outcome.parse().map_err(wrong)?,
        id: event.id,
        at: event.at,
        detail: event.detail,
        outcome_note: event.note,
        agent: Some(event.agent),
        object: object.to_string(),
        version: event.version,
        file: event.path,
    })
}
