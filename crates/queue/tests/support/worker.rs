//! A worker as the rules know it, driven by hand.

use super::{LEASE, World};
use queue::rules::claim::{self, Request};
use queue::rules::lease::{self, HeldLease, NewWorker};
use queue::rules::moving::FreeSlots;
use queue::rules::{running, settle};
use queue::{
    Claimed, JobError, JobId, Lease, Outcome, Pipeline, Result, Settled, Settlement, StageId,
    WorkerId,
};

pub struct Worker<'w> {
    pub world: &'w World,
    pub id: WorkerId,
    pub name: String,
}

impl<'w> Worker<'w> {
    pub fn register(world: &'w World, name: &str) -> Worker<'w> {
        Worker::with(world, NewWorker { name: name.to_string(), ..NewWorker::default() })
    }

    pub fn with(world: &'w World, new: NewWorker) -> Worker<'w> {
        let name = new.name.clone();
        let id = world.rule(move |tx, now, _| lease::register(tx, now, &new, LEASE)).unwrap();
        Worker { world, id, name }
    }

    /// Claims up to `limit` jobs of a stage, of which `start` are started at once.
    pub fn try_claim(&self, stage: StageId, limit: usize, start: usize) -> Result<Vec<Claimed>> {
        let (worker, who) = (self.id, self.name.clone());
        self.world.rule(move |tx, now, catalog| {
            claim::claim(tx, now, catalog, Request { worker, who: &who, stage, limit, start })
        })
    }

    /// Claims and starts up to `limit` jobs of a pipeline's first stage.
    pub fn claim(&self, pipeline: &Pipeline, limit: usize) -> Vec<Claimed> {
        self.try_claim(pipeline.first().id, limit, limit).unwrap()
    }

    pub fn claim_in(&self, pipeline: &Pipeline, stage: &str) -> Option<Claimed> {
        let stage = pipeline.stage_named(stage).unwrap().id;
        self.try_claim(stage, 1, 1).unwrap().pop()
    }

    /// The one job that is next.
    pub fn next(&self, pipeline: &Pipeline) -> Option<Claimed> {
        self.claim(pipeline, 1).pop()
    }

    /// The ids of what a claim of up to 100 hands out.
    pub fn ids(&self, pipeline: &Pipeline) -> Vec<JobId> {
        self.claim(pipeline, 100).iter().map(|c| c.lease.job).collect()
    }

    pub fn settle(&self, claimed: &Claimed, outcome: Outcome) -> Settled {
        self.settle_lease(&claimed.lease, outcome)
    }

    pub fn settle_lease(&self, lease: &Lease, outcome: Outcome) -> Settled {
        let item = Settlement::new(lease.clone(), outcome);
        self.settle_all(vec![item]).remove(0)
    }

    pub fn settle_all(&self, items: Vec<Settlement>) -> Vec<Settled> {
        self.settle_and_carry(items, FreeSlots::new())
    }

    /// As [`Worker::settle_all`] with places free in the stages that follow.
    pub fn settle_and_carry(&self, items: Vec<Settlement>, places: FreeSlots) -> Vec<Settled> {
        let (worker, who) = (self.id, self.name.clone());
        self.world
            .rule(move |tx, now, catalog| {
                settle::settle_and_carry(tx, now, catalog, worker, &who, &items, &places)
            })
            .unwrap()
    }

    /// Claims the next job of the first stage and settles it; which job it was.
    pub fn work(&self, pipeline: &Pipeline, outcome: Outcome) -> JobId {
        let claimed = self.next(pipeline).expect("a job to claim");
        assert_ne!(self.settle(&claimed, outcome), Settled::Stale);
        claimed.lease.job
    }

    /// As [`Worker::work`] in a stage of a name.
    pub fn work_in(&self, pipeline: &Pipeline, stage: &str, outcome: Outcome) -> JobId {
        let claimed = self.claim_in(pipeline, stage).expect("a job to claim");
        assert_ne!(self.settle(&claimed, outcome), Settled::Stale);
        claimed.lease.job
    }

    pub fn start(&self, claimed: &Claimed) -> bool {
        let (worker, lease) = (self.id, claimed.lease.clone());
        let started = self
            .world
            .rule(move |tx, now, _| running::start(tx, now, worker, std::slice::from_ref(&lease)));
        started.unwrap() == [claimed.lease.job]
    }

    pub fn checkpoint(&self, claimed: &Claimed, key: &'static str) -> bool {
        let (worker, lease) = (self.id, claimed.lease.clone());
        self.world
            .rule(move |tx, now, _| running::checkpoint(tx, now, worker, &lease, key, "done"))
            .unwrap()
    }

    pub fn progress(&self, claimed: &Claimed) -> bool {
        let (worker, lease) = (self.id, claimed.lease.clone());
        self.world.rule(move |tx, _, _| running::progress(tx, worker, &lease, "half")).unwrap()
    }

    pub fn error_seen(&self, claimed: &Claimed, message: &'static str) -> bool {
        let (worker, lease, who) = (self.id, claimed.lease.clone(), self.name.clone());
        self.world
            .rule(move |tx, now, c| {
                let error = JobError::new("seen", message);
                running::error_seen(tx, now, c, worker, &who, &lease, &error)
            })
            .unwrap()
    }

    pub fn renew(&self) -> Result<Vec<HeldLease>> {
        let worker = self.id;
        self.world.rule(move |tx, now, _| lease::renew(tx, now, worker, LEASE))
    }

    pub fn take_over(&self, pipeline: &Pipeline, limit: usize) -> Vec<Claimed> {
        let (worker, who, stage) = (self.id, self.name.clone(), pipeline.first().id);
        self.world
            .rule(move |tx, now, catalog| {
                let request = Request { worker, who: &who, stage, limit, start: limit };
                lease::take_over(tx, now, catalog, request)
            })
            .unwrap()
    }

    pub fn deregister(&self) {
        let (worker, who) = (self.id, self.name.clone());
        self.world.rule(move |tx, now, c| lease::deregister(tx, now, c, worker, &who)).unwrap();
    }
}

/// Reaps every worker whose lease has run out.
pub fn reap(world: &World) -> Vec<WorkerId> {
    let mut lost = Vec::new();
    while let Some(id) = world.rule(|tx, now, c| lease::reap(tx, now, c, None)).unwrap() {
        lost.push(id);
    }
    lost
}

pub fn permanent(message: &str) -> Outcome {
    Outcome::Permanent(JobError::new("broken", message))
}

pub fn transient(message: &str) -> Outcome {
    Outcome::Transient(JobError::new("flaky", message))
}
