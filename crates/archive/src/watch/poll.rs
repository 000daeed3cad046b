//! One round: what is ready is deposited, and depositors are told what became of the rest.

use super::{Ready, look, names, received, recognise, results, step, submitter, take};
use crate::ErrorCode;
use crate::app::WorkSpace;
use crate::config::WatchSection;
use crate::intake::accept::{self, NewDeposit, Receipt};
use crate::intake::received::{Received, kind_of};
use crate::model::item::Source;
use crate::registry::collection;
use crate::registry::deposit::Options;
use crate::{Error, Result};
use db::{Db, Micros, Statement, Tx, statement};
use queue::rules::batch;
use queue::{BatchId, BatchState, Catalog};
use std::path::{Path, PathBuf};

/// What a process that watches needs.
#[derive(Clone)]
pub struct Poller {
    pub db: Db,
    /// Where submitted manifests are kept with their batches.
    pub payloads: PathBuf,
    /// Where packages of buckets are put while they are ingested, in the work space.
    pub received: PathBuf,
    pub work_space: WorkSpace,
    /// How long those are kept whose ingest failed.
    pub failed_retention_micros: Micros,
}

/// Why a package that is ready is not deposited now.
enum Not {
    Yet,
    Failed(Error),
}

impl From<Error> for Not {
    fn from(error: Error) -> Not {
        Not::Failed(error)
    }
}

impl Poller {
    /// Looks at a watched place once. What is wrong with one package is logged, and does not keep
    /// the others waiting.
    pub async fn poll(&self, watch: &WatchSection) -> Result<Vec<Receipt>> {
        let listing = look(watch).await?;
        for stray in &listing.strays {
            tracing::debug!(watch = watch.path, "passed over: {}: {}", stray.name, stray.why);
        }
        let it = watch.clone();
        let ready = self.db.write(move |tx| step(tx, &it, &listing)).await?;
        let mut receipts = Vec::new();
        for package in ready {
            match self.deposit(watch, &package).await {
                Ok(receipt) => receipts.push(receipt),
                Err(Not::Yet) => {}
                // The database is everyone's; all else is about this package.
                Err(Not::Failed(Error::Queue(error))) => return Err(error.into()),
                Err(Not::Failed(error)) => {
                    tracing::warn!(
                        watch = watch.path,
                        package = package.name,
                        "not deposited: {error}"
                    );
                }
            }
        }
        results::tell(&self.db, watch).await?;
        if watch.path.starts_with("s3://") {
            received::sweep(&self.db, &self.received, self.failed_retention_micros).await?;
        }
        Ok(receipts)
    }

    async fn deposit(&self, watch: &WatchSection, package: &Ready) -> Result<Receipt, Not> {
        let ready = package.clone();
        if !self.db.read(move |tx| is_next(tx, &ready)).await? {
            return Err(Not::Yet);
        }
        let place = place_of(watch, package)?;
        let (it, ready, known) = (watch.clone(), package.clone(), place.clone());
        if self.db.write(move |tx| recognise(tx, &it, &ready, &known)).await? {
            let name = &package.name;
            tracing::info!(
                watch = watch.path,
                "{name} is in the stores already; it is not read again"
            );
            return Err(Not::Yet);
        }
        let received = match watch.path.starts_with("s3://") {
            true => Some(received::fetch(watch, package, self).await?.ok_or(Not::Yet)?),
            false => None,
        };
        let path = match &received {
            Some(received) => real(&received.path)?,
            // The watched directory may be a link; below it none is followed.
            None => real(root(watch))?.join(&package.name),
        };
        let new = new_deposit(watch, package, &path, place)?;
        let mut deposit = Received::new(&self.payloads);
        deposit.add(kind_of(&new.source, &new.options)?, new)?;
        let (it, ready, deposits) = (watch.clone(), package.clone(), deposit.deposits());
        let place = received.as_ref().map(|received| received.place.clone());
        let accepted = self
            .db
            .write(move |tx| {
                let accepted = accept(tx, &it, &ready, &deposits[0])?;
                if let Some(place) = &place {
                    received::keep(tx, place, accepted.0.batch)?;
                }
                Ok(accepted)
            })
            .await;
        let (receipt, beside) = match deposit.settle(accepted) {
            Ok(accepted) => accepted,
            Err(error) if error.is(TAKEN) => return Err(Not::Yet),
            Err(error) => return Err(error.into()),
        };
        if beside {
            let text = serde_json::json!(receipt).to_string().into_bytes();
            let written =
                super::beside::write(watch, &package.name, names::RECEIPT_SUFFIX, text).await;
            // The deposit is safe; only its receipt is not where it was wanted.
            if let Err(error) = written {
                tracing::warn!(batch = receipt.batch.number(), "{error}");
            }
        }
        Ok(receipt)
    }
}

