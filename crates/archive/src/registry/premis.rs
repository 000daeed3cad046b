//! An object's PREMIS record, from the registry, page by page.

use super::view::{self, CopyView, EventView, FileView, ObjectView, VersionView};
use crate::ErrorCode;
use crate::app::App;
use crate::model::error::{Error, Result};
use crate::model::event::Person;
use crate::model::format::Candidate;
use crate::model::id::ObjectId;
use crate::premis::{
    Agent, AgentType, Event, EventType, FileRecord, Format, LinkedAgent, Location, Object, Role,
    Version, Writer,
};
use crate::stores::object_error;
use db::Db;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

const PAGE: i64 = 1000;

/// A copy of the object, with the inventory that says where each file is in it.
pub struct StoredCopy {
    store: String,
    key: String,
    version: i64,
    /// `None` if the store could not be asked.
    object: Option<ocfl::Object>,
}

/// Looks up in every store where the files of an object are. A store that does not answer does not
/// keep its record from being written: then the place of the object as a whole is told.
pub async fn locate(app: &Arc<App>, name: &str) -> Result<Vec<StoredCopy>> {
    let name = name.to_string();
    let copies = move |tx: &mut db::Tx<'_>| {
        let object = view::find(tx, &name)?;
        Ok::<_, Error>((view::copies(tx, object.id)?, object.identifier))
    };
    let (copies, identifier) = app.db.read(copies).await?;
    let mut stored = Vec::new();
    for CopyView { store, key, version, .. } in copies {
        let opened = match app.stores.get(&store).await {
            Ok(place) => place.root.object_at(&key).await.map_err(|e| object_error(&store, e)),
            Err(error) => Err(error),
        };
        let object = match opened {
            Ok(object) if object.id() == identifier => Some(object),
            Ok(object) => {
                tracing::warn!(store, key, found = object.id(), "another object is in its place");
                None
            }
            Err(error) => {
                tracing::warn!(store, key, %error, "files are told by the place of their object");
                None
            }
        };
        stored.push(StoredCopy { store, key, version, object });
    }
    Ok(stored)
}

impl StoredCopy {
    /// Where a file is in it, as of the version that brought it; `None` if it does not have it.
    fn location(&self, file: &FileView) -> Option<Location> {
        if file.since > self.version {
            return None;
        }
        let within = self.object.as_ref().and_then(|object| {
            let version = object.inventory().version(u32::try_from(file.since).ok()?)?;
            Some(object.inventory().find(version, &file.path)?.content_path.to_string())
        });
        let is_object = within.is_none();
        let key = within.map_or_else(|| self.key.clone(), |path| store::join(&self.key, &path));
        Some(Location { store: self.store.clone(), key, is_object })
    }
}

/// Writes the record of one object to `out`, in memory for a page of it and for the inventories of
/// its copies.
pub fn export<W: io::Write>(
    db: &Db,
    name: &str,
    format: Format,
    stored: &[StoredCopy],
    out: W,
) -> Result<W> {
    let name = name.to_string();
    let (object, local_ids, versions) = db.read_blocking(move |tx| {
        let object: ObjectView = view::find(tx, &name)?;
        let local_ids = super::resolve::local_ids(tx, object.id)?;
        let versions = view::versions(tx, object.id)?;
        Ok::<_, Error>((object, local_ids, versions))
    })?;
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
    let (id, last) = (object.id, object.version);
    let mut after = (String::new(), 0);
    loop {
        let from = after.clone();
        let page: Vec<FileView> = db.read_blocking(move |tx| all_files(tx, id, &from.0, from.1))?;
        let Some(end) = page.last().map(|f| (f.path.clone(), f.since)) else { break };
        for file in &page {
            writer.file(&record(file, last, stored)).map_err(Error::Output)?;
        }
        after = end;
    }
    let mut agents = BTreeMap::new();
    let mut after = (i64::MIN, String::new());
    loop {
        let from = after.clone();
        let page: Vec<EventView> =
            db.read_blocking(move |tx| view::events(tx, id, (from.0, &from.1), PAGE))?;
        let Some(end) = page.last().map(|e| (e.at, e.id.clone())) else { break };
        for mut event in page {
            name_submitter(&mut event, &versions);
            let linked = agents_of(&event, &mut agents);
            let event = premis_event(event, &object.identifier, linked)?;
            writer.event(&event).map_err(Error::Output)?;
        }
        after = end;
    }
    for agent in agents.values() {
        writer.agent(agent).map_err(Error::Output)?;
    }
    writer.finish().map_err(Error::Output)
}

/// Versions that were recorded before events named people have their submitter all the same.
fn name_submitter(event: &mut EventView, versions: &[VersionView]) {
    if event.kind != EventType::Ingestion.as_str() || !event.people.is_empty() {
        return;
    }
    let version = versions.iter().find(|version| Some(version.version) == event.version);
    event
        .people
        .extend(version.map(|v| Person { name: v.submitter.clone(), role: Role::Submitter }));
}

/// The agents of an event: the program with its version, and people.
fn agents_of(event: &EventView, agents: &mut BTreeMap<String, Agent>) -> Vec<LinkedAgent> {
    let (name, version) = event.agent.rsplit_once(' ').unwrap_or((&event.agent, ""));
    let program = Agent {
        id: event.agent.clone(),
        name: name.to_string(),
        kind: AgentType::Software,
        version: (!version.is_empty()).then(|| version.to_string()),
        note: None,
    };
    let mut linked = vec![LinkedAgent { id: program.id.clone(), role: Role::Program }];
    agents.entry(program.id.clone()).or_insert(program);
    for person in &event.people {
        // A person may be called as a program is.
        let id = format!("person:{}", person.name);
        agents.entry(id.clone()).or_insert_with(|| Agent {
            id: id.clone(),
            name: person.name.clone(),
            kind: AgentType::Person,
            version: None,
            note: None,
        });
        linked.push(LinkedAgent { id, role: person.role });
    }
    linked
}

fn all_files(
    tx: &mut db::Tx<'_>,
    object: ObjectId,
    path: &str,
    since: i64,
) -> Result<Vec<FileView>> {
    const FILES: db::Statement = db::statement!(objects::list_all_files);
    Ok(tx.query(&FILES, &db::params![object, path, since, PAGE])?)
}

fn record(file: &FileView, last: i64, stored: &[StoredCopy]) -> FileRecord {
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
        candidates: candidates(file.format.as_ref()),
        copies: stored.iter().filter_map(|copy| copy.location(file)).collect(),
    }
}

fn candidates(format: Option<&serde_json::Value>) -> Vec<String> {
    let listed = format.and_then(|format| format.get("candidates")).cloned();
    let candidates: Vec<Candidate> =
        listed.and_then(|listed| serde_json::from_value(listed).ok()).unwrap_or_default();
    candidates.iter().map(ToString::to_string).collect()
}

fn premis_event(event: EventView, object: &str, agents: Vec<LinkedAgent>) -> Result<Event> {
    let wrong =
        |e: String| Error::permanent(ErrorCode::BadEvent, format!("event {}: {e}", event.id));
    Ok(Event {
        kind: event.kind.parse().map_err(wrong)?,
        outcome: event.outcome.parse().map_err(wrong)?,
        id: event.id,
        at: event.at,
        detail: event.detail,
        outcome_note: event.note,
        agents,
        object: object.to_string(),
        version: event.version,
        file: event.path,
    })
}
