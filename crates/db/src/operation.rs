//! A closure on its way to a database thread, and its answer on the way back.

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
    /// False once nobody waits for the answer any more.
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
        // Nobody waiting is fine: what the closure did stands, as said at `Db::write`.
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

/// How soon an operation is taken: lease renewals and settlements do not wait behind bulk work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Urgent,
    Normal,
}

/// How long a thread that has just done something looks around before it waits to be woken.
const ALERT: Duration = Duration::from_micros(100);

/// Operations waiting for a database thread, at most `limit` of them.
///
/// The thread that fell idle last is woken first. Where one suffices, one does everything, and its
/// connection has its statements prepared; the others are for when there is more to do.
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    limit: usize,
}

#[derive(Default)]
struct InboxState {
    urgent: VecDeque<Box<dyn Operation>>,
    normal: VecDeque<Box<dyn Operation>>,
    /// Threads that wait for one, the one that fell idle last at the end.
    idle: Vec<Thread>,
    /// One is about to come.
    expected: bool,
    closed: bool,
}

/// What a database thread waits for.
pub(crate) enum Arrival {
    Operation(Box<dyn Operation>),
    /// Nothing yet, but soon.
    Soon,
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

    /// Says that an operation is about to come, to the thread that will have it. If not all `threads`
    /// are idle there is enough going on without it.
    pub fn expect(&self, threads: usize) {
        let mut state = self.lock();
        if state.idle.len() < threads {
            return;
        }
        if let Some(thread) = state.idle.last().cloned() {
            state.expected = true;
            drop(state);
            thread.unpark();
        }
    }

    /// Waits for an operation; None once the inbox is closed and empty.
    pub fn take(&self) -> Option<Box<dyn Operation>> {
        loop {
            if let Arrival::Operation(operation) = self.wait()? {
                return Some(operation);
            }
        }
    }

    /// As [`Inbox::take`], and tells of an operation that is only expected.
    pub fn wait(&self) -> Option<Arrival> {
        loop {
            let mut state = self.lock();
            self.leave_idle(&mut state);
            if let Some(operation) = state.pop() {
                return Some(Arrival::Operation(operation));
            }
            if state.closed {
                return None;
            }
            if std::mem::take(&mut state.expected) {
                return Some(Arrival::Soon);
            }
            state.idle.push(thread::current());
            drop(state);
            // Returns at once if it was woken since.
            thread::park();
        }
    }

    /// An operation, if one comes in time.
    pub fn take_within(&self, time: Duration) -> Option<Box<dyn Operation>> {
        let deadline = Instant::now() + time;
        loop {
            let mut state = self.lock();
            self.leave_idle(&mut state);
            let left = deadline.saturating_duration_since(Instant::now());
            let found = state.pop();
            if found.is_some() || state.closed || left.is_zero() {
                return found;
            }
            state.idle.push(thread::current());
            drop(state);
            thread::park_timeout(left);
        }
    }

    /// A thread that was woken by nobody is still among the idle ones.
    fn leave_idle(&self, state: &mut InboxState) {
        let me = thread::current().id();
        state.idle.retain(|thread| thread.id() != me);
    }

    /// As [`Inbox::take`], and looks around for a moment before it waits: who was just answered
    /// often comes back at once, and waking a thread takes longer than that.
    pub fn take_alert(&self) -> Option<Box<dyn Operation>> {
        let began = Instant::now();
        while began.elapsed() < ALERT {
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

    /// Removes those that have waited longer than `patience`: their callers get an answer even
    /// while the database gives none.
    pub fn take_expired(&self, patience: Duration) -> Vec<Box<dyn Operation>> {
        let mut state = self.lock();
        let mut expired = Vec::new();
        let state = &mut *state;
        for queue in [&mut state.urgent, &mut state.normal] {
            while queue.front().is_some_and(|op| op.asked_at().elapsed() > patience) {
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
