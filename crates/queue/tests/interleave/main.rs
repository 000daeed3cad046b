//! What a simulator on one SQLite connection cannot see: two to four transactions on PostgreSQL,
//! stepped statement by statement in an order drawn from a seed. A statement that waits for a lock
//! is part of the schedule; invariants are checked when all are done, and then everything that is
//! left must be workable to its end: a lost wake-up would leave a job waiting for ever.
//!
//! Runs about 15 s, or `$ACCESSION_INTERLEAVE_SECONDS`; `$ACCESSION_INTERLEAVE_SEED` replays one.
#![allow(clippy::unwrap_used)]

mod actions;
mod mutants;
mod scene;
mod scheduler;
#[path = "../support/mod.rs"]
mod support;

use actions::Done;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scene::{Pipelines, Scene};
use scheduler::Scheduler;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{World, invariants};

/// A queue whose transactions are stepped, and a connection that watches them.
struct Interleaver {
    world: World,
    scheduler: Arc<Scheduler>,
    watcher: postgres::Client,
}

impl Interleaver {
    /// `rewrites` change statements. None where no server is named.
    fn start(rewrites: Vec<db::Rewrite>) -> Option<Interleaver> {
        let scheduler = Arc::new(Scheduler::default());
        let hook = scheduler.clone();
        let step: db::Step = Arc::new(move |statement| hook.arrive(statement));
        let options = db::Options { step: Some(step), rewrites, ..db::Options::default() };
        let Some(world) = World::postgres_with(4, options) else {
            testing::skip("ACCESSION_TEST_POSTGRES is not set");
            return None;
        };
        let mut watcher = support::server::connect(world.url());
        scheduler::quick_deadlocks(&mut watcher);
        Some(Interleaver { world, scheduler, watcher })
    }

    /// Runs the schedule of a seed and returns what is wrong afterwards.
    fn run(&mut self, pipelines: &Pipelines, seed: u64) -> Option<String> {
        let scene = Scene::set(&self.world, pipelines, seed);
        let mut random = StdRng::seed_from_u64(seed);
        let count = random.random_range(2..=4);
        let actors: Vec<Vec<actions::Action>> = (0..count)
            .map(|_| {
                let length = random.random_range(1..=3);
                (0..length).map(|_| actions::draw(&scene, &mut random)).collect()
            })
            .collect();
        let mut choose = |ready: &[scheduler::Ready]| random.random_range(0..ready.len());
        self.play(&scene, &actors, &mut choose, &format!("ACCESSION_INTERLEAVE_SEED={seed}"))
    }

    fn play(
        &mut self,
        scene: &Scene,
        actors: &[Vec<actions::Action>],
        choose: &mut dyn FnMut(&[scheduler::Ready]) -> usize,
        what: &str,
    ) -> Option<String> {
        let (done, trace) =
            self.scheduler.run(&self.world, scene, actors, &mut self.watcher, choose);
        let mut wrong = self.world.db.write_blocking(invariants::violations).unwrap();
        wrong.extend(self.world.db.write_blocking(scene::overdrawn).unwrap());
        wrong.extend(actions::refuted(&done));
        wrong.extend(scene.drain(&self.world));
        (!wrong.is_empty()).then(|| {
            format!(
                "{what}\n{}\nactions: {}\nschedule:\n{}",
                wrong.join("\n"),
                shown(&done),
                trace.join("\n")
            )
        })
    }
}

/// An owner gives its lock up while the first in line is cancelled, wherever one overtakes the
/// other: the second in line must not be left to either of them by both.
#[test]
fn an_ending_and_a_cancel_in_one_line() {
    let failed = queue::Outcome::Permanent(queue::JobError::new("bad", "bad"));
    ending_beside_a_cancel(failed, Scene::line);
}

/// A run ends while somebody asks it to stop, which changes the row that says who has it: its
/// outcome counts all the same.
#[test]
fn an_ending_and_a_cancel_of_one_job() {
    ending_beside_a_cancel(queue::Outcome::success(), Scene::run);
}

fn ending_beside_a_cancel(
    outcome: queue::Outcome,
    set: impl Fn(&World, &Pipelines) -> (Scene, queue::JobId),
) {
    let Some(mut interleaver) = Interleaver::start(Vec::new()) else { return };
    let pipelines = Pipelines::make(&interleaver.world);
    for (steps, begins) in (0..20).flat_map(|steps| [(steps, 0), (steps, 1)]) {
        let (scene, cancelled) = set(&interleaver.world, &pipelines);
        let actors = [
            vec![actions::Action::Settle(outcome.clone())],
            vec![actions::Action::Cancel(cancelled)],
        ];
        let mut taken = 0;
        // One takes some steps, then the other all it can, then the first the rest.
        let mut choose = |ready: &[scheduler::Ready]| {
            taken += 1;
            let wanted = if taken > steps { 1 - begins } else { begins };
            ready.iter().position(|r| r.0 == wanted).unwrap_or(0)
        };
        let what = format!("after {steps} steps of {begins}");
        let wrong = interleaver.play(&scene, &actors, &mut choose, &what);
        if let Some(wrong) = wrong {
            panic!("{wrong}");
        }
    }
}

#[test]
fn transactions_in_any_order_keep_the_contract() {
    let Some(mut interleaver) = Interleaver::start(Vec::new()) else { return };
    let pipelines = Pipelines::make(&interleaver.world);
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seconds = number("ACCESSION_INTERLEAVE_SECONDS").unwrap_or(15);
    let replay = number("ACCESSION_INTERLEAVE_SEED");
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut seed = replay.unwrap_or_else(|| rand::random::<u32>().into());
    let mut runs = 0;
    while runs == 0 || (replay.is_none() && Instant::now() < until) {
        if let Some(wrong) = interleaver.run(&pipelines, seed) {
            panic!("{wrong}");
        }
        (seed, runs) = (seed + 1, runs + 1);
    }
    println!("{runs} interleavings, the last of seed {}", seed - 1);
}

fn shown(done: &[Done]) -> String {
    let line =
        |d: &Done| format!("\n  {} {:?} -> {:?} (step {})", d.actor, d.action, d.result, d.step);
    done.iter().map(line).collect()
}
