//! PostgreSQL: a fixed set of threads, each with a connection of `tokio-postgres` that it drives itself.
//!
//! Hides connections and their failures: collisions run the closure again, a lost server is waited for,
//! and a COMMIT whose answer was lost is looked up, never repeated.

mod connect;
mod connection;
mod copy;
mod deferred;
mod notifier;
mod tls;
mod worker;

pub(crate) use connection::PostgresConnection;
use connection::{BEGIN, Hooks, Mark};
pub(crate) use copy::PostgresTables;

use crate::address::Server;
use crate::error::{Error, Result};
use crate::migrate;
use crate::operation::{Inbox, Lane, Operation, panic_text};
use crate::outage::Outage;
use crate::tx::{Inner, Tx};
use crate::wakes::Wakes;
use crate::{Migration, Options};
use notifier::Notifier;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use worker::Worker;

/// The advisory lock that migrations run under ("ACCN").
const MIGRATION_LOCK: i64 = 0x4143_434e;
/// A mark is looked up within seconds, if at all.
const MARKS_KEPT: i64 = 86_400_000_000;
const BACKOFF_SHORTEST: Duration = Duration::from_millis(20);
const BACKOFF_LONGEST: Duration = Duration::from_secs(1);

pub(crate) struct PostgresEngine {
    inbox: Arc<Inbox>,
    notifier: Arc<Notifier>,
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
        let inbox = Arc::new(Inbox::new(options.waiting_max));
        let notifier = Arc::new(Notifier::start(server, wakes)?);
        let outage = Arc::new(Outage::default());
        let mut engine =
            PostgresEngine { inbox: inbox.clone(), notifier, outage, threads: Vec::new() };
        let worker = || Worker {
            server: server.clone(),
            options: options.clone(),
            connection: None,
            mark: Mark { id: fastrand::i64(1..i64::MAX), number: 0 },
            wakes: wakes.clone(),
            notifier: engine.notifier.clone(),
            outage: engine.outage.clone(),
        };
        // The first thread prepares the database, and keeps the connection for its work.
        let (mut first, wanted, tell, prepared) = {
            let (tell, prepared) = mpsc::channel();
            (worker(), migrations.to_vec(), tell, prepared)
        };
        let mut threads = vec![spawn(&inbox, move |inbox| {
            let ready = catch_unwind(AssertUnwindSafe(|| {
                wait_and_prepare(&first.server, &wanted, &first.options)
            }));
            let told = match ready {
                Ok(Ok(connection)) => {
                    first.connection = Some(connection);
                    Ok(())
                }
                Ok(Err(error)) => Err(error),
                Err(panic) => Err(Error::Panic(panic_text(&*panic))),
            };
            let is_ready = told.is_ok();
            if tell.send(told).is_ok() && is_ready {
                serve(&mut first, inbox);
            }
        })?];
        let more = options.connections.max(1) - 1;
        for mut worker in std::iter::repeat_with(worker).take(more).collect::<Vec<_>>() {
            threads.push(spawn(&inbox, move |inbox| serve(&mut worker, inbox))?);
        }
        engine.threads = threads;
        prepared.recv().unwrap_or(Err(Error::Closed))?;
        Ok(engine)
    }

    pub fn submit(&self, operation: Box<dyn Operation>, lane: Option<Lane>) {
        self.inbox.push(operation, lane.unwrap_or(Lane::Normal));
    }

    pub fn unavailable_since(&self) -> Option<SystemTime> {
        self.outage.since()
    }

    /// Receives the wake-ups of other processes from now on.
    pub fn listen(&self) {
        self.notifier.listen();
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        self.inbox.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has answered no caller; there is nothing left to save here.
            let _ = thread.join();
        }
    }
}

fn spawn(inbox: &Arc<Inbox>, body: impl FnOnce(&Inbox) + Send + 'static) -> Result<JoinHandle<()>> {
    let inbox = inbox.clone();
    std::thread::Builder::new()
        .name("db-postgres".to_string())
        .spawn(move || body(&inbox))
        .map_err(|e| Error::Other("starting a database thread".to_string(), e.to_string()))
}

fn serve(worker: &mut Worker, inbox: &Inbox) {
    while let Some(operation) = inbox.take() {
        worker.serve(operation);
    }
}

/// As [`prepare`], for a server that may be starting up: it is waited for as long as a caller waits
/// for one that went away.
fn wait_and_prepare(
    server: &Server,
    migrations: &[Migration],
    options: &Options,
) -> Result<PostgresConnection> {
    let deadline = Instant::now() + options.timeout;
    let mut backoff = BACKOFF_SHORTEST;
    let mut told = false;
    loop {
        match prepare(server, migrations, options) {
            Err(Error::Unavailable(_, why)) if Instant::now() + backoff < deadline => {
                if !told {
                    tracing::warn!(
                        database = server.shown(),
                        seconds = options.timeout.as_secs(),
                        why,
                        "the database cannot be reached yet; waiting for it"
                    );
                    told = true;
                }
            }
            done => return done,
        }
        std::thread::sleep(backoff);
        backoff = (backoff * 2).min(BACKOFF_LONGEST);
    }
}

/// Connects, and brings the schema up to date while no other process does.
fn prepare(
    server: &Server,
    migrations: &[Migration],
    options: &Options,
) -> Result<PostgresConnection> {
    let mut connection = PostgresConnection::open(server, Hooks::of(options))?;
    let now = connection.begin(false)?;
    connection.raw(&format!(
        "SET LOCAL lock_timeout = '60s'; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
    ))?;
    let now = options.clock.injected().unwrap_or(now);
    let mut tx = Tx::new(Inner::Postgres(&mut connection), now);
    migrate::run(&mut tx, server.shown(), migrations, options.moved)?;
    connection.raw("COMMIT")?;
    // Marks of threads that ended long ago.
    connection.raw(&format!(
        "{BEGIN}; DELETE FROM commit_marks WHERE at < {}; COMMIT",
        now - MARKS_KEPT
    ))?;
    Ok(connection)
}
