//! A step from a number: what happens next follows from the number and the state it meets, so any
//! step can be left out of a history and the rest still makes sense.

use crate::call::{Call, Item, Whose};
use crate::model::{Job, Model, Place};
use crate::run::Clients;
use crate::world::{COLLECTIONS, LEASE, LOCKS, RESOURCES, SECOND, SUBJECTS, TARGETS, WORKSPACES};
use queue::rules::batch::Entry;
use queue::rules::lease::NewWorker;
use queue::rules::moving::FreeSlots;
use queue::rules::operator::pause::Scope;
use queue::rules::operator::retry::Filter;
use queue::{
    Amounts, BatchId, BatchState, Handover, JobError, JobId, Lease, NewJob, Outcome, PipelineId,
    StageId, WorkerId,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// What becomes of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Answered,
    /// The process dies before COMMIT.
    Crashed,
    /// It is committed, and the answer never arrives.
    AnswerLost,
}

#[derive(Debug, Clone)]
pub struct Step {
    /// How far the clock moves first.
    pub clock: i64,
    pub fate: Fate,
    pub call: Call,
}

pub fn step(number: u64, model: &Model, clients: &Clients) -> Step {
    let mut pick = Pick { rng: SmallRng::seed_from_u64(number), model, clients };
    let clock = match pick.rng.random_range(0..100) {
        0..45 => 0,
        45..88 => pick.rng.random_range(0..SECOND),
        88..95 => pick.rng.random_range(2..9) * SECOND,
        95..98 => pick.rng.random_range(9..29) * SECOND,
        98 => pick.rng.random_range(30..400) * SECOND,
        // Clocks are set back, too: by a little, and now and then by days.
        _ if pick.rng.random_range(0..100) < 25 => {
            -pick.rng.random_range(1..4) * 86_400 * SECOND - pick.rng.random_range(0..SECOND)
        }
        _ => -pick.rng.random_range(0..3 * SECOND),
    };
    let fate = match pick.rng.random_range(0..20) {
        0 => Fate::Crashed,
        1 => Fate::AnswerLost,
        _ => Fate::Answered,
    };
    Step { clock, fate, call: pick.call() }
}

struct Pick<'a> {
    rng: SmallRng,
    model: &'a Model,
    clients: &'a Clients,
}

