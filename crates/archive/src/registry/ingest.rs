//! One job's way through the stages, as it is kept between them.

use crate::ErrorCode;
use crate::metadata::Metadata;
use crate::model::error::{Error, Result};
use crate::model::id::ObjectId;
use crate::model::profile::Profile;
use crate::package::Package;
use crate::package::empty::EmptyDirectory;
use db::{FromRow, Micros, Row, Statement, Tx, Value, statement};
use queue::runtime::Context;
use queue::{BatchId, Claimed, JobId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The stage that reads again what was deposited, whatever is known of it.
pub const FIRST_STAGE: &str = "estimating";

/// What is known of a job so far.
#[derive(Debug, Clone, Default)]
pub struct Ingest {
    pub job: JobId,
    pub batch: Option<BatchId>,
    pub collection: String,
    pub space_bytes: Option<i64>,
    pub package: Option<Package>,
    pub object: Option<ObjectId>,
    pub version: Option<i64>,
    pub unchanged: bool,
    /// What the deposit and its package say, removals among it.
    pub said: Metadata,
    /// What the version says: that, and what stays of the version before.
    pub metadata: Metadata,
    /// What waits to be sealed, by store.
    pub stores: BTreeMap<String, UnsealedCopy>,
    pub summary: Summary,
    pub began_at: Micros,
    pub recorded_at: Option<Micros>,
    /// What the job had gathered was discarded, and nothing has been gathered since.
    pub cleaned_at: Option<Micros>,
    /// How often that happened.
    pub discards: i64,
    /// Files and bytes, as validating counted them; before that, the files that a manifest lists.
    pub validated: Option<(i64, i64)>,
}

/// A version that is written to a store and not sealed; see [`ocfl::Unsealed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsealedCopy {
    pub path: String,
    pub digest: String,
    /// When it was stored.
    pub at: Micros,
    /// When all that the version has in this store was last read and compared, if that is not when
    /// it was stored: content of earlier versions may only have been listed.
    #[serde(default, rename = "verified_at", skip_serializing_if = "Option::is_none")]
    pub current_read_at: Option<Micros>,
}

/// Counts for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    pub identifier: String,
    pub local_ids: Vec<String>,
    /// The identifiers that `bag-info.txt` gives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_package: Vec<String>,
    /// The package's name, where the object was found or made by that alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived: Option<String>,
    pub files: i64,
    pub bytes: i64,
    pub files_new: i64,
    pub files_changed: i64,
    pub files_unchanged: i64,
    pub files_absent: i64,
    pub is_bag: bool,
    /// The package has bytes that are in no file of the object; see [`crate::package::survey::Survey`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    pub warnings: Vec<String>,
    /// Files and bytes by PUID; `unknown` for those that are none.
    pub formats: BTreeMap<String, (i64, i64)>,
    /// What people call them.
    pub format_names: BTreeMap<String, String>,
    pub stores: Vec<String>,
}

fn json<T: DeserializeOwned + Default>(text: Option<String>) -> db::Result<T> {
    match text {
        None => Ok(T::default()),
        Some(text) => serde_json::from_str(&text)
            .map_err(|e| db::Error::Other("a row of an ingest".to_string(), e.to_string())),
    }
}

impl FromRow for Ingest {
    fn from_row(row: &Row<'_>) -> db::Result<Ingest> {
        let metadata: Metadata = json(row.get(8)?)?;
        // Absent in rows of before this was kept apart.
        let said = match row.get::<Option<String>>(17)? {
            None => metadata.clone(),
            said => json(said)?,
        };
        Ok(Ingest {
            job: row.get(0)?,
            batch: row.get(1)?,
            collection: row.get(2)?,
            space_bytes: row.get(3)?,
            package: json(row.get(4)?)?,
            object: row.get(5)?,
            version: row.get(6)?,
            unchanged: row.get(7)?,
            metadata,
            stores: json(row.get(9)?)?,
            summary: json(row.get(10)?)?,
            began_at: row.get(11)?,
            recorded_at: row.get(12)?,
            cleaned_at: row.get(13)?,
            discards: row.get(14)?,
            validated: row.get::<Option<i64>>(15)?.zip(row.get(16)?),
            said,
        })
    }
}

