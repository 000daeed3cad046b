//! PostgreSQL: a fixed set of threads with a connection each. Collisions run the closure again, a
//! lost server is waited for, and a COMMIT whose answer was lost is looked up, never repeated.

mod connect;
mod connection;
mod copy;
mod news;
mod pipeline;
mod socket;
mod tls;
mod wire;

use connection::Mark;
pub(crate) use connection::PostgresConnection;
pub(crate) use copy::PostgresTables;

use crate::address::Server;
use crate::error::{Error, Result};
use crate::migrate;
use crate::operation::{Arrival, Inbox, Lane, Operation, panic_text};
use crate::outage::Outage;
use crate::tx::{Failure, Inner, Tx};
use crate::wakes::Wakes;
use crate::{Migration, Options};
use news::News;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The advisory lock that migrations run under ("ACCN").
const MIGRATION_LOCK: i64 = 0x4143_434e;
/// A mark is looked for within seconds, if at all.
const MARKS_KEPT: i64 = 86_400_000_000;
/// A closure that finds a row of the same key so often does not collide with others: the next time
/// the error is its own.
const DUPLICATES_MAX: usize = 8;
/// How long a transaction that was begun ahead waits for its closure.
const EXPECTED_WITHIN: Duration = Duration::from_millis(2);
const NAP_SHORTEST: Duration = Duration::from_millis(20);
const NAP_LONGEST: Duration = Duration::from_secs(1);

pub(crate) struct PostgresEngine {
    inbox: Arc<Inbox>,
    news: Arc<News>,
    outage: Arc<Outage>,
    threads: Vec<JoinHandle<()>>,
}

impl PostgresEngine {
    pub fn open(
        server: &Server,
        migrations: &[Migration],
        options: &Options,
        wakes: &Arc<Wakes>,
    ) -> Result<PostgresEngine> {
        // On a thread of its own: the client cannot be used from within an async runtime.
        let (mine, wanted, settings) = (server.clone(), migrations.to_vec(), options.clone());
        let prepared =
            std::thread::spawn(move || wait_and_prepare(&mine, &wanted, &settings)).join();
        let mut first =
            Some(prepared.unwrap_or_else(|panic| Err(Error::Panic(panic_text(&*panic))))?);
        let inbox = Arc::new(Inbox::new(options.waiting_max));
        let news = Arc::new(News::start(server)?);
        let outage = Arc::new(Outage::default());
        let mut threads = Vec::new();
        for _ in 0..options.connections.max(1) {
            let mut worker = Worker {
                server: server.clone(),
                options: options.clone(),
                connection: first.take(),
                mark: Mark { id: rand::random_range(1..i64::MAX), number: 0 },
                wakes: wakes.clone(),
                news: news.clone(),
                outage: outage.clone(),
            };
            let inbox = inbox.clone();
            let thread =
                std::thread::Builder::new().name("db-postgres".to_string()).spawn(move || {
                    while let Some(arrival) = inbox.wait() {
                        match arrival {
                            Arrival::Operation(operation) => worker.serve(operation),
                            Arrival::Soon => worker.get_ready(&inbox),
                        }
                    }
                });
            threads.push(thread.map_err(|e| {
                Error::Other("starting a database thread".to_string(), e.to_string())
            })?);
        }
        Ok(PostgresEngine { inbox, news, outage, threads })
    }

    pub fn submit(&self, operation: Box<dyn Operation>, lane: Option<Lane>) {
        self.inbox.push(operation, lane.unwrap_or(Lane::Normal));
    }

    pub fn unavailable_since(&self) -> Option<SystemTime> {
        self.outage.since()
    }

    /// Hears of what other processes do.
    pub fn listen(&self, wakes: &Arc<Wakes>) {
        self.news.listen(wakes, &self.inbox, self.threads.len());
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        self.inbox.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has answered nobody; there is nothing left to save here.
            let _ = thread.join();
        }
    }
}

