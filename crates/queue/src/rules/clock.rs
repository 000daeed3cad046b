//! A clock that was set back. Times that the queue chose (the end of a back-off, of a lease, the next
//! probe of a target) were written by the clock as it was before. If it was days ahead, they would come
//! true days late. Such a time is kept as a distance from the moment it was chosen, and counted
//! from now instead.
//!
//! A due time that a person gave with a job (`begun` is 0) is a time and not a distance: it stays.

use crate::error::Result;
use crate::id::StageId;
use db::{Micros, Statement, Tx, statement};

/// How far ahead of the clock a moment in the past may be: clocks are corrected by less all the time.
pub const TOLERANCE_MICROS: Micros = 60_000_000;

/// Counts from now what was counted from a moment that has not come yet; how many times were changed.
pub fn follow(tx: &mut Tx<'_>, now: Micros) -> Result<usize> {
    const WAITING: Statement = statement!(clock::rebase_waiting);
    const WORKERS: Statement = statement!(clock::rebase_workers);
    const TARGETS: Statement = statement!(clock::rebase_targets);
    let ahead = now + TOLERANCE_MICROS;
    // A worker that lives renews its lease; one that is lost has one lease from now on.
    let workers: Vec<(i64,)> = tx.query(&WORKERS, &db::params![now, ahead])?;
    let targets: Vec<(i64,)> = tx.query(&TARGETS, &db::params![now, ahead])?;
    let waiting: Vec<(StageId,)> = tx.query(&WAITING, &db::params![now, ahead])?;
    for (stage,) in &waiting {
        tx.wake(*stage);
    }
    Ok(waiting.len() + workers.len() + targets.len())
}
