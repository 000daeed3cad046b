//! A database in memory, run from the caller's own thread, for simulators.

use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::migrate::{self, Migration};
use crate::rewrite::Rewrite;
use crate::sqlite::SqliteConnection;
use crate::tx::{Inner, Tx};

/// An SQLite database in memory.
pub struct Memory {
    connection: SqliteConnection,
}

impl Memory {
    /// Opens an empty database with a schema. `rewrites` change statements, to prove that a test
    /// notices.
    pub fn open(migrations: &[Migration], rewrites: Vec<Rewrite>) -> Result<Memory> {
        let connection = SqliteConnection::in_memory(rewrites)?;
        let mut tx = Tx::new(Inner::Sqlite(&connection), 0);
        migrate::run(&mut tx, "in memory", migrations, false)?;
        Ok(Memory { connection })
    }

    /// Runs `work` at the time `now` and commits it, or rolls it back if it fails.
    pub fn write<T, E: From<Error>>(
        &mut self,
        now: Micros,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.connection.begin()?;
        let result = work(&mut Tx::new(Inner::Sqlite(&self.connection), now));
        match result.is_ok() {
            true => self.connection.commit()?,
            false => self.connection.roll_back()?,
        }
        result
    }

    /// Runs `work` and then loses it, as a crash before COMMIT does.
    pub fn crash<T, E: From<Error>>(
        &mut self,
        now: Micros,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<(), E> {
        self.connection.begin()?;
        // The result of the closure is lost with the process it ran in.
        let _ = work(&mut Tx::new(Inner::Sqlite(&self.connection), now));
        self.connection.roll_back()?;
        Ok(())
    }
}
