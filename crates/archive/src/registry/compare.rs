//! Comparing the registry with the stores, both ways: what is missing, extra or different.

pub use super::check::{Depth, Finding};

use super::check::outcome::{self, Outcome};
use super::check::{self, Counts, Seen, finding};
use super::rebuild::proper_path;
use super::view::{self, CopyView, Filter, ObjectView};
use super::walk::Outage;
use crate::app::App;
use crate::model::codes::ObjectState;
use crate::model::error::{Error, Result};
use crate::model::id::ObjectId;
use crate::registry::collection;
use crate::stores::{Place, object_error};
use db::Micros;
use futures_util::StreamExt;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a comparison has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Looked {
    pub objects: u64,
    pub copies: u64,
    /// Content files of all versions, in each copy, whose existence and size was compared.
    pub files: u64,
    /// Those of them that were read and have their digest.
    pub read: u64,
    pub bytes_read: u64,
    /// Those in cold storage, which were listed and not read.
    pub cold: u64,
    /// Copies, or places in stores, that could not be looked at, or not to their end.
    pub unfinished: u64,
}

impl Looked {
    fn with(mut self, counts: Counts) -> Looked {
        self.files += counts.files;
        self.read += counts.read;
        self.bytes_read += counts.bytes_read;
        self.cold += counts.cold;
        self
    }
}

/// What is compared.
#[derive(Debug, Clone, Default)]
pub struct What {
    /// Only this object.
    pub object: Option<String>,
    pub depth: Depth,
    /// Who wants it, for the events.
    pub operator: String,
}

const PAGE: i64 = 200;

type Tell<'a> = &'a mut (dyn FnMut(Looked, Option<Finding>) + Send);

/// Compares, and records what was found of each copy; `tell` hears of each finding and of progress.
pub async fn compare(app: &Arc<App>, what: &What, tell: Tell<'_>) -> Result<Looked> {
    let mut comparison = Comparison {
        app,
        depth: what.depth,
        operator: what.operator.clone(),
        looked: Looked::default(),
        stores: BTreeMap::new(),
        tell,
    };
    let mut after = ObjectId::default();
    loop {
        let (one, from) = (what.object.clone(), after);
        let page: Vec<ObjectView> =
            app.db.read(move |tx| objects(tx, one.as_deref(), from)).await?;
        let Some(last) = page.last().map(|o| o.id) else { break };
        for object in &page {
            comparison.object(object).await?;
        }
        after = last;
        if what.object.is_some() {
            return Ok(comparison.looked);
        }
    }
    for name in app.stores.names() {
        comparison.store(name).await?;
    }
    Ok(comparison.looked)
}

fn objects(tx: &mut db::Tx<'_>, one: Option<&str>, after: ObjectId) -> Result<Vec<ObjectView>> {
    match one {
        Some(_) if after != ObjectId::default() => Ok(Vec::new()),
        Some(name) => Ok(vec![view::find(tx, name)?]),
        None => {
            let state = Some(ObjectState::Active);
            view::list(tx, &Filter { state, after, limit: PAGE, ..Filter::default() })
        }
    }
}

/// A store as a comparison knows it.
#[derive(Default)]
struct Answering {
    outage: Outage,
    /// It does not answer: nothing more of it is looked at.
    is_down: bool,
}

struct Comparison<'a> {
    app: &'a Arc<App>,
    depth: Depth,
    operator: String,
    looked: Looked,
    stores: BTreeMap<String, Answering>,
    tell: Tell<'a>,
}

