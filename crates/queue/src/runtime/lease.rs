//! The lease of this process: renewed in the background. It expires by a monotonic clock that was read
//! *before* the renewal was sent, so that this process gives it up no later than the others do.

use crate::error::{Error, Result};
use crate::rules::lease::{HeldLease, holdings, renew as renew_lease};
use crate::rules::operator::cancel::worker_topic;
use crate::runtime::context::Stop;
use crate::runtime::{Shared, micros, quietly};
use db::Lane;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until when the lease is good, as far as this process knows.
#[derive(Clone)]
pub(crate) struct Fence {
    state: Arc<Mutex<(Instant, bool)>>,
}

impl Fence {
    pub fn new(until: Instant) -> Fence {
        Fence { state: Arc::new(Mutex::new((until, false))) }
    }

    pub fn until(&self) -> Instant {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn extend(&self, until: Instant) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = until;
    }

    pub fn lose(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
    }

    /// True once the database said so; from then on the process holds nothing.
    pub fn is_lost(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// True while new work may be begun under the lease.
    pub fn is_good(&self) -> bool {
        let (until, lost) = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !lost && Instant::now() < until
    }
}

/// Renews the lease until it is lost.
pub(crate) async fn renew(shared: Arc<Shared>) {
    let every = shared.settings.lease / 3;
    let mut pause = every;
    loop {
        tokio::time::sleep(pause).await;
        let asked = Instant::now();
        let before = shared.running.tokens();
        let (worker, lease) = (shared.worker, micros(shared.settings.lease));
        let renewed: Result<Vec<HeldLease>> = shared
            .db
            .write_in(Lane::Urgent, move |tx| renew_lease(tx, tx.now(), worker, lease))
            .await;
        pause = match renewed {
            Ok(held) => {
                shared.fence.extend(asked + shared.settings.lease);
                compare(&shared, &before, &held);
                every
            }
            Err(Error::LeaseLost(_)) => {
                shared.fence.lose();
                shared.running.stop_all(Stop::LeaseLost);
                return;
            }
            Err(error) => {
                quietly!(error, worker = worker.number(), %error, "the lease could not be renewed; trying again");
                if Instant::now() > shared.fence.until() {
                    // Others may have taken the jobs by now; the runs must not go on.
                    shared.running.stop_all(Stop::LeaseLost);
                }
                (shared.settings.lease / 20).max(Duration::from_millis(50))
            }
        };
    }
}

/// Stops runs that were under way before the query and that the database does not list: other workers
/// have their jobs. Tells cancelled runs to stop.
fn compare(shared: &Shared, before: &[i64], held: &[HeldLease]) {
    for token in before.iter().filter(|token| !held.iter().any(|h| h.token == **token)) {
        shared.running.stop(*token, Stop::LeaseLost);
    }
    for holding in held.iter().filter(|h| h.cancel_requested) {
        shared.running.stop(holding.token, Stop::Cancelled);
    }
}

/// Listens for cancel requests.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let worker = shared.worker;
    let mut news = shared.db.subscribe(worker_topic(worker));
    while news.changed().await.is_ok() {
        match shared.db.read(move |tx| holdings(tx, worker)).await {
            Ok(held) => compare(&shared, &[], &held),
            Err(error) => {
                tracing::debug!(%error, "cancel requests could not be read; the next renewal brings them")
            }
        }
    }
}
