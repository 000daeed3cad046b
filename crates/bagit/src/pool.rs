//! A few threads that take work from one queue.

use crate::error::Error;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tasks that may wait for a worker.
const WAITING_MAX: usize = 2048;
/// Tasks that a worker takes at once when there are many.
const TAKEN_MAX: usize = 32;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is shared here is whole between any two statements that could panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Waiting<T> {
    tasks: VecDeque<T>,
    closed: bool,
    failure: Option<Error>,
}

/// Tasks that wait for workers. Workers take helpings while there is much, and one task at a time
/// towards the end, so that none is left with a long rest.
struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    filled: Condvar,
    emptied: Condvar,
}

impl<T> Queue<T> {
    /// Adds a task; false when a worker has failed and no more are wanted.
    fn put(&self, task: T) -> bool {
        let full = |w: &mut Waiting<T>| w.tasks.len() >= WAITING_MAX && w.failure.is_none();
        let guard = lock(&self.waiting);
        let mut waiting =
            self.emptied.wait_while(guard, full).unwrap_or_else(PoisonError::into_inner);
        waiting.tasks.push_back(task);
        self.filled.notify_one();
        waiting.failure.is_none()
    }

    fn take(&self, workers: usize, into: &mut Vec<T>) {
        let idle = |w: &mut Waiting<T>| w.tasks.is_empty() && !w.closed && w.failure.is_none();
        let guard = lock(&self.waiting);
        let mut waiting =
            self.filled.wait_while(guard, idle).unwrap_or_else(PoisonError::into_inner);
        if waiting.failure.is_some() {
            return;
        }
        let many = (waiting.tasks.len() / (2 * workers)).clamp(1, TAKEN_MAX);
        let many = many.min(waiting.tasks.len());
        into.extend(waiting.tasks.drain(..many));
        self.emptied.notify_one();
    }

    fn close(&self) {
        lock(&self.waiting).closed = true;
        self.filled.notify_all();
    }

    fn fail(&self, error: Error) {
        lock(&self.waiting).failure.get_or_insert(error);
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}

/// Closes the queue also when the producer panics, so that the workers end.
struct Closing<'a, T>(&'a Queue<T>);

impl<T> Drop for Closing<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `produce`, which puts tasks, while workers do them. Every worker has a buffer of
/// `buffer_bytes`. The first failure ends all.
pub(crate) fn run<T: Send>(
    workers: usize,
    buffer_bytes: usize,
    work: impl Fn(T, &mut [u8]) -> Result<(), Error> + Sync,
    produce: impl FnOnce(&mut dyn FnMut(T) -> bool) -> Result<(), Error>,
) -> Result<(), Error> {
    let workers = workers.clamp(1, 256);
    let queue = Queue {
        waiting: Mutex::new(Waiting { tasks: VecDeque::new(), closed: false, failure: None }),
        filled: Condvar::new(),
        emptied: Condvar::new(),
    };
    let serve = || {
        let mut buffer = vec![0; buffer_bytes];
        let mut tasks = Vec::new();
        loop {
            queue.take(workers, &mut tasks);
            if tasks.is_empty() {
                return;
            }
            for task in tasks.drain(..) {
                if let Err(error) = work(task, &mut buffer) {
                    return queue.fail(error);
                }
            }
        }
    };
    let produced = std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(serve);
        }
        let _closing = Closing(&queue);
        produce(&mut |task| queue.put(task))
    });
    let failure = lock(&queue.waiting).failure.take();
    failure.map_or(produced, Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_task_is_done_once() {
        let sum = AtomicU64::new(0);
        let work = |n: u64, _: &mut [u8]| {
            sum.fetch_add(n, Ordering::Relaxed);
            Ok(())
        };
        run(3, 0, work, |put| {
            assert!((0..10_000).all(&mut *put));
            Ok(())
        })
        .unwrap();
        assert_eq!(sum.into_inner(), 9_999 * 10_000 / 2);
    }

    #[test]
    fn a_failure_ends_the_producer_too() {
        let result = run(
            2,
            0,
            |_: u64, _| Err(Error::Stopped),
            |put| {
                while put(1) {}
                Ok(())
            },
        );
        assert!(matches!(result, Err(Error::Stopped)));
    }
}
