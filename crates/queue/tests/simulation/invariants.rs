//! I1 to I10, read off the tables alone: no model is needed to see these broken.

use crate::model::Verdict;
use crate::tables::{Tables, WaitingRow};
use queue::{BatchId, JobId, PipelineId, StageId};
use std::collections::{BTreeMap, BTreeSet};

const READY: i64 = 0;
const PARKED: i64 = 1;
const DELAYED: i64 = 2;
const HELD: i64 = 3;
const FAILED: i64 = 3;

fn must(yes: bool, what: impl Fn() -> String) -> Verdict {
    if yes { Ok(()) } else { Err(what()) }
}

pub fn check(before: &Tables, now: &Tables) -> Verdict {
    one_place(now)?;
    owners(now)?;
    no_lost_wake_up(now)?;
    coalescing(now)?;
    counts(now)?;
    reservations(now)?;
    forward_only(before, now)?;
    history(before, now)
}

/// I1, I2, I5: every job is in exactly one of waiting, running, failed and ended.
fn one_place(t: &Tables) -> Verdict {
    for job in t.jobs.values() {
        let id = job.id;
        let waits = t.waiting.contains_key(&id);
        let runs = t.started.iter().filter(|s| s.id == id && s.worker.is_some()).count();
        let failed = t.failures.contains_key(&id);
        let ended = job.status > FAILED;
        let places = usize::from(waits) + runs + usize::from(failed) + usize::from(ended);
        must(places == 1, || {
            format!(
                "I5: job {id} is in {places} places: waits {waits}, runs {runs}, failed {failed}, ended {ended}"
            )
        })?;
        must((job.status == FAILED) == failed, || format!("I5: job {id} and its failure differ"))?;
        must((job.ended_at.is_some()) == (job.status != 0), || {
            format!("job {id}: when did it end?")
        })?;
    }
    let known = |id: &JobId| t.jobs.contains_key(id);
    let strays = t.waiting.keys().chain(t.failures.keys()).chain(t.started.iter().map(|s| &s.id));
    must(strays.copied().all(|id| known(&id)), || "I1: a row belongs to no job".to_string())
}

/// I3: a lock has one owner, which runs, or waits and keeps it.
fn owners(t: &Tables) -> Verdict {
    let mut locks = BTreeSet::new();
    let mut ids = BTreeSet::new();
    let mut tokens = BTreeSet::new();
    for s in &t.started {
        must(locks.insert(&s.lock), || format!("I3: {} has two owners", s.lock))?;
        must(ids.insert(s.id), || format!("I2: job {} owns two locks", s.id))?;
        must(tokens.insert(s.token), || format!("I2: token {} is given twice", s.token))?;
        let job = &t.jobs[&s.id];
        must(job.lock == s.lock, || format!("I3: job {} owns {}, not its lock", s.id, s.lock))?;
        if s.worker.is_none() {
            let waits = t.waiting.get(&s.id);
            must(waits.is_some_and(|w| w.begun && w.stage == s.stage && w.lock == s.lock), || {
                format!("I3: job {} owns {} and neither runs nor waits for it", s.id, s.lock)
            })?;
        }
    }
    for w in t.waiting.values() {
        must(t.jobs[&w.id].lock == w.lock, || format!("job {} waits for another lock", w.id))?;
    }
    Ok(())
}

/// A parked job waits behind an owner or behind one that is ready; nobody else would wake it.
fn no_lost_wake_up(t: &Tables) -> Verdict {
    let ready: BTreeSet<&str> =
        t.waiting.values().filter(|w| w.state == READY).map(|w| w.lock.as_str()).collect();
    for w in t.waiting.values().filter(|w| w.state == PARKED) {
        let owner = t.owner(&w.lock);
        must(owner.is_none_or(|o| o.id != w.id), || {
            format!("job {} is parked behind itself", w.id)
        })?;
        must(owner.is_some() || ready.contains(w.lock.as_str()), || {
            format!(
                "lost wake-up: job {} is parked, and nobody has {} or is ready for it",
                w.id, w.lock
            )
        })?;
    }
    Ok(())
}

/// Jobs of one lock, subject and batch that have not begun are one in a coalescing pipeline.
fn coalescing(t: &Tables) -> Verdict {
    let mut seen = BTreeSet::new();
    let keyed = |w: &&WaitingRow| w.coalesce_key.is_some();
    for w in t.waiting.values().filter(keyed) {
        let job = &t.jobs[&w.id];
        must(!w.begun, || format!("job {} has begun and still has a key", w.id))?;
        must(seen.insert((job.pipeline, &job.subject, &job.lock, job.batch)), || {
            format!("job {} waits beside another of its subject", w.id)
        })?;
    }
    Ok(())
}

