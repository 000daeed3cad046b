//! An SQLite connection: its settings, and statements run by name.

use crate::error::{Error, Result};
use crate::rewrite::{Rewrite, rewritten};
use crate::row::Row;
use crate::statement::Statement;
use crate::value::Value;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Marks a file as a database of this program ("ACCN").
const APPLICATION_ID: i64 = 0x4143_434e;

/// How long an open waits for others that open the same file.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct SqliteConnection {
    pub(super) inner: Connection,
    /// Named in errors.
    pub(super) shown: String,
    /// The counters that the open transaction has advanced. They are written when it ends, because one
    /// commit advances them many times.
    counters: RefCell<HashMap<&'static str, i64>>,
    /// Statement texts as SQLite wants them, made once.
    texts: RefCell<HashMap<&'static str, Arc<str>>>,
    rewrites: Vec<Rewrite>,
}

impl SqliteConnection {
    pub fn open(path: &Path) -> Result<SqliteConnection> {
        refuse_read_only(path)?;
        let began = Instant::now();
        loop {
            match Self::open_once(path) {
                // SQLite does not wait for others that make the same new file ready.
                Err(Error::Busy(_)) if began.elapsed() < OPEN_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                opened => return opened,
            }
        }
    }

    fn open_once(path: &Path) -> Result<SqliteConnection> {
        let connection = Self::connect(path)?;
        connection.claim_file()?;
        // Every commit reaches the disk before it is answered (I1).
        connection.pragma("journal_mode", "wal")?;
        connection.pragma("synchronous", "full")?;
        connection.pragma("journal_size_limit", "67108864")?;
        connection.pragma("cache_size", "-20480")?;
        Ok(connection)
    }

    pub fn open_for_reading(path: &Path) -> Result<SqliteConnection> {
        let connection = Self::connect(path)?;
        connection.pragma("query_only", "1")?;
        connection.pragma("cache_size", "-4096")?;
        Ok(connection)
    }

    /// Opens a new file that no other process uses, and that counts only once it is synced as a whole.
    pub fn connect_alone(path: &Path) -> Result<SqliteConnection> {
        let connection = Self::connect(path)?;
        connection.claim_file()?;
        for (name, value) in [("journal_mode", "off"), ("synchronous", "off")] {
            connection.pragma(name, value)?;
        }
        connection.pragma("cache_size", "-65536")?;
        Ok(connection)
    }

    pub fn in_memory(rewrites: Vec<Rewrite>) -> Result<SqliteConnection> {
        let inner = Connection::open_in_memory().map_err(|e| Error::from_sqlite("in memory", e))?;
        Ok(Self::wrap(inner, "in memory".to_string(), rewrites))
    }

    pub(super) fn connect(path: &Path) -> Result<SqliteConnection> {
        let shown = path.display().to_string();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let inner = Connection::open_with_flags(path, flags).map_err(|e| {
            Error::CannotOpen(
                shown.clone(),
                format!("{e}; check that its directory exists and is writable"),
            )
        })?;
        inner.busy_timeout(Duration::from_secs(30)).map_err(|e| Error::from_sqlite(&shown, e))?;
        // Without this SQLite looks at the values of parameters when it plans a statement, and so
        // has to plan it anew whenever they change: ten times the work of most statements here.
        inner
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .map_err(|e| Error::from_sqlite(&shown, e))?;
        Ok(Self::wrap(inner, shown, Vec::new()))
    }

    fn wrap(inner: Connection, shown: String, rewrites: Vec<Rewrite>) -> SqliteConnection {
        inner.set_prepared_statement_cache_capacity(256);
        let (counters, texts) = (RefCell::default(), RefCell::default());
        SqliteConnection { inner, shown, counters, texts, rewrites }
    }

    /// Refuses a file that some other program keeps its tables in.
    fn claim_file(&self) -> Result<()> {
        let ask = |sql: &str| {
            self.inner.query_row(sql, [], |r| r.get::<_, i64>(0)).map_err(|e| self.error(e))
        };
        // In this order: a process that makes the file sets the id before the first table.
        let tables = ask("select count(*) from sqlite_schema")?;
        let id = ask("pragma application_id")?;
        match (id, tables) {
            (APPLICATION_ID, _) => Ok(()),
            (0, 0) => self.pragma("application_id", &APPLICATION_ID.to_string()),
            _ => Err(Error::NotOurs(
                self.shown.clone(),
                "it is an SQLite database of another program".to_string(),
            )),
        }
    }

    fn pragma(&self, name: &str, value: &str) -> Result<()> {
        self.inner.pragma_update(None, name, value).map_err(|e| self.error(e))
    }

    pub(super) fn error(&self, error: rusqlite::Error) -> Error {
        Error::from_sqlite(&self.shown, error)
    }

