//! What is handed over, made ready to be accepted: the same way for commands, drop folders, buckets and
//! uploads.

use super::accept::{self, NewDeposit, Receipt};
use crate::Error;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::Result;
use crate::model::item::Source;
use crate::package::{kind, payload};
use crate::registry::deposit::Options;
use db::Db;
use queue::Catalog;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Finds out what is at a source, unless its depositor says what it is.
pub fn kind_of(source: &Source, options: &Options) -> Result<DepositKind> {
    match (options.kind, source) {
        (Some(kind), _) => Ok(kind),
        (None, Source::Path(_)) => kind::of_path(&source.path().unwrap_or_default()),
        (None, Source::Url(_)) => Ok(kind::of_url(&source.file_name())),
    }
}

/// Deposits that are ready to be accepted together. Their manifests are kept, byte for byte, as they
/// were when they were added; those of deposits that are not accepted are removed.
pub struct Received {
    payloads: PathBuf,
    deposits: Arc<Vec<NewDeposit>>,
}

impl Received {
    /// Begins with none; manifests are kept in the directory `payloads`.
    pub fn new(payloads: &Path) -> Received {
        Received { payloads: payloads.to_path_buf(), deposits: Arc::default() }
    }

    /// Adds a deposit of this kind. A manifest at a path is copied now; one at a URL is downloaded when it
    /// is examined.
    pub fn add(&mut self, kind: DepositKind, mut new: NewDeposit) -> Result<()> {
        if let (DepositKind::Manifest, Some(path)) = (kind, new.source.path()) {
            new.payload = Some(payload::keep(&self.payloads, &path)?);
        }
        Arc::make_mut(&mut self.deposits).push(new);
        Ok(())
    }

    /// The deposits, in the order in which they were added.
    pub fn deposits(&self) -> Arc<Vec<NewDeposit>> {
        self.deposits.clone()
    }

    /// Accepts all of them, or none.
    pub fn accept(self, db: &Db) -> Result<Vec<Receipt>> {
        let deposits = self.deposits();
        let accepted: Result<Vec<Receipt>> = db.write_blocking(move |tx| {
            let catalog = Catalog::load(tx)?;
            deposits.iter().map(|new| accept::accept(tx, &catalog, new)).collect()
        });
        self.settle(accepted)
    }

    /// Ends what a transaction decided about the deposits: if it failed, their manifests are removed.
    /// Where the outcome is not known, they stay.
    pub fn settle<T>(mut self, outcome: Result<T>) -> Result<T> {
        let is_needed = match &outcome {
            Ok(_) => true,
            Err(Error::Queue(queue::Error::Db(db::Error::UnknownOutcome(_)))) => true,
            Err(_) => false,
        };
        if is_needed {
            self.deposits = Arc::default();
        }
        outcome
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let kept = self.deposits.iter().filter_map(|new| new.payload.as_ref());
        kept.for_each(|name| payload::forget(&self.payloads, name));
    }
}
