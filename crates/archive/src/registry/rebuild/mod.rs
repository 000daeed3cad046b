//! Restoring the registry from a store alone: every version carries its record, and the inventory
//! says which files each version has.

mod record;
mod restore;

use super::logs;
use super::view;
use super::walk::Outage;
use crate::ErrorCode;
use crate::app::App;
use crate::model::error::{Error, Result};
use crate::model::id::ObjectId;
use crate::stores::{Place, object_error};
use db::{Micros, Statement, Tx, statement};
use futures_util::StreamExt;
use ocfl::Object;
use restore::Facts;
use std::collections::BTreeMap;
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
    /// Objects that could not be read, and why.
    pub unreadable: Vec<String>,
    /// Objects that lie where the store's layout puts another one: they are not taken in.
    pub misplaced: Vec<String>,
}

impl Rebuilt {
    /// Whether everything that the store has is in the registry.
    pub fn is_complete(&self) -> bool {
        self.behind.is_empty() && self.unreadable.is_empty() && self.misplaced.is_empty()
    }
}

/// Restores what a store knows and the registry does not. An object that cannot be read is named,
/// and the others are restored.
pub async fn rebuild(
    app: &Arc<App>,
    store: &str,
    mut tell: impl FnMut(&Rebuilt),
) -> Result<Rebuilt> {
    let place = app.stores.get(store).await?;
    let mut rebuilt = Rebuilt::default();
    let mut outage = Outage::default();
    let paths = place.root.object_paths();
    // Inventories are read ahead, and what they say is taken in one after the other.
    let opened = paths.map(|path| async {
        match path {
            Ok(path) => {
                let object = place.root.object_at(&path).await;
                (path, object.map_err(|error| object_error(store, error)))
            }
            // The error names the directory.
            Err(error) => (String::new(), Err(object_error(store, error))),
        }
    });
    let mut opened = std::pin::pin!(opened.buffered(place.root.store().at_once()));
    while let Some((path, object)) = opened.next().await {
        let restored = match object {
            Ok(object) => one(app, &place, &path, object).await,
            Err(error) => Err(error),
        };
        match restored {
            Ok(restored) => {
                outage.answered();
                rebuilt.count(restored);
            }
            Err(error) => {
                let error = outage.pass(error)?;
                rebuilt.unreadable.push(match path.is_empty() {
                    true => error.to_string(),
                    false => format!("{path}: {error}"),
                });
            }
        }
        tell(&rebuilt);
    }
    Ok(rebuilt)
}

impl Rebuilt {
    fn count(&mut self, one: One) {
        match one {
            One::Restored(counts) => {
                self.objects += 1;
                self.versions += counts.versions;
                self.files += counts.files;
                self.events += counts.events;
            }
            One::Known { another_copy } => {
                self.known += 1;
                self.copies += u64::from(another_copy);
            }
            One::Behind(what) => {
                self.known += 1;
                self.behind.push(what);
            }
            One::Misplaced(what) => self.misplaced.push(what),
        }
    }
}

/// What one object brought.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    versions: u64,
    files: u64,
    events: u64,
}

/// What became of one object of the store.
enum One {
    /// It is in the registry now.
    Restored(Counts),
    Known {
        another_copy: bool,
    },
    /// The registry knows a newer version than this store has.
    Behind(String),
    /// The store's layout has another place for it.
    Misplaced(String),
}

async fn one(app: &Arc<App>, place: &Place, path: &str, object: Object) -> Result<One> {
    let store = &place.name;
    if let Some(proper) = proper_path(place, &object) {
        return Ok(One::Misplaced(format!(
            "{path}: it holds {}, whose place is {proper}; move it there if that place is empty, and remove it otherwise",
            object.id()
        )));
    }
    let object = Arc::new(object);
    let head = i64::from(object.inventory().head().number());
    let identifier = object.id().to_string();
    let known: Option<i64> = app.db.read(move |tx| head_of(tx, &identifier)).await?;
    match known {
        Some(known) if known > head => {
            return Ok(One::Behind(format!(
                "{}: the store has version {head}, and the registry version {known}",
                object.id()
            )));
        }
        Some(known) if known == head => {
            let copy = AnotherCopy { store: store.clone(), version: head, object };
            let copy = Arc::new(copy);
            let another_copy = app.db.write(move |tx| adopt(tx, &copy)).await?;
            return Ok(One::Known { another_copy });
        }
        _ => {}
    }
    let mut versions = Vec::new();
    for version in object.inventory().versions() {
        let scratch = &app.settings.work_space.path;
        versions.push(record::read(store, &object, version, scratch).await?);
    }
    let logged = logs::read(place, &object).await?;
    let counts = Counts {
        versions: versions.len() as u64,
        files: versions.iter().map(|v| v.files).sum(),
        events: versions.iter().map(|v| v.events.len() as u64).sum::<u64>() + logged.len() as u64,
    };
    let facts = Arc::new(Facts { store: store.clone(), object, versions, logged });
    app.db.write(move |tx| restore::restore(tx, &facts)).await?;
    Ok(One::Restored(counts))
}

