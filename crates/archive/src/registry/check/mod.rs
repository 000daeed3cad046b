//! Checks one copy of an object: the inventory with the registry, what the store lists with the
//! inventory, and, if that is asked for, every byte with its digest.
//!
//! K3: a finding is one only if it is seen twice. What changes while it is looked at, because a
//! version is being sealed, is looked at again.

mod bytes;
mod content;
pub mod outcome;

use super::view::{self, CopyView, ObjectView};
use crate::ErrorCode;
use crate::app::App;
use crate::model::codes::{CopyState, ObjectState};
use crate::model::error::{Error, Result};
use crate::stores::{Place, object_error};
use ocfl::{Code, Validation};
use queue::view::show_time;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `missing`, `extra`, `different`, `damaged`, `bad`, `misplaced`, `changing` or `unreadable`.
    pub kind: &'static str,
    pub store: String,
    pub identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub message: String,
    /// The version that brought the file.
    #[serde(skip)]
    pub since: Option<i64>,
}

impl Finding {
    /// Whether it is about the copy. Others say only that it could not be looked at.
    pub fn is_judgement(&self) -> bool {
        !matches!(self.kind, "unreadable" | "changing")
    }

    /// Whether the copy is bad. Something that lies in it beside what belongs there does no harm to
    /// the rest.
    pub fn is_damage(&self) -> bool {
        self.is_judgement() && self.kind != "extra"
    }
}

/// How content is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// Existence and size of every content file, as the store lists them.
    #[default]
    Listing,
    /// Every byte is read and compared.
    Reading,
}

/// What was looked at of content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Content files of all versions whose existence and size was compared.
    pub files: u64,
    /// Those of them that were read and have their digest.
    pub read: u64,
    pub bytes_read: u64,
    /// Those that were not read because they are in cold storage.
    pub cold: u64,
}

/// What a look at a copy has found.
#[derive(Debug, Default)]
pub struct Seen {
    pub counts: Counts,
    pub findings: Vec<Finding>,
    /// Everything that the copy has was looked at, in the depth that was asked for.
    pub complete: bool,
    /// Why the look ended early.
    pub failed: Option<Error>,
}

/// A copy that is checked.
pub struct CopyCheck<'a> {
    pub app: &'a Arc<App>,
    pub place: &'a Place,
    pub object: &'a ObjectView,
    pub copy: &'a CopyView,
    pub depth: Depth,
}

