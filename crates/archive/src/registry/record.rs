//! Recording a version: one transaction for any number of files.

use crate::model::error::Result;
use crate::model::event::ingested_at;
use crate::model::id::ObjectId;
use crate::registry::events;
use crate::registry::ingest::{self, Ingest};
use db::{Micros, Statement, Tx, statement};

/// What is recorded of a version beside its files.
#[derive(Debug, Clone)]
pub struct NewVersion {
    pub ingest: Ingest,
    pub submitter: String,
    pub message: Option<String>,
    /// Where the package came from; see [`crate::registry::derived`].
    pub place: String,
    pub replaces: bool,
    pub fixity_micros: Micros,
}

/// Records the version, if it is not recorded yet, as of when its events say it was ingested.
pub fn record(tx: &mut Tx<'_>, new: &NewVersion) -> Result<()> {
    const VERSION: Statement = statement!(record::insert_version);
    const END_CHANGED: Statement = statement!(record::end_changed_files);
    const END_ABSENT: Statement = statement!(record::end_absent_files);
    const FILES: Statement = statement!(record::insert_files);
    const DIRECTORIES: Statement = statement!(record::insert_directories);
    const OBJECT: Statement = statement!(record::activate_object);
    const COUNT: Statement = statement!(record::count_version);
    const INGEST: Statement = statement!(record::ingest_recorded);
    let ingest = &new.ingest;
    let (Some(object), Some(version)) = (ingest.object, ingest.version) else {
        return Ok(());
    };
    let events = events::kept(tx, ingest.job)?;
    let now = ingested_at(&events);
    let metadata = serde_json::json!(ingest.metadata).to_string();
    let summary = &ingest.summary;
    let inserted = tx.execute(
        &VERSION,
        &db::params![
            object,
            version,
            ingest.job,
            ingest.batch,
            &new.submitter,
            &new.message,
            &metadata,
            summary.files_new,
            summary.files_changed,
            summary.files_absent,
            now
        ],
    )?;
    if inserted == 0 {
        return Ok(());
    }
    ingest::check_complete(tx, ingest)?;
    tx.send(&END_CHANGED, &db::params![ingest.job, object, version])?;
    if new.replaces {
        tx.send(&END_ABSENT, &db::params![ingest.job, object, version])?;
    }
    tx.send(&FILES, &db::params![ingest.job, object, version])?;
    tx.send(&DIRECTORIES, &db::params![ingest.job, object, version])?;
    tx.send(
        &OBJECT,
        &db::params![object, version, &ingest.metadata.what, &metadata, now, &new.place],
    )?;
    tx.send(&COUNT, &db::params![object, version])?;
    copies(tx, new, object, version)?;
    events::insert(tx, Some(object), Some(version), Some(ingest.job), &events)?;
    tx.send(&INGEST, &db::params![ingest.job, now])?;
    Ok(())
}

fn copies(tx: &mut Tx<'_>, new: &NewVersion, object: ObjectId, version: i64) -> Result<()> {
    const COPY: Statement = statement!(copies::put_copy);
    for (store, waiting) in &new.ingest.stores {
        let current_read_at = waiting.current_read_at.unwrap_or(waiting.at);
        tx.send(
            &COPY,
            &db::params![
                object,
                store,
                version,
                &waiting.path,
                &waiting.digest,
                waiting.at,
                waiting.at.saturating_add(new.fixity_micros),
                // Of a first version. Later ones do not renew it.
                waiting.at,
                current_read_at
            ],
        )?;
    }
    Ok(())
}
