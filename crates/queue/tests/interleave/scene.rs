//! What the actors meet, made in one transaction, and worked to its end in another.

use crate::support::{ANN, LEASE, World, invariants};
use db::{Micros, Statement, Tx, Value};
use queue::rules::batch::{self, Entry, NewBatch};
use queue::rules::claim::{self, Request};
use queue::rules::lease::{self, NewWorker};
use queue::rules::operator::{self, hold};
use queue::rules::pipelines::PipelineSpec;
use queue::rules::{add, settle};
use queue::{
    BatchId, Catalog, Claimed, JobError, JobId, NewJob, Outcome, PipelineId, Result, Settlement,
    Status, WorkerId,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub const COLLECTION: &str = "maps";
const TARGET: &str = "s3-west";
const SUBJECTS: &[&str] = &["a", "a", "a", "b", "b", "c", "d"];

/// A queue that coalesces and a pipeline of two stages that does not; their jobs share locks.
#[derive(Clone, Copy)]
pub struct Pipelines {
    pub queue: PipelineId,
    pub staged: PipelineId,
}

impl Pipelines {
    pub fn make(world: &World) -> Pipelines {
        let staged = PipelineSpec::staged("ingest", &["first", "second"]);
        Pipelines { queue: world.queue("files").id, staged: world.make(staged).id }
    }
}

/// Workers with jobs in hand; jobs that wait, are held or have failed; a batch; perhaps a target
/// that is down and a resource of which there is one.
#[derive(Clone)]
pub struct Scene {
    pub pipelines: Pipelines,
    pub workers: Vec<WorkerId>,
    pub hands: Vec<Vec<Claimed>>,
    pub jobs: Vec<JobId>,
    pub batch: BatchId,
}

/// `a` and `d` need the target, `b` and `d` the resource.
pub fn new_job(subject: &str, batch: Option<BatchId>) -> NewJob {
    let of = |subjects: &[&str]| subjects.contains(&subject);
    NewJob {
        targets: of(&["a", "d"]).then(|| TARGET.to_string()).into_iter().collect(),
        needs: of(&["b", "d"]).then(|| ("drives".to_string(), 1)).into_iter().collect(),
        lock: Some(format!("object/{subject}")),
        batch,
        collection: Some(COLLECTION.to_string()),
        ..NewJob::new(subject)
    }
}

pub fn subject(random: &mut StdRng) -> &'static str {
    SUBJECTS[random.random_range(0..SUBJECTS.len())]
}

pub fn outcome(random: &mut StdRng) -> Outcome {
    match random.random_range(0..8) {
        0 => Outcome::Permanent(JobError::new("bad", "bad")),
        1 => Outcome::Transient(JobError::new("flaky", "flaky")),
        2 => Outcome::Transient(JobError::new("flaky", "flaky").at(TARGET)),
        3 => Outcome::Wait { due: 0, why: "no space".to_string() },
        4 => Outcome::Interrupted("stopped".to_string()),
        5 => Outcome::Relock("object/b".to_string()),
        _ => Outcome::success(),
    }
}

