//! The format of every file. Hashing found it out on the way; this stage counts and records it,
//! and never fails a job for what nobody knows.

use super::Run;
use crate::error::{Error, Result};
use crate::event::{self, Event};
use crate::ingest;
use crate::premis::EventType;
use db::{Statement, Tx, statement};
use queue::Outcome;

pub async fn run(mut run: Run<'_>) -> Result<Outcome> {
    let id = run.id();
    let formats = run.site.db.read(move |tx| count_formats(tx, id)).await?;
    let known: i64 = formats.iter().filter(|(p, ..)| p.is_some()).map(|(_, files, _)| files).sum();
    let all: i64 = formats.iter().map(|(_, files, _)| files).sum();
    run.ingest.summary.formats = formats
        .into_iter()
        .map(|(puid, files, bytes)| (puid.unwrap_or_else(|| "unknown".into()), (files, bytes)))
        .collect();
    let ingest = run.ingest.clone();
    let here = run.site.installation.clone();
    let signatures = run.site.identifier.set().origin().name.clone();
    run.context.record(move |tx| {
        ingest::save(tx, &ingest)?;
        let event = Event::of(&here, id, EventType::FormatIdentification, "", tx.now())
            .detail(format!("PRONOM signatures {signatures}"))
            .note(format!("{known} of {all} files identified"));
        event::keep(tx, id, &event)
    });
    Ok(Outcome::success())
}

fn count_formats(tx: &mut Tx<'_>, job: i64) -> Result<Vec<(Option<String>, i64, i64)>, Error> {
    const COUNT: Statement = statement!("sql/count_formats");
    Ok(tx.query(&COUNT, &db::params![job])?)
}
