//! Comparing the registry with the stores, both ways: what is missing, extra or different.

use super::rebuild::proper_path;
use super::view::{self, CopyView, FileView, Filter, ObjectView};
use super::walk::Outage;
use crate::codes::ObjectState;
use crate::error::{Error, Result};
use crate::site::Site;
use crate::stores::{Place, object_error, store_error};
use futures_util::StreamExt;
use ocfl::{Code, Validation};
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `missing`, `extra`, `different`, `damaged`, `misplaced` or `unreadable`.
    pub kind: &'static str,
    pub store: String,
    pub identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub message: String,
}

/// How far a comparison has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Looked {
    pub objects: u64,
    pub copies: u64,
    pub files: u64,
}

/// What is compared.
#[derive(Debug, Clone, Default)]
pub struct What {
    /// Only this object.
    pub object: Option<String>,
    /// Read all content, and compare its digests.
    pub content: bool,
}

const PAGE: i64 = 200;

/// Compares; `tell` hears of each finding and of progress.
pub async fn compare(
    site: &Arc<Site>,
    what: &What,
    tell: &mut (dyn FnMut(Looked, Option<Finding>) + Send),
) -> Result<Looked> {
    let mut looked = Looked::default();
    let mut outage = Outage::default();
    let mut after = 0;
    loop {
        let (one, from) = (what.object.clone(), after);
        let page: Vec<ObjectView> =
            site.db.read(move |tx| objects(tx, one.as_deref(), from)).await?;
        let Some(last) = page.last().map(|o| o.id) else { break };
        for object in &page {
            registry_to_stores(site, object, what, &mut looked, &mut outage, tell).await?;
            looked.objects += 1;
            tell(looked, None);
        }
        after = last;
        if what.object.is_some() {
            return Ok(looked);
        }
    }
    for name in site.stores.names() {
        store_to_registry(site, &site.stores.get(name).await?, looked, tell).await?;
    }
    Ok(looked)
}

fn objects(tx: &mut db::Tx<'_>, one: Option<&str>, after: i64) -> Result<Vec<ObjectView>> {
    match one {
        Some(_) if after > 0 => Ok(Vec::new()),
        Some(name) => Ok(vec![view::find(tx, name)?]),
        None => {
            let state = Some(ObjectState::Active);
            view::list(tx, &Filter { state, after, limit: PAGE, ..Filter::default() })
        }
    }
}

async fn registry_to_stores(
    site: &Arc<Site>,
    object: &ObjectView,
    what: &What,
    looked: &mut Looked,
    outage: &mut Outage,
    tell: &mut (dyn FnMut(Looked, Option<Finding>) + Send),
) -> Result<()> {
    let id = object.id;
    let copies = site.db.read(move |tx| view::copies(tx, id)).await?;
    if copies.is_empty() && object.state == ObjectState::Active {
        tell(
            *looked,
            Some(finding("missing", "", object, None, "no store is recorded to have it")),
        );
    }
    for copy in copies {
        let place = site.stores.get(&copy.store).await?;
        match look(site, &place, object, &copy, what, looked).await {
            Ok(findings) => {
                outage.answered();
                findings.into_iter().for_each(|found| tell(*looked, Some(found)));
            }
            Err(error) => {
                let message = outage.pass(error)?.to_string();
                let found = finding("unreadable", &place.name, object, None, message);
                tell(*looked, Some(found));
            }
        }
        looked.copies += 1;
    }
    Ok(())
}

fn finding(
    kind: &'static str,
    store: &str,
    object: &ObjectView,
    path: Option<&str>,
    message: impl Into<String>,
) -> Finding {
    Finding {
        kind,
        store: store.to_string(),
        identifier: object.identifier.clone(),
        path: path.map(str::to_string),
        message: message.into(),
    }
}

