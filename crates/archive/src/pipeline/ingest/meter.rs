//! Counts the bytes of a run, and says once a second how far it has come.

use queue::Progress;
use queue::runtime::Context;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often it is said at most.
const EVERY: Duration = Duration::from_millis(1050);

/// The bytes that one run has come past. Clones count the same.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// What is being done, and how many bytes that takes if it is known; `None` before anything is.
    what: Mutex<Option<(&'static str, Option<u64>)>>,
    done: AtomicU64,
}

impl Meter {
    /// Something begins; `total` is how many bytes it takes, if that is known.
    pub fn begin(&self, what: &'static str, total: Option<u64>) {
        *self.0.what.lock().unwrap_or_else(PoisonError::into_inner) = Some((what, total));
        self.0.done.store(0, Ordering::Relaxed);
    }

    /// The total is known now.
    pub fn expect(&self, total: u64) {
        if let Some(what) = &mut *self.0.what.lock().unwrap_or_else(PoisonError::into_inner) {
            what.1 = Some(total);
        }
    }

    pub fn add(&self, bytes: u64) {
        self.0.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes back what has to be done again.
    pub fn take_back(&self, bytes: u64) {
        let less = |done: u64| Some(done.saturating_sub(bytes));
        let _ = self.0.done.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Hears how long a file is by now, again and again; adds what came to it since.
    pub fn follow(&self) -> impl Fn(u64) + Send + Sync + use<> {
        let (meter, before) = (self.clone(), AtomicU64::new(0));
        move |length| {
            let before = before.swap(length, Ordering::Relaxed);
            match length.checked_sub(before) {
                Some(more) => meter.add(more),
                // A server that sends it from the beginning again.
                None => meter.take_back(before - length),
            }
        }
    }

    fn now(&self) -> Option<Progress> {
        let what = *self.0.what.lock().unwrap_or_else(PoisonError::into_inner);
        what.map(|(what, total)| Progress::bytes(what, self.0.done.load(Ordering::Relaxed), total))
    }

    /// Does the work, and reports its progress. A report that cannot be written now is written later: no
    /// work fails for it.
    pub async fn during<T>(&self, context: &Context, work: impl Future<Output = T>) -> T {
        let telling = async {
            let mut told = None;
            loop {
                tokio::time::sleep(EVERY).await;
                let now = self.now();
                if let Some(progress) = now.clone().filter(|_| now != told)
                    && context.progress(progress).await.is_ok()
                {
                    told = now;
                }
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            never = telling => never,
        }
    }
}

/// Bytes as a file's row has them.
pub fn bytes(size: Option<i64>) -> u64 {
    u64::try_from(size.unwrap_or(0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_grow_side_by_side_are_summed_up() {
        let meter = Meter::default();
        assert_eq!(meter.now(), None);
        meter.begin("fetching", None);
        let (one, other) = (meter.follow(), meter.follow());
        one(10);
        other(5);
        one(30);
        assert_eq!(meter.now(), Some(Progress::bytes("fetching", 35, None)));
        meter.expect(100);
        // It is sent from its beginning again.
        one(0);
        one(8);
        assert_eq!(meter.now(), Some(Progress::bytes("fetching", 13, Some(100))));
        meter.begin("reading", Some(7));
        assert_eq!(meter.now(), Some(Progress::bytes("reading", 0, Some(7))));
    }
}
