//! Runs a history of steps against the rules and the model, and stops where they part.

use crate::call::{Answer, Call, perform};
use crate::model::{Model, Verdict};
use crate::pick::{self, Fate, Step};
use crate::tables::Tables;
use crate::{compare, invariants, world};
use db::{Memory, Rewrite};
use queue::{Catalog, Lease, Settled, WorkerId};
use std::collections::BTreeMap;

/// What the workers' side remembers: it may be wrong about all of it.
#[derive(Debug, Default)]
pub struct Clients {
    pub workers: Vec<WorkerId>,
    pub leases: Vec<(WorkerId, Lease)>,
}

/// Old leases are kept, to be used when they are stale.
const LEASES_KEPT: usize = 40;

struct Simulation {
    memory: Memory,
    catalog: Catalog,
    model: Model,
    clients: Clients,
    tables: Tables,
    history: i64,
    coverage: Coverage,
}

/// Where a history failed.
#[derive(Debug)]
pub struct Failure {
    /// How many steps it took.
    pub steps: usize,
    pub why: String,
}

/// How often each kind of call was done and refused, and how often it brought nothing.
pub type Coverage = BTreeMap<String, [u64; 3]>;

/// The numbers of the steps of a seed.
pub fn numbers(seed: u64, steps: usize) -> Vec<u64> {
    use rand::{RngCore, SeedableRng};
    let mut rng = rand::rngs::SmallRng::seed_from_u64(seed);
    (0..steps).map(|_| rng.next_u64()).collect()
}

/// Runs the steps; `tell` hears of each before it is done.
pub fn run(
    numbers: &[u64],
    rewrites: &[Rewrite],
    mut tell: impl FnMut(usize, &Step, i64),
) -> Result<Coverage, Failure> {
    let (memory, catalog) = world::open(rewrites.iter().map(copy).collect());
    let mut simulation = Simulation {
        memory,
        catalog,
        model: Model::new(),
        clients: Clients::default(),
        tables: Tables::default(),
        history: 0,
        coverage: Coverage::new(),
    };
    for (index, number) in numbers.iter().enumerate() {
        let step = pick::step(*number, &simulation.model, &simulation.clients);
        tell(index, &step, simulation.model.now + step.clock);
        simulation.step(&step).map_err(|why| Failure { steps: index + 1, why })?;
    }
    Ok(simulation.coverage)
}

fn copy(rewrite: &Rewrite) -> Rewrite {
    Rewrite { statement: rewrite.statement, find: rewrite.find, replace: rewrite.replace }
}

impl Simulation {
    fn step(&mut self, step: &Step) -> Verdict {
        self.model.step += 1;
        self.model.now += step.clock;
        self.model.latest = self.model.latest.max(self.model.now);
        let (now, catalog) = (self.model.now, self.catalog.clone());
        if step.fate == Fate::Crashed {
            self.memory
                .crash(now, |tx| perform(tx, now, &catalog, &step.call))
                .map_err(|e| format!("the crash failed: {e}"))?;
            return self.check();
        }
        let before = self.tables.clone();
        let answer = self.memory.write(now, |tx| perform(tx, now, &catalog, &step.call));
        self.model.follow(&step.call, &answer)?;
        self.count(&step.call, &answer);
        if let Ok(answer) = &answer {
            self.tell_clients(&step.call, answer, step.fate == Fate::AnswerLost);
        }
        if matches!(step.call, Call::Set { .. }) {
            self.catalog = self
                .memory
                .write(now, Catalog::load)
                .map_err(|e| format!("the catalog cannot be read: {e}"))?;
        }
        self.check()?;
        match step.call {
            Call::FollowClock => invariants::clock(&before, &self.tables, now),
            _ => Ok(()),
        }
    }

    fn count(&mut self, call: &Call, answer: &queue::Result<Answer>) {
        let shown = format!("{call:?}");
        let kind = shown.split(' ').next().unwrap_or_default().to_string();
        let column = match answer {
            Err(_) => 1,
            Ok(Answer::Claimed(jobs, _)) if jobs.is_empty() => 2,
            Ok(Answer::Reaped(None) | Answer::Last(None)) => 2,
            Ok(Answer::Count(0) | Answer::Moved(0, _)) => 2,
            Ok(Answer::Yes(false) | Answer::Reported(None)) => 2,
            Ok(Answer::Settled(all)) if all.iter().any(|s| s.carried().is_some()) => {
                self.coverage.entry("Carried".to_string()).or_default()[0] += 1;
                0
            }
            Ok(Answer::Settled(all)) if all.iter().all(|s| *s == Settled::Stale) => 2,
            Ok(_) => 0,
        };
        self.coverage.entry(kind).or_default()[column] += 1;
    }

    fn tell_clients(&mut self, call: &Call, answer: &Answer, lost: bool) {
        match (call, answer) {
            (Call::Register { .. }, Answer::Registered(id)) if !lost => {
                self.clients.workers.push(*id);
            }
            (
                Call::Claim { worker, .. } | Call::TakeOver { worker, .. },
                Answer::Claimed(jobs, _),
            ) if !lost => self.hold(*worker, jobs.iter()),
            (Call::Settle { worker, .. }, Answer::Settled(all)) if !lost => {
                self.hold(*worker, all.iter().filter_map(Settled::carried));
            }
            _ => {}
        }
        let model = &self.model;
        let alive = |w: &WorkerId| !model.workers[w].ended;
        if self.clients.workers.iter().filter(|w| alive(w)).count() < 2 {
            self.clients.workers.retain(alive);
        }
    }

    /// A worker remembers its leases, and some that are long over.
    fn hold<'c>(&mut self, worker: WorkerId, jobs: impl Iterator<Item = &'c queue::Claimed>) {
        self.clients.leases.extend(jobs.map(|c| (worker, c.lease.clone())));
        let excess = self.clients.leases.len().saturating_sub(LEASES_KEPT);
        self.clients.leases.drain(..excess);
    }

    fn check(&mut self) -> Verdict {
        let (now, after) = (self.model.now, self.history);
        let tables = self
            .memory
            .write(now, |tx| Tables::load(tx, after))
            .map_err(|e| format!("the tables cannot be read: {e}"))?;
        self.history = tables.history.last().map_or(self.history, |row| row.id);
        invariants::check(&self.tables, &tables)?;
        compare::compare(&mut self.model, &tables)?;
        self.tables = tables;
        Ok(())
    }
}
