//! Budgets: what a run needs is reserved when it is claimed and free when the run is over. The
//! reservations are rows by job, so a crash leaks nothing.

use crate::codes::State;
use crate::engine;
use crate::error::{Error, Result};
use crate::id::{JobId, StageId, WorkerId};
use crate::job::Amounts;
use crate::rules::line::{self, Candidate};
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeMap, BTreeSet};

/// Starved jobs that one freed resource makes ready; those that still do not fit starve again.
const RELEASE_MAX: i64 = 64;

/// Whether a job's needs can be met now.
#[derive(Debug, PartialEq, Eq)]
pub enum BudgetFit {
    /// There is enough.
    Yes,
    /// Not by this worker.
    NotHere,
    /// Not in the whole deployment; the resource that is short.
    No(String),
}

#[derive(Default)]
struct Resource {
    total: Option<i64>,
    used: i64,
    here: Option<i64>,
    used_here: i64,
}

/// What there is, what is used, and what this claim adds to it.
#[derive(Default)]
pub struct Budgets {
    resources: BTreeMap<String, Resource>,
    taken: BTreeMap<JobId, Amounts>,
}

impl Budgets {
    /// Reads what there is of each resource, and how much of it is in use.
    pub fn load(tx: &mut Tx<'_>, worker: WorkerId, capacity: &Amounts) -> Result<Budgets> {
        const TOTALS: Statement = statement!(budget::lock_resources);
        const USED: Statement = statement!(budget::used_resources);
        let mut budgets = Budgets::default();
        for (name, total) in tx.query::<(String, i64)>(&TOTALS, &[])? {
            budgets.resources.entry(name).or_default().total = Some(total);
        }
        for (name, amount) in capacity {
            budgets.resources.entry(name.clone()).or_default().here = Some(*amount);
        }
        for (name, used, used_here) in
            tx.query::<(String, i64, i64)>(&USED, &db::params![worker])?
        {
            let resource = budgets.resources.entry(name).or_default();
            (resource.used, resource.used_here) = (used, used_here);
        }
        Ok(budgets)
    }

    /// Sets the needs of a job aside if they fit.
    pub fn take(&mut self, job: JobId, needs: &Amounts) -> BudgetFit {
        let over = |limit: Option<i64>, used: i64, amount: i64| {
            limit.is_some_and(|limit| used + amount > limit)
        };
        for (name, amount) in needs {
            let Some(resource) = self.resources.get(name) else { continue };
            if over(resource.total, resource.used, *amount) {
                return BudgetFit::No(name.clone());
            }
            if over(resource.here, resource.used_here, *amount) {
                return BudgetFit::NotHere;
            }
        }
        for (name, amount) in needs {
            // Noted even where there is no limit: one may be set while the job runs.
            let resource = self.resources.entry(name.clone()).or_default();
            resource.used += amount;
            resource.used_here += amount;
            self.taken.entry(job).or_default().insert(name.clone(), *amount);
        }
        BudgetFit::Yes
    }

    /// Counts what a job of another worker has reserved as this worker's, if it has room for it.
    pub fn take_here(&mut self, reserved: &Amounts) -> bool {
        let full = |(name, amount): (&String, &i64)| {
            let resource = self.resources.get(name);
            resource.is_some_and(|r| r.here.is_some_and(|here| r.used_here + amount > here))
        };
        if reserved.iter().any(full) {
            return false;
        }
        for (name, amount) in reserved {
            self.resources.entry(name.clone()).or_default().used_here += amount;
        }
        true
    }

    /// Undoes a take; what it was of.
    pub fn give_back(&mut self, job: JobId) -> Amounts {
        let taken = self.taken.remove(&job).unwrap_or_default();
        for (name, amount) in &taken {
            if let Some(resource) = self.resources.get_mut(name) {
                resource.used -= amount;
                resource.used_here -= amount;
            }
        }
        taken
    }

    /// Records what was taken.
    pub fn write(&self, tx: &mut Tx<'_>, worker: WorkerId) -> Result<()> {
        const RESERVE: Statement = statement!(budget::reserve);
        for (job, amounts) in &self.taken {
            for (resource, amount) in amounts {
                tx.send(&RESERVE, &db::params![job, resource, amount, worker])?;
            }
        }
        Ok(())
    }
}

/// Waits for claims that look at budgets, and keeps others out until the transaction ends: otherwise
/// a job that starves for what is being freed would not be woken.
pub(crate) fn lock(tx: &mut Tx<'_>) -> Result<()> {
    engine::of(tx).lock_resources(tx)
}

/// Frees what jobs had reserved, and lets jobs that starved for it try again.
pub fn release(tx: &mut Tx<'_>, now: Micros, jobs: impl Iterator<Item = JobId>) -> Result<()> {
    const FREE: Statement = statement!(budget::free_reservations);
    let rows: Vec<[Value<'_>; 1]> = jobs.map(|job| [Value::from(job)]).collect();
    let freed: BTreeSet<String> =
        tx.each::<(String,), 1>(&FREE, &[], &rows)?.into_iter().map(|r| r.0).collect();
    freed.iter().try_for_each(|resource| feed(tx, now, resource))
}

/// Lets jobs that starved for a resource try again.
pub(crate) fn feed(tx: &mut Tx<'_>, now: Micros, resource: &str) -> Result<()> {
    const STARVED: Statement = statement!(line::blocked_jobs);
    let rows: Vec<(JobId, StageId, String)> =
        tx.query(&STARVED, &db::params![resource, State::Starved, RELEASE_MAX])?;
    let candidates: Vec<Candidate> =
        rows.into_iter().map(|(id, stage, lock)| Candidate { id, stage, lock }).collect();
    line::make_ready(tx, now, &candidates)
}

/// Says how much of a resource the whole deployment has; None for no limit.
pub fn set_total(tx: &mut Tx<'_>, now: Micros, resource: &str, total: Option<i64>) -> Result<()> {
    const SET: Statement = statement!(budget::set_resource);
    const UNSET: Statement = statement!(budget::unset_resource);
    if total.is_some_and(|t| t < 0) || resource.is_empty() || resource.contains(char::is_control) {
        return Err(Error::BadInput(format!(
            "`{resource}` needs a name and an amount of 0 or more"
        )));
    }
    match total {
        Some(total) => tx.execute(&SET, &db::params![resource, total])?,
        None => tx.execute(&UNSET, &db::params![resource])?,
    };
    feed(tx, now, resource)
}
