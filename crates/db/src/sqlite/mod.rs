//! SQLite: one writer thread that commits in groups, readers with their own connections, and turns with
//! other processes that use the same file.

mod backup;
mod checkpoints;
mod connection;
mod copy;
mod fair_lock;
mod file_waker;
mod new_file;
mod private;
mod writer;

pub use backup::{backup, restore};
pub(crate) use connection::SqliteConnection;
pub(crate) use copy::SqliteTables;
pub(crate) use file_waker::FileWaker;
pub(crate) use new_file::NewFile;
pub use private::open_beside;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::operation::{Inbox, Lane, Operation};
use crate::tx::{Inner, Tx};
use crate::wakes::Wakes;
use crate::{Migration, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// An SQLite file with its threads.
pub(crate) struct SqliteEngine {
    writes: Arc<Inbox>,
    reads: Arc<Inbox>,
    threads: Vec<JoinHandle<()>>,
}

impl SqliteEngine {
    pub fn open(
        path: &Path,
        migrations: &[Migration],
        options: &Options,
        wakes: &Arc<Wakes>,
    ) -> Result<SqliteEngine> {
        private::make(path);
        let mut connection = SqliteConnection::open(path)?;
        let (rest, checkpoints) = checkpoints::attach(&mut connection, path)?;
        let waker = FileWaker::open(path, wakes.clone())?;
        let mut writer =
            writer::Writer::new(connection, path, waker, rest, options.clone(), wakes.clone())?;
        writer.migrate(migrations)?;

        let writes = Arc::new(Inbox::new(options.waiting_max));
        let reads = Arc::new(Inbox::new(options.waiting_max));
        let mut threads = Vec::new();
        let inbox = writes.clone();
        threads.push(spawn("db-writer", move || writer.run(&inbox))?);
        for _ in 0..options.readers.max(1) {
            let connection = SqliteConnection::open_for_reading(path)?;
            let (inbox, clock) = (reads.clone(), options.clock.clone());
            threads.push(spawn("db-reader", move || read_loop(&connection, &inbox, &clock))?);
        }
        // Joined last: it ends with the writer.
        threads.push(checkpoints);
        Ok(SqliteEngine { writes, reads, threads })
    }

    pub fn submit_write(&self, operation: Box<dyn Operation>, lane: Lane) {
        self.writes.push(operation, lane);
    }

    pub fn submit_read(&self, operation: Box<dyn Operation>) {
        self.reads.push(operation, Lane::Normal);
    }
}

impl Drop for SqliteEngine {
    fn drop(&mut self) {
        self.writes.close();
        self.reads.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has answered no caller; there is nothing left to save here.
            let _ = thread.join();
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_string())
        .spawn(body)
        .map_err(|e| Error::Other("starting a database thread".to_string(), e.to_string()))
}

fn read_loop(connection: &SqliteConnection, inbox: &Inbox, clock: &Clock) {
    while let Some(mut operation) = inbox.take() {
        if !operation.wanted() {
            continue;
        }
        let verdict = connection.raw("BEGIN").map(|()| {
            operation.run(&mut Tx::new(Inner::Sqlite(connection), clock.now_here()));
        });
        // Ends the snapshot; an error here cannot lose anything, a reader changes nothing.
        let _ = connection.raw("ROLLBACK");
        operation.answer(verdict);
    }
}

/// `/path/archive.db` and `-turn` give `/path/archive.db-turn`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
