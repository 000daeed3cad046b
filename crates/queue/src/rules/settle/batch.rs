//! What a settlement gathers on its way: written at its end, in the order of the locks.

use crate::catalog::{Catalog, Pipeline, Stage};
use crate::codes::Status;
use crate::error::Result;
use crate::id::{JobId, StageId, WorkerId};
use crate::rules::breaker::Breakers;
use crate::rules::budget;
use crate::rules::counts::Counts;
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line;
use crate::rules::operator::hold::{self, HeldNames};
use crate::rules::running::Run;
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeMap, BTreeSet};

/// What a rule gathers on its way and writes at its end, in the order of the locks.
pub(crate) struct SettleBatch<'c> {
    pub now: Micros,
    pub catalog: &'c Catalog,
    /// Who acts or acted.
    pub who: String,
    pub journal: Journal,
    pub counts: Counts,
    pub breakers: Breakers,
    pub freed: BTreeSet<String>,
    /// Runs that ended, by stage: succeeded and in error.
    pub minutes: BTreeMap<StageId, (i64, i64)>,
    pub reservations: bool,
    /// Whether there are failed jobs.
    pub failures: bool,
    /// A pending batch waits for the job that prepares it.
    pub preparing: bool,
    /// What is held, and stays so until the transaction ends.
    pub held: HeldNames,
}

impl<'c> SettleBatch<'c> {
    pub fn begin(
        tx: &mut Tx<'_>,
        now: Micros,
        catalog: &'c Catalog,
        who: &str,
    ) -> Result<SettleBatch<'c>> {
        const CONTEXT: Statement = statement!(settle::settle_context);
        let (targets, failures, reservations, preparing, holds): (bool, bool, bool, bool, bool) =
            tx.one(&CONTEXT, &[])?;
        if reservations {
            budget::lock(tx)?;
        }
        Ok(SettleBatch {
            now,
            catalog,
            who: who.to_string(),
            journal: Journal::default(),
            counts: Counts::default(),
            breakers: if targets { Breakers::load(tx)? } else { Breakers::default() },
            freed: BTreeSet::new(),
            minutes: BTreeMap::new(),
            reservations,
            failures,
            preparing,
            held: if holds { hold::held_names_locked(tx)? } else { HeldNames::default() },
        })
    }

    /// What holds a job whose run of a stage ends (I9), with who held it and why where that is known.
    pub fn take_hold(
        &self,
        tx: &mut Tx<'_>,
        (pipeline, stage): (&Pipeline, &Stage),
        job: JobId,
        run: &Run,
    ) -> Result<Option<Hold>> {
        if self.held.is_empty() || !hold::may_be_held(pipeline, stage, true) {
            return Ok(None);
        }
        // The row goes: from now on the job's state says that it is held.
        if self.held.has_job(job)
            && let Some((who, reason)) = hold::take_job_hold(tx, job)?
        {
            return Ok(Some(Hold { by: "job", who, reason }));
        }
        let group = self.held.of(run.batch, run.collection.as_deref());
        Ok(group.map(|by| Hold {
            by,
            who: "rule".to_string(),
            reason: format!("its {by} is held"),
        }))
    }

    /// A job that ends is not held any more.
    pub fn forget_hold(&self, tx: &mut Tx<'_>, job: JobId) -> Result<()> {
        if self.held.has_job(job) {
            hold::take_job_hold(tx, job)?;
        }
        Ok(())
    }

    pub fn note_held(&mut self, pipeline: &Pipeline, job: JobId, stage: StageId, hold: &Hold) {
        let event = Event::new(job, self.now, &hold.who, "held")
            .from(stage, Status::Queued)
            .to(stage, Status::Held);
        self.journal.note(pipeline, Weight::Always, event.why(hold.reason.as_str()));
    }

    /// Writes what was gathered. Locks are freed by now; only then is the next in line let through.
    pub fn end(self, tx: &mut Tx<'_>, worker: WorkerId) -> Result<()> {
        const MINUTES: Statement = statement!(settle::count_minutes);
        self.journal.write(tx)?;
        self.counts.write(tx, self.now)?;
        let minutes: Vec<[Value<'_>; 3]> = self
            .minutes
            .iter()
            .map(|(stage, (succeeded, errors))| db::params![*stage, *succeeded, *errors])
            .collect();
        tx.send_each(&MINUTES, &db::params![self.now / 60_000_000, worker], &minutes)?;
        line::promote(tx, self.now, &self.freed)
    }
}

/// What holds a job whose run ends.
pub(crate) struct Hold {
    /// job, batch or collection.
    pub by: &'static str,
    /// Who acts or acted.
    pub who: String,
    /// Why.
    pub reason: String,
}
