//! Events as they are kept for ever.

use crate::error::Result;
use crate::event::Event;
use db::{Statement, Tx, statement};

/// Records an event; one that is recorded already stays as it is.
pub fn insert(
    tx: &mut Tx<'_>,
    object: Option<i64>,
    version: Option<i64>,
    job: Option<i64>,
    event: &Event,
) -> Result<()> {
    const INSERT: Statement = statement!("sql/insert_event");
    tx.send(
        &INSERT,
        &db::params![
            &event.id,
            object,
            version,
            &event.path,
            &event.kind,
            event.at,
            &event.agent,
            &event.outcome,
            &event.detail,
            &event.note,
            job
        ],
    )?;
    Ok(())
}

/// An event that was recorded for an object whose number is another one now.
pub fn adopt(tx: &mut Tx<'_>, object: i64, event: &Event) -> Result<()> {
    const ADOPT: Statement = statement!("sql/adopt_event");
    tx.send(&ADOPT, &db::params![&event.id, object])?;
    Ok(())
}
