//! The writer thread: takes every closure that waits, runs all of them in one transaction, commits
//! once, and only then answers them. A closure that fails leaves nothing behind: with it everything
//! is rolled back, and the others run again, each in a savepoint from then on. Savepoints for all
//! would cost a copy of every page that every closure changes.

use crate::error::{Error, Result};
use crate::migrate;
use crate::operation::{Inbox, Operation};
use crate::sqlite::checkpoints::Rest;
use crate::sqlite::fair_lock::FairLock;
use crate::sqlite::{FileWaker, SqliteConnection};
use crate::tx::{Inner, Tx};
use crate::wakes::Wakes;
use crate::{Migration, Options};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A group closes after this long, so that the first of it does not wait for the last.
const GROUP_TIME: Duration = Duration::from_millis(20);
const GROUP_LENGTH: usize = 2048;

pub(super) struct Writer {
    connection: SqliteConnection,
    lock: FairLock,
    waker: FileWaker,
    /// What is left of the log to be moved.
    rest: Rest,
    options: Options,
    wakes: Arc<Wakes>,
}

/// An operation of the group and what it wants woken.
struct Done {
    operation: Box<dyn Operation>,
    wakes: Vec<i64>,
}

/// An operation that did nothing, and what it is answered with: Ok leaves its own result.
struct Failed {
    operation: Box<dyn Operation>,
    verdict: Result<()>,
}

impl Writer {
    pub fn new(
        connection: SqliteConnection,
        path: &Path,
        waker: FileWaker,
        rest: Rest,
        options: Options,
        wakes: Arc<Wakes>,
    ) -> Result<Writer> {
        Ok(Writer { connection, lock: FairLock::open(path)?, waker, rest, options, wakes })
    }

    pub fn migrate(&mut self, migrations: &[Migration]) -> Result<()> {
        let began = Instant::now();
        if !self.lock.enter(|| began.elapsed() < self.options.timeout)? {
            return Err(self.held_up());
        }
        self.waker.show();
        let migrated = self.connection.begin().and_then(|()| {
            let mut tx = Tx::new(Inner::Sqlite(&self.connection), self.options.clock.now_here());
            migrate::run(&mut tx, &self.connection.shown, migrations, self.options.moved)
        });
        let ended = match migrated {
            Ok(()) => self.connection.commit(),
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        };
        self.lock.leave();
        ended
    }

    pub fn run(&mut self, inbox: &Inbox) {
        while let Some(first) = inbox.take_spinning() {
            let timeout = self.options.timeout;
            let entered = self.lock.enter(|| {
                for late in inbox.take_expired(timeout) {
                    late.answer(Err(self.held_up()));
                }
                first.wanted() && first.asked_at().elapsed() < timeout
            });
            match entered {
                Ok(true) => self.group(first, inbox),
                Ok(false) => first.answer(Err(self.held_up())),
                Err(error) => first.answer(Err(error)),
            }
        }
    }

    /// Runs one group from BEGIN to the answers.
    fn group(&self, first: Box<dyn Operation>, inbox: &Inbox) {
        if let Err(error) = self.connection.begin() {
            self.lock.leave();
            first.answer(Err(error));
            return;
        }
        let opened = Instant::now();
        let mut done: Vec<Done> = Vec::new();
        let mut failed: Vec<Failed> = Vec::new();
        let mut next = Some(first);
        while let Some(mut operation) = next {
            if operation.wanted() {
                let ran = match failed.is_empty() {
                    true => self.run_one(&mut *operation).inspect_err(|_| self.roll_back()),
                    false => self.run_in_savepoint(&mut *operation),
                };
                match ran {
                    Ok(wakes) => done.push(Done { operation, wakes }),
                    Err(verdict) => failed.push(Failed { operation, verdict }),
                }
                if self.connection.outside_transaction() {
                    self.run_again(&mut done, &mut failed);
                }
            }
            if self.connection.outside_transaction() {
                // No new transaction could be begun. A savepoint outside one would be one.
                break;
            }
            let full = opened.elapsed() > GROUP_TIME || done.len() + failed.len() >= GROUP_LENGTH;
            next = if full { None } else { inbox.take_now() };
        }
        let committed = self.commit(done.is_empty());
        let wakes = committed.is_ok() && done.iter().any(|done| !done.wakes.is_empty());
        let is_heard = wakes && self.waker.is_heard();
        self.lock.leave();
        self.answer(done, failed, committed);
        if is_heard {
            self.waker.wake();
        }
        self.rest.move_on(&self.connection);
    }