/// What is known of a job, and the profile of its collection; either may not be there.
pub fn find_with_profile(
    tx: &mut Tx<'_>,
    job: JobId,
    collection: &str,
) -> Result<(Option<Ingest>, Option<Profile>)> {
    const CONTEXT: Statement = statement!(ingest::stage_context);
    let Known(ingest, profile) = tx.one(&CONTEXT, &db::params![job, collection])?;
    Ok((ingest, profile.as_deref().map(Profile::from_json).transpose()?))
}

struct Known(Option<Ingest>, Option<String>);

impl FromRow for Known {
    fn from_row(row: &Row<'_>) -> db::Result<Known> {
        let job: Option<JobId> = row.get(0)?;
        Ok(Known(job.map(|_| Ingest::from_row(row)).transpose()?, row.get(18)?))
    }
}

/// Writes all of it, new or not.
pub fn save(tx: &mut Tx<'_>, ingest: &Ingest) -> queue::Result<()> {
    const SAVE: Statement = statement!(ingest::save_ingest);
    let text = |value: serde_json::Value| value.to_string();
    let package = ingest.package.as_ref().map(|p| text(serde_json::json!(p)));
    let metadata = text(serde_json::json!(ingest.metadata));
    let said = text(serde_json::json!(ingest.said));
    let stores = text(serde_json::json!(ingest.stores));
    let summary = text(serde_json::json!(ingest.summary));
    tx.send(
        &SAVE,
        &db::params![
            ingest.job,
            ingest.batch,
            &ingest.collection,
            ingest.space_bytes,
            &package,
            ingest.object,
            ingest.version,
            ingest.unchanged,
            &metadata,
            &stores,
            &summary,
            ingest.began_at,
            ingest.validated.map(|(files, _)| files),
            ingest.validated.map(|(_, bytes)| bytes),
            &said
        ],
    )?;
    Ok(())
}

/// Takes up a job again whose data was discarded: from now on there is something to clean up.
pub fn reopen(tx: &mut Tx<'_>, job: JobId) -> queue::Result<Micros> {
    const REOPEN: Statement = statement!(ingest::reopen_ingest);
    let now = tx.now();
    tx.send(&REOPEN, &db::params![job, now])?;
    Ok(now)
}

/// Refuses to go on with other files than validating has counted, or with none: a version never
/// says less than what was deposited.
pub fn check_complete(tx: &mut Tx<'_>, ingest: &Ingest) -> Result<()> {
    const COUNT: Statement = statement!(ingest::count_ingest_paths);
    let (files, bytes, paths): (i64, i64, i64) = tx.one(&COUNT, &db::params![ingest.job])?;
    let found = (files, bytes);
    match ingest.validated {
        // A path that is there twice stands for a file that is not there.
        Some(validated) if validated == found && files > 0 && paths == files => Ok(()),
        validated => {
            let (files, bytes) = validated.unwrap_or_default();
            Err(Error::permanent(
                ErrorCode::Incomplete,
                format!(
                    "validating read {files} files of {bytes} bytes, and {paths} of {} bytes are known now; read the package again with `accession jobs requeue {} --to {}`",
                    found.1, ingest.job, FIRST_STAGE
                ),
            ))
        }
    }
}

/// Files and bytes that are known of a job.
pub fn count_files(tx: &mut Tx<'_>, job: JobId) -> Result<(i64, i64)> {
    const COUNT: Statement = statement!(ingest::count_ingest_files);
    Ok(tx.one(&COUNT, &db::params![job])?)
}

/// Has the file that an error is about written together with the outcome, for reports.
pub fn note_failed_file(job: &Claimed, context: &Context, error: &Error) {
    const NOTE: Statement = statement!(ingest::note_failed_file);
    let (id, batch) = (job.lease.job, job.lease.batch);
    let collection = job.collection.clone().unwrap_or_else(|| "default".to_string());
    let file = error.file().map(str::to_string);
    context.record(move |tx| {
        let now = tx.now();
        tx.send(&NOTE, &db::params![id, batch, &collection, now, &file])?;
        Ok(())
    });
}

