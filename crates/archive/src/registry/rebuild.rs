//! Restoring the registry from a store alone: every version carries its record, and the inventory
//! says which files each version has.

use super::carried::{Line, RECORD};
use super::{events, view};
use crate::codes::ObjectState;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::site::Site;
use crate::stores::store_error;
use db::{Micros, Statement, Tx, Value, statement};
use futures_util::{StreamExt, TryStreamExt};
use ocfl::Object;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// When the content of a copy was last read, as far as a rebuilt registry knows: rebuilding reads
/// inventories and records only.
const NEVER: Micros = 0;

/// What rebuilding came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Rebuilt {
    pub objects: u64,
    pub versions: u64,
    pub files: u64,
    pub events: u64,
    /// Objects that were in the registry already, as new as in the store.
    pub known: u64,
    /// Those of them whose copy in this store was not known, and is now.
    pub copies: u64,
    /// Objects that the store has in an older state than the registry: those are no copies.
    pub behind: Vec<String>,
    /// Objects whose records could not be read, and why.
    pub unreadable: Vec<String>,
}

/// Restores what a store knows and the registry does not.
pub async fn rebuild(
    site: &Arc<Site>,
    store: &str,
    mut tell: impl FnMut(&Rebuilt),
) -> Result<Rebuilt> {
    let place = site.stores.get(store).await?;
    let mut rebuilt = Rebuilt::default();
    let mut paths = place.root.object_paths();
    while let Some(path) = paths.next().await {
        let path = path.map_err(|e| store_error(store, e))?;
        match one(site, store, &place.root, &path).await {
            Ok(One::Restored(versions, files, events)) => {
                rebuilt.objects += 1;
                rebuilt.versions += versions;
                rebuilt.files += files;
                rebuilt.events += events;
            }
            Ok(One::Known { another_copy }) => {
                rebuilt.known += 1;
                rebuilt.copies += u64::from(another_copy);
            }
            Ok(One::Behind(what)) => {
                rebuilt.known += 1;
                rebuilt.behind.push(what);
            }
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => rebuilt.unreadable.push(format!("{path}: {error}")),
        }
        tell(&rebuilt);
    }
    Ok(rebuilt)
}

/// What one version's record says.
struct Carried {
    object: (String, String, Vec<String>, String),
    version: Line,
    events: Vec<Event>,
    files: Vec<Line>,
}

/// What became of one object of the store.
enum One {
    /// Its versions, files and events are in the registry now.
    Restored(u64, u64, u64),
    Known {
        another_copy: bool,
    },
    /// The registry knows a newer version than this store has.
    Behind(String),
}

async fn one(site: &Arc<Site>, store: &str, root: &ocfl::StorageRoot, path: &str) -> Result<One> {
    let object = root.object_at(path).await.map_err(|e| store_error(store, e))?;
    let head = i64::from(object.inventory().head().number());
    let identifier = object.id().to_string();
    let known: Option<i64> = site.db.read(move |tx| head_of(tx, &identifier)).await?;
    match known {
        Some(known) if known > head => {
            return Ok(One::Behind(format!(
                "{}: the store has version {head}, and the registry version {known}",
                object.id()
            )));
        }
        Some(known) if known == head => {
            let copy = Arc::new(AnotherCopy {
                identifier: object.id().to_string(),
                store: store.to_string(),
                version: head,
                key: path.to_string(),
                digest: object.digest().to_string(),
                files: states(&object).pop().unwrap_or_default(),
            });
            let another_copy = site.db.write(move |tx| adopt(tx, &copy)).await?;
            return Ok(One::Known { another_copy });
        }
        _ => {}
    }
    let mut versions = Vec::new();
    for version in object.inventory().versions() {
        versions.push(read_record(store, &object, version).await?);
    }
    let facts = Facts {
        store: store.to_string(),
        key: path.to_string(),
        digest: object.digest().to_string(),
        fixity_micros: 90 * 86_400 * 1_000_000,
        // Which files each version has, by its inventory: that is what others believe too.
        states: states(&object),
        versions,
    };
    let counts = (
        facts.versions.len() as u64,
        facts.versions.iter().map(|v| v.files.len() as u64).sum(),
        facts.versions.iter().map(|v| v.events.len() as u64).sum(),
    );
    let facts = Arc::new(facts);
    site.db.write(move |tx| restore(tx, &facts)).await?;
    Ok(One::Restored(counts.0, counts.1, counts.2))
}

/// A copy of a version that the registry knows from elsewhere.
struct AnotherCopy {
    identifier: String,
    store: String,
    version: i64,
    key: String,
    digest: String,
    /// The deposited files of that version: path and digest.
    files: HashMap<String, String>,
}