/// How often a copy is looked at that changes while it is looked at, and what lies between.
const LOOKS_MAX: u32 = 6;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Checks what a store has of an object, as the registry knows it when the look begins. `None` if the
/// registry knows no copy there any more. Gives the copy back as it was when it was looked at.
pub async fn check(
    app: &Arc<App>,
    place: &Place,
    object: &ObjectView,
    depth: Depth,
    progress: &mut (dyn FnMut(Counts) + Send),
) -> Result<Option<(CopyView, Seen)>> {
    for look in 1.. {
        let Some(copy) = recorded(app, object, &place.name).await? else { return Ok(None) };
        let check = CopyCheck { app, place, object, copy: &copy, depth };
        let mut seen = Seen::default();
        match check.look(&mut seen, progress).await {
            Ok(()) => {}
            // What was found until then is true.
            Err(error @ (Error::Transient { .. } | Error::Permanent { .. })) => {
                seen.failed = Some(error);
                return Ok(Some((copy, seen)));
            }
            Err(error) => return Err(error),
        }
        // What is wrong with content is true whatever is written beside it.
        let may_be_writing = seen.findings.iter().any(|f| f.is_judgement() && f.since.is_none());
        if !may_be_writing {
            return Ok(Some((copy, seen)));
        }
        let Some(now) = recorded(app, object, &place.name).await? else { return Ok(None) };
        let is_another = now.digest != copy.digest || now.version != copy.version;
        if !is_another && !is_being_sealed(app, &object.identifier).await? {
            return Ok(Some((copy, seen)));
        }
        if look == LOOKS_MAX {
            seen.findings.retain(|f| f.since.is_some());
            let message = "a version of it is being written; check it again later".to_string();
            seen.findings.push(check.finding("changing", None, message));
            seen.complete = false;
            return Ok(Some((copy, seen)));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    unreachable!("the last look returns")
}

/// The registry's copy; `None` if the object is not kept any more, or not there.
async fn recorded(app: &Arc<App>, object: &ObjectView, store: &str) -> Result<Option<CopyView>> {
    let (identifier, store) = (object.identifier.clone(), store.to_string());
    app.db
        .read(move |tx| {
            let object = match view::find(tx, &identifier) {
                Ok(object) if object.state == ObjectState::Active => object,
                Ok(_) => return Ok(None),
                Err(error) if error.is(ErrorCode::UnknownObject) => return Ok(None),
                Err(error) => return Err(error),
            };
            Ok(view::copies(tx, object.id)?.into_iter().find(|copy| copy.store == store))
        })
        .await
}

/// Whether a job is making a version of the object visible.
pub(super) async fn is_being_sealed(app: &Arc<App>, identifier: &str) -> Result<bool> {
    const SEALING: db::Statement = db::statement!(copies::is_being_sealed);
    let identifier = identifier.to_string();
    let find = move |tx: &mut db::Tx<'_>| {
        Ok::<_, Error>(tx.first::<(i64,)>(&SEALING, &db::params![&identifier])?.is_some())
    };
    app.db.read(find).await
}

/// What is said of a copy that is known to be bad, and in which this look has found nothing: it has not
/// read everything, so the copy stays bad.
pub(super) fn known_bad(
    object: &ObjectView,
    copy: &CopyView,
    depth: Depth,
    seen: &Seen,
) -> Option<Finding> {
    let cleared = outcome::verifies(depth, seen);
    if copy.state == CopyState::Good || cleared || seen.findings.iter().any(Finding::is_damage) {
        return None;
    }
    let when = copy.checked_at.map(|at| format!(" at {}", show_time(at))).unwrap_or_default();
    let message = format!(
        "it was found to be damaged or incomplete{when}, and this check has not read all of it; `accession check {} --content` does",
        object.identifier
    );
    Some(finding("bad", &copy.store, object, None, message))
}

impl CopyCheck<'_> {
    fn finding(&self, kind: &'static str, path: Option<&str>, message: String) -> Finding {
        finding(kind, &self.place.name, self.object, path, message)
    }

    async fn look(&self, seen: &mut Seen, progress: &mut (dyn FnMut(Counts) + Send)) -> Result<()> {
        // Before the object is opened: one inventory in memory at a time is enough.
        let structure = match self.depth {
            Depth::Reading => self.structure().await?,
            Depth::Listing => Vec::new(),
        };
        let kept = match self.place.root.object(&self.object.identifier).await {
            Ok(kept) => kept,
            Err(error) => {
                seen.findings.push(self.not_opened(error)?);
                return Ok(());
            }
        };
        let head = i64::from(kept.inventory().head().number());
        let version = self.copy.version;
        if head != version {
            let message = format!(
                "the store has version {head}, and the registry version {version}; {}",
                match head > version {
                    true => format!(
                        "`accession registry rebuild --from {}` takes in what the store has",
                        self.place.name
                    ),
                    false => "copy it from another store".to_string(),
                }
            );
            seen.findings.push(self.finding("different", None, message));
            return Ok(());
        }
        if kept.digest() != self.copy.digest {
            let message = format!(
                "its inventory at {} is not the one that was recorded; `accession ocfl validate` says more",
                self.copy.key
            );
            seen.findings.push(self.finding("different", None, message));
        }
        let listing = kept.list().await.map_err(|e| object_error(&self.place.name, e))?;
        let unsealed = listing.unsealed.map(|name| name.to_string());
        let of_object = |(place, finding)| (unsealed.as_ref() != Some(&place)).then_some(finding);
        seen.findings.extend(structure.into_iter().filter_map(of_object));
        self.listed(&listing, seen);
        content::look_at(self, &kept, &listing, seen, progress).await?;
        seen.complete = seen.findings.iter().all(Finding::is_judgement)
            && (self.depth == Depth::Listing || seen.counts.cold == 0);
        Ok(())
    }

    fn not_opened(&self, error: ocfl::Error) -> Result<Finding> {
        let key = &self.copy.key;
        Ok(match error {
            ocfl::Error::NoSuchObject(_) => self.finding(
                "missing",
                None,
                format!(
                    "the registry says it is at {key}, and it is not there; ingest it again or copy it from another store"
                ),
            ),
            ocfl::Error::Invalid { finding, .. } => {
                self.finding("damaged", None, finding.to_string())
            }
            ocfl::Error::WrongObject { path, found, .. } => {
                self.finding("misplaced", None, format!("its place {path} holds {found}"))
            }
            error => return Err(object_error(&self.place.name, error)),
        })
    }

    /// What lies beside the content.
    fn listed(&self, listing: &ocfl::Listing, seen: &mut Seen) {
        for path in &listing.missing {
            let message = format!(
                "{} is not there, and every object has one; copy it from another store",
                store::join(&self.copy.key, path)
            );
            seen.findings.push(self.finding("missing", Some(path), message));
        }
        for path in &listing.unexpected {
            let message = "it is in the object, and no inventory names it".to_string();
            seen.findings.push(self.finding("extra", Some(path), message));
        }
        let more = listing.unexpected_count - listing.unexpected.len() as u64;
        if more > 0 {
            let message = format!("{more} more files that no inventory names");
            seen.findings.push(self.finding("extra", None, message));
        }
    }

    /// What the rules of OCFL say of everything but the content: with the places it is about.
    async fn structure(&self) -> Result<Vec<(String, Finding)>> {
        // Told from the listing.
        const LISTED: [Code; 7] =
            [Code::E001, Code::E003, Code::E023, Code::E058, Code::E063, Code::E092, Code::E093];
        let store = self.place.root.store().clone();
        let validation = Validation { fixity: false, ..Validation::default() };
        let checked = ocfl::validate_object(store, &self.copy.key, &validation).await;
        let found = checked.map_err(|e| object_error(&self.place.name, e))?;
        let beside = |error: &&ocfl::Finding| !LISTED.contains(&error.code);
        let errors = found
            .errors()
            .filter(beside)
            .map(|e| (e.place.clone(), self.finding("different", None, e.to_string())));
        let unchecked = found.unchecked().map(|unchecked| {
            let message = format!("{}: {}", unchecked.place, unchecked.why);
            (unchecked.place.clone(), self.finding("unreadable", None, message))
        });
        Ok(errors.chain(unchecked).collect())
    }
}

pub(super) fn finding(
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
        since: None,
    }
}
