//! Flushing the whole file system, once for everybody who waits for it.

use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// One flush: unset until it has ended.
type Round = Arc<OnceLock<Result<(), Errno>>>;

/// Lets callers that come while a flush is under way share the next one: that one begins after
/// all of them have written, so it is good for each.
#[derive(Debug, Default)]
pub(super) struct Flusher {
    rounds: Mutex<Rounds>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Rounds {
    /// The flush that newcomers wait for.
    next: Round,
    running: bool,
}

impl Flusher {
    /// Makes everything durable that was written to this file system before.
    pub(super) fn flush(&self, root: &OwnedFd) -> Result<(), Errno> {
        self.share(|| sync(root))
    }

    fn share(&self, sync: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = rounds.next.clone();
        loop {
            if let Some(result) = mine.get() {
                return *result;
            }
            if !rounds.running {
                rounds.running = true;
                rounds.next = Round::default();
                drop(rounds);
                let result = sync();
                // Only this thread has taken the round out of `next`, so nobody has set it.
                let result = *mine.get_or_init(|| result);
                rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
                rounds.running = false;
                drop(rounds);
                self.ended.notify_all();
                return result;
            }
            rounds = self.ended.wait(rounds).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(target_os = "linux")]
fn sync(root: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::syncfs(root)
}

#[cfg(not(target_os = "linux"))]
fn sync(_: &OwnedFd) -> Result<(), Errno> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    #[test]
    fn whoever_comes_during_a_flush_shares_the_next_one_and_its_outcome() {
        let flusher = Arc::new(Flusher::default());
        let count = Arc::new(AtomicU64::new(0));
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let leader = flusher.clone();
            let first = scope.spawn(move || {
                leader.share(|| {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    Ok(())
                })
            });
            has_begun.recv().unwrap();
            let late: Vec<_> = (0..8)
                .map(|_| {
                    let (flusher, count) = (flusher.clone(), count.clone());
                    scope.spawn(move || {
                        flusher.share(|| {
                            count.fetch_add(1, Ordering::SeqCst);
                            Err(Errno::IO)
                        })
                    })
                })
                .collect();
            // All eight hold the round they wait for, beside the flusher and this line.
            while Arc::strong_count(&flusher.rounds.lock().unwrap().next) < 9 {
                std::thread::yield_now();
            }
            go_on.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(()));
            for late in late {
                assert_eq!(late.join().unwrap(), Err(Errno::IO));
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
