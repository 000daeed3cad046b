//! Outcomes on their way to the database: gathered while a commit is under way, and sent together
//! in the next one.

use crate::catalog::Catalog;
use crate::error::Error;
use crate::job::{Outcome, Settled, Settlement};
use crate::rules::settle::settle;
use crate::runtime::lease::Fence;
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

    pub fn summary(&self) -> super::Summary {
        super::Summary {
            runs: self.runs(),
            succeeded: self.succeeded.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}

/// What settling needs of the worker; not all of it, or this task would keep its own senders alive.
pub(crate) struct Settler {
    pub db: Db,
    pub worker: i64,
    pub who: String,
    pub catalog: watch::Receiver<Catalog>,
    pub fence: Fence,
    pub counters: Counters,
}

/// Settles until every sender is gone.
pub(crate) async fn run(settler: Settler, mut finished: mpsc::Receiver<Settlement>) {
    let Settler { db, worker, who, catalog, fence, counters } = settler;
    let mut waiting = Vec::with_capacity(TOGETHER_MAX);
    while finished.recv_many(&mut waiting, TOGETHER_MAX).await > 0 {
        let items: Arc<[Settlement]> = waiting.drain(..).collect();
        let mut pause = Duration::from_millis(50);
        loop {
            let (mine, who, catalog) = (items.clone(), who.clone(), catalog.borrow().clone());
            let settled: Result<Vec<Settled>, Error> = db
                .write_in(Lane::Urgent, move |tx| {
                    settle(tx, tx.now(), &catalog, worker, &who, &mine)
                })
                .await;
            match settled {
                Ok(answers) => {
                    report(&items, &answers, &counters);
                    break;
                }
                Err(error) if fence.is_lost() => {
                    tracing::warn!(worker, %error, count = items.len(), "outcomes were dropped: the lease is gone, and the jobs run again");
                    break;
                }
                Err(error) => {
                    // Nothing was done; the runs are over, so their outcomes wait here until the
                    // database takes them or others take the jobs.
                    tracing::warn!(worker, %error, count = items.len(), "outcomes could not be settled; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
            }
        }
    }
}

fn report(finished: &[Settlement], answers: &[Settled], counters: &Counters) {
    for (one, answer) in finished.iter().zip(answers) {
        let (job, token) = (one.lease.job, one.lease.token);
        match answer {
            Settled::Stale => {
                tracing::warn!(job, token, "a stale outcome was refused: the job is someone else's")
            }
            Settled::Now(_) => counters.count(&one.outcome),
        }
    }
}
