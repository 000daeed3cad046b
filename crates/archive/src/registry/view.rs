//! Looking at what is kept: objects, versions, files, copies, events; page by page.

use crate::ErrorCode;
use crate::metadata::Metadata;
use crate::model::codes::{CopyState, ObjectState};
use crate::model::error::{Error, Result};
use crate::model::event::Person;
use crate::model::id::ObjectId;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use queue::{BatchId, JobId};
use serde::Serialize;

/// Which objects. All that is given must fit.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub identifier: Option<String>,
    pub local_id: Option<String>,
    /// Part of the title, the identifier or a local identifier; of ASCII letters, upper and lower
    /// case are the same.
    pub contains: Option<String>,
    pub collection: Option<String>,
    pub state: Option<ObjectState>,
    /// A PUID that a file of the current version has.
    pub format: Option<String>,
    /// Changed at or after, and before.
    pub from: Option<Micros>,
    pub to: Option<Micros>,
    /// The cursor: objects after this one.
    pub after: ObjectId,
    pub limit: i64,
}

#[derive(Debug, Clone, Serialize)]
pub struct ObjectView {
    #[serde(rename = "id")]
    pub id: ObjectId,
    pub identifier: String,
    pub collection: String,
    pub state: ObjectState,
    pub version: i64,
    pub title: Option<String>,
    pub files: i64,
    pub bytes: i64,
    pub created_at: Micros,
    pub updated_at: Micros,
    pub metadata: Metadata,
    #[serde(skip)]
    pub lock: String,
}

impl FromRow for ObjectView {
    fn from_row(row: &Row<'_>) -> db::Result<ObjectView> {
        let metadata: Option<String> = row.get(10)?;
        Ok(ObjectView {
            id: row.get(0)?,
            identifier: row.get(1)?,
            collection: row.get(2)?,
            state: row.get(3)?,
            version: row.get(4)?,
            title: row.get(5)?,
            files: row.get(6)?,
            bytes: row.get(7)?,
            created_at: row.get(8)?,
            updated_at: row.get(9)?,
            metadata: metadata.as_deref().map(Metadata::of_registry).unwrap_or_default(),
            lock: row.get(11)?,
        })
    }
}

pub fn list(tx: &mut Tx<'_>, filter: &Filter) -> Result<Vec<ObjectView>> {
    const LIST: Statement = statement!(objects::list_objects);
    let pattern = filter.contains.as_deref().map(pattern);
    Ok(tx.query(
        &LIST,
        &db::params![
            filter.after,
            &filter.identifier,
            &filter.local_id,
            &filter.collection,
            filter.state,
            &filter.format,
            filter.from,
            filter.to,
            filter.limit,
            &pattern
        ],
    )?)
}

