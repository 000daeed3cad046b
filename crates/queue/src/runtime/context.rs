//! A run's link to the queue: stop requests, progress, checkpoints and records.

use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::id::WorkerId;
use crate::job::{Carryover, JobError, JobState, Lease, Records};
use crate::progress::Progress;
use crate::rules::{running, state};
use crate::runtime::Shared;
use crate::runtime::observer::RunEvent;
use db::{Lane, Tx};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Why a run should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Go on.
    No,
    /// A person cancelled the job: stop at the next good place and return `Outcome::Cancelled`.
    Cancelled,
    /// The process stops: reach a checkpoint and return `Outcome::Interrupted`, within the grace
    /// period.
    Shutdown,
    /// Another worker has the job: nothing that this run does counts any more.
    LeaseLost,
}

/// Progress is written at most this often.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// One run's link to the queue.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    run: Arc<Run>,
}

/// A run under way.
pub(crate) struct Run {
    lease: Lease,
    stop: Mutex<Stop>,
    /// Notified when it should stop.
    stopped: Notify,
    said: Mutex<RunNotes>,
}

/// What a run has reported so far.
struct RunNotes {
    /// When it last reported progress, or began.
    at: Instant,
    records: Vec<Records>,
    carryover: Carryover,
}

impl Run {
    fn new(lease: Lease, stop: Stop) -> Run {
        let said =
            RunNotes { at: Instant::now(), records: Vec::new(), carryover: Carryover::default() };
        Run { lease, stop: Mutex::new(stop), stopped: Notify::new(), said: Mutex::new(said) }
    }