fn run(tx: &mut Tx<'_>, sql: &'static str, params: &[Value<'_>]) -> Result<()> {
    tx.execute(&Statement { name: sql, sqlite: sql, postgres: sql }, params)?;
    Ok(())
}

impl Scene {
    pub fn set(world: &World, pipelines: &Pipelines, seed: u64) -> Scene {
        let pipelines = *pipelines;
        world
            .rule(move |tx, now, catalog| {
                empty(tx)?;
                Stage::new(tx, now, catalog, pipelines, seed)?.play()
            })
            .unwrap()
    }

    /// A job in the hands of the first worker, and two in line behind it; the first of these.
    pub fn line(world: &World, pipelines: &Pipelines) -> (Scene, JobId) {
        let jobs = [new_job("c", None), new_job("c", None), new_job("c", None)];
        let (scene, added) = Scene::in_hand(world, *pipelines, pipelines.staged, jobs.to_vec());
        (scene, added[1])
    }

    /// A job of the queue in the hands of the first worker.
    pub fn run(world: &World, pipelines: &Pipelines) -> (Scene, JobId) {
        let jobs = vec![new_job("c", None)];
        let (scene, added) = Scene::in_hand(world, *pipelines, pipelines.queue, jobs);
        (scene, added[0])
    }

    /// Jobs of a pipeline, the first of them in the hands of the first worker.
    fn in_hand(
        world: &World,
        pipelines: Pipelines,
        pipeline: PipelineId,
        jobs: Vec<NewJob>,
    ) -> (Scene, Vec<JobId>) {
        world
            .rule(move |tx, now, catalog| {
                empty(tx)?;
                let mut scene = Stage::new(tx, now, catalog, pipelines, 0)?.scene;
                let pipeline = catalog.pipeline(pipeline)?;
                let added = add::add(tx, now, pipeline, "ann", &jobs)?;
                let (worker, stage) = (scene.workers[0], pipeline.first().id);
                let request = Request { worker, who: "w", stage, limit: 1, start: 1 };
                scene.hands[0] = claim::claim(tx, now, catalog, request)?;
                Ok((scene, added.into_iter().map(|added| added.job).collect()))
            })
            .unwrap()
    }

    /// Works everything that is left to its end: whatever still waits then was forgotten.
    pub fn drain(&self, world: &World) -> Vec<String> {
        world.advance(10_000 * LEASE);
        let scene = self.clone();
        world.rule(move |tx, now, catalog| scene.drain_in(tx, now, catalog)).unwrap()
    }

    fn drain_in(&self, tx: &mut Tx<'_>, now: Micros, catalog: &Catalog) -> Result<Vec<String>> {
        const WAITING: Statement = Statement {
            name: "left",
            sqlite: "",
            postgres: "select id, state from waiting order by id",
        };
        run(tx, "delete from pauses", &[])?;
        run(tx, "delete from holds", &[])?;
        for (job, state) in tx.query::<(JobId, i64)>(&WAITING, &[])? {
            if state == 3 {
                hold::release_job(tx, now, catalog, ANN, job)?;
            }
        }
        while lease::reap(tx, now, catalog, None)?.is_some() {}
        while batch::move_entries(tx, now, catalog, 100)? > 0 {}
        let worker = lease::register(tx, now, &NewWorker::default(), 1_000_000 * LEASE)?;
        let (mut idle, mut now) = (0, now);
        while idle < 2 {
            // Back-offs, waits and the time to the next probe pass.
            (idle, now) = (idle + 1, now + 1000 * LEASE);
            for pipeline in [self.pipelines.queue, self.pipelines.staged] {
                for stage in &catalog.pipeline(pipeline)?.stages {
                    let request =
                        Request { worker, who: "drain", stage: stage.id, limit: 100, start: 100 };
                    for claimed in claim::claim(tx, now, catalog, request)? {
                        finish(tx, now, catalog, worker, claimed, Outcome::success())?;
                        idle = 0;
                    }
                }
            }
        }
        let left: Vec<(JobId, i64)> = tx.query(&WAITING, &[])?;
        let forgotten =
            |(job, state): &(JobId, i64)| format!("job {job} waits for ever in state {state}");
        let mut wrong: Vec<String> = left.iter().map(forgotten).collect();
        wrong.extend(invariants::violations(tx)?);
        Ok(wrong)
    }
}

/// Resources of which more is reserved than there is, one line each.
pub fn overdrawn(tx: &mut Tx<'_>) -> db::Result<Vec<String>> {
    const OVERDRAWN: Statement = Statement {
        name: "overdrawn",
        sqlite: "",
        postgres: "select r.name from resources r
                   where r.total < (select sum(amount) from reservations v where v.resource = r.name)",
    };
    let names: Vec<(String,)> = tx.query(&OVERDRAWN, &[])?;
    Ok(names
        .into_iter()
        .map(|(name,)| format!("more {name} are reserved than there are"))
        .collect())
}

fn empty(tx: &mut Tx<'_>) -> Result<()> {
    const TABLES: &[&str] = &[
        "delete from job_records",
        "delete from endings",
        "delete from waiting",
        "delete from leases",
        "delete from failures",
        "delete from tries",
        "delete from history",
        "delete from targets",
        "delete from resources",
        "delete from reservations",
        "delete from workers",
        "delete from batches",
        "delete from batch_entries",
        "delete from pauses",
        "delete from holds",
        "delete from minutes",
    ];
    TABLES.iter().try_for_each(|sql| run(tx, sql, &[]))
}

fn finish(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    worker: WorkerId,
    claimed: Claimed,
    outcome: Outcome,
) -> Result<()> {
    let item = Settlement::new(claimed.lease, outcome);
    settle::settle(tx, now, catalog, worker, "w", &[item]).map(|_| ())
}

/// Sets the scene: some steps of an ordinary day, one after the other.
struct Stage<'t, 'c> {
    tx: &'t mut Tx<'c>,
    now: Micros,
    catalog: &'t Catalog,
    random: StdRng,
    scene: Scene,
}

impl<'t, 'c> Stage<'t, 'c> {
    fn new(
        tx: &'t mut Tx<'c>,
        now: Micros,
        catalog: &'t Catalog,
        pipelines: Pipelines,
        seed: u64,
    ) -> Result<Stage<'t, 'c>> {
        let workers = (0..4)
            .map(|_| lease::register(tx, now, &NewWorker::default(), LEASE))
            .collect::<Result<Vec<WorkerId>>>()?;
        let batch = open_batch(tx, now, catalog, pipelines.queue)?;
        let hands = vec![Vec::new(); workers.len()];
        let scene = Scene { pipelines, workers, hands, jobs: vec![JobId::new(1)], batch };
        Ok(Stage { tx, now, catalog, random: StdRng::seed_from_u64(!seed), scene })
    }

    fn play(mut self) -> Result<Scene> {
        const DOWN: &str =
            "insert into targets (name, errors, opened_at, next_probe, closing, probe_wait)
            values ($1, 5, $2, $2, 0, 10000000)";
        if self.random.random_bool(0.3) {
            run(self.tx, DOWN, &db::params![TARGET, self.now])?;
        }
        if self.random.random_bool(0.5) {
            run(self.tx, "insert into resources (name, total) values ('drives', 1)", &[])?;
        }
        for _ in 0..self.random.random_range(1..8) {
            self.step()?;
        }
        Ok(self.scene)
    }

    fn step(&mut self) -> Result<()> {
        let Pipelines { queue, staged } = self.scene.pipelines;
        let pipeline =
            self.catalog.pipeline(if self.random.random_bool(0.5) { queue } else { staged })?;
        let of = self.random.random_bool(0.2).then_some(self.scene.batch);
        let job = new_job(subject(&mut self.random), of);
        let added = add::add(self.tx, self.now, pipeline, "ann", &[job])?[0].job;
        self.scene.jobs.push(added);
        let hand = self.random.random_range(0..4);
        let worker = self.scene.workers[hand];
        let request = |limit: usize| Request {
            worker,
            who: "w",
            stage: pipeline.first().id,
            limit,
            start: 1,
        };
        let does = self.random.random_range(0..8);
        match does {
            0..=1 => {
                let claimed = claim::claim(self.tx, self.now, self.catalog, request(2))?;
                self.scene.hands[hand].extend(claimed);
            }
            2..=4 => {
                let outcome = match does {
                    2 => Outcome::Permanent(JobError::new("bad", "bad")),
                    _ => Outcome::success(),
                };
                for claimed in claim::claim(self.tx, self.now, self.catalog, request(1))? {
                    finish(self.tx, self.now, self.catalog, worker, claimed, outcome.clone())?;
                }
            }
            // A job that runs or is held already stays as it is: it is in somebody's hands.
            5 if operator::look(self.tx, added)?.status() == Status::Queued => {
                hold::hold_job(self.tx, self.now, self.catalog, ANN, added)?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn open_batch(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    pipeline: PipelineId,
) -> Result<BatchId> {
    let new = NewBatch {
        label: "b",
        pipeline,
        collection: Some(COLLECTION),
        submitter: "ann",
        mode: "either",
        priority: None,
    };
    let id = batch::create(tx, now, &new)?;
    let entry = |(number, subject): (i64, &str)| Entry {
        number,
        subject: subject.to_string(),
        lock: Some(format!("object/{subject}")),
        payload: None,
    };
    let entries: Vec<Entry> = (1..).zip(["a", "b", "c"]).map(entry).collect();
    batch::fill(tx, catalog, id, &entries)?;
    batch::accept(tx, now, id)?;
    Ok(id)
}
