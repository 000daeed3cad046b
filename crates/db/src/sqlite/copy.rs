//! The tables of an SQLite file, read and filled row by row.

use crate::error::{Error, Result};
use crate::row::Row;
use crate::sqlite::SqliteConnection;
use crate::statement::Statement;
use crate::transfer::{Feed, Keep, Kind, Line, Table, Tables, cannot, gathered, quoted};
use crate::value::Value;
use rusqlite::types::ValueRef;
use std::fs::{File, TryLockError};
use std::path::Path;

const TABLES: Statement = statement!("sql/tables", per engine);
const SEQUENCES: Statement = statement!("sql/sequences", per engine);
const VERSIONS: Statement = statement!("sql/applied_schemas");
const SET_COUNTER: Statement = statement!("sql/set_counter");

pub(crate) struct SqliteTables {
    connection: SqliteConnection,
    /// Locked for as long as this is open.
    _lock: Option<File>,
}

impl SqliteTables {
    pub fn open(path: &Path) -> Result<SqliteTables> {
        Ok(SqliteTables { connection: SqliteConnection::open_for_reading(path)?, _lock: None })
    }

    /// Opens it, and holds a lock that keeps other moves of the same database away.
    pub fn open_locked(path: &Path) -> Result<SqliteTables> {
        let shown = path.display().to_string();
        let lock = super::open_beside(path, "-move")
            .map_err(|e| Error::CannotOpen(format!("{shown}-move"), e.to_string()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy(format!("another process is moving {shown}")));
            }
            Err(TryLockError::Error(e)) => return Err(Error::Other(shown, e.to_string())),
        }
        Ok(SqliteTables { _lock: Some(lock), ..SqliteTables::open(path)? })
    }

    /// Reads and fills tables by a connection that writes.
    pub fn filling(connection: SqliteConnection) -> SqliteTables {
        SqliteTables { connection, _lock: None }
    }

    pub fn close(self) -> Result<()> {
        let shown = self.connection.shown.clone();
        self.connection.inner.close().map_err(|(_, e)| Error::from_sqlite(&shown, e))
    }
}

impl Tables for SqliteTables {
    fn catalog(&mut self) -> Result<Vec<Table>> {
        let mut lines: Vec<Line> = Vec::new();
        self.connection.query(&TABLES, &[], &mut |row| {
            let kind = match row.get::<String>(2)?.as_str() {
                "integer" | "bigint" => Kind::Int(8),
                "text" => Kind::Text,
                "blob" => Kind::Bytes,
                _ => Kind::Other,
            };
            lines.push((row.get(0)?, row.get(1)?, kind, row.get(3)?, row.get(4)?));
            Ok(())
        })?;
        Ok(gathered(lines))
    }

    fn begin_reading(&mut self) -> Result<()> {
        self.connection.raw("BEGIN")
    }

