//! Closures that wait for a database thread, and their answers.

use crate::error::Error;
use crate::tx::Tx;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A closure with its types forgotten, so that one thread can run closures of every kind.
pub(crate) trait Operation: Send {
    /// Runs the closure and keeps its result; true if it succeeded. May be called again.
    fn run(&mut self, tx: &mut Tx<'_>) -> bool;
    /// Sends the result, or, if the transaction itself failed, that error.
    fn answer(self: Box<Self>, verdict: Result<(), Error>);
    /// Returns false once the caller has dropped the future of the answer.
    fn wanted(&self) -> bool;
    fn asked_at(&self) -> Instant;
    fn reads(&self) -> bool;
}

struct Closure<T, E, F> {
    work: F,
    result: Option<Result<T, E>>,
    answer: oneshot::Sender<Result<T, E>>,
    asked_at: Instant,
    reads: bool,
}

impl<T, E, F> Operation for Closure<T, E, F>
where
    T: Send,
    E: From<Error> + Send,
    F: Fn(&mut Tx<'_>) -> Result<T, E> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> bool {
        // The closure's own state cannot be seen half-changed: its transaction is rolled back.
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(tx)))
            .unwrap_or_else(|panic| Err(Error::Panic(panic_text(&*panic)).into()));
        let good = result.is_ok();
        self.result = Some(result);
        good
    }

    fn answer(self: Box<Self>, verdict: Result<(), Error>) {
        let result = match (verdict, self.result) {
            (Err(error), _) => Err(error.into()),
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(Error::Closed.into()),
        };
        // A caller that is gone is fine: what the closure did stands, as said at `Db::write`.
        let _ = self.answer.send(result);
    }

    fn wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn asked_at(&self) -> Instant {
        self.asked_at
    }

    fn reads(&self) -> bool {
        self.reads
    }
}

pub(crate) fn operation<T, E, F>(
    work: F,
    reads: bool,
) -> (Box<dyn Operation>, oneshot::Receiver<Result<T, E>>)
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
    F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
{
    let (answer, receiver) = oneshot::channel();
    (Box::new(Closure { work, result: None, answer, asked_at: Instant::now(), reads }), receiver)
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string())
}

/// The priority of a write: lease renewals and settlements do not wait behind bulk work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Runs before normal writes, and is never refused as busy.
    Urgent,
    /// Runs in the order of arrival.
    Normal,
}

/// How long the writer spins before it parks.
const SPIN: Duration = Duration::from_micros(100);

/// Operations waiting for a database thread, at most `limit` of them.
///
/// The thread that became idle last is woken first. If one thread suffices, it does everything, and its
/// connection has the statements prepared.
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    limit: usize,
}

#[derive(Default)]
struct InboxState {
    urgent: VecDeque<Box<dyn Operation>>,
    normal: VecDeque<Box<dyn Operation>>,
    /// Parked threads, the one that became idle last at the end.
    idle: Vec<Thread>,
    closed: bool,
}

impl InboxState {
    fn pop(&mut self) -> Option<Box<dyn Operation>> {
        self.urgent.pop_front().or_else(|| self.normal.pop_front())
    }
}

impl Inbox {
    pub fn new(limit: usize) -> Inbox {
        Inbox { state: Mutex::default(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        // Nothing panics while the lock is held, so a poisoned lock still guards whole data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, operation: Box<dyn Operation>, lane: Lane) {
        let mut state = self.lock();
        let waiting = state.urgent.len() + state.normal.len();
        let refusal = if state.closed {
            Some(Error::Closed)
        } else if waiting >= self.limit && lane == Lane::Normal {
            Some(Error::Busy(format!("{waiting} operations wait in this process already")))
        } else {
            None
        };
        match (refusal, lane) {
            (Some(error), _) => {
                drop(state);
                operation.answer(Err(error));
                return;
            }
            (None, Lane::Urgent) => state.urgent.push_back(operation),
            (None, Lane::Normal) => state.normal.push_back(operation),
        }
        let idle = state.idle.pop();
        drop(state);
        if let Some(thread) = idle {
            thread.unpark();
        }
    }

    /// Waits for an operation; None once the inbox is closed and empty.
    pub fn take(&self) -> Option<Box<dyn Operation>> {
        loop {
            let mut state = self.lock();
            self.leave_idle(&mut state);
            if let Some(operation) = state.pop() {
                return Some(operation);
            }
            if state.closed {
                return None;
            }
            state.idle.push(thread::current());
            drop(state);
            // Returns at once if it was woken since.
            thread::park();
        }
    }

    /// A thread that woke by itself is still in the list of idle ones.
    fn leave_idle(&self, state: &mut InboxState) {
        let me = thread::current().id();
        state.idle.retain(|thread| thread.id() != me);
    }

    /// As [`Inbox::take`], and spins before parking: a caller that was just answered often comes back at
    /// once, and waking a thread takes longer than that.
    pub fn take_spinning(&self) -> Option<Box<dyn Operation>> {
        let began = Instant::now();
        while began.elapsed() < SPIN {
            if let Some(operation) = self.take_now() {
                return Some(operation);
            }
            thread::yield_now();
        }
        self.take()
    }

    /// An operation that is already waiting.
    pub fn take_now(&self) -> Option<Box<dyn Operation>> {
        self.lock().pop()
    }

    /// Removes those that have waited longer than `timeout`: their callers get an answer even
    /// while the database gives none.
    pub fn take_expired(&self, timeout: Duration) -> Vec<Box<dyn Operation>> {
        let mut state = self.lock();
        let mut expired = Vec::new();
        let state = &mut *state;
        for queue in [&mut state.urgent, &mut state.normal] {
            while queue.front().is_some_and(|op| op.asked_at().elapsed() > timeout) {
                expired.extend(queue.pop_front());
            }
        }
        expired
    }

    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle.drain(..).for_each(|thread| thread.unpark());
    }
}
