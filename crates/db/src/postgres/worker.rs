//! A database thread: runs closures on its connection until each has an answer.
//!
//! Hides collisions, lost servers and lost answers: a closure is run again where nothing was done, and
//! a COMMIT whose answer was lost is looked up by its mark.

use crate::Options;
use crate::address::Server;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::outage::Outage;
use crate::postgres::connection::{Hooks, Mark, PostgresConnection};
use crate::postgres::notifier::Notifier;
use crate::postgres::{BACKOFF_LONGEST, BACKOFF_SHORTEST};
use crate::tx::{Failure, Inner, Tx};
use crate::wakes::Wakes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A closure that meets a row of the same key this often does not collide with others: the next time
/// the error is its own.
const DUPLICATES_MAX: usize = 8;

pub(super) struct Worker {
    pub server: Server,
    pub options: Options,
    pub connection: Option<PostgresConnection>,
    /// The last mark of this thread.
    pub mark: Mark,
    pub wakes: Arc<Wakes>,
    pub notifier: Arc<Notifier>,
    pub outage: Arc<Outage>,
}

/// How one run of a closure ended.
enum Attempt {
    /// The topics to wake, and whether other processes were notified of them.
    Committed { wakes: Vec<i64>, is_notified: bool },
    /// It read what it wanted; its transaction is still open.
    Read,
    /// Rolled back; Ok leaves the closure's own result, Err replaces it.
    Refused(Result<()>),
    /// It collided with another transaction; nothing was done.
    Collided(String),
    /// A row of the same key was there; nothing was done.
    Duplicate,
    /// The server went away; nothing was done.
    Lost(String),
    /// COMMIT was sent and the server went away: this transaction may have been committed.
    Unknown(Mark, Vec<i64>),
}

impl Worker {
    /// Runs one closure until it has an answer.
    pub fn serve(&mut self, mut operation: Box<dyn Operation>) {
        let deadline = operation.asked_at() + self.options.timeout;
        let mut backoff = BACKOFF_SHORTEST;
        let mut duplicates = 0;
        while operation.wanted() {
            let attempt = match self.connected() {
                Ok(()) => self.attempt(&mut *operation, duplicates),
                Err(Error::Unavailable(_, why)) => Attempt::Lost(why),
                Err(error) => Attempt::Refused(Err(error)),
            };
            let error = match attempt {
                Attempt::Committed { wakes, is_notified } => {
                    return self.committed(operation, &wakes, is_notified);
                }
                Attempt::Read => {
                    operation.answer(Ok(()));
                    if let Some(connection) = self.connection.as_mut() {
                        connection.end_reading();
                    }
                    return;
                }
                Attempt::Refused(verdict) => return operation.answer(verdict),
                Attempt::Collided(why) => {
                    Error::Busy(format!("other transactions kept colliding: {why}"))
                }
                Attempt::Duplicate => {
                    duplicates += 1;
                    if duplicates == 1 {
                        // The transaction that added the row has committed: there is no wait.
                        continue;
                    }
                    Error::Busy("other transactions kept adding the same rows".to_string())
                }
                Attempt::Lost(why) => {
                    self.connection = None;
                    Error::Unavailable(self.server.shown().to_string(), why)
                }
                Attempt::Unknown(mark, wakes) => {
                    self.connection = None;
                    match self.was_committed(mark) {
                        Ok(true) => return self.committed(operation, &wakes, false),
                        Ok(false) => Error::Unavailable(
                            self.server.shown().to_string(),
                            "it went away".to_string(),
                        ),
                        Err(error) => return operation.answer(Err(error)),
                    }
                }
            };
            if Instant::now() + backoff > deadline {
                return operation.answer(Err(error));
            }
            // Jitter keeps colliding processes from colliding again in step.
            std::thread::sleep(backoff.mul_f64(0.2 + 0.8 * fastrand::f64()));
            backoff = (backoff * 2).min(BACKOFF_LONGEST);
        }
    }