/// I7: a batch's counts are the sums over its jobs, and entries that are not jobs yet.
fn counts(t: &Tables) -> Verdict {
    let mut sums: BTreeMap<BatchId, [i64; 5]> = BTreeMap::new();
    for job in t.jobs.values() {
        let Some(batch) = job.batch else { continue };
        let sum = sums.entry(batch).or_default();
        sum[0] += 1;
        sum[match job.status {
            3 => 3,
            4 => 2,
            5 => 4,
            _ => 1,
        }] += 1;
    }
    for b in t.batches.values() {
        let sum = sums.get(&b.id).copied().unwrap_or_default();
        let unmoved = if b.state == 0 { 0 } else { b.entries };
        // Entries that were cancelled before they became jobs are counted as cancelled.
        let dropped = b.total - sum[0] - unmoved;
        let expected =
            [sum[0] + unmoved + dropped, sum[1] + unmoved, sum[2], sum[3], sum[4] + dropped];
        let counted = [b.total, b.open, b.succeeded, b.failed, b.cancelled];
        must(dropped >= 0 && counted == expected, || {
            format!("I7: batch {} counts {counted:?}, and its jobs are {expected:?}", b.id)
        })?;
        must(!(b.state == 1 && b.open == 0), || format!("batch {} waits for nothing", b.id))?;
        let ended = |job: JobId| t.jobs.get(&job).is_none_or(|j| j.status != 0);
        must(!(b.state == 0 && b.prepared_by.is_some_and(ended)), || {
            format!("batch {} waits for nothing: the job that prepares it has ended", b.id)
        })?;
        must(!(b.state == 3 && b.open > 0), || {
            format!("batch {} is completed with open jobs", b.id)
        })?;
    }
    Ok(())
}

/// After a clock was set back, no back-off counts from a moment that has not come, and each is as long
/// as it was.
pub fn clock(before: &Tables, t: &Tables, now: i64) -> Verdict {
    for w in t.waiting.values().filter(|w| w.state == DELAYED && w.begun) {
        must(w.since <= now + queue::rules::clock::TOLERANCE_MICROS, || {
            format!("job {} waits since a time that has not come, until {}", w.id, w.due)
        })?;
        let old = before.waiting.get(&w.id).filter(|old| old.state == DELAYED);
        must(old.is_none_or(|old| old.due - old.since == w.due - w.since), || {
            format!("job {} waits for another time than it was told", w.id)
        })?;
    }
    Ok(())
}

/// Reservations belong to running jobs and to the workers that run them.
fn reservations(t: &Tables) -> Verdict {
    for r in &t.reservations {
        let run = t.started.iter().find(|s| s.id == r.job);
        must(run.is_some_and(|s| s.worker == Some(r.worker)), || {
            format!(
                "job {} has {} of {} reserved and does not run there",
                r.job, r.amount, r.resource
            )
        })?;
    }
    Ok(())
}

/// I1 and I5 over time: no job vanishes, and what succeeded or was cancelled stays so.
fn forward_only(before: &Tables, now: &Tables) -> Verdict {
    for old in before.jobs.values() {
        let new = now.jobs.get(&old.id);
        must(new.is_some(), || format!("I1: job {} is gone", old.id))?;
        let ended = old.status > FAILED;
        must(!ended || new.is_some_and(|n| n.status == old.status), || {
            format!("I5: job {} had ended and changed", old.id)
        })?;
    }
    for old in &before.started {
        let new = now.started.iter().find(|s| s.lock == old.lock);
        must(new.is_none_or(|n| n.token >= old.token), || {
            format!("a token of {} shrank", old.lock)
        })?;
    }
    Ok(())
}

/// Where a job is, as history says it: stage and status.
type Place = (StageId, i64);

pub fn place(t: &Tables, id: JobId) -> Place {
    let job = &t.jobs[&id];
    match (t.waiting.get(&id), t.started.iter().find(|s| s.id == id && s.worker.is_some())) {
        (Some(w), _) if w.state == HELD => (w.stage, 2),
        (Some(w), _) => (w.stage, 0),
        (None, Some(s)) => (s.stage, 1),
        (None, None) => (job.stage, job.status),
    }
}

/// I8: each change of stage or status has its row, and the rows follow one from another.
fn history(before: &Tables, now: &Tables) -> Verdict {
    let full: BTreeSet<PipelineId> = crate::world::specs()
        .iter()
        .zip(1..)
        .filter(|(s, _)| s.full_history)
        .map(|(_, id)| PipelineId::new(id))
        .collect();
    let mut rows: BTreeMap<JobId, Vec<&crate::tables::HistoryRow>> = BTreeMap::new();
    for row in &now.history {
        rows.entry(row.job).or_default().push(row);
    }
    for job in now.jobs.values() {
        let old = before.jobs.get(&job.id).map(|_| place(before, job.id));
        let new = place(now, job.id);
        let mine = rows.get(&job.id).map(Vec::as_slice).unwrap_or_default();
        let success =
            now.successes.get(&job.id).filter(|_| !before.successes.contains_key(&job.id));
        if let Some(success) = success {
            // All pipelines keep by which run, and none says it a second time.
            let run = before.started.iter().find(|s| s.id == job.id && s.worker.is_some());
            must(
                run.is_some_and(|r| (r.token, r.stage) == (success.token, success.stage)),
                || format!("I8: job {} succeeded by {success:?}, and was run by {run:?}", job.id),
            )?;
            must(mine.is_empty(), || format!("I8: the success of job {} is told twice", job.id))?;
        }
        let always = new.1 == FAILED || new.1 == 5;
        if !full.contains(&job.pipeline) {
            must(
                old == Some(new) || !always || mine.iter().any(|r| r.to_status == Some(new.1)),
                || format!("I8: how job {} ended is not in its history", job.id),
            )?;
            continue;
        }
        let mut at = old;
        if success.is_some() {
            at = Some(new);
        }
        for row in mine {
            let from = row.from_stage.zip(row.from_status);
            must(from.is_none() || at.is_none() || from == at, || {
                format!("I8: job {} is at {at:?}, and its history goes on from {from:?}", job.id)
            })?;
            at = row.to_stage.zip(row.to_status).or(at);
        }
        must(at == Some(new), || {
            format!("I8: job {} went from {old:?} to {new:?}, and its history says {at:?}", job.id)
        })?;
    }
    Ok(())
}
