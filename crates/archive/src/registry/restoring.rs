//! Restores as they are kept: what was asked for, what was written, and what was delivered.

use crate::delivery::feed::MissingFile;
use crate::delivery::plan::{MadeRecord, Totals};
use crate::model::error::Result;
use crate::model::event::Event;
use crate::model::id::ObjectId;
use crate::model::item::stem;
use crate::model::restore::{Destination, Order};
use crate::model::text::plural;
use crate::premis::{EventType, Role};
use crate::registry::events;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use queue::{BatchId, JobId};
use serde::{Deserialize, Serialize};

/// What was asked for in a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Addresses that get the report beside the collections'.
    pub notify: Vec<String>,
}

pub fn insert_request(tx: &mut Tx<'_>, batch: BatchId, request: &Request) -> Result<()> {
    const INSERT: Statement = statement!(restores::insert_restore_request);
    let text = serde_json::json!(request).to_string();
    tx.send(&INSERT, &db::params![batch, &text])?;
    Ok(())
}

/// What was asked for, if the batch is one of restores.
pub fn find_request(tx: &mut Tx<'_>, batch: BatchId) -> Result<Option<Request>> {
    const FIND: Statement = statement!(restores::find_restore_request);
    let found: Option<(String,)> = tx.first(&FIND, &db::params![batch])?;
    Ok(found.map(|(text,)| serde_json::from_str(&text).unwrap_or_default()))
}

/// What was found out while a package was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Package {
    /// All of it is written.
    pub is_written: bool,
    pub files: u64,
    pub content_bytes: u64,
    /// Of the package as one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Files that were made for it, before and after those of the object.
    pub head: Vec<MadeRecord>,
    pub tail: Vec<MadeRecord>,
    /// Files that no store has intact; they are not in the package.
    pub missing: Vec<MissingFile>,
    /// The stores that it can be read from, best first.
    pub stores: Vec<String>,
}

impl Package {
    pub fn totals(&mut self, totals: Totals) {
        self.files = totals.files;
        self.content_bytes = totals.bytes;
    }
}

/// A package on its way out, or delivered.
#[derive(Debug, Clone)]
pub struct Restore {
    pub job: JobId,
    pub batch: Option<BatchId>,
    pub object: ObjectId,
    pub version: i64,
    pub place: String,
    pub order: Order,
    pub package: Package,
    pub began_at: Micros,
    pub delivered_at: Option<Micros>,
    pub kept_until: Option<Micros>,
    pub removed_at: Option<Micros>,
}

impl FromRow for Restore {
    fn from_row(row: &Row<'_>) -> db::Result<Restore> {
        let wrong = |e: serde_json::Error| db::Error::Other("a restore".into(), e.to_string());
        let package = serde_json::from_str(&row.get::<String>(5)?).map_err(wrong)?;
        let order = serde_json::from_str(&row.get::<String>(10)?).map_err(wrong)?;
        Ok(Restore {
            job: row.get(0)?,
            batch: row.get(1)?,
            object: row.get(2)?,
            version: row.get(3)?,
            place: row.get(4)?,
            order,
            package,
            began_at: row.get(6)?,
            delivered_at: row.get(7)?,
            kept_until: row.get(8)?,
            removed_at: row.get(9)?,
        })
    }
}

pub fn find(tx: &mut Tx<'_>, job: JobId) -> Result<Option<Restore>> {
    const FIND: Statement = statement!(restores::find_restore);
    Ok(tx.first(&FIND, &db::params![job])?)
}

/// Writes what is known of a package, new or not.
pub fn save(tx: &mut Tx<'_>, restore: &Restore) -> queue::Result<()> {
    const SAVE: Statement = statement!(restores::save_restore);
    let package = serde_json::json!(restore.package).to_string();
    let order = serde_json::json!(restore.order).to_string();
    tx.send(
        &SAVE,
        &db::params![
            restore.job,
            restore.batch,
            restore.object,
            restore.version,
            &restore.place,
            stem(&restore.place),
            &package,
            restore.began_at,
            &order
        ],
    )?;
    Ok(())
}

