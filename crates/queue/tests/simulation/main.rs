//! The simulator: seeded histories of everything that can happen to a queue, run against the rules
//! and against a reference model that shares nothing with them, with I1 to I10 checked after every
//! step.
//!
//! `ACCESSION_SIM_SECONDS` says how long to look for failures (8 unless said), `ACCESSION_SIM_SEEDS`
//! how many seeds to run instead, and `ACCESSION_SIM_SEED` which one to replay.

mod call;
mod compare;
mod invariants;
mod model;
mod mutants;
mod pick;
mod run;
mod shrink;
mod tables;
mod world;

use std::time::{Duration, Instant};

/// Steps in the history of a seed.
const STEPS: usize = 250;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn run_seed(seed: u64) -> run::Coverage {
    let numbers = run::numbers(seed, STEPS);
    match run::run(&numbers, &[], |_, _, _| {}) {
        Ok(coverage) => coverage,
        Err(failure) => panic!("{}", shrink::report(seed, &numbers, failure, &[])),
    }
}

#[test]
fn seeds() {
    if let Some(seed) = setting("ACCESSION_SIM_SEED") {
        run_seed(seed);
        return;
    }
    let count = setting("ACCESSION_SIM_SEEDS");
    let time = Duration::from_secs(setting("ACCESSION_SIM_SECONDS").unwrap_or(8));
    let begun = Instant::now();
    let mut coverage = run::Coverage::new();
    let mut seed = 0;
    while count.map_or(begun.elapsed() < time, |count| seed < count) {
        for (kind, counts) in run_seed(seed) {
            let sum = coverage.entry(kind).or_default();
            (0..3).for_each(|i| sum[i] += counts[i]);
        }
        seed += 1;
    }
    for (kind, [done, refused, nothing]) in &coverage {
        println!("{kind:14} {done:8} done {refused:8} refused {nothing:8} to no effect");
    }
    println!("{seed} seeds of {STEPS} steps in {:.1} s", begun.elapsed().as_secs_f64());
}

/// A simulator that cannot fail proves nothing: each broken rule must be noticed.
#[test]
fn mutants() {
    let mut survivors = Vec::new();
    for mutant in mutants::all() {
        match mutants::seeds_to_find(&mutant, STEPS) {
            Some(found) => {
                println!("{:32} found by seed {}: {}", mutant.name, found.seed, found.why)
            }
            None => survivors.push(mutant.name),
        }
    }
    assert!(survivors.is_empty(), "not noticed: {survivors:?}");
}
