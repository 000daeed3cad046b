//! The engine seam: the steps of the rules that need different code on SQLite and on PostgreSQL.
//!
//! A step that differs in its SQL only is one statement with two texts in `src/sql`. A step that
//! differs in more is a method of [`Steps`], with its two implementations in `sqlite.rs` and
//! `postgres.rs`. Rules call `engine::of(tx)` and never ask which engine they run on.
//!
//! SQLite has one writer at a time, so what only orders concurrent transactions does nothing there.

mod postgres;
mod sqlite;

use crate::catalog::{Pipeline, Stage};
use crate::error::Result;
use crate::id::{BatchId, JobId, PipelineId, StageId, WorkerId};
use crate::rules::draft::Draft;
use crate::rules::line::Ahead;
use crate::rules::operator::JobRow;
use db::{Engine, Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeSet, HashMap};

/// What a transaction that adds jobs gets.
pub(crate) struct Entered {
    /// The jobs' ids, ascending.
    pub ids: Vec<JobId>,
    /// Whether anything is held at all.
    pub holds: bool,
    /// The jobs that stand before them in the lines for their locks.
    pub ahead: HashMap<String, Ahead>,
}

/// A lock that a claim wants for a job.
pub(crate) struct LockRequest<'a> {
    pub lock: &'a str,
    pub job: JobId,
    pub token: i64,
    /// None for a job that is only put into the worker's buffer.
    pub started_at: Option<Micros>,
    /// The target that the run probes.
    pub probe: Option<&'a str>,
    /// The job has run before and may own its lock already.
    pub begun: bool,
}

/// For whom a claim takes locks.
#[derive(Clone, Copy)]
pub(crate) struct Claimant {
    pub worker: WorkerId,
    pub stage: StageId,
    pub now: Micros,
}

/// The steps that the engines take differently.
pub(crate) trait Steps {
    /// Waits for a transaction that deletes the pipeline, and keeps others from deleting it.
    fn enter_pipeline(&self, tx: &mut Tx<'_>, pipeline: PipelineId) -> Result<()>;

    /// Waits for transactions that add to the pipeline, and keeps others out.
    fn close_pipeline(&self, tx: &mut Tx<'_>, pipeline: PipelineId) -> Result<()>;

    /// I9: waits for a transaction that pauses or holds, whose rows the claim then sees.
    fn enter_claims(&self, tx: &mut Tx<'_>) -> Result<()>;

    /// I9: waits for claims under way, and keeps others out until the transaction ends.
    fn stop_claims(&self, tx: &mut Tx<'_>) -> Result<()>;

    /// Returns whether one more claim may look at a stage now.
    fn enter_lane(&self, tx: &mut Tx<'_>, stage: StageId) -> Result<bool>;

    /// I7: locks the rows of batches, in the order of `ids`.
    fn lock_batches(&self, tx: &mut Tx<'_>, ids: &[BatchId]) -> Result<()>;

    /// Waits for claims that look at budgets, and keeps others out.
    fn lock_resources(&self, tx: &mut Tx<'_>) -> Result<()>;

    /// Finds a job and locks its rows, so that what is decided about it stays true.
    fn find_job(&self, tx: &mut Tx<'_>, job: JobId) -> Result<JobRow>;

    /// Returns ids for history rows; None where the server numbers them as they are written.
    fn history_ids(&self, tx: &mut Tx<'_>, count: usize) -> Result<Vec<Option<i64>>>;

    /// Returns how long the server has been up; the maximum where there is no server.
    fn server_uptime(&self, tx: &mut Tx<'_>) -> Result<Micros>;

    /// Promotes the first parked job of each freed lock, and wakes its stage.
    fn promote(&self, tx: &mut Tx<'_>, now: Micros, locks: &BTreeSet<String>) -> Result<()>;

    /// Adds one job of a coalescing pipeline in one round trip, if the engine can and nothing is
    /// held. Returns the job's id and the new id; they differ if it was merged into a waiting job.
    fn add_one(
        &self,
        tx: &mut Tx<'_>,
        now: Micros,
        pipeline: &Pipeline,
        who: &str,
        draft: &Draft<'_>,
    ) -> Result<Option<(JobId, JobId)>>;

    /// Returns the ids of the jobs to add and who stands before them; None if the pipeline is gone.
    /// Coalescing pipelines look at owners of locks only: their waiting jobs merge.
    fn enter_adds(
        &self,
        tx: &mut Tx<'_>,
        pipeline: &Pipeline,
        drafts: &[Draft<'_>],
    ) -> Result<Option<Entered>>;

    /// Inserts waiting rows. Returns, for each draft that met a waiting job of its key, that job.
    fn insert_waiting(
        &self,
        tx: &mut Tx<'_>,
        now: Micros,
        stage: &Stage,
        drafts: &[Draft<'_>],
    ) -> Result<HashMap<JobId, JobId>>;

    /// I3: takes locks in the order given and removes the waiting rows of the jobs that got theirs.
    /// Returns which did.
    fn take_locks(
        &self,
        tx: &mut Tx<'_>,
        claimant: Claimant,
        wanted: &[LockRequest<'_>],
    ) -> Result<Vec<bool>>;
}

/// Returns the steps of the engine that a transaction runs on.
pub(crate) fn of(tx: &Tx<'_>) -> &'static dyn Steps {
    match tx.engine() {
        Engine::Sqlite => &sqlite::Sqlite,
        Engine::Postgres => &postgres::Postgres,
    }
}

/// The parameters of a lock: those of the claim, and a row for each lock.
fn lock_params<'a>(
    claimant: Claimant,
    wanted: &'a [LockRequest<'a>],
) -> ([Value<'static>; 3], Vec<[Value<'a>; 5]>) {
    let rows =
        wanted.iter().map(|w| db::params![w.lock, w.job, w.token, w.started_at, w.probe]).collect();
    (db::params![claimant.worker, claimant.stage, claimant.now], rows)
}

/// Takes locks one by one; each may have an owner.
fn take_contested(
    tx: &mut Tx<'_>,
    claimant: Claimant,
    wanted: &[LockRequest<'_>],
) -> Result<Vec<bool>> {
    const TAKE: Statement = statement!(claim::take_locks);
    const LEAVE: Statement = statement!(claim::leave_waiting);
    let (common, rows) = lock_params(claimant, wanted);
    let taken = tx.each_hit(&TAKE, &common, &rows, 1)?;
    let gone: Vec<[Value<'_>; 1]> = wanted
        .iter()
        .zip(&taken)
        .filter(|(_, taken)| **taken)
        .map(|(w, _)| [Value::from(w.job)])
        .collect();
    tx.send_each(&LEAVE, &[], &gone)?;
    Ok(taken)
}

const INSERT_WAITING: Statement = statement!(add::insert_waiting);

/// A waiting row for each draft.
fn waiting_rows<'a>(drafts: &[&'a Draft<'a>]) -> Vec<[Value<'a>; 12]> {
    let row = |d: &&'a Draft<'a>| {
        db::params![
            d.id,
            d.state,
            d.priority,
            d.due,
            &d.lock,
            &d.key,
            d.job.batch,
            &d.job.collection,
            &d.targets,
            &d.job.workspace,
            &d.needs,
            &d.held_by
        ]
    };
    drafts.iter().map(row).collect()
}
