//! Locks and conditions of PostgreSQL's statements taken away on purpose: some schedule must notice
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
    ("a claim does not lock its worker", "queue::claim::claim_context", "for share of w", ""),
    (
        "claims do not wait for a pause or a hold",
        "queue::claim::enter_claims",
        "1094927182, 1",
        "1094927182, 2",
    ),
    (
        "a pause does not wait for claims",
        "queue::claim::stop_claims",
        "1094927182, 1",
        "1094927182, 3",
    ),
    (
        "ready rows are not locked by claims",
        "queue::claim::ready_jobs",
        "for update skip locked",
        "",
    ),
    (
        "the outcome of a lost lease counts",
        "queue::running::find_runs",
        "and token = r.token and worker = $1",
        "and r.token > 0 and cast($1 as bigint) > 0",
    ),
    (
        "the success of a lost lease counts",
        "queue::settle::release_finished",
        "where worker = $1 and",
        "where cast($1 as bigint) > 0 and",
    ),
    (
        "the owner that a new job is parked behind is not locked",
        "queue::line::ahead_in_line",
        "for key share skip locked",
        "",
    ),
    (
        "the first of a line is not locked when it is promoted",
        "queue::line::promote",
        "limit 1 for update",
        "limit 1",
    ),
    (
        "nobody is promoted",
        "queue::line::promote",
        "where (select 1 from leases s where s.lock = f.lock) is null",
        "where false",
    ),
    (
        "a job that an operator decides about is not locked",
        "queue::operator::lock_job",
        "select id from waiting where id = $1 for update",
        "select id from waiting where id = $1",
    ),
    ("a resource is given out twice", "queue::budget::lock_resources", "for update", ""),
    (
        "reservations stay",
        "queue::budget::free_reservations",
        "job = any ($1::bigint[])",
        "job = any ($1::bigint[]) and false",
    ),
    (
        "a job of a dead worker's buffer is taken over by two",
        "queue::lease::idle_claims",
        "for update skip locked",
        "",
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
fn what_postgres_locks_is_needed() {
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
