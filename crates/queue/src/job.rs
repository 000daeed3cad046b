//! Jobs as they are added and claimed, and how a run can end.

use crate::catalog::Catalog;
use crate::codes::Status;
use crate::id::{BatchId, JobId, PipelineId, StageId};
use db::{Micros, Tx};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Named amounts: `memory_bytes`, `space_bytes`, licences, drives.
pub type Amounts = BTreeMap<String, i64>;

/// The priority of a job that is given none.
pub const PRIORITY_DEFAULT: i64 = 50;

/// A job as it is added.
#[derive(Debug, Clone, Default)]
pub struct NewJob {
    /// Encoded by [`crate::subject::encode`].
    pub subject: String,
    /// What no other job may have at the same time; the queue and subject unless said.
    pub lock: Option<String>,
    /// What the job carries, at most `payload_bytes_max` bytes.
    pub payload: Option<Vec<u8>>,
    /// 0 (first) to 99; 50 unless said.
    pub priority: Option<i64>,
    /// Not before this time.
    pub due: Option<Micros>,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// Outside things it is known to need.
    pub targets: Vec<String>,
    /// Where its bytes are; only workers that reach it may claim the job.
    pub workspace: Option<String>,
    /// Resources that it needs beyond those of its stage.
    pub needs: Amounts,
}

impl NewJob {
    /// Makes one with defaults for the rest.
    pub fn new(subject: impl Into<String>) -> NewJob {
        NewJob { subject: subject.into(), ..NewJob::default() }
    }
}

/// What became of an add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The id of the job.
    pub job: JobId,
    /// True if the subject waited already: this is that job, with the newer payload.
    pub coalesced: bool,
}

/// One worker's right to one job. Without the current token nothing of the job changes (I4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The id of the job.
    pub job: JobId,
    /// What no two jobs may own at the same time.
    pub lock: String,
    /// The fencing token: it grows with every claim (I4).
    pub token: i64,
    /// The batch that it belongs to.
    pub batch: Option<BatchId>,
    /// The stage it was claimed in.
    pub stage: StageId,
    /// The claim was a probe of a target.
    pub probe: bool,
}

/// A claimed job.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The lease under which it ran.
    pub lease: Lease,
    /// The id of its pipeline.
    pub pipeline: PipelineId,
    /// The id of the stage.
    pub stage: StageId,
    /// What the job is about.
    pub subject: String,
    /// What the job carries, at most `payload_bytes_max` bytes.
    pub payload: Option<Vec<u8>>,
    /// The collection that it belongs to.
    pub collection: Option<String>,
    /// Outside things that it is known to need.
    pub targets: Vec<String>,
    /// The work space where its bytes are; only workers that reach it claim it.
    pub workspace: Option<String>,
    /// From 0 (first) to 99 (last).
    pub priority: i64,
    /// When it was added.
    pub added_at: Micros,
    /// 1 for the first run since it was added or requeued.
    pub attempt: i64,
    /// False while it lies in a buffer: starting it is a write of its own.
    pub started: bool,
    /// The token of its last run, if that is known. No worker has had the job since.
    pub token_before: Option<i64>,
    /// What the run before this one passed on, if it is known here.
    pub carryover: Carryover,
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
    /// Makes one with defaults for the rest.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> JobError {
        let (code, message) = (code.into(), message.into());
        JobError { code, message, target: None, recoverable: true, down: false }
    }

    /// Marks the job as one that no requeue can help: what was submitted is bad.
    pub fn unrecoverable(self) -> JobError {
        JobError { recoverable: false, ..self }
    }

    /// Names the target that is to blame.
    pub fn at(self, target: impl Into<String>) -> JobError {
        JobError { target: Some(target.into()), ..self }
    }

    /// Marks the target as down for all, so that its breaker opens at once.
    pub fn down(self) -> JobError {
        JobError { down: true, ..self }
    }
}

/// What stages keep of a job for those that follow: any JSON object.
pub type JobState = serde_json::Map<String, serde_json::Value>;

/// What a stage tells the next one about the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handover {
    /// A sentence about it, for people.
    pub note: Option<String>,
    /// Outside things that it is known to need.
    pub targets: Option<Vec<String>>,
    /// From 0 (first) to 99 (last).
    pub priority: Option<i64>,
    /// The work space where its bytes are; only workers that reach it claim it.
    pub workspace: Option<String>,
    /// Resources that it needs beyond those of its stage.
    pub needs: Option<Amounts>,
    /// The stage to go on with, where those before it have nothing to do for this job: a later
    /// one of the same pipeline; see [`crate::Pipeline::onward`].
    pub next_stage: Option<String>,
    /// The job's state from here on, instead of the one this stage got; at most `state_bytes_max`.
    pub state: Option<JobState>,
}

impl Handover {
    /// Goes on with a later stage and skips the stages before it.
    pub fn to(stage: &str) -> Handover {
        Handover { next_stage: Some(stage.to_string()), ..Handover::default() }
    }

    /// Leaves this state for the stages that follow.
    pub fn with_state(state: JobState) -> Handover {
        Handover { state: Some(state), ..Handover::default() }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The job goes to the next stage, or ends.
    Success(Handover),
    /// There was nothing to do: a success with a reason.
    Skip(String),
    /// Not now: the job waits until `due`, and no attempt is counted.
    Wait {
        /// When it runs again.
        due: Micros,
        /// What it waits for, in a sentence.
        why: String,
    },
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
    /// A plain success.
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
/// process, which need not read it again. A run that gets none reads it.
#[derive(Clone, Default)]
pub struct Carryover {
    known: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) bytes: Option<usize>,
}

impl Carryover {
    /// Passes a value on to the next run, if that follows at once.
    pub fn new(known: impl Any + Send + Sync) -> Carryover {
        Carryover { known: Some(Arc::new(known)), bytes: None }
    }

    /// Keeps the value while the job waits for its next run too, for at most a minute and while there is
    /// room; `bytes` is about its size.
    pub fn keep(self, bytes: usize) -> Carryover {
        Carryover { bytes: Some(bytes), ..self }
    }

    /// Returns what was passed on, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.known.as_deref()?.downcast_ref()
    }
}

impl std::fmt::Debug for Carryover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.known.is_some() { "Carryover(..)" } else { "Carryover" })
    }
}

/// What a stage wants recorded in the same transaction as its outcome.
pub type Records = Arc<dyn Fn(&mut Tx<'_>) -> crate::Result<()> + Send + Sync>;

/// One finished run, on its way to the database.
#[derive(Clone)]
pub struct Settlement {
    /// The lease under which it ran.
    pub lease: Lease,
    /// How the run ended.
    pub outcome: Outcome,
    /// What the run records in the same transaction.
    pub records: Option<Records>,
    /// What it passes on to the next run of the job.
    pub carryover: Carryover,
}

impl Settlement {
    /// Makes the settlement of a run that records nothing and passes nothing on.
    pub fn new(lease: Lease, outcome: Outcome) -> Settlement {
        Settlement { lease, outcome, records: None, carryover: Carryover::default() }
    }

    /// Returns the stage that follows if this succeeds and no one has asked the job to stop.
    pub(crate) fn next_stage(&self, catalog: &Catalog) -> Option<StageId> {
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