impl Comparison<'_> {
    fn found(&mut self, finding: Finding) {
        if !finding.is_judgement() {
            self.looked.unfinished += 1;
        }
        (self.tell)(self.looked, Some(finding));
    }

    /// Passes over what could not be looked at in a store. An error of the database ends everything.
    fn pass(
        &mut self,
        store: &str,
        error: Error,
        finding: impl FnOnce(String) -> Finding,
    ) -> Result<()> {
        let answering = self.stores.entry(store.to_string()).or_default();
        let message = match answering.outage.pass(error) {
            Ok(error) => error.to_string(),
            Err(error @ (Error::Transient { .. } | Error::Permanent { .. })) => {
                answering.is_down = true;
                format!("{error}; nothing more of this store is looked at")
            }
            Err(error) => return Err(error),
        };
        self.found(finding(message));
        Ok(())
    }

    /// A store that cannot be opened is not asked again.
    fn give_up(&mut self, store: &str, error: Error) -> Result<()> {
        if !matches!(error, Error::Transient { .. } | Error::Permanent { .. }) {
            return Err(error);
        }
        self.stores.entry(store.to_string()).or_default().is_down = true;
        self.found(Finding {
            kind: "unreadable",
            store: store.to_string(),
            identifier: String::new(),
            path: None,
            message: format!("{error}; nothing of this store is looked at"),
            since: None,
        });
        Ok(())
    }

    fn is_down(&self, store: &str) -> bool {
        self.stores.get(store).is_some_and(|answering| answering.is_down)
    }

    /// Registry to stores.
    async fn object(&mut self, object: &ObjectView) -> Result<()> {
        let id = object.id;
        let copies = self.app.db.read(move |tx| view::copies(tx, id)).await?;
        if copies.is_empty() && object.state == ObjectState::Active {
            self.found(finding("missing", "", object, None, "no store is recorded to have it"));
        }
        for copy in copies {
            if self.is_down(&copy.store) {
                self.looked.unfinished += 1;
                self.known_bad(object, &copy, &Seen::default());
            } else {
                self.copy(object, &copy).await?;
            }
            self.looked.copies += 1;
        }
        self.looked.objects += 1;
        (self.tell)(self.looked, None);
        Ok(())
    }

    fn known_bad(&mut self, object: &ObjectView, copy: &CopyView, seen: &Seen) {
        if let Some(finding) = check::known_bad(object, copy, self.depth, seen) {
            self.found(finding);
        }
    }

    async fn copy(&mut self, object: &ObjectView, recorded: &CopyView) -> Result<()> {
        let store = recorded.store.as_str();
        let unreadable = |message| finding("unreadable", store, object, None, message);
        let place = match self.app.stores.get(store).await {
            Ok(place) => place,
            Err(error) => {
                self.give_up(store, error)?;
                self.known_bad(object, recorded, &Seen::default());
                return Ok(());
            }
        };
        let began = self.app.db.read(|tx| Ok::<_, Error>(tx.now())).await?;
        let (so_far, tell) = (self.looked, &mut *self.tell);
        let mut progress = |counts| tell(so_far.with(counts), None);
        let checked = check::check(self.app, &place, object, self.depth, &mut progress).await;
        let (copy, mut seen) = match checked {
            Ok(Some(checked)) => checked,
            // It is not kept any more.
            Ok(None) => return Ok(()),
            Err(error) => {
                self.pass(store, error, unreadable)?;
                self.known_bad(object, recorded, &Seen::default());
                return Ok(());
            }
        };
        self.looked = self.looked.with(seen.counts);
        let failed = seen.failed.take();
        let seen = Arc::new(seen);
        self.record(
            object,
            copy.clone(),
            began,
            seen.clone(),
            failed.as_ref().map(ToString::to_string),
        )
        .await?;
        for finding in &seen.findings {
            self.found(finding.clone());
        }
        self.known_bad(object, &copy, &seen);
        match failed {
            Some(error) => self.pass(store, error, unreadable)?,
            None => self.stores.entry(store.to_string()).or_default().outage.answered(),
        }
        Ok(())
    }

    async fn record(
        &self,
        object: &ObjectView,
        copy: CopyView,
        began: Micros,
        seen: Arc<Seen>,
        failed: Option<String>,
    ) -> Result<()> {
        let (installation, depth) = (self.app.installation.clone(), self.depth);
        let operator = self.operator.clone();
        let (id, identifier) = (object.id, object.identifier.clone());
        let collection = object.collection.clone();
        let record = move |tx: &mut db::Tx<'_>| {
            // A registry that was rebuilt may know objects of collections that it does not know.
            let profile = collection::find(tx, &collection)?.unwrap_or_default();
            let outcome = Outcome {
                installation: &installation,
                object: id,
                identifier: &identifier,
                copy: &copy,
                depth,
                seen: &seen,
                failed: failed.as_deref(),
                began,
                fixity_micros: profile.fixity_micros(),
                operator: &operator,
            };
            outcome::record(tx, &outcome)
        };
        self.app.db.write(record).await
    }

    /// Store to registry: objects that the registry does not know.
    async fn store(&mut self, name: &str) -> Result<()> {
        if self.is_down(name) {
            return Ok(());
        }
        let about = |kind: &'static str, identifier: String, message: String| Finding {
            kind,
            store: name.to_string(),
            identifier,
            path: None,
            message,
            since: None,
        };
        let place = match self.app.stores.get(name).await {
            Ok(place) => place,
            Err(error) => return self.give_up(name, error),
        };
        let mut paths = place.root.object_paths();
        while let Some(path) = paths.next().await {
            if self.is_down(name) {
                return Ok(());
            }
            let path = match path {
                Ok(path) => path,
                Err(error) => {
                    let error = object_error(name, error);
                    self.pass(name, error, |message| about("unreadable", String::new(), message))?;
                    continue;
                }
            };
            if self.is_known(name, &path).await? {
                continue;
            }
            match place.root.object_at(&path).await {
                Err(error) => {
                    let error = object_error(name, error);
                    self.pass(name, error, |message| {
                        let message =
                            format!("{path} is not in the registry, and cannot be read: {message}");
                        about("unreadable", path.clone(), message)
                    })?;
                }
                // K3: a store shows a version a moment before the registry has it.
                Ok(object) if check::is_being_sealed(self.app, object.id()).await? => {}
                Ok(_) if self.is_known(name, &path).await? => {}
                Ok(object) => {
                    let (kind, message) = unknown(&place, &path, &object);
                    self.found(about(kind, object.id().to_string(), message));
                }
            }
        }
        Ok(())
    }

    async fn is_known(&self, store: &str, path: &str) -> Result<bool> {
        const KNOWN: db::Statement = db::statement!(copies::copy_by_key);
        let (store, key) = (store.to_string(), path.to_string());
        let find = move |tx: &mut db::Tx<'_>| {
            Ok::<_, Error>(tx.first::<(i64,)>(&KNOWN, &db::params![&store, &key])?.is_some())
        };
        self.app.db.read(find).await
    }
}

fn unknown(place: &Place, path: &str, object: &ocfl::Object) -> (&'static str, String) {
    match proper_path(place, object) {
        Some(proper) => ("misplaced", format!("it lies at {path}, and its place is {proper}")),
        None => (
            "extra",
            format!(
                "{path} is in the store and not in the registry; `accession registry rebuild --from {}` takes it in",
                place.name
            ),
        ),
    }
}
