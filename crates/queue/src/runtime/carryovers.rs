//! A cache of what runs passed on to the next run of their job: a claim in the same process need not
//! read it again. An entry is valid only if no other worker has had the job since, which the token of
//! its last run proves.

use crate::job::{Carryover, Claimed, Lease};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// People may change what jobs under way go by, so an entry is read again after this time.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// The sizes of all entries, as the runs estimated them. Beyond it new entries are not kept: the jobs
/// that have waited longest are claimed first.
const BYTES_MAX: usize = 16 << 20;
/// What an entry takes beside what it holds.
const ENTRY_BYTES: usize = 256;

#[derive(Default)]
pub(crate) struct Carryovers {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_token: HashMap<i64, Entry>,
    /// In the order they came.
    ages: BTreeSet<(Instant, i64)>,
    bytes: usize,
}

struct Entry {
    since: Instant,
    carryover: Carryover,
    bytes: usize,
}

impl Carryovers {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what the run under a lease passed on.
    pub fn put(&self, lease: &Lease, carryover: &Carryover) {
        if let Some(bytes) = carryover.bytes {
            let bytes = bytes.saturating_add(ENTRY_BYTES);
            self.entries().put(Instant::now(), lease.token, carryover.clone(), bytes);
        }
    }

    pub fn forget(&self, lease: &Lease) {
        self.entries().remove(lease.token);
    }

    /// What the run right before this claim passed on; nothing if it was not run here, or not
    /// lately.
    pub fn take(&self, job: &Claimed) -> Carryover {
        let Some(token) = job.token_before else { return Carryover::default() };
        self.entries().take(Instant::now(), token).unwrap_or_default()
    }
}

impl Entries {
    fn put(&mut self, now: Instant, token: i64, carryover: Carryover, bytes: usize) {
        self.remove(token);
        self.drop_old(now);
        if self.bytes.saturating_add(bytes) > BYTES_MAX {
            return;
        }
        self.bytes += bytes;
        self.ages.insert((now, token));
        self.by_token.insert(token, Entry { since: now, carryover, bytes });
    }

    fn take(&mut self, now: Instant, token: i64) -> Option<Carryover> {
        let entry = self.remove(token)?;
        (now.duration_since(entry.since) < KEPT_FOR).then_some(entry.carryover)
    }

    fn remove(&mut self, token: i64) -> Option<Entry> {
        let entry = self.by_token.remove(&token)?;
        self.bytes -= entry.bytes;
        self.ages.remove(&(entry.since, token));
        Some(entry)
    }

    fn drop_old(&mut self, now: Instant) {
        while let Some((since, token)) = self.ages.first().copied()
            && now.duration_since(since) >= KEPT_FOR
        {
            self.remove(token);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn carryover(what: i64) -> Carryover {
        Carryover::new(what).keep(0)
    }

    #[test]
    fn what_is_kept_is_had_once_and_not_for_long() {
        let mut entries = Entries::default();
        let began = Instant::now();
        entries.put(began, 1, carryover(10), 100);
        entries.put(began + Duration::from_secs(1), 2, carryover(20), 100);
        let later = began + KEPT_FOR;
        assert!(entries.take(later, 1).is_none(), "it is too old");
        assert_eq!(entries.take(later, 2).unwrap().get(), Some(&20_i64));
        assert!(entries.take(later, 2).is_none(), "it is had once");
        assert_eq!(entries.bytes, 0);
    }

    #[test]
    fn what_there_is_no_room_for_is_not_kept_and_old_ones_make_room() {
        let mut entries = Entries::default();
        let began = Instant::now();
        for token in 0..5 {
            entries.put(began, token, carryover(token), BYTES_MAX / 4);
        }
        assert_eq!((entries.by_token.len(), entries.bytes), (4, BYTES_MAX));
        assert!(entries.take(began, 4).is_none());
        entries.put(began + KEPT_FOR, 6, carryover(6), BYTES_MAX);
        assert_eq!((entries.by_token.len(), entries.ages.len()), (1, 1));
        entries.put(began + KEPT_FOR, 6, carryover(7), BYTES_MAX);
        assert_eq!(entries.take(began + KEPT_FOR, 6).unwrap().get(), Some(&7_i64), "the newest");
    }
}
