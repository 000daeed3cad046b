//! How many requests are under way at once: fewer while the store asks to slow down, more again
//! while all goes well.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds the requests under way. Halved when the store throttles, and raised by one after as many
/// successes as there may be requests: what TCP does with a congested line.
#[derive(Debug)]
pub(super) struct Limit {
    semaphore: Arc<Semaphore>,
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    allowed: usize,
    /// Permits to be withdrawn once they are given back.
    owed: usize,
    successes: usize,
}

impl Limit {
    pub(super) fn new(max: usize) -> Limit {
        let max = max.max(1);
        let state = State { allowed: max, owed: 0, successes: 0 };
        Limit { semaphore: Arc::new(Semaphore::new(max)), max, state: Mutex::new(state) }
    }

    /// Waits for a place among the requests under way; `None` never happens, since the semaphore
    /// is never closed.
    pub(super) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.withdraw(&mut self.lock());
        self.semaphore.clone().acquire_owned().await.ok()
    }

    pub(super) fn succeeded(&self) {
        let mut state = self.lock();
        self.withdraw(&mut state);
        if state.allowed == self.max {
            return;
        }
        state.successes += 1;
        if state.successes < state.allowed {
            return;
        }
        state.successes = 0;
        state.allowed += 1;
        match state.owed {
            0 => self.semaphore.add_permits(1),
            _ => state.owed -= 1,
        }
    }

    pub(super) fn throttled(&self) {
        let mut state = self.lock();
        // Of many that are throttled in the same moment, the first ones say enough.
        if state.owed > 0 {
            return;
        }
        let fewer = (state.allowed / 2).max(1);
        state.owed += state.allowed - fewer;
        (state.allowed, state.successes) = (fewer, 0);
        self.withdraw(&mut state);
    }

    /// How many requests may be under way now.
    #[cfg(test)]
    fn allowed(&self) -> usize {
        self.lock().allowed
    }

    fn withdraw(&self, state: &mut State) {
        if state.owed > 0 {
            state.owed -= self.semaphore.forget_permits(state.owed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that several transfers share. Each has what it needs for one part without asking; what
/// it takes beyond that to be faster is granted from here, as much as there is.
#[derive(Debug)]
pub(super) struct SharedMemory(Arc<Semaphore>);

const UNIT_BYTES: u64 = 1024 * 1024;

/// Memory granted until this is dropped.
#[derive(Debug)]
pub(super) struct Grant {
    pub bytes: u64,
    _permit: Option<OwnedSemaphorePermit>,
}

impl SharedMemory {
    pub(super) fn new(bytes: u64) -> SharedMemory {
        let units = usize::try_from(bytes / UNIT_BYTES).unwrap_or(usize::MAX >> 4);
        SharedMemory(Arc::new(Semaphore::new(units)))
    }

    /// Grants up to so much, without waiting.
    pub(super) fn grant(&self, bytes: u64) -> Grant {
        let there = u32::try_from(self.0.available_permits()).unwrap_or(u32::MAX);
        let units = u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX).min(there);
        match self.0.clone().try_acquire_many_owned(units) {
            Ok(permit) => Grant { bytes: u64::from(units) * UNIT_BYTES, _permit: Some(permit) },
            // Somebody was quicker: it goes on with what it has.
            Err(_) => Grant { bytes: 0, _permit: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn throttling_halves_and_success_raises_by_one() {
        let limit = Limit::new(8);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(limit.acquire().await.unwrap());
        }
        limit.throttled();
        assert_eq!(limit.allowed(), 4);
        // The others of the same moment say nothing new.
        limit.throttled();
        assert_eq!(limit.allowed(), 4);
        held.clear();
        for _ in 0..4 {
            held.push(limit.acquire().await.unwrap());
        }
        assert_eq!(limit.semaphore.available_permits(), 0);
        (0..4).for_each(|_| limit.succeeded());
        assert_eq!((limit.allowed(), limit.semaphore.available_permits()), (5, 1));
        (0..100).for_each(|_| limit.succeeded());
        assert_eq!((limit.allowed(), limit.semaphore.available_permits()), (8, 4));
        (0..10).for_each(|_| limit.throttled());
        assert!(limit.allowed() >= 1);
    }

    #[test]
    fn memory_is_granted_as_far_as_there_is_some() {
        let memory = SharedMemory::new(10 * UNIT_BYTES);
        let first = memory.grant(7 * UNIT_BYTES);
        let second = memory.grant(7 * UNIT_BYTES);
        assert_eq!((first.bytes, second.bytes), (7 * UNIT_BYTES, 3 * UNIT_BYTES));
        assert_eq!(memory.grant(UNIT_BYTES).bytes, 0);
        drop(first);
        assert_eq!(memory.grant(UNIT_BYTES).bytes, UNIT_BYTES);
    }
}
