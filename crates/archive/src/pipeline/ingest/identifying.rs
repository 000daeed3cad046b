//! The format of every file. Hashing found it out on the way; this stage counts and records it,
//! and never fails a job because a format is unknown.

use super::{Run, Step};
use crate::model::error::{Error, Result};
use crate::model::event::Event;
use crate::model::format::Format;
use crate::premis::EventType;
use crate::registry::events;
use crate::registry::ingest;
use db::{Statement, Tx, statement};
use queue::{JobId, Outcome};

pub struct Identifying;

impl Step for Identifying {
    const NAME: &'static str = "identifying";

    async fn run(mut run: Run<'_>) -> Result<Outcome> {
        let id = run.id();
        let formats = run.app.db.read(move |tx| count_formats(tx, id)).await?;
        let (mut known, mut all) = (0, 0);
        let summary = &mut run.ingest.summary;
        for (puid, files, bytes, format) in formats {
            all += files;
            let Some(puid) = puid else {
                summary.formats.insert("unknown".to_string(), (files, bytes));
                continue;
            };
            known += files;
            if let Some(name) = format.as_deref().and_then(name) {
                summary.format_names.insert(puid.clone(), name);
            }
            summary.formats.insert(puid, (files, bytes));
        }
        let ingest = run.to_save();
        let here = run.app.installation.clone();
        let signatures = run.app.identifier.set().origin().name.clone();
        run.context.record(move |tx| {
            ingest::save(tx, &ingest)?;
            let event = Event::of(&here, id, EventType::FormatIdentification, "", tx.now())
                .detail(format!("PRONOM signatures {signatures}"))
                .note(format!("{known} of {all} files identified"));
            events::keep(tx, id, &[event])
        });
        Ok(Outcome::success())
    }
}

/// Name and version of a format.
fn name(format: &str) -> Option<String> {
    let format: Format = serde_json::from_str(format).ok()?;
    let name = format!("{} {}", format.name, format.version).trim().to_string();
    (!name.is_empty()).then_some(name)
}

type Counted = (Option<String>, i64, i64, Option<String>);

fn count_formats(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<Counted>, Error> {
    const COUNT: Statement = statement!(stages::count_formats);
    Ok(tx.query(&COUNT, &db::params![job])?)
}