/// Compares one copy with what the registry says of it.
async fn look(
    site: &Arc<Site>,
    place: &Place,
    object: &ObjectView,
    copy: &CopyView,
    what: &What,
    looked: &mut Looked,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let kept = match place.root.object(&object.identifier).await {
        Ok(kept) => kept,
        Err(ocfl::Error::NoSuchObject(_)) => {
            let message = format!(
                "the registry says it is at {}, and it is not there; ingest it again or copy it from another store",
                copy.key
            );
            return Ok(vec![finding("missing", &place.name, object, None, message)]);
        }
        Err(ocfl::Error::Invalid { finding: found, .. }) => {
            return Ok(vec![finding("damaged", &place.name, object, None, found.to_string())]);
        }
        Err(ocfl::Error::WrongObject { path, found, .. }) => {
            let message = format!("its place {path} holds {found}");
            return Ok(vec![finding("misplaced", &place.name, object, None, message)]);
        }
        Err(error) => return Err(object_error(&place.name, error)),
    };
    let head = i64::from(kept.inventory().head().number());
    if head != copy.version {
        let message =
            format!("the store has version {head}, and the registry version {}", copy.version);
        findings.push(finding("different", &place.name, object, None, message));
        return Ok(findings);
    }
    if kept.digest() != copy.digest {
        let message =
            "its inventory is not the one that was recorded; `accession ocfl validate` says more";
        findings.push(finding("different", &place.name, object, None, message));
    }
    let version = kept.version(None).map_err(|e| store_error(&place.name, e))?;
    let inventory = kept.inventory();
    let mut common = 0;
    let (id, head) = (object.id, copy.version);
    let mut after = String::new();
    loop {
        let from = after.clone();
        let page: Vec<FileView> =
            site.db.read(move |tx| view::files(tx, id, head, &from, 1000)).await?;
        let Some(last) = page.last().map(|f| f.path.clone()) else { break };
        for file in page {
            looked.files += 1;
            let there = inventory.find(version, &file.path);
            common += usize::from(there.is_some());
            match there.map(|there| there.digest) {
                None => findings.push(finding(
                    "missing",
                    &place.name,
                    object,
                    Some(&file.path),
                    "the store's inventory does not name it",
                )),
                Some(digest) if !digest.eq_ignore_ascii_case(&file.sha512) => {
                    let message = format!(
                        "the store says its sha512 is {digest}, and the registry {}",
                        file.sha512
                    );
                    findings.push(finding(
                        "different",
                        &place.name,
                        object,
                        Some(&file.path),
                        message,
                    ));
                }
                Some(_) => {}
            }
        }
        after = last;
    }
    let deposited = || inventory.files(version).filter(|f| !f.path.starts_with("accession/"));
    if deposited().count() > common {
        let known = known_paths(site, id, head).await?;
        let mut extra: Vec<&str> =
            deposited().map(|file| file.path).filter(|path| !known.contains(*path)).collect();
        extra.sort_unstable();
        let message = "the registry does not know it";
        let name = &place.name;
        findings.extend(extra.iter().map(|p| finding("extra", name, object, Some(p), message)));
    }
    // Validation reads the inventory itself: one of them in memory is enough.
    drop(kept);
    if what.content {
        findings.extend(read_all(place, object, copy).await?);
    }
    Ok(findings)
}

/// The paths of all files of a version.
async fn known_paths(site: &Arc<Site>, id: i64, version: i64) -> Result<HashSet<String>> {
    let (mut known, mut after) = (HashSet::new(), String::new());
    loop {
        let from = after.clone();
        let page: Vec<FileView> =
            site.db.read(move |tx| view::files(tx, id, version, &from, 1000)).await?;
        let Some(last) = page.last() else { return Ok(known) };
        after = last.path.clone();
        known.extend(page.into_iter().map(|file| file.path));
    }
}

/// Reads every byte of a copy, by the rules of OCFL.
async fn read_all(place: &Place, object: &ObjectView, copy: &CopyView) -> Result<Vec<Finding>> {
    let store = place.root.store().clone();
    let checked = ocfl::validate_object(store, &copy.key, &Validation::default()).await;
    let found = checked.map_err(|e| object_error(&place.name, e))?;
    let errors = found.errors().map(|error| {
        let kind = if error.code == Code::E092 { "damaged" } else { "different" };
        finding(kind, &place.name, object, None, error.to_string())
    });
    let unchecked = found.unchecked().map(|unchecked| {
        let message = format!("{}: {}", unchecked.place, unchecked.why);
        finding("unreadable", &place.name, object, None, message)
    });
    Ok(errors.chain(unchecked).collect())
}

/// Objects of a store that the registry does not know.
async fn store_to_registry(
    site: &Arc<Site>,
    place: &Place,
    looked: Looked,
    tell: &mut (dyn FnMut(Looked, Option<Finding>) + Send),
) -> Result<()> {
    let mut outage = Outage::default();
    let mut paths = place.root.object_paths();
    let mut report = |kind, identifier: String, message: String| {
        let store = place.name.clone();
        tell(looked, Some(Finding { kind, store, identifier, path: None, message }));
    };
    while let Some(path) = paths.next().await {
        let path = match path {
            Ok(path) => path,
            Err(error) => {
                let error = outage.pass(object_error(&place.name, error))?;
                report("unreadable", String::new(), error.to_string());
                continue;
            }
        };
        let (store, key) = (place.name.clone(), path.clone());
        let known = site.db.read(move |tx| is_known(tx, &store, &key)).await?;
        if known {
            continue;
        }
        match place.root.object_at(&path).await {
            Err(error) => {
                let error = outage.pass(object_error(&place.name, error))?;
                let message = format!("{path} is not in the registry, and cannot be read: {error}");
                report("unreadable", path, message);
            }
            Ok(object) => {
                outage.answered();
                let identifier = object.id().to_string();
                match proper_path(place, &object) {
                    Some(proper) => {
                        let message = format!("it lies at {path}, and its place is {proper}");
                        report("misplaced", identifier, message);
                    }
                    None => {
                        let message = format!(
                            "{path} is in the store and not in the registry; `accession registry rebuild --from {}` takes it in",
                            place.name
                        );
                        report("extra", identifier, message);
                    }
                }
            }
        }
    }
    Ok(())
}

fn is_known(tx: &mut db::Tx<'_>, store: &str, key: &str) -> Result<bool, Error> {
    const KNOWN: db::Statement = db::statement!("sql/copy_by_key");
    Ok(tx.first::<(i64,)>(&KNOWN, &db::params![store, key])?.is_some())
}
