//! Logs the start and the end of an outage once each, however many threads wait for the database.

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// The outage that all threads of one database share.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    since: Mutex<Option<(SystemTime, Instant)>>,
}

impl Outage {
    /// Records that the database cannot be connected to.
    pub fn begins(&self, database: &str, why: &str) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none() {
            let now = SystemTime::now();
            *since = Some((now, Instant::now()));
            let at = shown(now);
            tracing::warn!(database, why, "waiting for the database since {at}");
        }
    }

    /// Records that a connection was established.
    pub fn ends(&self, database: &str) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, began)) = since.take() {
            let seconds = began.elapsed().as_secs_f64();
            tracing::warn!(database, "the database is back after {seconds:.0} s; work goes on");
        }
    }

    /// Returns since when there is an outage.
    pub fn since(&self) -> Option<SystemTime> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).map(|(at, _)| at)
    }
}

/// The time of day as `10:02:03Z`.
fn shown(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_outage_has_one_beginning() {
        let outage = Outage::default();
        assert_eq!(outage.since(), None);
        outage.begins("db", "refused");
        let since = outage.since();
        assert!(since.is_some());
        outage.begins("db", "refused");
        assert_eq!(outage.since(), since);
        outage.ends("db");
        assert_eq!(outage.since(), None);
    }

    #[test]
    fn times_of_day_are_utc() {
        assert_eq!(
            shown(SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * 3 + 36_123)),
            "10:02:03Z"
        );
    }
}
