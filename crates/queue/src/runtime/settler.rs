//! Outcomes on their way to the database: gathered while a commit is under way, and sent together
//! in the next one.

use crate::catalog::Catalog;
use crate::codes::Status;
use crate::error::Error;
use crate::id::WorkerId;
use crate::job::{Claimed, Outcome, Settled, Settlement};
use crate::rules::moving::FreeSlots;
use crate::rules::settle::settle_and_carry;
use crate::runtime::carryovers::Carryovers;
use crate::runtime::lease::Fence;
use crate::runtime::observer::{Observer, RunEvent};
use crate::runtime::{quietly, slots};
use db::{Db, Lane};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Outcomes that go in one transaction.
const TOGETHER_MAX: usize = 1000;

#[derive(Clone, Default)]
pub(crate) struct Counters {
    runs: Arc<AtomicU64>,
    succeeded: Arc<AtomicU64>,
    errors: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl Counters {
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    fn count(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Success(_) | Outcome::Skip(_) => {
                self.succeeded.fetch_add(1, Ordering::Relaxed)
            }
            Outcome::Transient(_) | Outcome::Permanent(_) => {
                self.errors.fetch_add(1, Ordering::Relaxed)
            }
            Outcome::GivenBack => return,
            _ => 0,
        };
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn summary(&self) -> super::Summary {
        super::Summary {
            runs: self.runs(),
            succeeded: self.succeeded.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

/// The parts of the worker that settling needs. All of it would keep the task's own senders alive.
pub(crate) struct Settler {
    pub db: Db,
    /// The id of the worker.
    pub worker: WorkerId,
    /// Who acts or acted.
    pub who: String,
    pub catalog: watch::Receiver<Catalog>,
    pub fence: Fence,
    pub places: Arc<slots::Slots>,
    pub kept: Arc<Carryovers>,
    pub counters: Counters,
    pub observer: Option<Observer>,
}

/// Settles until every sender is gone.
pub(crate) async fn run(settler: Settler, mut finished: mpsc::Receiver<Settlement>) {
    let mut waiting = Vec::with_capacity(TOGETHER_MAX);
    while !waiting.is_empty() || finished.recv_many(&mut waiting, TOGETHER_MAX).await > 0 {
        let items: Arc<[Settlement]> = waiting.drain(..).collect();
        // Jobs carried on to a stage that has stopped since were never begun.
        let left = settler.settle(items).await;
        waiting.extend(left.into_iter().map(|job| Settlement::new(job.lease, Outcome::GivenBack)));
    }
}

impl Settler {
    /// Settles until the database has taken it; returns jobs that this process does not run any more.
    async fn settle(&self, items: Arc<[Settlement]>) -> Vec<Claimed> {
        let mut pause = Duration::from_millis(50);
        loop {
            let catalog = self.catalog.borrow().clone();
            self.keep(&items, &catalog);
            let lent = self.places.lend(items.iter().filter_map(|item| item.next_stage(&catalog)));
            let (mine, who, worker, places) =
                (items.clone(), self.who.clone(), self.worker, lent.clone());
            let settled: Result<Vec<Settled>, Error> = self
                .db
                .write_in(Lane::Urgent, move |tx| {
                    settle_and_carry(tx, tx.now(), &catalog, worker, &who, &mine, &places)
                })
                .await;
            let error = match settled {
                Ok(answers) => {
                    self.report(&items, &answers);
                    self.forget(&items, &answers);
                    return self.carry_over(answers, lent);
                }
                Err(error) => error,
            };
            if matches!(error, Error::Db(db::Error::UnknownOutcome(_))) && !lent.is_empty() {
                // Jobs may have been carried on that this process does not know of. They are queued again
                // when the lease runs out, and this process goes on under another.
                self.fence.lose();
            }
            self.places.unlend(lent);
            if self.fence.is_lost() {
                tracing::warn!(worker = worker.number(), %error, count = items.len(), "outcomes were dropped: the lease is gone, and the jobs run again");
                return Vec::new();
            }
            // Nothing was done; the runs are over, so their outcomes wait here until the database
            // takes them or others take the jobs.
            quietly!(error, worker = worker.number(), %error, count = items.len(), "outcomes could not be settled; trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }

    /// Keeps what is passed on to next runs: before they are to be had, for a claim may be quicker
    /// than the answer here. Who gets it must come right after the run it is of.
    fn keep(&self, items: &[Settlement], catalog: &Catalog) {
        for item in items.iter().filter(|item| item.next_stage(catalog).is_some()) {
            self.kept.put(&item.lease, &item.carryover);
        }
    }

    /// Of those that do not wait for their next run after all.
    fn forget(&self, items: &[Settlement], answers: &[Settled]) {
        for (item, answer) in items.iter().zip(answers) {
            if !matches!(answer, Settled::Now(Status::Queued)) {
                self.kept.forget(&item.lease);
            }
        }
    }

    /// Hands jobs that were carried on to their next stages.
    fn carry_over(&self, answers: Vec<Settled>, mut lent: FreeSlots) -> Vec<Claimed> {
        let mut left = Vec::new();
        for answer in answers {
            let Settled::Carried(job) = answer else { continue };
            let stage = job.stage;
            match self.places.deliver(*job) {
                None => _ = lent.entry(stage).and_modify(|count| *count -= 1),
                job => left.extend(job),
            }
        }
        self.places.unlend(lent);
        left
    }

    fn report(&self, finished: &[Settlement], answers: &[Settled]) {
        for (one, answer) in finished.iter().zip(answers) {
            let (job, token) = (one.lease.job, one.lease.token);
            match answer {
                Settled::Stale => {
                    tracing::warn!(
                        job = job.number(),
                        token,
                        "a stale outcome was refused: the job is someone else's"
                    );
                    continue;
                }
                Settled::Now(Status::Failed) => {
                    self.counters.count(&one.outcome);
                    self.counters.count_failed();
                }
                Settled::Now(_) | Settled::Carried(_) => self.counters.count(&one.outcome),
            }
            if let (Settled::Now(status), Some(observer)) = (answer, &self.observer) {
                let error = match &one.outcome {
                    Outcome::Transient(error) | Outcome::Permanent(error) => Some(error),
                    _ => None,
                };
                let stage = one.lease.stage;
                observer.tell(RunEvent::Settled { job, stage, status: *status, error });
            }
        }
    }
}
