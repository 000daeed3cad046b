//! An SQLite file that gets its name once it is complete.

use crate::error::{Error, Result};
use crate::migrate;
use crate::sqlite::fair_lock::FairLock;
use crate::sqlite::{SqliteConnection, SqliteTables, backup, beside};
use crate::transfer::Tables;
use crate::tx::{Inner, Tx};
use crate::{Migration, Options};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) struct NewFile {
    path: PathBuf,
    partial: PathBuf,
    /// Keeps other processes from making a database of this name.
    lock: FairLock,
    tables: Option<SqliteTables>,
}

impl NewFile {
    pub fn begin(path: &Path, options: &Options) -> Result<NewFile> {
        let lock = FairLock::open(path)?;
        let began = Instant::now();
        if !lock.enter(|| began.elapsed() < options.timeout)? {
            return Err(Error::Busy(format!("another process uses {}", path.display())));
        }
        let (path, partial) = (path.to_path_buf(), beside(path, ".partial"));
        Ok(NewFile { path, partial, lock, tables: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Makes it with the tables of a schema, and begins to fill them.
    pub fn make(&mut self, migrations: &[Migration], options: &Options) -> Result<()> {
        let shown = self.path.display().to_string();
        if self.exists() {
            return Err(Error::NotEmpty(shown, "the file exists already".to_string()));
        }
        backup::refuse_existing(&self.path)?;
        backup::remove(&self.partial)?;
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.partial)
            .map_err(|e| {
                Error::CannotOpen(
                    shown.clone(),
                    format!("{e}; check that its directory is writable"),
                )
            })?;
        let connection = SqliteConnection::connect_alone(&self.partial)?;
        connection.begin()?;
        let mut tx = Tx::new(Inner::Sqlite(&connection), options.clock.now_here());
        migrate::run(&mut tx, &shown, migrations, false)?;
        self.tables = Some(SqliteTables::filling(connection));
        Ok(())
    }

    pub fn tables(&mut self) -> Option<&mut dyn Tables> {
        self.tables.as_mut().map(|tables| tables as &mut dyn Tables)
    }

    /// Makes it durable, and gives it its name.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(mut tables) = self.tables.take() {
            tables.run("COMMIT")?;
            tables.close()?;
        }
        backup::finish(&self.partial, &self.path)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        self.tables = None;
        // What is left of it, or nothing; the next one that is begun removes it too.
        let _ = backup::remove(&self.partial);
        self.lock.leave();
    }
}
