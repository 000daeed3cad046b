//! Messages that are to be sent: written in the transaction of what they tell of.

use crate::ErrorCode;
use crate::model::error::Result;
use crate::model::id::MessageId;
use crate::model::pipelines;
use crate::model::profile::ReportFormat;
use crate::registry::ingest::Ingest;
use crate::registry::restoring::Restore;
use db::{Micros, Statement, Tx, statement};
use queue::rules::add;
use queue::{BatchId, Catalog, JobId, NewJob};
use serde::{Deserialize, Serialize};

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Message {
    /// The report of a batch, written when it is sent.
    Report {
        batch: BatchId,
        version: i64,
        to: Vec<String>,
        /// What is attached beside the text.
        #[serde(default)]
        formats: Vec<ReportFormat>,
    },
    /// New reviews, gathered.
    Reviews { jobs: Vec<JobId>, total: i64, to: Vec<String> },
    /// What became of one job.
    Callback { collection: String, body: serde_json::Value },
}

impl Message {
    fn pipeline(&self) -> &'static str {
        match self {
            Message::Report { .. } | Message::Reviews { .. } => pipelines::REPORT,
            Message::Callback { .. } => pipelines::CALLBACK,
        }
    }

    fn subject(&self) -> String {
        match self {
            Message::Report { batch, version, .. } => format!("report {version} of batch {batch}"),
            Message::Reviews { total, .. } => format!("{total} jobs to review"),
            Message::Callback { body, .. } => format!("callback for job {}", body["job"]),
        }
    }
}

/// Puts a message into the outbox; its id.
pub fn add(
    tx: &mut Tx<'_>,
    batch: Option<BatchId>,
    job: Option<JobId>,
    message: &Message,
) -> Result<MessageId> {
    const INSERT: Statement = statement!(outbox::insert_message);
    let id: MessageId = tx.next_ids("message_ids", 1)?[0];
    let now = tx.now();
    let body = serde_json::json!(message).to_string();
    let kind = message.pipeline();
    let sending = NewJob {
        subject: message.subject(),
        lock: Some(format!("message/{id}")),
        payload: Some(id.to_string().into_bytes()),
        ..NewJob::default()
    };
    let catalog = Catalog::load(tx)?;
    let added = add::add(tx, now, catalog.named(kind)?, "accession", &[sending])?;
    let sender = added.first().map(|added| added.job);
    tx.send(&INSERT, &db::params![id, kind, batch, job, &body, now, sender])?;
    Ok(id)
}

/// Tells a collection's callback that an object is preserved. What failed is told with its batch.
pub fn add_callback(tx: &mut Tx<'_>, job: JobId, ingest: &Ingest) -> Result<()> {
    let summary = &ingest.summary;
    let version = if ingest.unchanged { ingest.version.map(|v| v - 1) } else { ingest.version };
    let body = serde_json::json!({
        "job": job,
        "batch": ingest.batch,
        "collection": ingest.collection,
        "status": "succeeded",
        "identifier": summary.identifier,
        "local_ids": summary.local_ids,
        "version": version,
        "unchanged": ingest.unchanged,
        "files": summary.files,
        "bytes": summary.bytes,
    });
    let message = Message::Callback { collection: ingest.collection.clone(), body };
    add(tx, ingest.batch, Some(job), &message).map(|_| ())
}

/// Tells a collection's callback that an object was delivered, and where it is.
pub fn add_delivery(
    tx: &mut Tx<'_>,
    collection: &str,
    identifier: &str,
    restore: &Restore,
) -> Result<()> {
    let package = &restore.package;
    let missing: Vec<&str> = package.missing.iter().map(|file| file.path.as_str()).collect();
    let time = |at: Option<Micros>| {
        at.and_then(|at| jiff::Timestamp::from_microsecond(at).ok()).map(|at| at.to_string())
    };
    let body = serde_json::json!({
        "job": restore.job,
        "batch": restore.batch,
        "collection": collection,
        "status": "delivered",
        "identifier": identifier,
        "version": restore.version,
        "place": restore.place,
        "files": package.files,
        "bytes": package.content_bytes,
        "package_bytes": package.bytes,
        "sha256": package.sha256,
        "missing": missing,
        "kept_until": time(restore.kept_until),
    });
    let message = Message::Callback { collection: collection.to_string(), body };
    add(tx, restore.batch, Some(restore.job), &message).map(|_| ())
}

/// A message, and when it was written and sent.
pub struct Kept {
    pub message: Message,
    pub created_at: Micros,
    pub sent_at: Option<Micros>,
}

pub fn find(tx: &mut Tx<'_>, id: MessageId) -> Result<Option<Kept>> {
    const FIND: Statement = statement!(outbox::find_message);
    let row: Option<(String, Micros, Option<Micros>)> = tx.first(&FIND, &db::params![id])?;
    row.map(|(body, created_at, sent_at)| {
        let message = serde_json::from_str(&body)
            .map_err(|e| crate::Error::permanent(ErrorCode::BadMessage, e.to_string()))?;
        Ok(Kept { message, created_at, sent_at })
    })
    .transpose()
}

pub fn sent(tx: &mut Tx<'_>, id: MessageId) -> queue::Result<()> {
    const SENT: Statement = statement!(outbox::message_sent);
    let now = tx.now();
    tx.send(&SENT, &db::params![id, now])?;
    Ok(())
}
