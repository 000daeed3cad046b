//! How fast a server has to send: one that crawls keeps others waiting for the place its download
//! has.

use super::error;
use crate::Result;
use std::future::Future;
use std::time::{Duration, Instant};
use url::Url;

/// Watches one download. Only time that is spent waiting for the server counts, through all
/// connections that the download makes.
#[derive(Debug)]
pub(super) struct Meter {
    /// The window, and the fewest bytes that have to arrive in it; None if any rate will do.
    least: Option<(Duration, u64)>,
    waited: Duration,
    bytes: u64,
}

impl Meter {
    /// A rate of 0 bytes per second is any rate.
    pub(super) fn new(bytes_per_second: u64, window: Duration) -> Meter {
        let bytes = bytes_per_second.saturating_mul(window.as_secs());
        let least = (bytes > 0).then_some((window, bytes));
        Meter { least, waited: Duration::ZERO, bytes: 0 }
    }

    /// For requests whose answer has no body.
    pub(super) fn off() -> Meter {
        Meter::new(0, Duration::ZERO)
    }

    pub(super) fn arrived(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Counts a pause that the server made necessary.
    pub(super) fn paused(&mut self, time: Duration) {
        self.waited += time;
    }

    /// Waits for the server, until it has been too slow for a whole window.
    pub(super) async fn watch<T>(
        &mut self,
        url: &Url,
        wait: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some((window, least)) = self.least else { return wait.await };
        let mut wait = std::pin::pin!(wait);
        loop {
            let began = Instant::now();
            let left = window.saturating_sub(self.waited);
            let done = tokio::time::timeout(left, &mut wait).await;
            self.waited += began.elapsed();
            match done {
                Ok(done) => return done,
                // A server that sends nothing at all meets the timeouts, after which another
                // connection may do better.
                Err(_) if self.bytes > 0 && self.bytes < least => {
                    return Err(error::slow(url, self.bytes, self.waited));
                }
                Err(_) => (self.waited, self.bytes) = (Duration::ZERO, 0),
            }
        }
    }
}
