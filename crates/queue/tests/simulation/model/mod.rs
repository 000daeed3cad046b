//! The reference: what `domain.md` says, in plain collections. It shares no code and no SQL with
//! the rules, predicts every answer, and follows the rules only where they are free to choose.

mod adding;
mod batches;
mod claiming;
mod finishing;
mod operator;

use crate::call::{Answer, Call, Whose};
use crate::world;
use queue::rules::operator::pause::Scope;
use queue::{
    Amounts, BatchId, BatchState, Error, JobId, Lease, PipelineId, StageId, Status, WorkerId,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a mismatch between the rules and the model looks like: a sentence.
pub type Verdict<T = ()> = Result<T, String>;

#[derive(Debug, Clone)]
pub struct Stage {
    pub id: StageId,
    pub name: String,
    pub max_attempts: i64,
    pub max_interruptions: i64,
    pub backoff_seconds: i64,
    pub backoff_seconds_max: i64,
    pub needs: Amounts,
}

#[derive(Debug, Clone)]
pub struct Pipe {
    pub id: PipelineId,
    pub name: String,
    pub coalesces: bool,
    pub restart: usize,
    pub forward: Option<usize>,
    pub stages: Vec<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    Job,
    Batch,
    Collection,
}

#[derive(Debug, Clone)]
pub struct Waiting {
    /// The earliest and the latest due time that the rules may have chosen.
    pub due: (i64, i64),
    pub held: Option<HeldBy>,
    pub begun: bool,
    pub owns: bool,
    /// The step since which nothing but its lock has kept it back; None if something might have.
    pub in_line_since: Option<u64>,
    pub entered: u64,
}

#[derive(Debug, Clone)]
pub struct Running {
    pub worker: WorkerId,
    pub token: i64,
    pub started: bool,
    pub claimed_at: i64,
    pub cancel: bool,
    pub error_seen: bool,
    pub probe: Option<String>,
    pub reserved: Amounts,
    /// A person holds it: it is held when this run ends.
    pub hold: bool,
}

#[derive(Debug, Clone)]
pub struct Failed {
    pub recoverable: bool,
    pub review: bool,
    pub overtaken: bool,
    pub discarded: bool,
}

#[derive(Debug, Clone)]
pub enum Place {
    Waiting(Waiting),
    Running(Running),
    Failed(Failed),
    Ended(Status),
}

/// Attempts and interruptions, each since the last requeue and ever, and requeues (I6).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tries {
    pub attempts: i64,
    pub attempts_ever: i64,
    pub interruptions: i64,
    pub interruptions_ever: i64,
    pub requeues: i64,
}

#[derive(Debug, Clone)]
pub struct Job {
    pub id: JobId,
    pub pipe: usize,
    pub position: usize,
    pub subject: String,
    pub lock: String,
    pub batch: Option<BatchId>,
    pub collection: Option<String>,
    pub priority: i64,
    pub payload: Option<Vec<u8>>,
    pub targets: Vec<String>,
    pub workspace: Option<String>,
    pub needs: Amounts,
    pub place: Place,
    pub tries: BTreeMap<StageId, Tries>,
    pub checkpoints: BTreeMap<(StageId, String), String>,
    /// What each stage left for those that follow.
    pub states: BTreeMap<StageId, String>,
    /// Of the last run, whoever's it was.
    pub last_token: Option<i64>,
    /// The job that took its place.
    pub replaced_by: Option<JobId>,
}

#[derive(Debug, Clone)]
pub struct Worker {
    pub lease_until: i64,
    pub ended: bool,
    pub capacity: Amounts,
    pub workspaces: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Target {
    pub errors: i64,
    /// None while the breaker is closed.
    pub next_probe: Option<i64>,
    pub probe_wait: i64,
    pub probe_job: Option<JobId>,
}

#[derive(Debug, Clone)]
pub struct Batch {
    pub pipe: usize,
    pub collection: Option<String>,
    pub priority: Option<i64>,
    pub state: BatchState,
    pub held: bool,
    pub broken: bool,
    pub entries: BTreeMap<i64, (String, Option<String>, Option<Vec<u8>>)>,
    /// Entries that were cancelled before they became jobs.
    pub dropped: i64,
    pub reports: i64,
    /// The job that fills and accepts it, while that job can still end it or be requeued.
    pub preparer: Option<JobId>,
}

/// total, open, succeeded, failed, cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    pub total: i64,
    pub open: i64,
    pub succeeded: i64,
    pub failed: i64,
    pub cancelled: i64,
}