    /// Runs one closure: its wake-ups, or the verdict it is answered with once it is undone.
    fn run_one(&self, operation: &mut dyn Operation) -> Result<Vec<i64>, Result<()>> {
        let mut tx = Tx::new(Inner::Sqlite(&self.connection), self.options.clock.now_here());
        let good = operation.run(&mut tx);
        match (good, tx.failure.is_some()) {
            (true, false) => Ok(std::mem::take(&mut tx.wakes)),
            (true, true) => Err(Err(Error::Other(
                "a closure".to_string(),
                "it ignored a failed statement".to_string(),
            ))),
            (false, _) => Err(Ok(())),
        }
    }

    /// As `run_one`, and undoes it if need be.
    fn run_in_savepoint(&self, operation: &mut dyn Operation) -> Result<Vec<i64>, Result<()>> {
        self.connection.raw("SAVEPOINT closure").map_err(Err)?;
        let ran = self.run_one(operation);
        let released = |wakes| self.connection.raw("RELEASE closure").map(|()| wakes).map_err(Err);
        let verdict = match ran.and_then(released) {
            Ok(wakes) => return Ok(wakes),
            Err(verdict) => verdict,
        };
        if !self.connection.outside_transaction() {
            // If even this fails the transaction is gone, which the caller looks for next.
            let _ = self.connection.raw("ROLLBACK TO closure");
            let _ = self.connection.raw("RELEASE closure");
        }
        Err(verdict)
    }

    /// The whole transaction is gone, rolled back for the sake of one closure or given up by SQLite,
    /// and with it what earlier closures had done: they run again in a new one. Each round that
    /// SQLite gives up loses at least one closure, so this ends.
    fn run_again(&self, done: &mut Vec<Done>, failed: &mut Vec<Failed>) {
        while self.connection.outside_transaction() {
            if let Err(error) = self.connection.begin() {
                for one in done.drain(..) {
                    one.operation.answer(Err(Error::Busy(error.to_string())));
                }
                return;
            }
            let mut rest = VecDeque::from(std::mem::take(done));
            while let Some(mut one) = rest.pop_front() {
                match self.run_in_savepoint(&mut *one.operation) {
                    Ok(wakes) => done.push(Done { operation: one.operation, wakes }),
                    Err(verdict) => failed.push(Failed { operation: one.operation, verdict }),
                }
                if self.connection.outside_transaction() {
                    // Those not reached wait for the next round with those that are lost again.
                    done.extend(rest);
                    break;
                }
            }
        }
    }

    fn commit(&self, nothing_done: bool) -> Result<()> {
        if nothing_done || self.connection.outside_transaction() {
            self.roll_back();
            return Ok(());
        }
        self.connection.commit().inspect_err(|_| self.roll_back())
    }

    fn answer(&self, done: Vec<Done>, failed: Vec<Failed>, committed: Result<()>) {
        match committed {
            Ok(()) => {
                let mut topics: Vec<i64> =
                    done.iter().flat_map(|d| d.wakes.iter().copied()).collect();
                topics.sort_unstable();
                topics.dedup();
                for one in done {
                    one.operation.answer(Ok(()));
                }
                if !topics.is_empty() {
                    self.wakes.ring(&topics);
                }
            }
            Err(error) => {
                tracing::warn!(database = self.connection.shown, %error, closures = done.len(), "a commit failed; nothing of it was done");
                for one in done {
                    one.operation.answer(Err(copy(&error, &self.connection.shown)));
                }
            }
        }
        for one in failed {
            one.operation.answer(one.verdict);
        }
    }

    fn roll_back(&self) {
        if !self.connection.outside_transaction() {
            // Fails only if there is no transaction, which is what is wanted.
            let _ = self.connection.roll_back();
        }
    }

    fn held_up(&self) -> Error {
        let seconds = self.options.timeout.as_secs();
        Error::Busy(format!(
            "another process has kept {} for over {seconds} s",
            self.connection.shown
        ))
    }
}

/// The same error once more, for each closure of a group.
fn copy(error: &Error, shown: &str) -> Error {
    match error {
        Error::NoSpace(_) => Error::NoSpace(shown.to_string()),
        Error::Busy(text) => Error::Busy(text.clone()),
        other => Error::Other(shown.to_string(), other.to_string()),
    }
}