    /// `$1` becomes `?1`, which SQLite numbers as PostgreSQL does.
    fn text(&self, statement: &Statement) -> Arc<str> {
        if let Some(text) = self.texts.borrow().get(statement.name) {
            return text.clone();
        }
        let text = statement.sqlite.replace('$', "?");
        let text: Arc<str> = rewritten(&self.rewrites, statement.name, text).into();
        self.texts.borrow_mut().insert(statement.name, text.clone());
        text
    }

    pub fn execute(&self, statement: &Statement, params: &[Value<'_>]) -> Result<u64> {
        let mut prepared = self
            .inner
            .prepare_cached(&self.text(statement))
            .map_err(|e| self.named(statement, e))?;
        let changed = prepared
            .execute(rusqlite::params_from_iter(params))
            .map_err(|e| self.named(statement, e))?;
        Ok(changed as u64)
    }

    pub fn query(
        &self,
        statement: &Statement,
        params: &[Value<'_>],
        keep: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut prepared = self
            .inner
            .prepare_cached(&self.text(statement))
            .map_err(|e| self.named(statement, e))?;
        let mut rows = prepared
            .query(rusqlite::params_from_iter(params))
            .map_err(|e| self.named(statement, e))?;
        while let Some(row) = rows.next().map_err(|e| self.named(statement, e))? {
            keep(&Row::Sqlite(row))?;
        }
        Ok(())
    }

    pub fn query_each<const N: usize>(
        &self,
        statement: &Statement,
        common: &[Value<'_>],
        sets: &[[Value<'_>; N]],
        keep: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut prepared = self
            .inner
            .prepare_cached(&self.text(statement))
            .map_err(|e| self.named(statement, e))?;
        for set in sets {
            let params = rusqlite::params_from_iter(common.iter().chain(set));
            let mut rows = prepared.query(params).map_err(|e| self.named(statement, e))?;
            while let Some(row) = rows.next().map_err(|e| self.named(statement, e))? {
                keep(&Row::Sqlite(row))?;
            }
        }
        Ok(())
    }

    pub fn execute_each<const N: usize>(
        &self,
        statement: &Statement,
        common: &[Value<'_>],
        sets: &[[Value<'_>; N]],
    ) -> Result<Vec<bool>> {
        let mut prepared = self
            .inner
            .prepare_cached(&self.text(statement))
            .map_err(|e| self.named(statement, e))?;
        sets.iter()
            .map(|set| {
                let params = rusqlite::params_from_iter(common.iter().chain(set));
                prepared.execute(params).map(|n| n > 0).map_err(|e| self.named(statement, e))
            })
            .collect()
    }

    /// Begins a transaction that excludes other writers.
    pub fn begin(&self) -> Result<()> {
        self.counters.borrow_mut().clear();
        self.raw("BEGIN IMMEDIATE")
    }

    pub fn commit(&self) -> Result<()> {
        const SET: Statement = statement!("sql/set_counter");
        for (name, value) in self.counters.borrow_mut().drain() {
            self.execute(&SET, &[Value::Text(name), Value::Int(value)])?;
        }
        self.raw("COMMIT")
    }

    pub fn roll_back(&self) -> Result<()> {
        self.counters.borrow_mut().clear();
        self.raw("ROLLBACK")
    }

    /// Advances a counter by `count` and returns its value.
    pub fn count_on(&self, name: &'static str, count: i64) -> Result<i64> {
        const VALUE: Statement = statement!("sql/counter");
        let known = self.counters.borrow().get(name).copied();
        let mut value = known.unwrap_or(0);
        if known.is_none() {
            self.query(&VALUE, &[Value::Text(name)], &mut |row| {
                value = row.get(0)?;
                Ok(())
            })?;
        }
        value += count;
        self.counters.borrow_mut().insert(name, value);
        Ok(value)
    }

    pub fn raw(&self, sql: &str) -> Result<()> {
        // Cached, because these frame every commit.
        if sql.contains(';') {
            return self.inner.execute_batch(sql).map_err(|e| self.error(e));
        }
        let mut prepared = self.inner.prepare_cached(sql).map_err(|e| self.error(e))?;
        prepared.raw_execute().map(|_| ()).map_err(|e| self.error(e))
    }

    /// True when no transaction is open: SQLite ends one by itself on a full disk, an I/O error or
    /// lack of memory.
    pub fn outside_transaction(&self) -> bool {
        self.inner.is_autocommit()
    }

    fn named(&self, statement: &Statement, error: rusqlite::Error) -> Error {
        match self.error(error) {
            Error::Other(_, text) => Error::Other(statement.name.to_string(), text),
            Error::Constraint(text) => Error::Constraint(format!("{text} in {}", statement.name)),
            error => error,
        }
    }
}

/// SQLite would say that it cannot open the file, and not why.
fn refuse_read_only(path: &Path) -> Result<()> {
    match std::fs::OpenOptions::new().write(true).open(path).map_err(|e| e.kind()) {
        Err(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            Err(Error::ReadOnly(path.display().to_string()))
        }
        _ => Ok(()),
    }
}
