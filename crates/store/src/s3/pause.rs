//! How long to wait before trying again: longer each time, never the same for two, and together
//! when the store asks everybody to slow down.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const PAUSE_MAX: Duration = Duration::from_secs(20);
/// A server may ask for a pause, but not for one that looks like a hang.
const ASKED_MAX: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(super) struct Pauses {
    first: Duration,
    shared: Mutex<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// No request of this store starts before this.
    not_before: Instant,
    /// How often in a row the store asked to slow down, less what went well since.
    level: u32,
}

impl Pauses {
    pub(super) fn new(first: Duration) -> Pauses {
        let shared = Shared { not_before: Instant::now(), level: 0 };
        Pauses { first, shared: Mutex::new(shared) }
    }

    /// Waits while the store has asked to be left alone.
    pub(super) async fn wait(&self) {
        let until = self.lock().not_before;
        if until > Instant::now() {
            tokio::time::sleep_until(until).await;
            // Those who waited together do not all start in the same moment.
            tokio::time::sleep(random(self.first)).await;
        }
    }

    pub(super) fn succeeded(&self) {
        let mut shared = self.lock();
        shared.level = shared.level.saturating_sub(1);
    }

    /// The pause after the `tries`-th failure. A throttled one holds up all requests.
    pub(super) fn failed(&self, tries: u32, throttled: bool, asked: Option<Duration>) -> Duration {
        let asked = asked.unwrap_or_default().min(ASKED_MAX);
        if !throttled {
            return asked.max(random(self.longest(tries)));
        }
        let mut shared = self.lock();
        shared.level = (shared.level + 1).min(16);
        let pause = asked.max(random(self.longest(shared.level.max(tries))));
        shared.not_before = shared.not_before.max(Instant::now() + pause);
        pause
    }

    fn longest(&self, tries: u32) -> Duration {
        let factor = 1_u32 << tries.saturating_sub(1).min(16);
        self.first.saturating_mul(factor).min(PAUSE_MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Anything up to the longest pause: the spread matters more than the length.
fn random(longest: Duration) -> Duration {
    longest.mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_differ_and_end() {
        let pauses = Pauses::new(Duration::from_millis(100));
        let of = |tries| (0..200).map(|_| pauses.failed(tries, false, None)).collect::<Vec<_>>();
        assert!(of(1).iter().all(|pause| *pause <= Duration::from_millis(100)));
        assert!(of(4).iter().any(|pause| *pause > Duration::from_millis(300)));
        assert!(of(60).iter().all(|pause| *pause <= PAUSE_MAX));
        let mut distinct = of(10);
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 150);
        let asked = Duration::from_secs(3);
        assert!(pauses.failed(1, false, Some(asked)) >= asked);
    }

    #[tokio::test(start_paused = true)]
    async fn when_one_is_throttled_all_wait() {
        let pauses = Pauses::new(Duration::from_millis(100));
        let began = Instant::now();
        pauses.wait().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        pauses.failed(1, true, Some(Duration::from_secs(5)));
        pauses.wait().await;
        assert!(began.elapsed() >= Duration::from_secs(5));
    }
}