fn new_deposit(
    watch: &WatchSection,
    package: &Ready,
    path: &Path,
    place: String,
) -> Result<NewDeposit> {
    Ok(NewDeposit {
        collection: package.collection.clone(),
        submitter: submitter(watch),
        source: Source::from_path(path)?,
        name: package.name.rsplit('/').next().unwrap_or(&package.name).to_string(),
        payload: None,
        options: Options {
            place: Some(place),
            fingerprint: Some(package.fingerprint.clone()),
            ..Options::default()
        },
    })
}

/// Where a package is, as objects remember it. One of a bucket is read elsewhere.
fn place_of(watch: &WatchSection, package: &Ready) -> Result<String> {
    if watch.path.starts_with("s3://") {
        let bucket = watch.path.split('?').next().unwrap_or_default().trim_end_matches('/');
        return Ok(format!("{bucket}/{}", package.name));
    }
    // The watched directory may be a link.
    let path = real(root(watch))?.join(&package.name);
    Ok(crate::model::place::place_of(&Source::from_path(&path)?))
}

/// A path of the archive's own or of its configuration, without links.
fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|e| crate::package::unreadable(path, &e))
}

/// The directory of a drop folder.
pub(super) fn root(watch: &WatchSection) -> &Path {
    Path::new(watch.path.strip_prefix("file://").unwrap_or(&watch.path))
}

/// Undoes a deposit whose package another process took first.
const TAKEN: ErrorCode = ErrorCode::WatchTaken;

/// Whether it can be deposited now: not while the last version of the same package is still on its
/// way, because which object it is is not known until that has ended.
fn is_next(tx: &mut Tx<'_>, package: &Ready) -> Result<bool> {
    collection::profile(tx, &package.collection)?;
    Ok(match package.previous_batch {
        Some(previous) => matches!(
            batch::load(tx, previous)?.state,
            BatchState::Completed | BatchState::Failed | BatchState::Deleted
        ),
        None => true,
    })
}

/// Accepts a deposit and takes its package, or neither. `None` if it cannot be deposited now. Says
/// also whether a receipt is wanted beside it.
fn accept(
    tx: &mut Tx<'_>,
    watch: &WatchSection,
    package: &Ready,
    new: &NewDeposit,
) -> Result<(Receipt, bool)> {
    if !is_next(tx, package)? {
        return Err(Error::permanent(TAKEN, "another process took it"));
    }
    let mut new = new.clone();
    if let Some(previous) = package.previous_batch {
        new.options.identifier = object_of(tx, previous)?;
    }
    let profile = collection::find(tx, &new.collection)?;
    let beside = watch.results || profile.is_some_and(|profile| profile.results_beside);
    let catalog = Catalog::load(tx)?;
    let receipt = accept::accept(tx, &catalog, &new)?;
    if !take(tx, watch, package, receipt.batch)? {
        return Err(Error::permanent(TAKEN, "another process took it, or it changed"));
    }
    Ok((receipt, beside))
}

/// The one object of a deposit; a manifest of many says itself which they are.
fn object_of(tx: &mut Tx<'_>, batch: BatchId) -> Result<Option<String>> {
    const OBJECTS: Statement = statement!(watch::objects_of_batch);
    let found: Vec<(String, i64, i64)> = tx.query(&OBJECTS, &db::params![batch, 2])?;
    Ok(match found.as_slice() {
        [(identifier, ..)] => Some(identifier.clone()),
        _ => None,
    })
}