#[derive(Debug, Clone)]
pub struct Model {
    pub now: i64,
    /// The latest time there has been: clocks may be set back.
    pub latest: i64,
    pub step: u64,
    pub pipes: Vec<Pipe>,
    pub jobs: BTreeMap<JobId, Job>,
    pub workers: BTreeMap<WorkerId, Worker>,
    pub batches: BTreeMap<BatchId, Batch>,
    pub pauses: BTreeSet<(&'static str, i64)>,
    pub holds: BTreeSet<Whose>,
    pub targets: BTreeMap<String, Target>,
    pub totals: Amounts,
    pub token: i64,
    pub newest: JobId,
    /// Batches whose counts changed in this call.
    touched: BTreeSet<BatchId>,
}

pub fn scope_key(scope: Scope) -> (&'static str, i64) {
    match scope {
        Scope::Everything => ("all", 0),
        Scope::Pipeline(id) => ("pipeline", id.number()),
        Scope::Stage(id) => ("stage", id.number()),
    }
}

impl Job {
    pub fn status(&self) -> Status {
        match &self.place {
            Place::Waiting(w) if w.held.is_some() => Status::Held,
            Place::Waiting(_) => Status::Queued,
            Place::Running(_) => Status::Running,
            Place::Failed(_) => Status::Failed,
            Place::Ended(status) => *status,
        }
    }

    pub fn owns(&self) -> bool {
        match &self.place {
            Place::Waiting(w) => w.owns,
            Place::Running(_) => true,
            _ => false,
        }
    }

    pub fn waiting(&self) -> Option<&Waiting> {
        match &self.place {
            Place::Waiting(w) => Some(w),
            _ => None,
        }
    }

    pub fn running(&self) -> Option<&Running> {
        match &self.place {
            Place::Running(r) => Some(r),
            _ => None,
        }
    }

    pub fn failed(&self) -> Option<&Failed> {
        match &self.place {
            Place::Failed(f) => Some(f),
            _ => None,
        }
    }
}

impl Model {
    /// A model of an empty queue with the pipelines of the world; stage ids count from 1.
    pub fn new() -> Model {
        let mut stage_id = 0;
        let mut pipes = Vec::new();
        for (index, spec) in world::specs().into_iter().enumerate() {
            let mut stages = Vec::new();
            for (name, s) in &spec.stages {
                stage_id += 1;
                stages.push(Stage {
                    id: StageId::new(stage_id),
                    name: name.clone(),
                    max_attempts: s.max_attempts,
                    max_interruptions: s.max_interruptions,
                    backoff_seconds: s.backoff_seconds,
                    backoff_seconds_max: s.backoff_seconds_max,
                    needs: s.needs.clone(),
                });
            }
            let place = |name: &str| stages.iter().position(|s| s.name == name);
            pipes.push(Pipe {
                id: PipelineId::new(index as i64 + 1),
                coalesces: spec.coalesces,
                restart: spec.restart.as_deref().and_then(place).unwrap_or(0),
                forward: spec.settings.forward_from.as_deref().and_then(place),
                name: spec.name,
                stages,
            });
        }
        Model {
            now: world::START,
            latest: world::START,
            step: 0,
            pipes,
            jobs: BTreeMap::new(),
            workers: BTreeMap::new(),
            batches: BTreeMap::new(),
            pauses: BTreeSet::new(),
            holds: BTreeSet::new(),
            targets: BTreeMap::new(),
            totals: Amounts::new(),
            token: 0,
            newest: JobId::default(),
            touched: BTreeSet::new(),
        }
    }

    pub fn stage(&self, id: StageId) -> (usize, usize) {
        for (p, pipe) in self.pipes.iter().enumerate() {
            if let Some(position) = pipe.stages.iter().position(|s| s.id == id) {
                return (p, position);
            }
        }
        panic!("there is no stage {id}");
    }

