//! What goes into the queue, what comes out of it, and how a run can end.

use crate::catalog::Catalog;
use crate::codes::Status;
use db::{Micros, Tx};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Named amounts: `memory_bytes`, `space_bytes`, licences, drives.
pub type Amounts = BTreeMap<String, i64>;

pub const PRIORITY_DEFAULT: i64 = 50;

/// A job as it is added.
#[derive(Debug, Clone, Default)]
pub struct NewJob {
    /// Encoded by [`crate::subject::encode`].
    pub subject: String,
    /// What no other job may have at the same time; the queue and subject unless said.
    pub lock: Option<String>,
    pub payload: Option<Vec<u8>>,
    /// 0 (first) to 99; 50 unless said.
    pub priority: Option<i64>,
    /// Not before this time.
    pub due: Option<Micros>,
    pub batch: Option<i64>,
    pub collection: Option<String>,
    /// Outside things it is known to need.
    pub targets: Vec<String>,
    /// Where its bytes are; only workers that reach it may claim the job.
    pub workspace: Option<String>,
    pub needs: Amounts,
}

impl NewJob {
    pub fn new(subject: impl Into<String>) -> NewJob {
        NewJob { subject: subject.into(), ..NewJob::default() }
    }
}

/// What became of an add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    pub job: i64,
    /// True if the subject waited already: this is that job, with the newer payload.
    pub coalesced: bool,
}

/// One worker's right to one job: nothing is changed for it without the current token (I4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    pub job: i64,
    pub lock: String,
    pub token: i64,
    pub batch: Option<i64>,
    /// The stage it was claimed in.
    pub stage: i64,
    /// The claim was a probe of a target.
    pub probe: bool,
}

/// A job in a worker's hands.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub lease: Lease,
    pub pipeline: i64,
    pub stage: i64,
    pub subject: String,
    pub payload: Option<Vec<u8>>,
    pub collection: Option<String>,
    pub targets: Vec<String>,
    pub workspace: Option<String>,
    pub priority: i64,
    pub added_at: Micros,
    /// 1 for the first run since it was added or requeued.
    pub attempt: i64,
    /// False while it lies in a buffer: starting it is a write of its own.
    pub started: bool,
    /// The token of its last run, if that is known. Nobody has had the job since.
    pub token_before: Option<i64>,
    /// What the run before this one passed on, if it is known here.
    pub passed: Passed,
}

/// An error of a run, kept in the job's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// Stable, for programs.
    pub code: String,
    /// What, where, and what to do next.
    pub message: String,
    /// The outside thing that is to blame, if one is.
    pub target: Option<String>,
    /// False if the job itself is bad, so that no requeue can help.
    pub recoverable: bool,
    /// The target is down, and not only in error: the job waits for it and loses no attempt.
    pub down: bool,
}

impl JobError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> JobError {
        let (code, message) = (code.into(), message.into());
        JobError { code, message, target: None, recoverable: true, down: false }
    }

    /// Marks the job as one that no requeue can help: what was submitted is bad.
    pub fn unrecoverable(self) -> JobError {
        JobError { recoverable: false, ..self }
    }

    pub fn at(self, target: impl Into<String>) -> JobError {
        JobError { target: Some(target.into()), ..self }
    }

    /// Says that the target does not answer anybody, so that its breaker opens at once.
    pub fn down(self) -> JobError {
        JobError { down: true, ..self }
    }
}

/// What stages keep of a job for those that follow: any JSON object.
pub type JobState = serde_json::Map<String, serde_json::Value>;

/// What a stage tells the next one about the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handover {
    pub note: Option<String>,
    pub targets: Option<Vec<String>>,
    pub priority: Option<i64>,
    pub workspace: Option<String>,
    pub needs: Option<Amounts>,
    /// The stage to go on with, where those before it have nothing to do for this job: a later
    /// one of the same pipeline; see [`crate::Pipeline::onward`].
    pub next_stage: Option<String>,
    /// The job's state from here on, instead of the one this stage got; at most `state_bytes_max`.
    pub state: Option<JobState>,
}

impl Handover {
    /// On to a later stage, past those that have nothing to do for this job.
    pub fn to(stage: &str) -> Handover {
        Handover { next_stage: Some(stage.to_string()), ..Handover::default() }
    }

