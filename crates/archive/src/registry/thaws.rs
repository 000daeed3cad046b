//! Content in cold storage that restores have asked for.

use crate::model::error::Result;
use db::{FromRow, Micros, Row, Statement, Tx, Value, statement};
use queue::JobId;

/// A file that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedThaw {
    pub store: String,
    pub key: String,
    pub asked_at: Micros,
    /// It could be read at the last look.
    pub is_ready: bool,
    /// Until when, as the store says.
    pub until: Option<Micros>,
}

impl FromRow for AskedThaw {
    fn from_row(row: &Row<'_>) -> db::Result<AskedThaw> {
        Ok(AskedThaw {
            store: row.get(0)?,
            key: row.get(1)?,
            asked_at: row.get(2)?,
            is_ready: row.get::<Option<Micros>>(3)?.is_some(),
            until: row.get(4)?,
        })
    }
}

/// Everything that a job has asked for.
pub fn of_job(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<AskedThaw>> {
    const LIST: Statement = statement!(restores::thaws_of_job);
    Ok(tx.query(&LIST, &db::params![job])?)
}

/// Records what was asked for, and what is ready by now.
pub fn record(tx: &mut Tx<'_>, job: JobId, thaws: &[AskedThaw]) -> queue::Result<()> {
    const RECORD: Statement = statement!(restores::record_thaw);
    let now = tx.now();
    for thaw in thaws {
        let ready: Option<Micros> = thaw.is_ready.then_some(now);
        let row: [Value<'_>; 6] = db::params![job, &thaw.store, &thaw.key, now, ready, thaw.until];
        tx.send(&RECORD, &row)?;
    }
    Ok(())
}
