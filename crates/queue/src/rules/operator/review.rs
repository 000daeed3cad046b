//! Review: failed jobs that a person has not looked at yet.

use super::{Actor, find};
use crate::catalog::Catalog;
use crate::codes::Status;
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::rules::history::{Event, Journal, Weight};
use db::{Micros, Statement, Tx, statement};

/// Notes that a person has seen a failed job: it leaves the list for review and stays failed.
pub fn seen(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    job: JobId,
) -> Result<()> {
    const SEEN: Statement = statement!(operator::set_seen);
    let found = find(tx, job)?;
    if tx.execute(&SEEN, &db::params![job])? == 0 {
        return Err(Error::Refused(format!("job {job} is {} and needs no review", found.status())));
    }
    let (pipeline, stage) = found.place(catalog)?;
    let mut journal = Journal::default();
    let event = Event::new(job, now, actor.who, "seen")
        .from(stage.id, Status::Failed)
        .to(stage.id, Status::Failed);
    journal.note(pipeline, Weight::Always, event.why(actor.reason));
    journal.write(tx)
}
