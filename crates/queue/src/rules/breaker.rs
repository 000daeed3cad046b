//! Breakers: after five errors in a row that name a target, or one that says that it is down, jobs
//! known to need it wait together, and one probe at a time checks whether it is up again.

use crate::error::Result;
use crate::id::{JobId, StageId};
use crate::job::JobError;
use crate::rules::line::{self, Candidate};
use crate::rules::running::Run;
use crate::rules::settle::SettleBatch;
use db::{FromRow, Micros, Row, Statement, Tx, statement};
use std::collections::{BTreeMap, BTreeSet};

/// Errors in a row that open a breaker.
pub const ERRORS_TO_OPEN: i64 = 5;
/// The wait before the first probe.
pub const PROBE_WAIT_FIRST: Micros = 10_000_000;
/// The longest wait between probes.
pub const PROBE_WAIT_MAX: Micros = 300_000_000;
/// Jobs released by one transaction once a target is up again.
const RELEASE_MAX: i64 = 500;

/// A target that had errors, and its breaker.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Errors in a row.
    pub errors: i64,
    /// Since when the breaker is open; None while it is closed.
    pub opened_at: Option<Micros>,
    /// When the next probe is due.
    pub next_probe: Option<Micros>,
    /// The target is up again, and jobs that waited for it are being released.
    pub closing: bool,
    /// The wait between probes.
    pub probe_wait: Micros,
    /// The job that probes it now.
    pub probe_job: Option<JobId>,
    /// Why.
    pub reason: Option<String>,
}

impl FromRow for Target {
    fn from_row(row: &Row<'_>) -> db::Result<Target> {
        Ok(Target {
            name: row.get(0)?,
            errors: row.get(1)?,
            opened_at: row.get(2)?,
            next_probe: row.get(3)?,
            closing: row.get(4)?,
            probe_wait: row.get(5)?,
            probe_job: row.get(6)?,
            reason: row.get(7)?,
        })
    }
}

/// Targets that have had errors.
#[derive(Default)]
pub struct Breakers {
    targets: BTreeMap<String, Target>,
    confirmed: BTreeSet<String>,
}

impl Breakers {
    /// Reads all breakers.
    pub fn load(tx: &mut Tx<'_>) -> Result<Breakers> {
        let targets = all(tx)?.into_iter().map(|t| (t.name.clone(), t)).collect();
        Ok(Breakers { targets, confirmed: BTreeSet::new() })
    }

    /// The first of a job's targets that is down.
    pub fn down(&self, targets: Option<&str>) -> Option<String> {
        let names = targets.filter(|_| !self.targets.is_empty())?.lines();
        names
            .filter_map(|name| self.targets.get(name))
            .find(|t| t.opened_at.is_some())
            .map(|t| t.name.clone())
    }

    /// True if the target is down, and stays so until the transaction ends: a job that is put aside
    /// for it would otherwise be forgotten when it comes up.
    pub fn confirm_down(&mut self, tx: &mut Tx<'_>, name: &str) -> Result<bool> {
        const DOWN: Statement = statement!(breaker::target_down);
        if self.confirmed.contains(name) {
            return Ok(true);
        }
        if tx.first::<(String,)>(&DOWN, &db::params![name])?.is_some() {
            self.confirmed.insert(name.to_string());
            return Ok(true);
        }
        self.targets.remove(name);
        Ok(false)
    }

    /// A job of this claim is the probe of the target.
    pub fn note_probe(&mut self, target: &str, job: JobId) {
        if let Some(target) = self.targets.get_mut(target) {
            target.probe_job = Some(job);
        }
    }

    fn note(&mut self, name: &str, errors: i64, opened_at: Option<Micros>) {
        let known = self.targets.entry(name.to_string()).or_insert_with(|| Target {
            name: name.to_string(),
            errors,
            opened_at,
            next_probe: None,
            closing: false,
            probe_wait: PROBE_WAIT_FIRST,
            probe_job: None,
            reason: None,
        });
        (known.errors, known.opened_at) = (errors, opened_at);
    }

    /// Returns when the next probe of a target that has none is due.
    pub fn next_probe(&self) -> Option<Micros> {
        let open = self.targets.values().filter(|t| t.opened_at.is_some() && t.probe_job.is_none());
        open.filter_map(|t| t.next_probe).min()
    }

    /// Returns the targets whose probe is due.
    pub fn due_for_probe(&self, now: Micros) -> Vec<String> {
        let due = |t: &&Target| {
            t.opened_at.is_some()
                && t.probe_job.is_none()
                && t.next_probe.is_some_and(|at| at <= now)
        };
        self.targets.values().filter(due).map(|t| t.name.clone()).collect()
    }
}