    fn count(&mut self, table: &Table) -> Result<u64> {
        let sql = format!("select count(*) from {}", quoted(&table.name));
        let count: i64 = self
            .connection
            .inner
            .query_row(&sql, [], |row| row.get(0))
            .map_err(|e| self.connection.error(e))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn each(&mut self, table: &Table, keep: Keep<'_>) -> Result<()> {
        let error = |e| self.connection.error(e);
        let sql = format!("select {} from {}", table.columns_quoted(), quoted(&table.name));
        let mut statement = self.connection.inner.prepare(&sql).map_err(error)?;
        let mut rows = statement.query([]).map_err(error)?;
        while let Some(row) = rows.next().map_err(error)? {
            let mut values = Vec::with_capacity(table.columns.len());
            for (index, column) in table.columns.iter().enumerate() {
                let found = row.get_ref(index).map_err(error)?;
                let Some(value) = as_kind(found, column.kind) else {
                    let (row, name) = (table.row_named(&values), &column.name);
                    return Err(cannot(format!(
                        "{row} has a value in {name} that PostgreSQL does not take: {}",
                        problem(found)
                    )));
                };
                values.push(value);
            }
            keep(&values)?;
        }
        Ok(())
    }

    fn fill(&mut self, table: &Table, feed: Feed<'_>) -> Result<()> {
        let error = |e| self.connection.error(e);
        let places = vec!["?"; table.columns.len()].join(", ");
        let (name, columns) = (quoted(&table.name), table.columns_quoted());
        let sql = format!("insert into {name} ({columns}) values ({places})");
        let mut statement = self.connection.inner.prepare(&sql).map_err(error)?;
        feed(&mut |row| statement.execute(rusqlite::params_from_iter(row)).map(drop).map_err(error))
    }

    fn sequences(&mut self) -> Result<Vec<(String, Option<i64>)>> {
        let mut found = Vec::new();
        self.connection.query(&SEQUENCES, &[], &mut |row| {
            found.push((row.get(0)?, row.get(1)?));
            Ok(())
        })?;
        Ok(found)
    }

    fn set_sequence(&mut self, name: &str, value: i64) -> Result<()> {
        self.connection.execute(&SET_COUNTER, &[Value::Text(name), Value::Int(value)]).map(drop)
    }

    fn set_identities(&mut self, _: &[Table]) -> Result<()> {
        Ok(()) // SQLite goes on after the largest by itself.
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.connection.raw(sql)
    }

    fn versions(&mut self) -> Result<Vec<(i64, String)>> {
        let mut found = Vec::new();
        self.connection.query(&VERSIONS, &[], &mut |row: &Row<'_>| {
            found.push((row.get(0)?, row.get(1)?));
            Ok(())
        })?;
        Ok(found)
    }
}

/// A value as PostgreSQL would keep it; SQLite keeps any kind in any column.
fn as_kind(found: ValueRef<'_>, kind: Kind) -> Option<Value<'_>> {
    let text = |bytes| match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Some(Value::Text(text)),
        _ => None,
    };
    match (found, kind) {
        (ValueRef::Null, _) => Some(Value::Null),
        (ValueRef::Integer(value), Kind::Int(bytes)) => {
            let bits = u32::try_from(bytes).ok()? * 8 - 1;
            let fits = bits >= 63 || (-(1i64 << bits)..1i64 << bits).contains(&value);
            fits.then_some(Value::Int(value))
        }
        (ValueRef::Text(bytes) | ValueRef::Blob(bytes), Kind::Text) => text(bytes),
        (ValueRef::Text(bytes) | ValueRef::Blob(bytes), Kind::Bytes) => Some(Value::Bytes(bytes)),
        _ => None,
    }
}

fn problem(found: ValueRef<'_>) -> &'static str {
    match found {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) if bytes.contains(&0) => "it contains U+0000",
        ValueRef::Text(_) | ValueRef::Blob(_) => "it is no text, or not UTF-8",
        _ => "it is a number that does not fit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_as_their_column_has_them() {
        let text = |bytes| ValueRef::Text(bytes);
        assert_eq!(as_kind(text(b"x"), Kind::Text), Some(Value::Text("x")));
        assert_eq!(as_kind(text(b"x"), Kind::Bytes), Some(Value::Bytes(b"x")));
        assert_eq!(as_kind(text(b"a\0b"), Kind::Text), None);
        assert_eq!(as_kind(text(b"\xff"), Kind::Text), None);
        assert_eq!(as_kind(text(b"1"), Kind::Int(8)), None);
        let int = ValueRef::Integer;
        assert_eq!(as_kind(int(32_767), Kind::Int(2)), Some(Value::Int(32_767)));
        assert_eq!(as_kind(int(32_768), Kind::Int(2)), None);
        assert_eq!(as_kind(int(-32_768), Kind::Int(2)), Some(Value::Int(-32_768)));
        assert_eq!(as_kind(int(i64::MIN), Kind::Int(8)), Some(Value::Int(i64::MIN)));
        assert_eq!(as_kind(ValueRef::Real(1.0), Kind::Int(8)), None);
    }
}