    fn connected(&mut self) -> Result<()> {
        if self.connection.as_ref().is_none_or(PostgresConnection::is_closed) {
            let hooks = Hooks::of(&self.options);
            self.connection = match PostgresConnection::open(&self.server, hooks) {
                Ok(connection) => {
                    // A connection that was there before may not know yet that it is broken.
                    self.outage.ends(self.server.shown());
                    Some(connection)
                }
                Err(error) => {
                    if let Error::Unavailable(_, why) = &error {
                        self.outage.begins(self.server.shown(), why);
                    }
                    return Err(error);
                }
            };
        }
        Ok(())
    }

    fn attempt(&mut self, operation: &mut dyn Operation, duplicates: usize) -> Attempt {
        let Some(connection) = self.connection.as_mut() else {
            return Attempt::Lost("not connected".to_string());
        };
        let now = match connection.begin(operation.reads()) {
            Ok(now) => self.options.clock.injected().unwrap_or(now),
            Err(error @ Error::ReadOnly(_)) => return Attempt::Refused(Err(error)),
            Err(error) => return Attempt::Lost(error.to_string()),
        };
        let mut tx = Tx::new(Inner::Postgres(connection), now);
        let last_try = duplicates >= DUPLICATES_MAX;
        (tx.last_try, tx.met_duplicate) = (last_try, duplicates > 0);
        let good = operation.run(&mut tx);
        let (failure, wakes) = (tx.failure, std::mem::take(&mut tx.wakes));
        match (good, failure) {
            (true, None) if operation.reads() => return Attempt::Read,
            (true, None) => return self.commit(wakes, last_try),
            (_, Some(Failure::Unavailable)) => {
                return Attempt::Lost("the connection broke".to_string());
            }
            _ => connection.roll_back(),
        }
        match (good, failure) {
            (_, Some(Failure::Duplicate)) => Attempt::Duplicate,
            (_, Some(Failure::Collision)) => Attempt::Collided("see the server's log".to_string()),
            (true, _) => {
                let why = "it ignored a failed statement".to_string();
                Attempt::Refused(Err(Error::Other("a closure".to_string(), why)))
            }
            (false, _) => Attempt::Refused(Ok(())),
        }
    }

    fn commit(&mut self, wakes: Vec<i64>, last_try: bool) -> Attempt {
        let Some(connection) = self.connection.as_mut() else {
            return Attempt::Lost("not connected".to_string());
        };
        self.mark.number += 1;
        let notification = self.notifier.at_once(&wakes);
        match connection.commit(self.mark, notification.as_deref()) {
            Ok(is_notified) => Attempt::Committed { wakes, is_notified },
            // If nothing had been written there is no mark, and it runs again.
            Err(Error::Unavailable(..)) => Attempt::Unknown(self.mark, wakes),
            Err(Error::Collision(why)) => Attempt::Collided(why),
            Err(Error::Duplicate(_)) if !last_try => Attempt::Duplicate,
            Err(error) => Attempt::Refused(Err(error)),
        }
    }

    fn committed(&self, operation: Box<dyn Operation>, wakes: &[i64], is_notified: bool) {
        if !wakes.is_empty() {
            if !is_notified {
                self.notifier.send(wakes);
            }
            self.wakes.ring(wakes);
        }
        operation.answer(Ok(()));
    }

    /// Asks the server what became of a transaction whose COMMIT it did not answer.
    fn was_committed(&mut self, mark: Mark) -> Result<bool> {
        let asked = Instant::now();
        let mut backoff = BACKOFF_SHORTEST;
        loop {
            let found = self.connected().and_then(|()| match self.connection.as_mut() {
                Some(connection) => connection.finds(mark),
                None => Err(Error::Closed),
            });
            match found {
                Ok(committed) => return Ok(committed),
                // The old server process has not noticed yet, and holds the mark.
                Err(Error::Collision(_)) => {}
                Err(_) => self.connection = None,
            }
            if asked.elapsed() > self.options.timeout.max(Duration::from_secs(1)) * 4 {
                return Err(Error::UnknownOutcome(format!(
                    "{} went away during a commit and has not come back; look whether what you asked for is there once it is",
                    self.server.shown()
                )));
            }
            std::thread::sleep(backoff);
            backoff = (backoff * 2).min(BACKOFF_LONGEST);
        }
    }
}