/// A file of a job on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    pub number: i64,
    pub path: String,
    pub size: Option<i64>,
    pub locator: Vec<u8>,
    /// JSON: where it is fetched from, and what it must be.
    pub source: Option<String>,
    pub sha512: Option<String>,
    /// JSON: the other digests.
    pub digests: Option<String>,
    pub puid: Option<String>,
    /// JSON.
    pub format: Option<String>,
    pub change: crate::model::codes::Change,
    /// When it was last written to, as far as the package says.
    pub modified: Option<Micros>,
}

impl FromRow for JobFile {
    fn from_row(row: &Row<'_>) -> db::Result<JobFile> {
        Ok(JobFile {
            number: row.get(0)?,
            path: row.get(1)?,
            size: row.get(2)?,
            locator: row.get::<Option<Vec<u8>>>(3)?.unwrap_or_default(),
            source: row.get(4)?,
            sha512: row.get(5)?,
            digests: row.get(6)?,
            puid: row.get(7)?,
            format: row.get(8)?,
            change: row.get(9)?,
            modified: row.get(10)?,
        })
    }
}

/// Writes files; those that are there already become what they are now.
pub fn put_files(tx: &mut Tx<'_>, job: JobId, files: &[JobFile]) -> queue::Result<()> {
    const PUT: Statement = statement!(ingest::put_ingest_files);
    let rows: Vec<[Value<'_>; 10]> = files
        .iter()
        .map(|f| {
            db::params![
                f.number, &f.path, f.size, &f.locator, &f.source, &f.sha512, &f.digests, &f.puid,
                &f.format, f.modified
            ]
        })
        .collect();
    tx.send_each(&PUT, &db::params![job], &rows)?;
    Ok(())
}

/// A page of a job's files, in order.
pub fn files_after(tx: &mut Tx<'_>, job: JobId, after: i64, limit: i64) -> Result<Vec<JobFile>> {
    const PAGE: Statement = statement!(ingest::ingest_files_after);
    Ok(tx.query(&PAGE, &db::params![job, after, limit])?)
}

/// The first file of a job that has this digest.
pub fn file_by_digest(tx: &mut Tx<'_>, job: JobId, sha512: &str) -> Result<Option<JobFile>> {
    const BY_DIGEST: Statement = statement!(ingest::ingest_file_by_digest);
    Ok(tx.first(&BY_DIGEST, &db::params![job, sha512])?)
}

/// Forgets what is known of the package's files and empty directories.
pub fn forget_files(tx: &mut Tx<'_>, job: JobId) -> queue::Result<()> {
    const FORGET: Statement = statement!(ingest::forget_ingest_files);
    const DIRECTORIES: Statement = statement!(ingest::forget_ingest_directories);
    tx.send(&FORGET, &db::params![job])?;
    tx.send(&DIRECTORIES, &db::params![job])?;
    Ok(())
}

/// Writes the empty directories of a package, in the place of those that were known.
pub fn put_directories(
    tx: &mut Tx<'_>,
    job: JobId,
    directories: &[EmptyDirectory],
) -> queue::Result<()> {
    const FORGET: Statement = statement!(ingest::forget_ingest_directories);
    const PUT: Statement = statement!(ingest::put_ingest_directories);
    tx.send(&FORGET, &db::params![job])?;
    let rows: Vec<[Value<'_>; 2]> =
        directories.iter().map(|d| db::params![&d.path, d.modified]).collect();
    tx.send_each(&PUT, &db::params![job], &rows)?;
    Ok(())
}

/// A page of the empty directories of a job, in the order of their paths.
pub fn directories_after(
    tx: &mut Tx<'_>,
    job: JobId,
    after: &str,
    limit: i64,
) -> Result<Vec<EmptyDirectory>> {
    const PAGE: Statement = statement!(ingest::ingest_directories_after);
    Ok(tx.query(&PAGE, &db::params![job, after, limit])?)
}

impl FromRow for EmptyDirectory {
    fn from_row(row: &Row<'_>) -> db::Result<EmptyDirectory> {
        Ok(EmptyDirectory { path: row.get(0)?, modified: row.get(1)? })
    }
}
