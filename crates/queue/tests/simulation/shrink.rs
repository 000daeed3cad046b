//! The shortest failing history that dropping steps can find, and how to run it again.

use crate::run::{Failure, run};
use db::Rewrite;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How long shrinking may take.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Drops steps as long as what is left still fails.
pub fn shrink(numbers: &[u64], failure: Failure, rewrites: &[Rewrite]) -> (Vec<u64>, Failure) {
    let mut best = numbers[..failure.steps].to_vec();
    let mut failure = failure;
    let mut size = (best.len() / 2).max(1);
    let begun = Instant::now();
    loop {
        let mut at = 0;
        let mut dropped = false;
        while at < best.len() && begun.elapsed() < TIME_MAX {
            let mut shorter = best.clone();
            shorter.drain(at..(at + size).min(best.len()));
            match run(&shorter, rewrites, |_, _, _| {}) {
                Err(found) => {
                    shorter.truncate(found.steps);
                    (best, failure, dropped) = (shorter, found, true);
                }
                Ok(_) => at += size,
            }
        }
        if size == 1 && !dropped || begun.elapsed() >= TIME_MAX {
            return (best, failure);
        }
        size = (size / 2).max(1);
    }
}

/// What a person needs to see of a failing seed.
pub fn report(seed: u64, numbers: &[u64], failure: Failure, rewrites: &[Rewrite]) -> String {
    let found = format!("seed {seed} fails at step {}: {}", failure.steps, failure.why);
    // Said first, for those who do not wait for the rest.
    println!("{found}");
    let (short, failure) = shrink(numbers, failure, rewrites);
    let mut text = format!("{found}\n\nThe shortest history found, {} steps:\n", short.len());
    // The outcome is known; only the telling of the steps is wanted.
    let _ = run(&short, rewrites, |index, step, now| {
        let _ = writeln!(
            text,
            "{:4}  t={:.3}s {:?} {:?}",
            index + 1,
            (now - crate::world::START) as f64 / 1e6,
            step.fate,
            step.call
        );
    });
    let _ = writeln!(text, "      → {}", failure.why);
    let _ = writeln!(
        text,
        "\nReplay it with: ACCESSION_SIM_SEED={seed} cargo test -p queue --test simulation seeds"
    );
    text
}