    /// The stages that follow.
    pub fn stages_after(&self, stage: StageId) -> Vec<&Stage> {
        let (pipe, position) = self.stage(stage);
        self.pipes[pipe].stages.iter().skip(position + 1).collect()
    }

    pub fn stage_of(&self, job: &Job) -> &Stage {
        &self.pipes[job.pipe].stages[job.position]
    }

    pub fn job(&self, id: JobId) -> Verdict<&Job> {
        self.jobs.get(&id).ok_or_else(|| format!("the model knows no job {id}"))
    }

    pub fn change(&mut self, id: JobId) -> &mut Job {
        self.jobs.get_mut(&id).expect("the model knows the job")
    }

    pub fn owner(&self, lock: &str) -> Option<JobId> {
        self.jobs.values().find(|j| j.lock == lock && j.owns()).map(|j| j.id)
    }

    /// True if the lease is the live one of its job (I4).
    pub fn is_current(&self, worker: WorkerId, lease: &Lease) -> bool {
        self.jobs.get(&lease.job).is_some_and(|job| {
            job.lock == lease.lock
                && job.running().is_some_and(|r| r.worker == worker && r.token == lease.token)
        })
    }

    pub fn is_paused(&self, stage: StageId) -> bool {
        let pipe = self.pipes[self.stage(stage).0].id;
        let scopes = [Scope::Everything, Scope::Pipeline(pipe), Scope::Stage(stage)];
        scopes.into_iter().any(|scope| self.pauses.contains(&scope_key(scope)))
    }

    /// Whether holds keep a job back where it is: from the forward-only stage on, what has begun goes
    /// forward.
    pub fn may_be_held(&self, job: &Job) -> bool {
        let begun = job.waiting().is_none_or(|w| w.begun);
        let forward = self.pipes[job.pipe].forward.is_some_and(|from| job.position >= from);
        !forward || (!begun && job.position == 0)
    }

    /// What holds a job, if anything does where it is.
    pub fn group_of(&self, job: &Job) -> Option<HeldBy> {
        let group = self.held_by(job.batch, job.collection.as_deref());
        group.filter(|_| self.may_be_held(job))
    }

    /// Which group holds jobs of this batch and collection.
    pub fn held_by(&self, batch: Option<BatchId>, collection: Option<&str>) -> Option<HeldBy> {
        if batch.is_some_and(|b| self.holds.contains(&Whose::Batch(b))) {
            return Some(HeldBy::Batch);
        }
        collection
            .is_some_and(|c| self.holds.contains(&Whose::Collection(c.to_string())))
            .then_some(HeldBy::Collection)
    }

    /// The waiting job that an add of this subject would merge with.
    pub fn mergeable(
        &self,
        pipe: usize,
        subject: &str,
        lock: &str,
        batch: Option<BatchId>,
    ) -> Option<JobId> {
        let same = |j: &&Job| {
            j.pipe == pipe
                && j.position == 0
                && j.subject == subject
                && j.lock == lock
                && j.batch == batch
                && j.waiting().is_some_and(|w| !w.begun)
        };
        self.jobs.values().find(same).filter(|_| self.pipes[pipe].coalesces).map(|j| j.id)
    }

    /// What is reserved of a resource, in all and by one worker.
    pub fn used(&self, resource: &str, worker: WorkerId) -> (i64, i64) {
        let mut used = (0, 0);
        for run in self.jobs.values().filter_map(Job::running) {
            let amount = run.reserved.get(resource).copied().unwrap_or(0);
            used.0 += amount;
            used.1 += if run.worker == worker { amount } else { 0 };
        }
        used
    }

    /// What a run of the job needs: its stage's needs and its own, whichever is more.
    pub fn needs(&self, job: &Job) -> Amounts {
        let mut needs = self.stage_of(job).needs.clone();
        for (name, amount) in &job.needs {
            let most = needs.get(name).copied().unwrap_or(0).max(*amount);
            needs.insert(name.clone(), most);
        }
        needs
    }

