//! Deposits: something is handed over, and a receipt is given at once. Every deposit is a batch.

pub mod cancelling;
pub mod examining;
pub mod expanding;
pub mod kind;
pub mod manifest;
pub mod payload;

use crate::error::{Error, Result};
use crate::item::{Claimed, Mode, Source, Update};
use crate::metadata::Metadata;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use queue::rules::{add, batch, preparing};
use queue::{Catalog, NewJob};
use serde::{Deserialize, Serialize};

pub const PIPELINE: &str = "batch";
pub const STAGES: [&str; 2] = ["examining", "expanding"];

/// What a deposit says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    pub mode: Mode,
    pub update: Option<Update>,
    pub identifier: Option<String>,
    pub local_ids: Vec<String>,
    pub claimed: Option<Claimed>,
    pub metadata: Metadata,
    /// What it is, where the depositor says so; else it is found out.
    pub kind: Option<kind::Deposited>,
    /// Addresses that get the report beside the collection's.
    pub notify: Vec<String>,
    /// Where the depositor put it, if it is read elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How it looked when it was taken from a drop folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

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
    pub batch: i64,
    pub collection: String,
    pub submitter: String,
    pub name: String,
    pub source: String,
    pub at: Micros,
}

/// A deposit as it is kept.
#[derive(Debug, Clone)]
pub struct Deposit {
    pub batch: i64,
    pub kind: Option<String>,
    pub source: Source,
    pub name: String,
    pub options: Options,
    pub payload: Option<String>,
    pub created_at: Micros,
}

impl FromRow for Deposit {
    fn from_row(row: &Row<'_>) -> db::Result<Deposit> {
        let wrong = |e: serde_json::Error| db::Error::Other("a deposit".into(), e.to_string());
        Ok(Deposit {
            batch: row.get(0)?,
            kind: row.get(1)?,
            source: serde_json::from_str(&row.get::<String>(2)?).map_err(wrong)?,
            name: row.get(3)?,
            options: serde_json::from_str(&row.get::<String>(4)?).map_err(wrong)?,
            payload: row.get(5)?,
            created_at: row.get(6)?,
        })
    }
}

/// Accepts a deposit: from here nothing of it is lost.
pub fn accept(tx: &mut Tx<'_>, catalog: &Catalog, new: &NewDeposit) -> Result<Receipt> {
    const INSERT: Statement = statement!(deposit::insert_deposit);
    if let Source::Url(url) = &new.source {
        crate::fetch::check_credentials(url)?;
    }
    let profile = crate::collection::profile(tx, &new.collection)?;
    let now = tx.now();
    let batch = batch::create(
        tx,
        now,
        &batch::NewBatch {
            label: &new.name,
            pipeline: catalog.named(crate::stage::PIPELINE)?.id,
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
        ..NewJob::default()
    };
    let added = add::add(tx, now, catalog.named(PIPELINE)?, &new.submitter, &[job])?;
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

pub fn find(tx: &mut Tx<'_>, batch: i64) -> Result<Deposit> {
    const FIND: Statement = statement!(deposit::find_deposit);
    tx.first(&FIND, &db::params![batch])?.ok_or_else(|| {
        Error::permanent(
            "unknown_deposit",
            format!("batch {batch} is no deposit; `accession batches list` shows those there are"),
        )
    })
}

/// The batch that a job of the pipeline `batch` is about.
fn batch_of(job: &queue::Claimed) -> Result<i64> {
    let text = job.payload.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    text.parse().map_err(|_| {
        Error::permanent("bad_payload", "the job does not name its batch; deposit again")
    })
}