/// Takes in a copy of what is known from another store, if it is the same: whether it was new.
fn adopt(tx: &mut Tx<'_>, copy: &AnotherCopy) -> Result<bool> {
    const COPY: Statement = statement!("sql/put_copy");
    let Some((id,)) = find_id(tx, &copy.identifier)? else { return Ok(false) };
    let copies = view::copies(tx, id)?;
    if copies.iter().any(|c| c.store == copy.store && c.version == copy.version) {
        return Ok(false);
    }
    let like = copies.iter().find(|c| c.version == copy.version && c.digest == copy.digest);
    if like.is_none() && !has_files(tx, id, copy)? {
        let name = &copy.identifier;
        return Err(Error::permanent(
            "different_content",
            format!(
                "the registry has {name} with other files; `accession objects files {name}` shows them, and `accession ocfl` the store's own"
            ),
        ));
    }
    // It is due like the one it equals, or at once.
    let now = tx.now();
    let (at, due) = like.map_or((now, now), |c| (c.stored_at, c.fixity_due));
    let AnotherCopy { store, version, key, digest, .. } = copy;
    tx.send(&COPY, &db::params![id, store, *version, key, digest, at, due, NEVER])?;
    Ok(true)
}

/// Whether the registry has the same files in this version, all of them.
fn has_files(tx: &mut Tx<'_>, id: i64, copy: &AnotherCopy) -> Result<bool> {
    let (mut after, mut seen) = (String::new(), 0);
    loop {
        let page = view::files(tx, id, copy.version, &after, 1000)?;
        let Some(last) = page.last() else { return Ok(seen == copy.files.len()) };
        after = last.path.clone();
        let same = |f: &view::FileView| {
            copy.files.get(&f.path).is_some_and(|d| d.eq_ignore_ascii_case(&f.sha512))
        };
        if !page.iter().all(same) {
            return Ok(false);
        }
        seen += page.len();
    }
}

fn head_of(tx: &mut Tx<'_>, identifier: &str) -> Result<Option<i64>> {
    const HEAD: Statement = statement!("sql/head_of_object");
    Ok(tx.first::<(i64,)>(&HEAD, &db::params![identifier])?.map(|r| r.0))
}

/// The deposited files of each version: path and digest.
fn states(object: &Object) -> Vec<HashMap<String, String>> {
    let inventory = object.inventory();
    inventory
        .versions()
        .iter()
        .map(|version| {
            inventory
                .files(version)
                .filter(|file| !file.path.starts_with("accession/"))
                .map(|file| (file.path.to_string(), file.digest.to_string()))
                .collect()
        })
        .collect()
}

async fn read_record(store: &str, object: &Object, version: &ocfl::Version) -> Result<Carried> {
    let failed = |e| store_error(store, e);
    let name = version.name();
    let file = object.file(Some(name), RECORD).map_err(|_| {
        Error::permanent(
            "no_record",
            format!(
                "version {name} of {} carries no {RECORD}; it was not written by this program",
                object.id()
            ),
        )
    })?;
    let mut content = object.content(&file).await.map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = content.try_next().await.map_err(|e| failed(e.into()))? {
        bytes.extend_from_slice(&chunk);
    }
    let damaged = |what: &str| {
        Error::permanent(
            "bad_record",
            format!("{RECORD} of version {name} of {}: {what}", object.id()),
        )
    };
    let (mut found, mut of, mut events, mut files) = (None, None, Vec::new(), Vec::new());
    for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let line: Line = serde_json::from_slice(line).map_err(|e| damaged(&e.to_string()))?;
        match line {
            Line::Object { identifier, collection, local_ids, lock } => {
                found = Some((identifier, collection, local_ids, lock));
            }
            version @ Line::Version { .. } => of = Some(version),
            Line::Event(event) => events.push(event),
            file @ Line::File { .. } => files.push(file),
        }
    }
    let (object, version) = found.zip(of).ok_or_else(|| damaged("its first lines are missing"))?;
    Ok(Carried { object, version, events, files })
}

/// Everything about one object, ready to be written.
struct Facts {
    store: String,
    key: String,
    digest: String,
    fixity_micros: Micros,
    states: Vec<HashMap<String, String>>,
    versions: Vec<Carried>,
}