    fn why_stop(&self) -> Stop {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, why: Stop) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = why;
        self.stopped.notify_waiters();
    }

    fn said(&self) -> MutexGuard<'_, RunNotes> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, run: Arc<Run>) -> Context {
        Context { shared, run }
    }

    /// Returns the database.
    pub fn db(&self) -> &db::Db {
        &self.shared.db
    }

    /// Pipelines and stages with their settings, as this process knows them.
    pub fn catalog(&self) -> Catalog {
        self.shared.catalog.borrow().clone()
    }

    /// How many runs of this stage may be under way at once in this process.
    pub fn places(&self) -> usize {
        self.shared.places.limit(self.run.lease.stage)
    }

    /// Returns the id of the worker.
    pub fn worker(&self) -> WorkerId {
        self.shared.worker
    }

    /// Until when the run may count on its lease, as far as this process knows.
    pub fn lease_until(&self) -> Instant {
        self.shared.fence.until()
    }

    /// How long a lease is from one renewal.
    pub fn lease_length(&self) -> Duration {
        self.shared.settings.lease
    }

    /// Returns whether to stop, and why.
    pub fn stop(&self) -> Stop {
        self.run.why_stop()
    }

    /// Waits until the run should stop, and returns why.
    pub async fn stopped(&self) -> Stop {
        loop {
            // Registered before the check, so that no notification is lost between check and wait.
            let rung = self.run.stopped.notified();
            let now = self.stop();
            if now != Stop::No {
                return now;
            }
            rung.await;
        }
    }

    /// Reports progress. Cheap: it is written at most once a second, and never by a shorter run.
    pub async fn progress(&self, progress: impl Into<Progress>) -> Result<()> {
        let progress = progress.into();
        {
            let mut said = self.run.said();
            if said.at.elapsed() < PROGRESS_EVERY {
                return Ok(());
            }
            said.at = Instant::now();
        }
        self.shared.tell(RunEvent::Came { job: self.run.lease.job, progress: &progress });
        let text = progress.to_text();
        let (worker, lease) = (self.shared.worker, self.run.lease.clone());
        self.fenced(move |tx| Ok(running::progress(tx, worker, &lease, &text)?.then_some(()))).await
    }

    /// Writes a checkpoint: a durable mark of what is done, so that a later run of the stage need not do it again.
    /// An error says that the run should stop: its lease is gone.
    pub async fn checkpoint(&self, key: impl Into<String>, value: impl Into<String>) -> Result<()> {
        let (key, value) = (key.into(), value.into());
        let (worker, lease) = (self.shared.worker, self.run.lease.clone());
        self.fenced(move |tx| {
            let now = tx.now();
            let kept = running::checkpoint(tx, now, worker, &lease, &key, &value)?;
            Ok(kept.then_some(()))
        })
        .await
    }

    /// As [`Context::checkpoint`] within [`Context::write`], together with what else is written.
    pub fn checkpoint_in(&self, tx: &mut Tx<'_>, key: &str, value: &str) -> Result<()> {
        let now = tx.now();
        running::mark(tx, now, self.run.lease.job, self.run.lease.stage, key, value)
    }

    /// Writes what the run has found out so far, if the job is still its own (I4). An error says
    /// that the run should stop.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (worker, lease) = (self.shared.worker, self.run.lease.clone());
        self.fenced(move |tx| match running::find(tx, worker, &lease)? {
            Some(_) => work(tx).map(Some),
            None => Ok(None),
        })
        .await
    }

    /// Returns the checkpoints of earlier runs of this stage.
    pub async fn checkpoints(&self) -> Result<HashMap<String, String>> {
        let (job, stage) = (self.run.lease.job, self.run.lease.stage);
        let marks = self.shared.db.read(move |tx| running::checkpoints(tx, job, stage)).await?;
        Ok(marks.into_iter().collect())
    }

    /// The job's state as the nearest stage before this one left it; empty if none did. A stage
    /// changes it with [`crate::Handover::state`].
    pub async fn state(&self) -> Result<JobState> {
        let (job, stage) = (self.run.lease.job, self.run.lease.stage);
        self.shared.db.read(move |tx| state::before(tx, job, stage)).await
    }

    /// Reports an error while going on, to clean up: the job shows as running with the error.
    pub async fn error_seen(&self, error: JobError) -> Result<()> {
        let (worker, who, lease) =
            (self.shared.worker, self.shared.who.clone(), self.run.lease.clone());
        let catalog = self.shared.catalog.borrow().clone();
        self.fenced(move |tx| {
            let now = tx.now();
            let seen = running::error_seen(tx, now, &catalog, worker, &who, &lease, &error)?;
            Ok(seen.then_some(()))
        })
        .await
    }

    /// Has `work` written in the same transaction as the run's outcome.
    pub fn record(&self, work: impl Fn(&mut Tx<'_>) -> Result<()> + Send + Sync + 'static) {
        self.run.said().records.push(Arc::new(work));
    }

    /// Passes on what the run knows to the run of the next stage, if that follows in this process.
    /// It must be what the next run would find in the database: what is recorded, and no more.
    pub fn carry_over(&self, known: Carryover) {
        self.run.said().carryover = known;
    }

    pub(crate) fn take_carryover(&self) -> Carryover {
        std::mem::take(&mut self.run.said().carryover)
    }

    /// Returns everything to be recorded, as one.
    pub(crate) fn take_records(&self) -> Option<Records> {
        let all = std::mem::take(&mut self.run.said().records);
        match all.len() {
            0 => None,
            _ => Some(Arc::new(move |tx: &mut Tx<'_>| all.iter().try_for_each(|one| one(tx)))),
        }
    }

    /// `None` means that the lease is gone.
    async fn fenced<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> Result<Option<T>> + Send + 'static,
    ) -> Result<T> {
        let done = self.shared.db.write_in(Lane::Urgent, work).await?;
        done.ok_or(Error::LeaseLost(self.shared.worker))
    }
}

/// The runs under way in this process, and how to tell each to stop.
#[derive(Default, Clone)]
pub(crate) struct Running {
    runs: Arc<Mutex<Runs>>,
}

#[derive(Default)]
struct Runs {
    by_token: HashMap<i64, Arc<Run>>,
    /// Set when the process stops, for runs that begin after that.
    shutdown: bool,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, lease: Lease) -> Arc<Run> {
        let mut runs = self.lock();
        let first = if runs.shutdown { Stop::Shutdown } else { Stop::No };
        let token = lease.token;
        let run = Arc::new(Run::new(lease, first));
        runs.by_token.insert(token, run.clone());
        run
    }

    /// Tells those that still listen that the run is over.
    pub fn end(&self, token: i64) {
        let ended = self.lock().by_token.remove(&token);
        if let Some(run) = ended
            && run.why_stop() == Stop::No
        {
            run.stop(Stop::LeaseLost);
        }
    }

    pub fn stop(&self, token: i64, why: Stop) {
        if let Some(run) = self.lock().by_token.get(&token) {
            run.stop(why);
        }
    }

    pub fn stop_all(&self, why: Stop) {
        let mut runs = self.lock();
        runs.shutdown |= why == Stop::Shutdown;
        runs.by_token.values().for_each(|run| run.stop(why));
    }

    pub fn tokens(&self) -> Vec<i64> {
        self.lock().by_token.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(token: i64) -> Lease {
        Lease {
            job: crate::JobId::new(1),
            lock: "a".to_string(),
            token,
            batch: None,
            stage: crate::StageId::new(1),
            probe: false,
        }
    }

    #[test]
    fn a_run_that_begins_while_the_process_stops_is_told() {
        let running = Running::default();
        let before = running.begin(lease(1));
        running.stop_all(Stop::LeaseLost);
        let between = running.begin(lease(2));
        running.stop_all(Stop::Shutdown);
        let after = running.begin(lease(3));
        assert_eq!(before.why_stop(), Stop::Shutdown);
        assert_eq!(between.why_stop(), Stop::Shutdown);
        assert_eq!(after.why_stop(), Stop::Shutdown);
        assert_eq!(running.tokens().len(), 3);
    }

    #[test]
    fn whoever_outlives_its_run_is_told_that_it_is_over() {
        let running = Running::default();
        let run = running.begin(lease(1));
        running.end(1);
        assert_eq!(run.why_stop(), Stop::LeaseLost);
        assert!(running.tokens().is_empty());
    }
}