/// As [`prepare`] for a server that may be starting up: it is waited for as long as a caller waits
/// for one that went away.
fn wait_and_prepare(
    server: &Server,
    migrations: &[Migration],
    options: &Options,
) -> Result<PostgresConnection> {
    let deadline = Instant::now() + options.patience;
    let mut nap = NAP_SHORTEST;
    let mut told = false;
    loop {
        match prepare(server, migrations, options) {
            Err(Error::Unavailable(_, why)) if Instant::now() + nap < deadline => {
                if !told {
                    tracing::warn!(
                        database = server.shown(),
                        seconds = options.patience.as_secs(),
                        why,
                        "the database cannot be reached yet; waiting for it"
                    );
                    told = true;
                }
            }
            done => return done,
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(NAP_LONGEST);
    }
}

/// Connects, and brings the schema up to date while no other process does.
fn prepare(
    server: &Server,
    migrations: &[Migration],
    options: &Options,
) -> Result<PostgresConnection> {
    let mut connection = PostgresConnection::open_for_work(server, options.step.clone())?;
    let now = connection.begin(false)?;
    connection.raw(&format!(
        "SET LOCAL lock_timeout = '60s'; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
    ))?;
    let now = options.clock.injected().unwrap_or(now);
    let mut tx = Tx::new(Inner::Postgres(&mut connection), now);
    migrate::run(&mut tx, server.shown(), migrations, options.moved)?;
    connection.raw("COMMIT")?;
    // Marks of threads that are long gone.
    connection.raw(&format!("DELETE FROM commit_marks WHERE at < {}", now - MARKS_KEPT))?;
    Ok(connection)
}

struct Worker {
    server: Server,
    options: Options,
    connection: Option<PostgresConnection>,
    /// The last mark of this thread.
    mark: Mark,
    wakes: Arc<Wakes>,
    news: Arc<News>,
    outage: Arc<Outage>,
}

/// How one run of a closure ended.
pub(crate) enum Attempt {
    /// What is to be woken, and whether other processes have been told.
    Committed { wakes: Vec<i64>, told: bool },
    /// Rolled back; Ok leaves the closure's own result, Err replaces it.
    Refused(Result<()>),
    /// Another transaction was in the way; nothing was done.
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
    fn serve(&mut self, mut operation: Box<dyn Operation>) {
        let deadline = operation.asked_at() + self.options.patience;
        let mut nap = NAP_SHORTEST;
        let mut duplicates = 0;
        while operation.wanted() {
            let attempt = match self.connected() {
                Ok(()) => self.attempt(&mut *operation, duplicates),
                Err(Error::Unavailable(_, why)) => Attempt::Lost(why),
                Err(error) => Attempt::Refused(Err(error)),
            };
            let error = match attempt {
                Attempt::Committed { wakes, told } => {
                    return self.committed(operation, &wakes, told);
                }
                Attempt::Refused(verdict) => return operation.answer(verdict),
                Attempt::Collided(why) => {
                    Error::Busy(format!("other transactions kept colliding: {why}"))
                }
                Attempt::Duplicate => {
                    duplicates += 1;
                    if duplicates == 1 {
                        // Whoever added it has committed: there is nothing to wait for.
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
            if Instant::now() + nap > deadline {
                return operation.answer(Err(error));
            }
            // Jitter keeps colliding processes from colliding again in step.
            std::thread::sleep(nap.mul_f64(rand::random_range(0.2..1.0)));
            nap = (nap * 2).min(NAP_LONGEST);
        }
    }

    /// Begins a transaction for a closure that is about to come.
    fn get_ready(&mut self, inbox: &Inbox) {
        let alive = |connection: &&mut PostgresConnection| !connection.is_closed();
        let Some(connection) = self.connection.as_mut().filter(alive) else { return };
        connection.begin_ahead();
        if let Some(operation) = inbox.take_within(EXPECTED_WITHIN) {
            self.serve(operation);
        }
        // Nothing came, or nobody waits for it any more.
        if let Some(connection) = self.connection.as_mut() {
            connection.end_ahead();
        }
    }

    fn connected(&mut self) -> Result<()> {
        if self.connection.as_ref().is_none_or(PostgresConnection::is_closed) {
            let step = self.options.step.clone();
            self.connection = match PostgresConnection::open_for_work(&self.server, step) {
                Ok(connection) => {
                    // Not by a connection that was there before: it may not know yet that it broke.
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
            Err(error) => return Attempt::Lost(error.to_string()),
        };
        let mut tx = Tx::new(Inner::Postgres(connection), now);
        let last_try = duplicates >= DUPLICATES_MAX;
        (tx.last_try, tx.met_duplicate) = (last_try, duplicates > 0);
        let good = operation.run(&mut tx);
        let (failure, wakes) = (tx.failure, std::mem::take(&mut tx.wakes));
        match (good, failure) {
            (true, None) if operation.reads() => {
                connection.end_reading();
                Attempt::Committed { wakes: Vec::new(), told: true }
            }
            (true, None) => {
                self.mark.number += 1;
                let news = self.news.at_once(&wakes);
                connection.commit(self.mark, wakes, news, last_try)
            }
            (_, Some(Failure::Unavailable)) => Attempt::Lost("the connection broke".to_string()),
            (_, Some(Failure::Duplicate)) => {
                connection.roll_back();
                Attempt::Duplicate
            }
            (_, Some(Failure::Collision)) => {
                connection.roll_back();
                Attempt::Collided("see the server's log".to_string())
            }
            (true, Some(Failure::Final)) => {
                connection.roll_back();
                let why = "it ignored a failed statement".to_string();
                Attempt::Refused(Err(Error::Other("a closure".to_string(), why)))
            }
            (false, _) => {
                connection.roll_back();
                Attempt::Refused(Ok(()))
            }
        }
    }

    fn committed(&self, operation: Box<dyn Operation>, wakes: &[i64], told: bool) {
        // Others first: they have the longer way.
        if !wakes.is_empty() {
            if !told {
                self.news.send(wakes);
            }
            self.wakes.ring(wakes);
        }
        operation.answer(Ok(()));
    }

    /// Asks the server what became of a transaction whose COMMIT it did not answer.
    fn was_committed(&mut self, mark: Mark) -> Result<bool> {
        let asked = Instant::now();
        let mut nap = NAP_SHORTEST;
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
            if asked.elapsed() > self.options.patience.max(Duration::from_secs(1)) * 4 {
                return Err(Error::UnknownOutcome(format!(
                    "{} went away during a commit and has not come back; look whether what you asked for is there once it is",
                    self.server.shown()
                )));
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(NAP_LONGEST);
        }
    }
}