fn restore(tx: &mut Tx<'_>, facts: &Facts) -> Result<()> {
    const FORGET: [Statement; 5] = [
        statement!("sql/forget_versions"),
        statement!("sql/forget_files"),
        statement!("sql/forget_copies"),
        statement!("sql/forget_local_ids"),
        statement!("sql/forget_object"),
    ];
    const OBJECT: Statement = statement!("sql/restore_object");
    const LOCAL_ID: Statement = statement!("sql/add_local_id");
    let (Some(first), Some(last)) = (facts.versions.first(), facts.versions.last()) else {
        return Ok(());
    };
    let (identifier, collection, _, lock) = &last.object;
    // An older state of it gives way: the store has all of it, and more.
    if let Some((old,)) = find_id(tx, identifier)? {
        for statement in &FORGET {
            tx.send(statement, &db::params![old])?;
        }
    }
    let id = tx.next_ids("object_ids", 1)?[0];
    // Its name was probably minted; so the next to be minted is a new one, or nearly.
    tx.next_ids("ark_numbers", 1)?;
    let moment = |carried: &Carried| match &carried.version {
        Line::Version { at, .. } => *at,
        _ => 0,
    };
    let (metadata, title, job) = match &last.version {
        Line::Version { metadata, job, .. } => {
            (serde_json::json!(metadata).to_string(), metadata.what.clone(), *job)
        }
        _ => (String::from("{}"), None, 0),
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
            moment(first),
            moment(last)
        ],
    )?;
    for local in &last.object.2 {
        tx.send(&LOCAL_ID, &db::params![collection, local, id])?;
    }
    restore_files(tx, id, facts)?;
    restore_versions(tx, id, facts)?;
    restore_copy(tx, id, head, moment(last), facts)
}

fn find_id(tx: &mut Tx<'_>, identifier: &str) -> Result<Option<(i64,)>> {
    const FIND: Statement = statement!("sql/object_id_of");
    Ok(tx.first(&FIND, &db::params![identifier])?)
}

/// A file's row is valid from the version that brought it to the last one that has it.
fn restore_files(tx: &mut Tx<'_>, id: i64, facts: &Facts) -> Result<()> {
    const FILE: Statement = statement!("sql/restore_files", per engine);
    const COUNT: Statement = statement!("sql/count_object");
    let mut rows: Vec<(
        &str,
        i64,
        Option<i64>,
        i64,
        &str,
        Option<String>,
        &Option<String>,
        Option<String>,
    )> = Vec::new();
    let versions = facts.states.len();
    for (index, carried) in facts.versions.iter().enumerate() {
        for line in &carried.files {
            let Line::File { path, size, sha512, digests, puid, format } = line else { continue };
            let still = |state: &HashMap<String, String>| {
                state.get(path).is_some_and(|d| d.eq_ignore_ascii_case(sha512))
            };
            let kept = facts.states[index..].iter().take_while(|s| still(s)).count();
            let until = (index + kept < versions).then(|| i64::try_from(index + kept).unwrap_or(0));
            let since = i64::try_from(index + 1).unwrap_or(0);
            let text = |v: &Option<serde_json::Value>| v.as_ref().map(ToString::to_string);
            rows.push((path, since, until, *size, sha512, text(digests), puid, text(format)));
        }
    }
    let values: Vec<[Value<'_>; 8]> = rows
        .iter()
        .map(|(path, since, until, size, sha512, digests, puid, format)| {
            db::params![*path, *since, *until, *size, *sha512, digests, *puid, format]
        })
        .collect();
    for portion in values.chunks(1000) {
        tx.send_each(&FILE, &db::params![id], portion)?;
    }
    tx.send(&COUNT, &db::params![id])?;
    Ok(())
}

fn restore_versions(tx: &mut Tx<'_>, id: i64, facts: &Facts) -> Result<()> {
    const VERSION: Statement = statement!("sql/insert_version");
    const COUNT: Statement = statement!("sql/count_old_version");
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
        for event in &carried.events {
            events::insert(tx, Some(id), Some(*number), Some(*job), std::slice::from_ref(event))?;
            events::adopt(tx, id, event)?;
        }
    }
    Ok(())
}

fn restore_copy(tx: &mut Tx<'_>, id: i64, head: i64, at: Micros, facts: &Facts) -> Result<()> {
    const COPY: Statement = statement!("sql/put_copy");
    let due = at.saturating_add(facts.fixity_micros);
    tx.send(
        &COPY,
        &db::params![id, &facts.store, head, &facts.key, &facts.digest, at, due, NEVER],
    )?;
    Ok(())
}

/// Everything the registry says of what a store can know, in an order that is the same in every
/// registry: for comparing two of them.
pub fn dump(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    const DUMPS: [Statement; 5] = [
        statement!("sql/dump_objects"),
        statement!("sql/dump_versions"),
        statement!("sql/dump_files"),
        statement!("sql/dump_copies"),
        statement!("sql/dump_events"),
    ];
    let mut lines: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, statement) in DUMPS.iter().enumerate() {
        let rows: Vec<(String,)> = tx.query(statement, &[])?;
        lines.insert(index, rows.into_iter().map(|r| r.0).collect());
    }
    Ok(lines.into_values().flatten().collect())
}
