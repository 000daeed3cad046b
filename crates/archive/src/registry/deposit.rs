//! Deposits as they are kept: what was handed over with a batch.

use crate::ErrorCode;
use crate::metadata::Metadata;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::{Error, Result};
use crate::model::item::{ExpectedDigest, Mode, Source, Update};
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use queue::BatchId;
use serde::{Deserialize, Serialize};

/// What a deposit says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    pub mode: Mode,
    pub update: Option<Update>,
    pub identifier: Option<String>,
    pub local_ids: Vec<String>,
    pub claimed: Option<ExpectedDigest>,
    pub metadata: Metadata,
    /// What it is, where the depositor says so; else it is found out.
    pub kind: Option<DepositKind>,
    /// Addresses that get the report beside the collection's.
    pub notify: Vec<String>,
    /// Where the depositor put it, if it is read elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How it looked when it was taken from a drop folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// A deposit as it is kept.
#[derive(Debug, Clone)]
pub struct Deposit {
    pub batch: BatchId,
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

pub fn find(tx: &mut Tx<'_>, batch: BatchId) -> Result<Deposit> {
    const FIND: Statement = statement!(deposit::find_deposit);
    tx.first(&FIND, &db::params![batch])?.ok_or_else(|| {
        Error::permanent(
            ErrorCode::UnknownDeposit,
            format!("batch {batch} is no deposit; `accession batches list` shows those there are"),
        )
    })
}