impl Pick<'_> {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.choose(&mut self.rng).cloned()
    }

    fn name(&mut self, of: &[&str]) -> String {
        of.choose(&mut self.rng).map(|s| (*s).to_string()).unwrap_or_default()
    }

    fn call(&mut self) -> Call {
        let good = |w: &&WorkerId| {
            let worker = &self.model.workers[*w];
            !worker.ended && worker.lease_until >= self.model.now
        };
        let usable: Vec<WorkerId> = self.clients.workers.iter().filter(good).copied().collect();
        if usable.len() < 2 || (usable.len() < 4 && self.chance(1)) {
            return self.register();
        }
        if self.model.latest - self.model.now > LEASE * 100 && self.chance(10) {
            return Call::FollowClock;
        }
        let soon = self.model.now + LEASE / 2;
        let tired = usable.iter().find(|w| self.model.workers[w].lease_until < soon);
        if let Some(worker) = tired.filter(|_| self.rng.random_range(0..100) < 30) {
            return Call::Renew { worker: *worker };
        }
        let call = match self.rng.random_range(0..1000) {
            0..110 => Some(self.add()),
            110..120 => Some(self.add_failed()),
            120..330 => self.claim(),
            330..355 => self.take_over(),
            355..390 => self.start(),
            390..420 => self.small_write(),
            420..670 => self.settle(),
            670..700 => self.worker_life(),
            700..870 => self.person(),
            _ => Some(self.batch()),
        };
        call.or_else(|| self.claim()).unwrap_or_else(|| self.add())
    }

    fn register(&mut self) -> Call {
        let mut worker = NewWorker { name: "w".to_string(), ..NewWorker::default() };
        for workspace in WORKSPACES {
            if self.chance(70) {
                worker.workspaces.push(workspace.to_string());
            }
        }
        if self.chance(30) {
            worker.capacity = self.amounts(3, 6);
        }
        Call::Register { worker }
    }

    fn amounts(&mut self, least: i64, most: i64) -> Amounts {
        let resource = self.name(&RESOURCES);
        Amounts::from([(resource, self.rng.random_range(least..=most))])
    }

    fn pipe(&mut self) -> usize {
        self.rng.random_range(0..self.model.pipes.len())
    }

    fn any_stage(&mut self) -> StageId {
        let pipe = self.pipe();
        let stages = &self.model.pipes[pipe].stages;
        stages[self.rng.random_range(0..stages.len())].id
    }

    /// A stage where something waits, if there is one.
    fn busy_stage(&mut self) -> StageId {
        let waits =
            |j: &&Job| j.waiting().is_some_and(|w| w.due.0 <= self.model.now && w.held.is_none());
        let stages: Vec<StageId> =
            self.model.jobs.values().filter(waits).map(|j| self.model.stage_of(j).id).collect();
        match self.one(&stages) {
            Some(stage) if self.rng.random_range(0..100) < 92 => stage,
            _ => self.any_stage(),
        }
    }

    /// A subject has one lock where subjects coalesce; elsewhere any lock will do.
    fn subject_and_lock(&mut self, pipe: usize) -> (String, Option<String>) {
        let failed = |j: &&Job| j.pipe == pipe && j.failed().is_some();
        let failed: Vec<JobId> = self.model.jobs.values().filter(failed).map(|j| j.id).collect();
        if let Some(id) = self.one(&failed).filter(|_| self.rng.random_range(0..100) < 40) {
            // What failed is added again.
            let job = &self.model.jobs[&id];
            return (job.subject.clone(), Some(job.lock.clone()));
        }
        let index = self.rng.random_range(0..SUBJECTS.len());
        let lock = match self.model.pipes[pipe].coalesces {
            true => (index % 2 == 0).then(|| LOCKS[index / 2].to_string()),
            false => self.chance(70).then(|| self.name(&LOCKS)),
        };
        (SUBJECTS[index].to_string(), lock)
    }

    fn new_job(&mut self, pipe: usize) -> NewJob {
        let (subject, lock) = self.subject_and_lock(pipe);
        let mut job = NewJob { subject, lock, ..NewJob::default() };
        if self.chance(50) {
            job.payload = Some(vec![self.rng.random_range(0..250)]);
        }
        if self.chance(40) {
            job.priority = Some(self.rng.random_range(45..55));
        }
        if self.chance(1) {
            job.priority = Some(100);
        }
        if self.chance(25) {
            job.due = Some(self.model.now + self.rng.random_range(-2..6) * SECOND);
        }
        if self.chance(40) {
            job.collection = Some(self.name(&COLLECTIONS));
        }
        if self.chance(30) {
            job.targets.push(self.name(&TARGETS));
        }
        if self.chance(12) {
            job.workspace = Some(self.name(&WORKSPACES));
        }
        if self.chance(20) {
            job.needs = self.amounts(1, 4);
        }
        if self.chance(35) {
            job.batch = self.open_batch(pipe);
        }
        job
    }

    /// A batch that takes jobs.
    fn open_batch(&mut self, pipe: usize) -> Option<BatchId> {
        use queue::BatchState::{Pending, Processing};
        let open =
            |b: &crate::model::Batch| b.pipe == pipe && matches!(b.state, Pending | Processing);
        let open: Vec<BatchId> =
            self.model.batches.iter().filter(|(_, b)| open(b)).map(|(id, _)| *id).collect();
        self.one(&open)
    }

    fn add(&mut self) -> Call {
        let pipeline = self.pipe();
        let count = if self.chance(30) { self.rng.random_range(2..5) } else { 1 };
        Call::Add { pipeline, jobs: (0..count).map(|_| self.new_job(pipeline)).collect() }
    }

    fn add_failed(&mut self) -> Call {
        let pipeline = self.pipe();
        let mut job = self.new_job(pipeline);
        if job.batch.is_none() && self.chance(50) {
            job.batch = self.open_batch(pipeline);
        }
        job.priority = None;
        Call::AddFailed { pipeline, job }
    }

    fn worker(&mut self) -> Option<WorkerId> {
        let workers = self.clients.workers.clone();
        let good = |w: &WorkerId| {
            let worker = &self.model.workers[w];
            !worker.ended && worker.lease_until >= self.model.now
        };
        let alive: Vec<WorkerId> = workers.iter().copied().filter(good).collect();
        if self.chance(2) { self.one(&workers) } else { self.one(&alive) }
    }

    fn claim(&mut self) -> Option<Call> {
        let limit =
            if self.chance(60) { self.rng.random_range(1..3) } else { self.rng.random_range(3..7) };
        let start = if self.chance(65) { limit } else { self.rng.random_range(0..=limit) };
        Some(Call::Claim { worker: self.worker()?, stage: self.busy_stage(), limit, start })
    }

    fn take_over(&mut self) -> Option<Call> {
        let idle = |j: &&Job| j.running().is_some_and(|r| !r.started);
        let stages: Vec<StageId> =
            self.model.jobs.values().filter(idle).map(|j| self.model.stage_of(j).id).collect();
        let stage = self.one(&stages)?;
        Some(Call::TakeOver { worker: self.worker()?, stage, limit: self.rng.random_range(1..4) })
    }

    /// A worker and some of the leases it was given: mostly live ones, but also old ones.
    fn leases(&mut self, most: usize) -> Option<(WorkerId, Vec<Lease>)> {
        let all = &self.clients.leases;
        let live: Vec<&(WorkerId, Lease)> =
            all.iter().filter(|(w, l)| self.model.is_current(*w, l)).collect();
        let old = self.rng.random_range(0..100) < 12;
        let (worker, first) = match (live.is_empty() || old, all.is_empty()) {
            (_, true) => return None,
            (true, _) => all.choose(&mut self.rng)?.clone(),
            (false, _) => (*live.choose(&mut self.rng)?).clone(),
        };
        let mine: Vec<Lease> =
            all.iter().filter(|(w, _)| *w == worker).map(|(_, l)| l.clone()).collect();
        let mut chosen = vec![first];
        while chosen.len() < most && self.chance(45) {
            chosen.push(self.one(&mine)?);
        }
        Some((worker, chosen))
    }

    fn start(&mut self) -> Option<Call> {
        let (worker, leases) = self.leases(3)?;
        Some(Call::Start { worker, leases })
    }

    fn small_write(&mut self) -> Option<Call> {
        let (worker, leases) = self.leases(1)?;
        let lease = leases.into_iter().next()?;
        Some(match self.rng.random_range(0..4) {
            0 => Call::Progress { worker, lease },
            1 => Call::ErrorSeen { worker, lease },
            _ => {
                let (key, value) =
                    (self.name(&["x", "y"]), self.rng.random_range(0..99).to_string());
                Call::Checkpoint { worker, lease, key, value }
            }
        })
    }

    fn settle(&mut self) -> Option<Call> {
        let (worker, leases) = self.leases(4)?;
        let items = leases.into_iter().map(|lease| {
            let recorded = self.chance(12).then(|| self.rng.random_range(0..100) < 80);
            Item { outcome: self.outcome(&lease), lease, recorded }
        });
        let items: Vec<Item> = items.collect();
        let mut places = FreeSlots::new();
        for item in &items {
            for next in self.model.stages_after(item.lease.stage) {
                if self.chance(60) {
                    *places.entry(next.id).or_default() += 1;
                }
            }
        }
        Some(Call::Settle { worker, items, places })
    }

    fn outcome(&mut self, lease: &Lease) -> Outcome {
        // Now and then a target is down for a while, whoever asks for it.
        if self.model.now / (40 * SECOND) % 3 == 1 && self.chance(70) {
            let error = JobError::new("down", "no answer").at(TARGETS[0]);
            return Outcome::Transient(if self.chance(50) { error.down() } else { error });
        }
        match self.rng.random_range(0..100) {
            0..44 => Outcome::Success(self.handover(lease)),
            44..48 => Outcome::Skip("unchanged".to_string()),
            48..55 => {
                let due = self.model.now + self.rng.random_range(-1..5) * SECOND;
                Outcome::Wait { due, why: "no space".to_string() }
            }
            55..77 => {
                let error = JobError::new("down", "no answer");
                let error = if self.chance(75) { error.at(self.name(&TARGETS)) } else { error };
                let error = if self.chance(5) { error.down() } else { error };
                Outcome::Transient(error)
            }
            77..85 => Outcome::Permanent(JobError::new("broken", "it is broken")),
            85..90 => {
                let others: Vec<&str> =
                    LOCKS.iter().copied().filter(|l| *l != lease.lock).collect();
                Outcome::Relock(self.name(&others))
            }
            90..95 => Outcome::Interrupted("shutdown".to_string()),
            95..97 => Outcome::GivenBack,
            _ => Outcome::Cancelled,
        }
    }

    fn handover(&mut self, lease: &Lease) -> Handover {
        let mut handover = Handover::default();
        if self.chance(20) {
            let later = self.model.stages_after(lease.stage);
            handover.next_stage = later.choose(&mut self.rng).map(|s| s.name.clone());
        }
        if self.chance(2) {
            // Mostly one that the job may not go to.
            let (stage, own) = (self.any_stage(), self.chance(50));
            let (pipe, position) = self.model.stage(if own { lease.stage } else { stage });
            handover.next_stage = Some(self.model.pipes[pipe].stages[position].name.clone());
        }
        if self.chance(20) {
            let value = self.rng.random_range(0..9).into();
            handover.state = Some(queue::JobState::from_iter([("n".to_string(), value)]));
        }
        if self.chance(15) {
            handover.priority = Some(self.rng.random_range(40..60));
        }
        if self.chance(15) {
            handover.targets =
                Some(if self.chance(50) { vec![self.name(&TARGETS)] } else { Vec::new() });
        }
        if self.chance(10) {
            handover.needs = Some(self.amounts(1, 4));
        }
        if self.chance(5) {
            handover.workspace = Some(self.name(&WORKSPACES));
        }
        handover
    }

    fn worker_life(&mut self) -> Option<Call> {
        Some(match self.rng.random_range(0..12) {
            0..4 => Call::Renew { worker: self.worker()? },
            4..9 => Call::Reap,
            9..11 => Call::FollowClock,
            _ => Call::Deregister { worker: self.worker()? },
        })
    }

    fn job(&mut self, wanted: impl Fn(&Job) -> bool) -> Option<JobId> {
        let fit: Vec<JobId> =
            self.model.jobs.values().filter(|j| wanted(j)).map(|j| j.id).collect();
        let all: Vec<JobId> = self.model.jobs.keys().copied().collect();
        if self.chance(5) { self.one(&all) } else { self.one(&fit) }
    }

    fn whose(&mut self) -> Whose {
        let batches: Vec<BatchId> = self.model.batches.keys().copied().collect();
        match self.one(&batches) {
            Some(id) if self.chance(40) => Whose::Batch(id),
            _ => Whose::Collection(self.name(&COLLECTIONS)),
        }
    }

    fn held_group(&mut self) -> Whose {
        let held: Vec<Whose> = self.model.holds.iter().cloned().collect();
        if self.chance(80) { self.one(&held).unwrap_or_else(|| self.whose()) } else { self.whose() }
    }

    fn person(&mut self) -> Option<Call> {
        let limit = self.rng.random_range(1..4);
        let newest = self.model.newest.number();
        let after =
            JobId::new(if self.chance(70) { 0 } else { self.rng.random_range(0..newest + 1) });
        Some(match self.rng.random_range(0..100) {
            0..8 => Call::HoldJob {
                job: self.job(|j| {
                    let waits = j.waiting().is_some_and(|w| w.held.is_none());
                    waits || j.running().is_some_and(|r| !r.hold)
                })?,
            },
            8..18 => Call::ReleaseJob {
                job: self.job(|j| {
                    let waits = j.waiting().is_some_and(|w| w.held.is_some());
                    waits || j.running().is_some_and(|r| r.hold)
                })?,
            },
            18..23 => Call::Hold { whose: self.whose() },
            23..30 => Call::Release { whose: self.held_group() },
            30..36 => Call::FlipHeld { whose: self.held_group(), after, limit },
            36..44 => Call::FlipReleased { whose: self.whose(), after, limit },
            44..46 => Call::KeepHeld { whose: self.whose(), after, limit },
            46..49 => Call::Pause { scope: self.scope() },
            49..58 => self.unpause(),
            58..70 => self.requeue()?,
            70..73 => Call::Discard { job: self.job(|j| j.failed().is_some())? },
            73..81 => self.cancel()?,
            81..82 => Call::Empty { stage: self.busy_stage(), limit },
            82..88 => self.retry(after),
            88..91 => Call::Seen { job: self.job(|j| j.failed().is_some())? },
            91..96 => {
                let total = self.chance(75).then(|| self.rng.random_range(2..9));
                Call::SetTotal { resource: self.name(&RESOURCES), total }
            }
            _ => self.set(),
        })
    }

    fn scope(&mut self) -> Scope {
        let pipe = self.pipe();
        match self.rng.random_range(0..6) {
            0 => Scope::Everything,
            1 | 2 => Scope::Pipeline(self.model.pipes[pipe].id),
            _ => Scope::Stage(self.busy_stage()),
        }
    }

    fn unpause(&mut self) -> Call {
        let paused: Vec<(&str, i64)> = self.model.pauses.iter().copied().collect();
        let scope = match self.one(&paused) {
            Some(("all", _)) => Scope::Everything,
            Some(("pipeline", id)) => Scope::Pipeline(PipelineId::new(id)),
            Some((_, id)) => Scope::Stage(StageId::new(id)),
            None => self.scope(),
        };
        Call::Unpause { scope }
    }

    fn requeue(&mut self) -> Option<Call> {
        let back = self.chance(20);
        let job = self.job(|j| match &j.place {
            Place::Failed(_) => !back,
            Place::Waiting(w) => back && w.begun && j.position > 0,
            _ => false,
        })?;
        let stages = &self.model.pipes[self.model.jobs[&job].pipe].stages;
        let to = (back || self.rng.random_range(0..100) < 50)
            .then(|| stages[self.rng.random_range(0..stages.len())].name.clone());
        Some(Call::Requeue { job, to })
    }

    fn cancel(&mut self) -> Option<Call> {
        let running = self.chance(40);
        Some(Call::Cancel {
            job: self.job(|j| match &j.place {
                Place::Running(_) => running,
                Place::Waiting(_) | Place::Failed(_) => !running,
                Place::Ended(_) => false,
            })?,
        })
    }

    fn retry(&mut self, after: JobId) -> Call {
        let pipe = self.pipe();
        let mut filter = Filter::default();
        match self.rng.random_range(0..4) {
            0 => filter.pipeline = Some(self.model.pipes[pipe].id),
            1 => filter.stage = Some(self.any_stage()),
            2 => filter.batch = self.model.batches.keys().next_back().copied(),
            _ => {}
        }
        let dry_run = self.chance(40);
        Call::Retry { filter, dry_run, after, limit: self.rng.random_range(1..6) }
    }

    fn set(&mut self) -> Call {
        let pipe = &self.model.pipes[self.pipe()];
        let stage = &pipe.stages[self.rng.random_range(0..pipe.stages.len())];
        let (name, value) = match self.rng.random_range(0..4) {
            0 => ("max_attempts".to_string(), self.rng.random_range(1..4)),
            1 => ("max_interruptions".to_string(), self.rng.random_range(0..3)),
            2 => (format!("needs.{}", self.name(&RESOURCES)), 0),
            _ => (format!("needs.{}", self.name(&RESOURCES)), self.rng.random_range(1..4)),
        };
        Call::Set { pipeline: pipe.name.clone(), stage: stage.name.clone(), name, value }
    }

    fn batch(&mut self) -> Call {
        let batches: Vec<BatchId> = self.model.batches.keys().copied().collect();
        let Some(batch) =
            self.one(&batches).filter(|_| batches.len() > 1 || self.rng.random_range(0..10) > 0)
        else {
            let pipeline = self.pipe();
            let collection = self.chance(40).then(|| self.name(&COLLECTIONS));
            let priority = self.chance(40).then(|| self.rng.random_range(30..70));
            let prepared = self.chance(60);
            return Call::BatchCreate { pipeline, collection, priority, prepared };
        };
        let state = self.model.batches[&batch].state;
        let (after, limit) = (JobId::default(), self.rng.random_range(1..4));
        let roll = self.rng.random_range(0..100);
        match roll {
            // Whatever state it is in.
            0..4 => return Call::BatchCancel { batch, after, limit },
            4..7 => return Call::BatchDelete { batch },
            7 => return Call::BatchFail { batch },
            8..10 => return Call::BatchAccept { batch },
            10..14 => return Call::Hold { whose: Whose::Batch(batch) },
            14..20 => return Call::Release { whose: Whose::Batch(batch) },
            20..23 => return Call::ReportAgain { batch },
            23..26 => return Call::BatchFill { batch, entries: self.entries(batch) },
            26..32 => return Call::Report,
            _ => {}
        }
        match state {
            BatchState::Pending if roll < 75 => {
                Call::BatchFill { batch, entries: self.entries(batch) }
            }
            BatchState::Pending => Call::BatchAccept { batch },
            BatchState::Processing => Call::BatchMove { limit },
            BatchState::Failed if roll < 80 => self.retry(after),
            BatchState::Reporting | BatchState::UpdateReporting if roll < 50 => Call::Report,
            BatchState::Reporting | BatchState::UpdateReporting => self.retry(after),
            _ => {
                let pipeline = self.pipe();
                let prepared = self.chance(60);
                Call::BatchCreate { pipeline, collection: None, priority: None, prepared }
            }
        }
    }

    fn entries(&mut self, batch: BatchId) -> Vec<Entry> {
        let pipe = self.model.batches[&batch].pipe;
        let first = self.rng.random_range(0..5);
        let count = self.rng.random_range(1..4);
        (first..first + count)
            .map(|number| {
                let (subject, lock) = self.subject_and_lock(pipe);
                Entry { number, subject, lock, payload: None }
            })
            .collect()
    }
}