    /// On with this state of the job.
    pub fn with_state(state: JobState) -> Handover {
        Handover { state: Some(state), ..Handover::default() }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// On to the next stage, or to the end.
    Success(Handover),
    /// There was nothing to do: a success with a reason.
    Skip(String),
    /// Not now: back to the queue until `due`, with no attempt counted.
    Wait { due: Micros, why: String },
    /// Worth trying again: counted, retried after a back-off, failed at the stage's limit.
    Transient(JobError),
    /// Trying again would change nothing: failed at once.
    Permanent(JobError),
    /// The job is about another object than was thought: on with the other lock, waiting for it
    /// if it is taken.
    Relock(String),
    /// The run was cut short and says nothing about the job.
    Interrupted(String),
    /// The worker stops and never began it: nothing is counted.
    GivenBack,
    /// It stopped because it was asked to.
    Cancelled,
}

impl Outcome {
    pub fn success() -> Outcome {
        Outcome::Success(Handover::default())
    }

    /// The state that a success leaves.
    pub(crate) fn state(&self) -> Option<&JobState> {
        match self {
            Outcome::Success(handover) => handover.state.as_ref(),
            _ => None,
        }
    }

    /// The stage that a success names to go on with.
    pub(crate) fn next_stage(&self) -> Option<&str> {
        match self {
            Outcome::Success(handover) => handover.next_stage.as_deref(),
            _ => None,
        }
    }
}

/// What a run knows and has recorded, for the run of the next stage if that follows in the same
/// process: it need not be read again then. Whoever gets none reads it.
#[derive(Clone, Default)]
pub struct Passed {
    known: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) bytes: Option<usize>,
}

impl Passed {
    /// Known to the next run if that follows at once.
    pub fn new(known: impl Any + Send + Sync) -> Passed {
        Passed { known: Some(Arc::new(known)), bytes: None }
    }

    /// Also while the job waits for its next run, for a minute at most and as far as there is room
    /// for what takes about so many bytes.
    pub fn keep(self, bytes: usize) -> Passed {
        Passed { bytes: Some(bytes), ..self }
    }

    pub fn get<T: Any>(&self) -> Option<&T> {
        self.known.as_deref()?.downcast_ref()
    }
}

impl std::fmt::Debug for Passed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.known.is_some() { "Passed(..)" } else { "Passed" })
    }
}

/// What a stage wants recorded in the same transaction as its outcome.
pub type Records = Arc<dyn Fn(&mut Tx<'_>) -> crate::Result<()> + Send + Sync>;

/// One finished run, on its way to the database.
#[derive(Clone)]
pub struct Settlement {
    pub lease: Lease,
    pub outcome: Outcome,
    pub records: Option<Records>,
    pub passed: Passed,
}

impl Settlement {
    /// Of a run that has nothing to record and nothing to pass on.
    pub fn new(lease: Lease, outcome: Outcome) -> Settlement {
        Settlement { lease, outcome, records: None, passed: Passed::default() }
    }

    /// The stage that follows if this succeeds and nobody has asked the job to stop.
    pub(crate) fn next_stage(&self, catalog: &Catalog) -> Option<i64> {
        let (pipeline, stage) = catalog.stage(self.lease.stage).ok()?;
        let succeeded = matches!(self.outcome, Outcome::Success(_) | Outcome::Skip(_));
        if !succeeded {
            return None;
        }
        // A stage that may not be gone to is an error of the run, which ends there.
        pipeline.onward(stage, self.outcome.next_stage()).ok().flatten().map(|next| next.id)
    }
}

/// What became of a settlement.
#[derive(Debug, Clone)]
pub enum Settled {
    /// The job is now here.
    Now(Status),
    /// It is in its next stage, claimed and started for the same worker.
    Carried(Box<Claimed>),
    /// The token was stale: nothing was changed (I4).
    Stale,
}

impl Settled {
    /// The job as it is claimed for its next stage, if it is.
    pub fn carried(&self) -> Option<&Claimed> {
        match self {
            Settled::Carried(job) => Some(job),
            _ => None,
        }
    }
}

impl PartialEq for Settled {
    /// Jobs that are carried on are the same if their leases are.
    fn eq(&self, other: &Settled) -> bool {
        match (self, other) {
            (Settled::Now(one), Settled::Now(other)) => one == other,
            (Settled::Stale, Settled::Stale) => true,
            (Settled::Carried(one), Settled::Carried(other)) => one.lease == other.lease,
            _ => false,
        }
    }
}
