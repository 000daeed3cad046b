#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

#[macro_use]
mod value;
#[macro_use]
mod statement;
mod address;
mod clock;
mod error;
#[macro_use]
mod id;
mod memory;
#[macro_use]
mod migrate;
mod operation;
mod outage;
mod postgres;
mod rewrite;
mod row;
mod sqlite;
mod statements;
mod transfer;
mod tx;
mod wakes;

pub use address::Address;
pub use clock::{Clock, Micros, system_now};
pub use error::{Error, Result};
pub use memory::Memory;
pub use migrate::Migration;
pub use operation::Lane;
pub use rewrite::Rewrite;
pub use row::{FromColumn, FromInt, FromRow, Row};
pub use sqlite::{backup, open_beside, restore};
pub use statement::Statement;
pub use statements::statement_text;
pub use transfer::{Move, Moved, MovedTable, MovedTo, Step as MoveStep, reopen, transfer};
pub use tx::{Engine, Tx};
pub use value::Value;

use operation::{Operation, operation};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use wakes::Wakes;

/// Called with a statement's name before each statement of a PostgreSQL transaction, with `commit`
/// before its COMMIT, and with `rollback` before its ROLLBACK, on the thread that runs the transaction.
/// Statements are then sent one at a time, at the place where they would have been sent together.
pub type Step = Arc<dyn Fn(&'static str) + Send + Sync>;

/// How a database is used by this process.
#[derive(Clone)]
pub struct Options {
    /// The clock that transactions go by.
    pub clock: Clock,
    /// A hook for tests that decide in which order transactions proceed.
    pub step: Option<Step>,
    /// Changes to PostgreSQL's statements, for tests that prove that a rule is needed.
    pub rewrites: Vec<Rewrite>,
    /// How long a caller waits for a database that does not answer before it gets an error.
    pub timeout: Duration,
    /// The number of PostgreSQL connections, each with a thread.
    pub connections: usize,
    /// The number of SQLite connections for reading.
    pub readers: usize,
    /// The number of closures that may wait in this process; one more is refused as busy.
    pub waiting_max: usize,
    /// Opens a database even if it was moved to another place.
    pub moved: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            clock: Clock::Engine,
            step: None,
            rewrites: Vec::new(),
            timeout: Duration::from_secs(30),
            connections: 8,
            readers: 2,
            waiting_max: 100_000,
            moved: false,
        }
    }
}

/// A database. Clones share it; dropping the last one closes it.
#[derive(Clone)]
pub struct Db {
    shared: Arc<Shared>,
}

struct Shared {
    backend: Backend,
    address: Address,
    wakes: Arc<Wakes>,
}

enum Backend {
    Sqlite(sqlite::SqliteEngine),
    Postgres(postgres::PostgresEngine),
}

impl Db {
    /// Opens the database, and brings its schema up to date.
    pub fn open(address: &Address, migrations: &[Migration], options: &Options) -> Result<Db> {
        let wakes = Arc::new(Wakes::default());
        let backend = match address {
            Address::Sqlite(path) => {
                Backend::Sqlite(sqlite::SqliteEngine::open(path, migrations, options, &wakes)?)
            }
            Address::Postgres(server) => Backend::Postgres(postgres::PostgresEngine::open(
                server, migrations, options, &wakes,
            )?),
        };
        Ok(Db { shared: Arc::new(Shared { backend, address: address.clone(), wakes }) })
    }

    /// Runs `work` in a transaction and answers once it is durable.
    ///
    /// The closure may be run more than once, so it has no effects but on the database. Dropping
    /// the future may skip a closure that has not begun, and changes nothing else.
    pub fn write<T, E, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        self.write_in(Lane::Normal, work)
    }

    /// As [`Db::write`], ahead of normal writes if the lane says so.
    pub fn write_in<T, E, F>(
        &self,
        lane: Lane,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (operation, answer) = operation(work, false);
        self.submit(operation, Some(lane));
        async move { answer.await.unwrap_or_else(|_| Err(Error::Closed.into())) }
    }

    /// Runs `work` on a snapshot, which other transactions do not change.
    pub fn read<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (operation, answer) = operation(work, true);
        self.submit(operation, None);
        async move { answer.await.unwrap_or_else(|_| Err(Error::Closed.into())) }
    }

    /// [`Db::write`] for code outside an async runtime; blocks the thread.
    pub fn write_blocking<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (operation, answer) = operation(work, false);
        self.submit(operation, Some(Lane::Normal));
        answer.blocking_recv().unwrap_or_else(|_| Err(Error::Closed.into()))
    }

    /// [`Db::read`] for code outside an async runtime; blocks the thread.
    pub fn read_blocking<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (operation, answer) = operation(work, true);
        self.submit(operation, None);
        answer.blocking_recv().unwrap_or_else(|_| Err(Error::Closed.into()))
    }

    fn submit(&self, operation: Box<dyn Operation>, lane: Option<Lane>) {
        match (&self.shared.backend, lane) {
            (Backend::Sqlite(engine), Some(lane)) => engine.submit_write(operation, lane),
            (Backend::Sqlite(engine), None) => engine.submit_read(operation),
            (Backend::Postgres(engine), lane) => engine.submit(operation, lane),
        }
    }

    /// Returns a counter that grows when a transaction of this or another process woke `topic`.
    pub fn subscribe(&self, topic: impl Into<i64>) -> watch::Receiver<u64> {
        let receiver = self.shared.wakes.subscribe(topic.into());
        if let Backend::Postgres(engine) = &self.shared.backend {
            engine.listen();
        }
        receiver
    }

    /// Returns since when the database cannot be reached; `None` while it can be, as far as is known.
    pub fn unavailable_since(&self) -> Option<std::time::SystemTime> {
        match &self.shared.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(engine) => engine.unavailable_since(),
        }
    }

    /// Returns the engine of this database.
    pub fn engine(&self) -> Engine {
        match self.shared.backend {
            Backend::Sqlite(_) => Engine::Sqlite,
            Backend::Postgres(_) => Engine::Postgres,
        }
    }

    /// Returns its address, which is shown without a password.
    pub fn address(&self) -> &Address {
        &self.shared.address
    }
}