/// Every target that has had errors since its last success.
pub fn all(tx: &mut Tx<'_>) -> Result<Vec<Target>> {
    const ALL: Statement = statement!(breaker::all_targets);
    Ok(tx.query(&ALL, &[])?)
}

/// Whether a target is down after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outage {
    No,
    /// This error was the one that opened the breaker.
    Opened,
    /// It was open already: the error tells nothing about the job.
    Already,
}

/// Counts an error that names a target.
pub(crate) fn failed(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    run: &Run,
    error: &JobError,
) -> Result<Outage> {
    const COUNT: Statement = statement!(breaker::count_target_error);
    const OPEN: Statement = statement!(breaker::open_breaker);
    probe_over(tx, work, run, error.target.as_deref())?;
    let Some(target) = error.target.as_deref().filter(|t| crate::rules::draft::is_target(t)) else {
        return Ok(Outage::No);
    };
    let (errors, opened): (i64, Option<Micros>) =
        tx.one(&COUNT, &db::params![target, PROBE_WAIT_FIRST, &error.message])?;
    // A success that follows in the same call must know that there is something to forget.
    let opens = opened.is_none() && (error.down || errors >= ERRORS_TO_OPEN);
    work.breakers.note(target, errors, opened.or(opens.then_some(work.now)));
    if opened.is_some() {
        return Ok(Outage::Already);
    }
    if !opens {
        return Ok(Outage::No);
    }
    tx.send(&OPEN, &db::params![target, work.now, work.now + PROBE_WAIT_FIRST, PROBE_WAIT_FIRST])?;
    tracing::warn!(
        target_name = target,
        reason = error.message,
        "target is down; jobs that need it wait"
    );
    Ok(Outage::Opened)
}

/// A run that was a probe is over. If its error named the target, the next probe comes later.
pub(crate) fn probe_over(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    run: &Run,
    failed_at: Option<&str>,
) -> Result<()> {
    const OVER: Statement = statement!(breaker::probe_over);
    let Some(probe) = &run.probe else { return Ok(()) };
    let factor = if failed_at == Some(probe) { 2 } else { 1 };
    tx.send(&OVER, &db::params![probe, work.now, factor, PROBE_WAIT_MAX])?;
    Ok(())
}

/// A success of a job that needs a target: it is up.
pub(crate) fn succeeded(
    tx: &mut Tx<'_>,
    work: &mut SettleBatch<'_>,
    job: JobId,
    probe: Option<&str>,
) -> Result<()> {
    const NEEDS: Statement = statement!(breaker::job_targets);
    const CLOSE: Statement = statement!(breaker::close_breaker);
    if work.breakers.targets.is_empty() {
        return Ok(());
    }
    let (needs,): (Option<String>,) = tx.one(&NEEDS, &db::params![job])?;
    let needs = needs.unwrap_or_default();
    let up: Vec<String> = needs
        .lines()
        .chain(probe)
        .filter(|n| work.breakers.targets.contains_key(*n))
        .map(str::to_string)
        .collect();
    for name in up {
        if let Some(target) = work.breakers.targets.remove(&name) {
            tx.send(&CLOSE, &db::params![&name])?;
            if target.opened_at.is_some() {
                tracing::info!(target_name = name, "target is up again");
                release(tx, work.now, &name)?;
            }
        }
    }
    Ok(())
}

/// Records which job probes a target.
pub(crate) fn probing(tx: &mut Tx<'_>, target: &str, job: JobId, token: i64) -> Result<()> {
    const PROBING: Statement = statement!(breaker::set_probe);
    tx.send(&PROBING, &db::params![target, job, token])?;
    Ok(())
}

/// Goes on releasing the jobs of targets that are up again.
pub(crate) fn release_some(tx: &mut Tx<'_>, now: Micros, breakers: &Breakers) -> Result<()> {
    for target in breakers.targets.values().filter(|t| t.closing) {
        release(tx, now, &target.name)?;
    }
    Ok(())
}

/// Releases a chunk of the jobs that waited for a target; forgets the target with the last one.
fn release(tx: &mut Tx<'_>, now: Micros, target: &str) -> Result<()> {
    const BLOCKED: Statement = statement!(line::blocked_jobs);
    const FORGET: Statement = statement!(breaker::forget_target);
    let rows: Vec<(JobId, StageId, String)> =
        tx.query(&BLOCKED, &db::params![target, 4, RELEASE_MAX])?;
    let done = (rows.len() as i64) < RELEASE_MAX;
    let candidates: Vec<Candidate> =
        rows.into_iter().map(|(id, stage, lock)| Candidate { id, stage, lock }).collect();
    line::make_ready(tx, now, &candidates)?;
    if done {
        tx.send(&FORGET, &db::params![target])?;
    }
    Ok(())
}