/// Records that a package was delivered, with an event of the object. Recording again changes nothing.
pub fn record_delivery(
    tx: &mut Tx<'_>,
    restore: &Restore,
    order: &Order,
    event: &Event,
) -> Result<()> {
    const DELIVERED: Statement = statement!(restores::restore_delivered);
    const DAY_MICROS: Micros = 86_400 * 1_000_000;
    save(tx, restore)?;
    let kept_until =
        order.kept_days.map(|days| event.at.saturating_add(Micros::from(days) * DAY_MICROS));
    let bytes = i64::try_from(restore.package.content_bytes).unwrap_or(i64::MAX);
    let missing = i64::try_from(restore.package.missing.len()).unwrap_or(i64::MAX);
    tx.send(&DELIVERED, &db::params![restore.job, event.at, kept_until, bytes, missing])?;
    events::insert(
        tx,
        Some(restore.object),
        Some(restore.version),
        Some(restore.job),
        std::slice::from_ref(event),
    )
}

/// The event of a delivery.
pub fn event(installation: &str, restore: &Restore, order: &Order, at: Micros) -> Event {
    let Package { files, content_bytes, bytes, sha256, missing, .. } = &restore.package;
    let what = match order.paths.is_empty() {
        true => format!("version {}", order.version),
        false => format!("some files of version {}", order.version),
    };
    let form = match order.arrangement {
        crate::model::restore::Arrangement::Files => order.container.to_string(),
        crate::model::restore::Arrangement::Bag => format!("bag, {}", order.container),
        crate::model::restore::Arrangement::Ocfl => format!("OCFL object, {}", order.container),
    };
    let (files, content) = (plural(*files, "file"), plural(*content_bytes, "byte"));
    let detail = format!("{what} as {form}: {files}, {content}");
    let mut note = format!("delivered to {}", restore.place);
    if let (Some(bytes), Some(sha256)) = (bytes, sha256) {
        note.push_str(&format!("; {bytes} bytes, sha256 {sha256}"));
    }
    let outcome = match missing.as_slice() {
        [] => "success",
        [first, ..] => {
            let path = &first.path;
            let count = plural(missing.len() as u64, "file");
            note.push_str(&format!("; {count} that no store has intact, the first: {path}"));
            "warning"
        }
    };
    if order.to == Destination::Nowhere {
        // No one asked for it, and no one got it.
        return Event::of(installation, restore.job, EventType::Validation, "restore drill", at)
            .outcome(outcome)
            .detail(format!("restore drill: {detail}"));
    }
    Event::of(installation, restore.job, EventType::Dissemination, "", at)
        .outcome(outcome)
        .detail(detail)
        .note(note)
        .person(order.by.clone(), Role::Operator)
}

/// Says that nothing of a restore is left but what was delivered.
pub fn cleaned(tx: &mut Tx<'_>, job: JobId) -> queue::Result<()> {
    const CLEANED: Statement = statement!(restores::restore_cleaned);
    const THAWS: Statement = statement!(restores::forget_thaws);
    tx.send(&THAWS, &db::params![job])?;
    let now = tx.now();
    tx.send(&CLEANED, &db::params![job, now])?;
    Ok(())
}

/// A page of the empty directories of a version, and when they were last changed.
pub fn empty_directories(
    tx: &mut Tx<'_>,
    object: ObjectId,
    version: i64,
    after: &str,
    limit: i64,
) -> Result<Vec<(String, Option<Micros>)>> {
    const PAGE: Statement = statement!(restores::page_of_empty_directories);
    Ok(tx.query(&PAGE, &db::params![object, version, after, limit])?)
}