/// What LIKE finds a part of a text by, once both are in lower case. Both engines know the cases of
/// ASCII letters alone.
fn pattern(part: &str) -> String {
    let mut pattern = String::from("%");
    for c in part.to_ascii_lowercase().chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// An object with the names that depositors gave it.
#[derive(Debug, Clone, Serialize)]
pub struct NamedObject {
    #[serde(flatten)]
    pub object: ObjectView,
    pub local_ids: Vec<String>,
}

/// A page of objects with their local identifiers, and whether there are more. A collection that is
/// not there is an error: nothing in it would look like an empty one.
pub fn page(tx: &mut Tx<'_>, filter: &Filter) -> Result<(Vec<NamedObject>, bool)> {
    if let Some(name) = &filter.collection
        && crate::registry::collection::find(tx, name)?.is_none()
        && list(tx, &Filter { limit: 1, after: ObjectId::default(), ..of_collection(name) })?
            .is_empty()
    {
        return Err(Error::permanent(
            ErrorCode::UnknownCollection,
            format!(
                "there is no collection `{name}`; `accession collection list` shows those there are"
            ),
        ));
    }
    let mut found = list(tx, &Filter { limit: filter.limit.saturating_add(1), ..filter.clone() })?;
    let most = usize::try_from(filter.limit).unwrap_or(0);
    let more = found.len() > most;
    found.truncate(most);
    let named = found.into_iter().map(|object| {
        let local_ids = super::resolve::local_ids(tx, object.id)?;
        Ok(NamedObject { object, local_ids })
    });
    Ok((named.collect::<Result<_>>()?, more))
}

/// A rebuilt registry may have objects of collections that were not made here.
fn of_collection(name: &str) -> Filter {
    Filter { collection: Some(name.to_string()), ..Filter::default() }
}

/// An object by its identifier, or by a local identifier that only one object has.
pub fn find(tx: &mut Tx<'_>, name: &str) -> Result<ObjectView> {
    const BY_ID: Statement = statement!(objects::object_by_id);
    const IDENTIFIER: Statement = statement!(objects::object_of_identifier);
    const LOCAL_ID: Statement = statement!(objects::objects_of_local_id);
    const ANY_LOCAL_ID: Statement = statement!(objects::objects_of_any_local_id);
    let normal = crate::identifier::normalise(name).unwrap_or_else(|_| name.to_string());
    let mut found: Vec<(ObjectId,)> = tx.query(&IDENTIFIER, &db::params![&normal])?;
    for statement in [&LOCAL_ID, &ANY_LOCAL_ID] {
        if found.is_empty() {
            found = tx.query(statement, &db::params![name])?;
        }
    }
    match found.as_slice() {
        [] => Err(Error::permanent(
            ErrorCode::UnknownObject,
            format!(
                "there is no object `{name}`; `accession objects list` shows those there are, and `accession objects list PART` those with a part of a name"
            ),
        )),
        [(id,)] => Ok(tx.one(&BY_ID, &db::params![*id])?),
        _ => Err(Error::permanent(
            ErrorCode::Ambiguous,
            format!(
                "several collections have an object `{name}`; give its identifier: `accession objects list --local-id {name}` shows them"
            ),
        )),
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct VersionView {
    pub version: i64,
    pub created_at: Micros,
    pub submitter: String,
    pub message: Option<String>,
    pub job: JobId,
    pub batch: Option<BatchId>,
    pub files: i64,
    pub bytes: i64,
    pub files_new: i64,
    pub files_changed: i64,
    pub files_absent: i64,
}

impl FromRow for VersionView {
    fn from_row(row: &Row<'_>) -> db::Result<VersionView> {
        Ok(VersionView {
            version: row.get(0)?,
            created_at: row.get(1)?,
            submitter: row.get(2)?,
            message: row.get(3)?,
            job: row.get(4)?,
            batch: row.get(5)?,
            files: row.get(6)?,
            bytes: row.get(7)?,
            files_new: row.get(8)?,
            files_changed: row.get(9)?,
            files_absent: row.get(10)?,
        })
    }
}

pub fn versions(tx: &mut Tx<'_>, object: ObjectId) -> Result<Vec<VersionView>> {
    const VERSIONS: Statement = statement!(objects::list_versions);
    Ok(tx.query(&VERSIONS, &db::params![object])?)
}

#[derive(Debug, Clone, Serialize)]
pub struct FileView {
    pub path: String,
    #[serde(rename = "bytes")]
    pub size: i64,
    pub sha512: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digests: Option<serde_json::Value>,
    pub puid: Option<String>,
    pub format: Option<serde_json::Value>,
    #[serde(rename = "since_version")]
    pub since: i64,
    #[serde(rename = "until_version")]
    pub until: Option<i64>,
    /// When the package said it was last written to.
    #[serde(serialize_with = "rfc_3339")]
    pub modified: Option<Micros>,
}

/// Zero is a time that never was.
fn unless_never<S: serde::Serializer>(at: &Micros, to: S) -> std::result::Result<S::Ok, S::Error> {
    (*at != 0).then_some(*at).serialize(to)
}

fn rfc_3339<S: serde::Serializer>(
    at: &Option<Micros>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    at.and_then(show_modified).serialize(to)
}

/// A date of a file as RFC 3339 has it.
pub fn show_modified(at: Micros) -> Option<String> {
    jiff::Timestamp::from_microsecond(at).ok().map(|at| at.to_string())
}

impl FromRow for FileView {
    fn from_row(row: &Row<'_>) -> db::Result<FileView> {
        let json = |text: Option<String>| text.and_then(|t| serde_json::from_str(&t).ok());
        Ok(FileView {
            path: row.get(0)?,
            size: row.get(1)?,
            sha512: row.get(2)?,
            digests: json(row.get(3)?),
            puid: row.get(4)?,
            format: json(row.get(5)?),
            since: row.get(6)?,
            until: row.get(7)?,
            modified: row.get(8)?,
        })
    }
}

/// The empty directories of a version, the first of them.
pub fn empty_directories(
    tx: &mut Tx<'_>,
    object: ObjectId,
    version: i64,
    limit: i64,
) -> Result<Vec<String>> {
    const DIRECTORIES: Statement = statement!(objects::list_directories);
    let rows: Vec<(String,)> = tx.query(&DIRECTORIES, &db::params![object, version, limit])?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// A file of a version.
pub fn file(
    tx: &mut Tx<'_>,
    object: ObjectId,
    version: i64,
    path: &str,
) -> Result<Option<FileView>> {
    const FILE: Statement = statement!(objects::file_of_version);
    Ok(tx.first(&FILE, &db::params![object, version, path])?)
}

/// Refuses a version that an object does not have; without a number it is the current one.
pub fn check_version(object: &ObjectView, version: Option<i64>) -> Result<i64> {
    let version = version.unwrap_or(object.version);
    if (1..=object.version).contains(&version) {
        return Ok(version);
    }
    Err(Error::permanent(
        ErrorCode::UnknownVersion,
        format!(
            "{} has no version {version}; its versions are 1 to {}",
            object.identifier, object.version
        ),
    ))
}

/// A page of the files of one version, in the order of their paths.
pub fn files(
    tx: &mut Tx<'_>,
    object: ObjectId,
    version: i64,
    after: &str,
    limit: i64,
) -> Result<Vec<FileView>> {
    const FILES: Statement = statement!(objects::list_files);
    Ok(tx.query(&FILES, &db::params![object, version, after, limit])?)
}

#[derive(Debug, Clone, Serialize)]
pub struct CopyView {
    pub store: String,
    pub version: i64,
    pub key: String,
    pub digest: String,
    pub files: i64,
    pub bytes: i64,
    pub stored_at: Micros,
    #[serde(serialize_with = "unless_never")]
    pub verified_at: Micros,
    pub fixity_due: Micros,
    /// What the last look has found.
    pub state: CopyState,
    /// When that was; `None` if none was recorded since the copy was made.
    pub checked_at: Option<Micros>,
    /// When all content that the current version refers to was last compared.
    #[serde(skip)]
    pub current_read_at: Micros,
}

impl FromRow for CopyView {
    fn from_row(row: &Row<'_>) -> db::Result<CopyView> {
        Ok(CopyView {
            store: row.get(0)?,
            version: row.get(1)?,
            key: row.get(2)?,
            digest: row.get(3)?,
            files: row.get(4)?,
            bytes: row.get(5)?,
            stored_at: row.get(6)?,
            verified_at: row.get(7)?,
            fixity_due: row.get(8)?,
            state: row.get(9)?,
            checked_at: row.get(10)?,
            current_read_at: row.get(11)?,
        })
    }
}

pub fn copies(tx: &mut Tx<'_>, object: ObjectId) -> Result<Vec<CopyView>> {
    const COPIES: Statement = statement!(objects::list_copies);
    Ok(tx.query(&COPIES, &db::params![object])?)
}

/// The copies of a store that are known to be bad.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadCopies {
    pub store: String,
    pub copies: i64,
    /// When the first of them was found to be bad.
    pub since: Option<Micros>,
    /// The identifier of one of their objects.
    pub example: String,
}

impl FromRow for BadCopies {
    fn from_row(row: &Row<'_>) -> db::Result<BadCopies> {
        Ok(BadCopies {
            store: row.get(0)?,
            copies: row.get(1)?,
            since: row.get(2)?,
            example: row.get(3)?,
        })
    }
}

/// Counts the copies that are known to be bad, for each store that has one.
pub fn bad_copies(tx: &mut Tx<'_>) -> Result<Vec<BadCopies>> {
    const BAD: Statement = statement!(copies::bad_copies);
    Ok(tx.query(&BAD, &[])?)
}

#[derive(Debug, Clone, Serialize)]
pub struct EventView {
    pub id: String,
    pub kind: String,
    pub at: Micros,
    pub agent: String,
    pub outcome: String,
    pub detail: Option<String>,
    pub note: Option<String>,
    pub version: Option<i64>,
    pub path: Option<String>,
    pub job: Option<JobId>,
    /// Who had a part in it, beside the agent, which is a program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<Person>,
}

impl FromRow for EventView {
    fn from_row(row: &Row<'_>) -> db::Result<EventView> {
        Ok(EventView {
            id: row.get(0)?,
            kind: row.get(1)?,
            at: row.get(2)?,
            agent: row.get(3)?,
            outcome: row.get(4)?,
            detail: row.get(5)?,
            note: row.get(6)?,
            version: row.get(7)?,
            path: row.get(8)?,
            job: row.get(9)?,
            people: row
                .get::<Option<String>>(10)?
                .and_then(|people| serde_json::from_str(&people).ok())
                .unwrap_or_default(),
        })
    }
}

/// A page of an object's events, in the order of their time.
pub fn events(
    tx: &mut Tx<'_>,
    object: ObjectId,
    after: (Micros, &str),
    limit: i64,
) -> Result<Vec<EventView>> {
    const EVENTS: Statement = statement!(objects::list_events);
    Ok(tx.query(&EVENTS, &db::params![object, after.0, after.1, limit])?)
}

/// Counts for a glance at the whole: objects, versions, files, bytes, copies.
pub fn totals(tx: &mut Tx<'_>) -> Result<(i64, i64, i64)> {
    const TOTALS: Statement = statement!(objects::registry_totals);
    Ok(tx.one(&TOTALS, &[])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_searched_for_is_taken_as_it_is() {
        assert_eq!(pattern("Box_17 100%"), "%box\\_17 100\\%%");
        assert_eq!(pattern("a\\b"), "%a\\\\b%");
        assert_eq!(pattern("Über"), "%Über%");
    }
}