/// The place that the layout has for an object, if it is another one.
pub(super) fn proper_path(place: &Place, object: &Object) -> Option<String> {
    place.root.object_path(object.id()).ok().filter(|proper| proper != object.path())
}

/// A copy of a version that the registry knows from elsewhere.
struct AnotherCopy {
    store: String,
    version: i64,
    object: Arc<Object>,
}

/// Takes in a copy of what is known from another store, if it is the same: whether it was new.
fn adopt(tx: &mut Tx<'_>, copy: &AnotherCopy) -> Result<bool> {
    const COPY: Statement = statement!(copies::put_copy);
    let Some((id,)) = find_id(tx, copy.object.id())? else { return Ok(false) };
    let copies = view::copies(tx, id)?;
    if copies.iter().any(|c| c.store == copy.store && c.version == copy.version) {
        return Ok(false);
    }
    let like =
        copies.iter().find(|c| c.version == copy.version && c.digest == copy.object.digest());
    if like.is_none() && !has_files(tx, id, copy)? {
        let name = copy.object.id();
        return Err(Error::permanent(
            ErrorCode::DifferentContent,
            format!(
                "the registry has {name} with other files; `accession objects files {name}` shows them, and `accession ocfl` the store's own"
            ),
        ));
    }
    // It is due like the one it equals, or at once.
    let now = tx.now();
    let (at, due) = like.map_or((now, now), |c| (c.stored_at, c.fixity_due));
    let AnotherCopy { store, version, object } = copy;
    let (key, digest) = (object.path(), object.digest());
    tx.send(&COPY, &db::params![id, store, *version, key, digest, at, due, NEVER, NEVER])?;
    Ok(true)
}

/// Whether the registry has the same files in this version, all of them.
fn has_files(tx: &mut Tx<'_>, id: ObjectId, copy: &AnotherCopy) -> Result<bool> {
    let inventory = copy.object.inventory();
    let Some(version) = inventory.versions().last() else { return Ok(false) };
    let there = inventory.files(version).filter(|f| !f.path.starts_with("accession/")).count();
    let (mut after, mut seen) = (String::new(), 0);
    loop {
        let page = view::files(tx, id, copy.version, &after, 1000)?;
        let Some(last) = page.last() else { return Ok(seen == there) };
        after = last.path.clone();
        let same = |f: &view::FileView| {
            let file = inventory.find(version, &f.path);
            file.is_some_and(|file| file.digest.eq_ignore_ascii_case(&f.sha512))
        };
        if !page.iter().all(same) {
            return Ok(false);
        }
        seen += page.len();
    }
}

fn head_of(tx: &mut Tx<'_>, identifier: &str) -> Result<Option<i64>> {
    const HEAD: Statement = statement!(rebuild::head_of_object);
    Ok(tx.first::<(i64,)>(&HEAD, &db::params![identifier])?.map(|r| r.0))
}

fn find_id(tx: &mut Tx<'_>, identifier: &str) -> Result<Option<(ObjectId,)>> {
    const FIND: Statement = statement!(rebuild::object_id_of);
    Ok(tx.first(&FIND, &db::params![identifier])?)
}

/// Everything the registry says of what a store can know, in an order that is the same in every
/// registry: for comparing two of them.
pub fn dump(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    const DUMPS: [Statement; 6] = [
        statement!(rebuild::dump_objects),
        statement!(rebuild::dump_versions),
        statement!(rebuild::dump_files),
        statement!(rebuild::dump_directories),
        statement!(rebuild::dump_copies),
        statement!(rebuild::dump_events),
    ];
    let mut lines: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, statement) in DUMPS.iter().enumerate() {
        let rows: Vec<(String,)> = tx.query(statement, &[])?;
        lines.insert(index, rows.into_iter().map(|r| r.0).collect());
    }
    Ok(lines.into_values().flatten().collect())
}