/// A restore that begins.
pub(crate) fn begin(
    job: JobId,
    batch: Option<BatchId>,
    object: ObjectId,
    order: &Order,
    now: Micros,
) -> Restore {
    Restore {
        job,
        batch,
        object,
        version: order.version,
        place: order.to.to_string(),
        order: order.clone(),
        package: Package::default(),
        began_at: now,
        delivered_at: None,
        kept_until: None,
        removed_at: None,
    }
}

/// A delivery as people are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    pub job: JobId,
    /// What people call the object.
    pub subject: String,
    pub identifier: String,
    pub version: i64,
    /// Where it is.
    pub place: String,
    pub files: u64,
    /// Of the files of the object.
    pub bytes: u64,
    /// Of the package as one file; none for a directory.
    pub package_bytes: Option<u64>,
    pub sha256: Option<String>,
    /// Files that no store has intact, which are not in it.
    pub missing: Vec<MissingFile>,
    pub delivered_at: Micros,
    pub kept_until: Option<Micros>,
    pub removed_at: Option<Micros>,
}

impl FromRow for Delivery {
    fn from_row(row: &Row<'_>) -> db::Result<Delivery> {
        let text: String = row.get(4)?;
        let package: Package = serde_json::from_str(&text)
            .map_err(|e| db::Error::Other("a restore".to_string(), e.to_string()))?;
        Ok(Delivery {
            job: row.get(0)?,
            identifier: row.get(1)?,
            version: row.get(2)?,
            place: row.get(3)?,
            files: package.files,
            bytes: package.content_bytes,
            package_bytes: package.bytes,
            sha256: package.sha256,
            missing: package.missing,
            delivered_at: row.get(5)?,
            kept_until: row.get(6)?,
            removed_at: row.get(7)?,
            subject: row.get(8)?,
        })
    }
}

/// The bytes that were delivered of a batch, and how many of its packages lack files.
pub fn delivered_totals(tx: &mut Tx<'_>, batch: BatchId) -> Result<(i64, i64)> {
    const TOTALS: Statement = statement!(restores::delivered_totals);
    Ok(tx.one(&TOTALS, &db::params![batch])?)
}

/// A page of what was delivered of a batch.
pub fn deliveries(
    tx: &mut Tx<'_>,
    batch: BatchId,
    after: JobId,
    limit: i64,
) -> Result<Vec<Delivery>> {
    const LIST: Statement = statement!(restores::list_restores);
    Ok(tx.query(&LIST, &db::params![batch, after, limit])?)
}

/// Restores that ended without being delivered, and have not been cleaned up after: with when they
/// failed, if they did.
pub fn left_over(
    tx: &mut Tx<'_>,
    after: JobId,
    limit: i64,
) -> Result<Vec<(Restore, Option<Micros>)>> {
    const LEFT: Statement = statement!(restores::uncleaned_restores);
    let rows: Vec<(JobId, Option<Micros>)> = tx.query(&LEFT, &db::params![after, limit])?;
    let mut found = Vec::with_capacity(rows.len());
    for (job, failed_at) in rows {
        found.extend(find(tx, job)?.map(|restore| (restore, failed_at)));
    }
    Ok(found)
}

/// Deliveries whose time is over.
pub fn expired(tx: &mut Tx<'_>, limit: i64) -> Result<Vec<Restore>> {
    const EXPIRED: Statement = statement!(restores::expired_restores);
    let now = tx.now();
    let rows: Vec<(JobId,)> = tx.query(&EXPIRED, &db::params![now, limit])?;
    let mut found = Vec::with_capacity(rows.len());
    for (job,) in rows {
        found.extend(find(tx, job)?);
    }
    Ok(found)
}

/// Says that the archive has removed what it delivered.
pub fn removed(tx: &mut Tx<'_>, job: JobId) -> Result<()> {
    const REMOVED: Statement = statement!(restores::restore_removed);
    let now = tx.now();
    tx.send(&REMOVED, &db::params![job, now])?;
    Ok(())
}
