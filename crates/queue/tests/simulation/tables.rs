//! The tables as they are, read with statements of the simulator's own.

use db::{FromRow, Row, Statement, Tx};
use queue::{BatchId, JobId, PipelineId, StageId, WorkerId};
use std::collections::BTreeMap;

macro_rules! rows {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),+ $(,)? } $sql:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $(pub $field: $kind),+ }

        impl FromRow for $name {
            #[allow(unused_assignments, reason = "the last count is not read")]
            fn from_row(row: &Row<'_>) -> db::Result<$name> {
                let mut column = 0;
                $(let $field: $kind = row.get(column)?; column += 1;)+
                Ok($name { $($field),+ })
            }
        }

        impl $name {
            const SELECT: Statement = Statement {
                name: concat!("simulation/", stringify!($name)),
                sqlite: $sql,
                postgres: "",
            };
        }
    };
}

rows!(JobRow {
    id: JobId, pipeline: PipelineId, subject: String, lock: String, batch: Option<BatchId>, collection: Option<String>,
    priority: i64, payload: Option<Vec<u8>>, status: i64, stage: StageId, targets: Option<String>,
    workspace: Option<String>, needs: Option<String>, ended_at: Option<i64>,
} "select id, pipeline, subject, lock, batch, collection, priority, payload, status, stage, targets, workspace, needs, ended_at from jobs order by id");

rows!(WaitingRow {
    id: JobId, stage: StageId, state: i64, priority: i64, due: i64, lock: String, coalesce_key: Option<String>,
    begun: bool, batch: Option<BatchId>, collection: Option<String>, targets: Option<String>,
    workspace: Option<String>, needs: Option<String>, blocked_on: Option<String>, since: i64,
} "select id, stage, state, priority, due, lock, coalesce_key, begun, batch, collection, targets, workspace, needs, blocked_on, since from waiting order by id");

rows!(StartedRow {
    lock: String, id: JobId, stage: StageId, worker: Option<WorkerId>, token: i64, started_at: Option<i64>,
    cancel_by: Option<String>, error_seen: Option<String>, probe: Option<String>,
} "select lock, id, stage, worker, token, started_at, cancel_by, error_seen, probe from leases order by id");

rows!(FailureRow {
    job: JobId, pipeline: PipelineId, subject: String, lock: String, stage: StageId, needs_review: bool, recoverable: bool,
    overtaken: bool,
    discarded: bool,
} "select job, pipeline, subject, lock, stage, needs_review, recoverable, overtaken, discarded from failures order by job");

rows!(TriesRow {
    job: JobId, stage: StageId, attempts: i64, attempts_ever: i64, interruptions: i64, interruptions_ever: i64, requeues: i64,
} "select job, stage, attempts, attempts_ever, interruptions, interruptions_ever, requeues from tries order by job, stage");

rows!(CheckpointRow { job: JobId, stage: StageId, key: String, value: String }
    "select job, stage, key, value from checkpoints order by job, stage, key");

rows!(StateRow { job: JobId, stage: StageId, state: String }
    "select job, stage, state from states order by job, stage");

rows!(TargetRow {
    name: String, errors: i64, opened_at: Option<i64>, next_probe: Option<i64>, probe_wait: i64, probe_job: Option<JobId>,
} "select name, errors, opened_at, next_probe, probe_wait, probe_job from targets order by name");

rows!(ReservationRow { job: JobId, resource: String, amount: i64, worker: WorkerId }
    "select job, resource, amount, worker from reservations order by job, resource");

rows!(BatchRow {
    id: BatchId, state: i64, held: bool, total: i64, open: i64, succeeded: i64, failed: i64, cancelled: i64,
    entries: i64, prepared_by: Option<JobId>,
} "select id, state, held, total, open, succeeded, failed, cancelled, (select count(*) from batch_entries e where e.batch = b.id), prepared_by from batches b order by id");

rows!(NameRow { kind: String, name: String }
    "select kind, name from holds union all select 'pause ' || kind, cast(id as text) from pauses order by 1, 2");

rows!(WorkerRow { id: WorkerId, lease_until: i64, ended: bool }
    "select id, lease_until, ended_at is not null from workers order by id");

rows!(HistoryRow {
    job: JobId, id: i64, at: i64, who: String, event: String, from_stage: Option<StageId>, from_status: Option<i64>,
    to_stage: Option<StageId>, to_status: Option<i64>,
} "select job, id, at, who, event, from_stage, from_status, to_stage, to_status from history where id > $1 order by id");

rows!(
    /// How jobs succeeded, which is not in the table of history a second time.
    SuccessRow { job: JobId, stage: StageId, token: i64 }
    "select job, stage, token from endings where status = 4 order by job"
);

/// Everything there is at one moment; of history, what is newer than the last time.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub jobs: BTreeMap<JobId, JobRow>,
    pub waiting: BTreeMap<JobId, WaitingRow>,
    pub started: Vec<StartedRow>,
    pub failures: BTreeMap<JobId, FailureRow>,
    pub tries: Vec<TriesRow>,
    pub checkpoints: Vec<CheckpointRow>,
    pub states: Vec<StateRow>,
    pub targets: Vec<TargetRow>,
    pub reservations: Vec<ReservationRow>,
    pub batches: BTreeMap<BatchId, BatchRow>,
    pub names: Vec<NameRow>,
    pub workers: Vec<WorkerRow>,
    pub history: Vec<HistoryRow>,
    pub successes: BTreeMap<JobId, SuccessRow>,
}

impl Tables {
    pub fn load(tx: &mut Tx<'_>, history_after: i64) -> db::Result<Tables> {
        let jobs: Vec<JobRow> = tx.query(&JobRow::SELECT, &[])?;
        let waiting: Vec<WaitingRow> = tx.query(&WaitingRow::SELECT, &[])?;
        let failures: Vec<FailureRow> = tx.query(&FailureRow::SELECT, &[])?;
        let batches: Vec<BatchRow> = tx.query(&BatchRow::SELECT, &[])?;
        let successes: Vec<SuccessRow> = tx.query(&SuccessRow::SELECT, &[])?;
        Ok(Tables {
            successes: successes.into_iter().map(|r| (r.job, r)).collect(),
            jobs: jobs.into_iter().map(|r| (r.id, r)).collect(),
            waiting: waiting.into_iter().map(|r| (r.id, r)).collect(),
            started: tx.query(&StartedRow::SELECT, &[])?,
            failures: failures.into_iter().map(|r| (r.job, r)).collect(),
            tries: tx.query(&TriesRow::SELECT, &[])?,
            checkpoints: tx.query(&CheckpointRow::SELECT, &[])?,
            states: tx.query(&StateRow::SELECT, &[])?,
            targets: tx.query(&TargetRow::SELECT, &[])?,
            reservations: tx.query(&ReservationRow::SELECT, &[])?,
            batches: batches.into_iter().map(|r| (r.id, r)).collect(),
            names: tx.query(&NameRow::SELECT, &[])?,
            workers: tx.query(&WorkerRow::SELECT, &[])?,
            history: tx.query(&HistoryRow::SELECT, &db::params![history_after])?,
        })
    }

    pub fn owner(&self, lock: &str) -> Option<&StartedRow> {
        self.started.iter().find(|s| s.lock == lock)
    }
}

/// The names in a column that has one a line.
pub fn lines(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().lines().map(str::to_string).collect()
}
