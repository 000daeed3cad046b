//! Discard: the data that a failed job gathered is given up, by a person or after its retention.

use super::{Actor, cancel, find};
use crate::catalog::Catalog;
use crate::codes::Status;
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::rules::history::{Event, Journal, Weight};
use db::{Micros, Statement, Tx, statement};

/// Marks a failed job as having lost what its stages gathered. A later requeue starts it from the
/// first stage, so that everything is read again. Returns false if it was marked before.
///
/// The caller removes its own rows of the job in the same transaction: a requeue that comes first
/// makes this refuse, and one that comes later finds the mark.
pub fn discard(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
) -> Result<bool> {
    const DISCARD: Statement = statement!(operator::set_discarded);
    const FORGET: Statement = statement!(operator::forget_all_checkpoints);
    let found = find(tx, job)?;
    if found.status() != Status::Failed {
        return Err(Error::Refused(format!(
            "the data of job {job} cannot be discarded: it is {}, and only a failed job's data can",
            found.status()
        )));
    }
    let (pipeline, stage) = found.place(catalog)?;
    // What may be half sealed needs its data to be completed.
    cancel::refuse_if_too_late(catalog, &found)?;
    if tx.execute(&DISCARD, &db::params![job])? == 0 {
        return Ok(false);
    }
    tx.send(&FORGET, &db::params![job])?;
    let mut journal = Journal::default();
    let event = Event::new(job, now, actor.who, "discarded")
        .from(stage.id, Status::Failed)
        .to(stage.id, Status::Failed);
    journal.note(pipeline, Weight::Always, event.why(actor.reason));
    journal.write(tx)?;
    Ok(true)
}
