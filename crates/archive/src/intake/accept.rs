//! Accepting a deposit: it becomes a batch, and its depositor gets a receipt.

use crate::model::error::Result;
use crate::model::item::Source;
use crate::model::pipelines::{BATCH, INGEST};
use crate::registry::collection;
use crate::registry::deposit::Options;
use crate::transfer::fetch;
use db::{Micros, Statement, Tx, statement};
use queue::rules::{add, batch, preparing};
use queue::{BatchId, Catalog, NewJob};
use serde::Serialize;

/// A deposit to be accepted.
#[derive(Debug, Clone)]
pub struct NewDeposit {
    pub collection: String,
    pub submitter: String,
    pub source: Source,
    pub name: String,
    /// Where a manifest is kept, below the payload directory.
    pub payload: Option<String>,
    pub options: Options,
}

/// What a depositor gets at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    pub batch: BatchId,
    pub collection: String,
    pub submitter: String,
    pub name: String,
    pub source: String,
    pub at: Micros,
}

/// Accepts a deposit: from here nothing of it is lost.
pub fn accept(tx: &mut Tx<'_>, catalog: &Catalog, new: &NewDeposit) -> Result<Receipt> {
    const INSERT: Statement = statement!(deposit::insert_deposit);
    if let Source::Url(url) = &new.source {
        fetch::check_credentials(url)?;
    }
    let profile = collection::profile(tx, &new.collection)?;
    let now = tx.now();
    let batch = batch::create(
        tx,
        now,
        &batch::NewBatch {
            label: &new.name,
            pipeline: catalog.named(INGEST)?.id,
            collection: Some(&new.collection),
            submitter: &new.submitter,
            mode: new.options.mode.name(),
            priority: profile.priority,
        },
    )?;
    let source = serde_json::json!(new.source).to_string();
    let options = serde_json::json!(new.options).to_string();
    tx.send(&INSERT, &db::params![batch, &source, &new.name, &options, &new.payload, now])?;
    let job = NewJob {
        subject: format!("batch {batch}: {}", shortened(&new.name)),
        lock: Some(format!("batch/{batch}")),
        payload: Some(batch.to_string().into_bytes()),
        priority: Some(profile.priority.unwrap_or(5)),
        // Held with it (I9).
        collection: Some(new.collection.clone()),
        ..NewJob::default()
    };
    let added = add::add(tx, now, catalog.named(BATCH)?, &new.submitter, &[job])?;
    for added in added {
        preparing::prepare(tx, batch, added.job)?;
    }
    Ok(Receipt {
        batch,
        collection: new.collection.clone(),
        submitter: new.submitter.clone(),
        name: new.name.clone(),
        source: new.source.to_string(),
        at: now,
    })
}

/// Subjects have a limit, and names of packages may be as long as a file system lets them.
fn shortened(name: &str) -> String {
    name.chars().take(200).collect()
}
