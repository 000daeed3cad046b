//! What became of a job, in a few words for those who watch.

use crate::model::error::Result;
use crate::registry::ingest::Summary;
use db::{FromRow, Row, Statement, Tx, statement};
use queue::{BatchId, Catalog, JobId, PipelineId};

/// A job and the object it was about.
#[derive(Debug, Clone)]
pub struct Brief {
    pub subject: String,
    pub pipeline: String,
    pub batch: Option<BatchId>,
    pub version: Option<i64>,
    pub unchanged: bool,
    pub identifier: String,
    pub files: i64,
    pub bytes: u64,
    pipeline_id: PipelineId,
}

impl FromRow for Brief {
    fn from_row(row: &Row<'_>) -> db::Result<Brief> {
        let summary: Option<String> = row.get(5)?;
        let summary: Summary =
            summary.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Brief {
            subject: row.get(0)?,
            pipeline: String::new(),
            pipeline_id: row.get(1)?,
            batch: row.get(2)?,
            version: row.get(3)?,
            unchanged: row.get::<Option<i64>>(4)?.is_some_and(|n| n != 0),
            identifier: summary.identifier,
            files: summary.files,
            bytes: summary.bytes.unsigned_abs(),
        })
    }
}

/// What is known of a job; `None` if it is gone already.
pub fn brief(tx: &mut Tx<'_>, catalog: &Catalog, job: JobId) -> Result<Option<Brief>> {
    const BRIEF: Statement = statement!(reports::job_in_brief);
    let found: Option<Brief> = tx.first(&BRIEF, &db::params![job])?;
    Ok(found.map(|mut brief| {
        let pipeline = catalog.pipeline(brief.pipeline_id);
        brief.pipeline = pipeline.map(|p| p.name.clone()).unwrap_or_default();
        brief
    }))
}
