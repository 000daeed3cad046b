//! Conditions of PostgreSQL's statements taken away on purpose: some schedule must notice
//! each. The simulator's mutants do the same for the rules, on SQLite.

use crate::{Interleaver, Pipelines};
use db::Rewrite;
use std::time::{Duration, Instant};

/// How long the interleaver may take to notice a mutant.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What is broken, the statement, and the text that is replaced in it.
type Mutant = (&'static str, &'static str, &'static str, &'static str);

const MUTANTS: &[Mutant] = &[
    (
        "a lock is taken from the job that has it",
        "queue::claim::take_new_locks",
        "as r (lock, id, token, started_at, probe)",
        "as r (lock, id, token, started_at, probe)
         on conflict (lock) do update set id = excluded.id, worker = excluded.worker,
           token = excluded.token, stage = excluded.stage",
    ),
    (
        "a claimed job whose lock is taken is forgotten",
        "queue::claim::take_new_locks",
        "as r (lock, id, token, started_at, probe)",
        "as r (lock, id, token, started_at, probe) on conflict (lock) do nothing",
    ),
    (
        "nobody is promoted",
        "queue::line::promote",
        "where (select 1 from leases s where s.lock = f.lock) is null",
        "where false",
    ),
    (
        "reservations stay",
        "queue::budget::free_reservations",
        "job = any ($1::bigint[])",
        "job = any ($1::bigint[]) and false",
    ),
];

/// The first thing that is wrong with a broken queue, within the time there is.
fn noticed(rewrite: Rewrite) -> Option<String> {
    let mut interleaver = Interleaver::start(vec![rewrite])?;
    let pipelines = Pipelines::make(&interleaver.world);
    let until = Instant::now() + TIME_MAX;
    (0..).take_while(|_| Instant::now() < until).find_map(|seed| {
        let wrong = interleaver.run(&pipelines, seed);
        wrong.map(|wrong| format!("seed {seed}: {}", wrong.lines().nth(1).unwrap_or_default()))
    })
}

#[test]
fn each_mutant_is_noticed() {
    if Interleaver::start(Vec::new()).is_none() {
        return;
    }
    let mut survived = Vec::new();
    for (what, statement, find, replace) in MUTANTS {
        match noticed(Rewrite { statement, find, replace }) {
            Some(wrong) => println!("{what}: {wrong}"),
            None => survived.push(*what),
        }
    }
    assert!(survived.is_empty(), "no schedule noticed:\n{}", survived.join("\n"));
}
