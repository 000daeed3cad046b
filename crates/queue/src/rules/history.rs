//! I8: every change of stage or status has a history row, written in the same transaction.

use crate::catalog::Pipeline;
use crate::codes::Status;
use crate::engine;
use crate::error::Result;
use crate::id::{JobId, StageId};
use db::{FromRow, Micros, Row, Statement, Tx, Value, statement};

/// Where a job is: in which stage, and how.
pub type Position = (Option<StageId>, Option<Status>);

/// One change, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The id of the job.
    pub job: JobId,
    /// When.
    pub at: Micros,
    /// Who acts or acted.
    pub who: String,
    /// What happened.
    pub event: String,
    /// Where the job was before.
    pub from: Position,
    /// Where the job is after it.
    pub to: Position,
    /// Why, in a sentence.
    pub why: Option<String>,
    /// The error code.
    pub code: Option<String>,
    /// The target that the error names.
    pub target: Option<String>,
    /// The fencing token: it grows with every claim (I4).
    pub token: Option<i64>,
}

/// How much a change matters to a pipeline that keeps only how jobs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A step on the way: kept by pipelines with full history.
    Step,
    /// An error or a person's action: always kept.
    Always,
}

/// Rows gathered by a rule and written together.
#[derive(Default)]
pub struct Journal {
    events: Vec<Event>,
}

impl Journal {
    /// Whether a change of this weight is kept at all; asked where changes are many.
    pub fn keeps(&self, pipeline: &Pipeline, weight: Weight) -> bool {
        pipeline.full_history || weight == Weight::Always
    }

    /// Gathers an event, if the pipeline keeps it.
    pub fn note(&mut self, pipeline: &Pipeline, weight: Weight, event: Event) {
        if self.keeps(pipeline, weight) {
            self.events.push(event);
        }
    }

    /// Writes what was gathered.
    pub fn write(self, tx: &mut Tx<'_>) -> Result<()> {
        const INSERT: Statement = statement!(history::insert_history);
        let count = self.events.len();
        let ids = engine::of(tx).history_ids(tx, count)?;
        let rows: Vec<[Value<'_>; 13]> = self
            .events
            .iter()
            .zip(ids)
            .map(|(e, id)| {
                db::params![
                    e.job, id, e.at, &e.who, &e.event, e.from.0, e.from.1, e.to.0, e.to.1, &e.why,
                    &e.code, &e.target, e.token
                ]
            })
            .collect();
        tx.send_each(&INSERT, &[], &rows)?;
        Ok(())
    }
}

impl Event {
    /// Makes an event.
    pub fn new(job: JobId, at: Micros, who: &str, event: &str) -> Event {
        Event {
            job,
            at,
            who: who.to_string(),
            event: event.to_string(),
            from: (None, None),
            to: (None, None),
            why: None,
            code: None,
            target: None,
            token: None,
        }
    }

    /// Says where the job was.
    pub fn from(self, stage: StageId, status: Status) -> Event {
        Event { from: (Some(stage), Some(status)), ..self }
    }

    /// Says where the job is now.
    pub fn to(self, stage: StageId, status: Status) -> Event {
        Event { to: (Some(stage), Some(status)), ..self }
    }

    /// Says why.
    pub fn why(self, why: impl Into<String>) -> Event {
        Event { why: Some(why.into()), ..self }
    }

    /// Says why, if there is a reason.
    pub fn because(self, why: Option<String>) -> Event {
        Event { why, ..self }
    }

    /// Names the token of the run.
    pub fn token(self, token: i64) -> Event {
        Event { token: Some(token), ..self }
    }

    /// Takes reason, code and target from an error.
    pub fn error(self, error: &crate::job::JobError) -> Event {
        Event {
            why: Some(error.message.clone()),
            code: Some(error.code.clone()),
            target: error.target.clone(),
            ..self
        }
    }
}

impl FromRow for Event {
    fn from_row(row: &Row<'_>) -> db::Result<Event> {
        let status = |n: Option<i64>| n.and_then(Status::from_number);
        Ok(Event {
            job: row.get(0)?,
            at: row.get(1)?,
            who: row.get(2)?,
            event: row.get(3)?,
            from: (row.get(4)?, status(row.get(5)?)),
            to: (row.get(6)?, status(row.get(7)?)),
            why: row.get(8)?,
            code: row.get(9)?,
            target: row.get(10)?,
            token: row.get(11)?,
        })
    }
}

/// A job's history, oldest first, at most `limit` rows after the row `after`.
pub fn of_job(tx: &mut Tx<'_>, job: JobId, after: i64, limit: i64) -> Result<Vec<Event>> {
    const SELECT: Statement = statement!(history::job_history);
    Ok(tx.query(&SELECT, &db::params![job, after, limit])?)
}
