//! The line in front of a lock: which job is ready, which are parked, and which is promoted next.
//!
//! At most one job of a lock is ready unless one owns it. A job is parked only while the row it
//! waits behind is locked, and a lock is freed before, in a statement of its own, the next job is
//! promoted; so no wake-up falls between "busy, wait" and "done, release".

use crate::codes::State;
use crate::engine;
use crate::error::Result;
use crate::id::{JobId, StageId};
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeSet, HashMap};

/// A waiting row that may become ready.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its id.
    pub id: JobId,
    /// The id of the stage.
    pub stage: StageId,
    /// What no two jobs may own at the same time.
    pub lock: String,
}

/// The jobs that stand before a job in the line for a lock.
#[derive(Debug, Default, Clone, Copy)]
pub struct Ahead {
    /// The job that owns the lock.
    pub owner: Option<JobId>,
    /// The first job that is ready for it.
    pub first: Option<JobId>,
}

impl Ahead {
    /// Returns whether job `id` must wait behind another.
    pub fn blocks(&self, id: JobId) -> bool {
        match self.owner {
            Some(owner) => owner != id,
            None => self.first.is_some_and(|first| first != id),
        }
    }
}

/// Returns which job owns each lock, and which is ready for it. Rows found are locked until the
/// transaction ends. Rows that others have locked are not reported; a job that stays ready because of
/// that is parked by the claim that finds it.
pub fn ahead(
    tx: &mut Tx<'_>,
    locks: &BTreeSet<&str>,
    waiting_too: bool,
) -> Result<HashMap<String, Ahead>> {
    const AHEAD: Statement = statement!(line::ahead_in_line);
    let rows: Vec<[Value<'_>; 1]> = locks.iter().map(|lock| [Value::Text(lock)]).collect();
    let found: Vec<(String, JobId, bool)> = tx.each(&AHEAD, &[Value::from(waiting_too)], &rows)?;
    Ok(in_line(found))
}

/// Of each lock, from rows of a lock, a job, and whether the job owns the lock.
pub fn in_line(found: impl IntoIterator<Item = (String, JobId, bool)>) -> HashMap<String, Ahead> {
    let mut line: HashMap<String, Ahead> = HashMap::new();
    for (lock, id, owns) in found {
        let entry = line.entry(lock).or_default();
        match owns {
            true => entry.owner = Some(id),
            false => entry.first = Some(entry.first.map_or(id, |first| first.min(id))),
        }
    }
    line
}

/// Makes waiting jobs ready, or parks them if they must wait for their lock.
pub fn make_ready(tx: &mut Tx<'_>, now: Micros, jobs: &[Candidate]) -> Result<()> {
    const STATE: Statement = statement!(line::set_state);
    if jobs.is_empty() {
        return Ok(());
    }
    let locks = jobs.iter().map(|job| job.lock.as_str()).collect();
    let mut ahead = ahead(tx, &locks, true)?;
    let mut rows: Vec<[Value<'_>; 2]> = Vec::with_capacity(jobs.len());
    let mut sorted: Vec<&Candidate> = jobs.iter().collect();
    sorted.sort_unstable_by_key(|job| job.id);
    for job in sorted {
        let entry = ahead.entry(job.lock.clone()).or_default();
        let state = if entry.blocks(job.id) { State::Parked } else { State::Ready };
        entry.first.get_or_insert(job.id);
        rows.push([Value::from(job.id), Value::from(state)]);
        if state == State::Ready {
            tx.wake(job.stage);
        }
    }
    tx.send_each(&STATE, &[Value::Int(now)], &rows)?;
    Ok(())
}

/// Promotes the first parked job of each freed lock.
pub fn promote(tx: &mut Tx<'_>, now: Micros, locks: &BTreeSet<String>) -> Result<()> {
    engine::of(tx).promote(tx, now, locks)
}
