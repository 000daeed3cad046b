//! How many connections there may be at once, to one host and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(super) struct Limits {
    per_host: usize,
    all: Arc<Semaphore>,
    /// Hosts that are connected to or waited for; others are forgotten.
    hosts: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

/// The right to one connection, given back when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _place: Place,
    _all: OwnedSemaphorePermit,
}

/// One host's share, which is forgotten with its last user.
#[derive(Debug)]
struct Place {
    host: String,
    hosts: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
    semaphore: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Limits {
    pub(super) fn new(per_host: usize, all: usize) -> Limits {
        Limits { per_host, all: Arc::new(Semaphore::new(all)), hosts: Arc::default() }
    }

    /// Waits for a connection to `host` to be allowed. Who waits for a host does not use up the
    /// connections of the others.
    pub(super) async fn permit(&self, host: &str) -> Permit {
        let semaphore = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Semaphore::new(self.per_host));
            hosts.entry(host.to_string()).or_insert_with(new).clone()
        };
        let mut place = Place {
            host: host.to_string(),
            hosts: self.hosts.clone(),
            semaphore: Some(semaphore.clone()),
            permit: None,
        };
        // Neither semaphore is ever closed, so waiting cannot fail; without a permit, one
        // connection more would be made, which is the lesser evil.
        place.permit = semaphore.acquire_owned().await.ok();
        loop {
            if let Ok(all) = self.all.clone().acquire_owned().await {
                return Permit { _place: place, _all: all };
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.semaphore.take());
        if hosts.get(&self.host).is_some_and(|semaphore| Arc::strong_count(semaphore) == 1) {
            hosts.remove(&self.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_busy_host_makes_only_its_own_downloads_wait() {
        let limits = Limits::new(2, 3);
        let (a1, _a2) = (limits.permit("a").await, limits.permit("a").await);
        assert!(limits.permit("a").now_or_never().is_none());
        let b1 = limits.permit("b").now_or_never().unwrap();
        assert!(limits.permit("c").now_or_never().is_none(), "three are three");
        drop(b1);
        drop(a1);
        assert!(limits.permit("a").now_or_never().is_some());
        assert_eq!(limits.hosts.lock().unwrap().len(), 1, "hosts nobody uses are forgotten");
    }
}