    pub fn sums(&self, batch: BatchId) -> Sums {
        let mut sums = Sums::default();
        for job in self.jobs.values().filter(|j| j.batch == Some(batch)) {
            sums.total += 1;
            match job.status() {
                Status::Failed => sums.failed += 1,
                Status::Succeeded => sums.succeeded += 1,
                Status::Cancelled => sums.cancelled += 1,
                _ => sums.open += 1,
            }
        }
        let found = &self.batches[&batch];
        let unmoved = match found.state {
            BatchState::Pending => 0,
            _ => found.entries.len() as i64,
        };
        sums.total += unmoved + found.dropped;
        sums.open += unmoved;
        sums.cancelled += found.dropped;
        sums
    }

    /// The counts of these batches are written: the last job's end moves a batch on.
    fn count(&mut self) {
        for id in std::mem::take(&mut self.touched) {
            let open = self.sums(id).open;
            let Some(batch) = self.batches.get_mut(&id).filter(|_| open == 0) else { continue };
            match batch.state {
                BatchState::Processing => batch.state = BatchState::Reporting,
                BatchState::Failed => batch.state = BatchState::UpdateReporting,
                _ => {}
            }
        }
    }

    fn end(&mut self, id: JobId, status: Status) {
        let job = self.change(id);
        job.place = Place::Ended(status);
        self.touched.extend(self.jobs[&id].batch);
        self.preparer_ended(id);
    }

    /// Compares the answer to a call with what the model expects, and follows it.
    pub fn follow(&mut self, call: &Call, answer: &Result<Answer, Error>) -> Verdict {
        match (self.predict(call), answer) {
            (Some(code), Err(error)) if error.code().as_str() == code => Ok(()),
            (Some(code), other) => {
                Err(format!("it should be refused as `{code}`; it is {}", shown(other)))
            }
            (None, Err(error)) => Err(format!("it should be done; the answer is {error}")),
            (None, Ok(answer)) => {
                self.apply(call, answer)?;
                self.count();
                Ok(())
            }
        }
    }

    /// The code of the error that a call must end in; None if it must be done.
    fn predict(&self, call: &Call) -> Option<&'static str> {
        match call {
            Call::Add { jobs, .. } => {
                jobs.iter().any(|j| j.priority.is_some_and(|p| p > 99)).then_some("bad_input")
            }
            Call::Renew { worker } => self.workers[worker].ended.then_some("lease_lost"),
            Call::Claim { worker, .. } | Call::TakeOver { worker, .. } => {
                let worker = &self.workers[worker];
                (worker.ended || worker.lease_until < self.now).then_some("lease_lost")
            }
            _ => self.predict_for_people(call).map(|_| "refused"),
        }
    }

    fn apply(&mut self, call: &Call, answer: &Answer) -> Verdict {
        match (call, answer) {
            (Call::Add { pipeline, jobs }, Answer::Added(added)) => {
                self.added(*pipeline, jobs, added)
            }
            (Call::AddFailed { pipeline, job }, Answer::Failed(id)) => {
                self.added_failed(*pipeline, job, *id)
            }
            (Call::Claim { worker, stage, limit, start }, Answer::Claimed(claimed, probes)) => {
                self.claimed(*worker, *stage, *limit, *start, claimed, probes)
            }
            (Call::TakeOver { worker, stage, limit }, Answer::Claimed(claimed, _)) => {
                self.taken_over(*worker, *stage, *limit, claimed)
            }
            (Call::Settle { worker, items, places }, Answer::Settled(settled)) => {
                self.settled(*worker, items, settled)?;
                self.carried(*worker, places, settled)
            }
            (
                Call::Register { .. }
                | Call::Renew { .. }
                | Call::Reap
                | Call::FollowClock
                | Call::Deregister { .. },
                _,
            )
            | (Call::Start { .. } | Call::Progress { .. }, _)
            | (Call::ErrorSeen { .. } | Call::Checkpoint { .. }, _) => self.worked(call, answer),
            _ => self.acted(call, answer),
        }
    }
}

fn shown(answer: &Result<Answer, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("`{}`: {error}", error.code()),
    }
}

/// A sentence if two things that must be the same are not.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, rules: T, model: T) -> Verdict {
    match rules == model {
        true => Ok(()),
        false => Err(format!("{what}: the rules say {rules:?}, the model {model:?}")),
    }
}
