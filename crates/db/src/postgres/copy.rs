//! The tables of a PostgreSQL database, read and filled row by row by COPY in its binary format.

use crate::address::Server;
use crate::error::{Error, Result};
use crate::postgres::{BEGIN, Hooks, PostgresConnection, wait_and_prepare};
use crate::row::Row;
use crate::statement::Statement;
use crate::transfer::{Feed, Keep, Kind, Line, Table, Tables, cannot, gathered, quoted};
use crate::value::Value;
use crate::{Migration, Options};
use futures_util::TryStreamExt;
use std::pin::pin;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutRow, BinaryCopyOutStream};
use tokio_postgres::types::Type;

const TABLES: Statement = statement!("sql/tables", per engine);
const SEQUENCES: Statement = statement!("sql/sequences", per engine);
const VERSIONS: Statement = statement!("sql/applied_schemas");

/// The advisory lock that a move runs under ("ACCM").
const MOVE_LOCK: i64 = 0x4143_434d;
/// A move takes longer than anything else.
const NO_TIMEOUTS: &str = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on";

pub(crate) struct PostgresTables {
    connection: PostgresConnection,
}

impl PostgresTables {
    /// Connects, and holds a lock that keeps other moves of the same database away.
    pub fn open_locked(server: &Server) -> Result<PostgresTables> {
        let mut connection = PostgresConnection::open(server, Hooks::default())?;
        let locked = connection.simple(&format!("SELECT pg_try_advisory_lock({MOVE_LOCK})"))?;
        match locked.as_deref() {
            Some("t") => Ok(PostgresTables { connection }),
            _ => Err(Error::Busy(format!("another process is moving {}", server.shown()))),
        }
    }

    /// Connects to a database, and brings its schema up to date.
    pub fn open_new(
        server: &Server,
        migrations: &[Migration],
        options: &Options,
    ) -> Result<PostgresTables> {
        Ok(PostgresTables { connection: wait_and_prepare(server, migrations, options)? })
    }

    /// Begins a transaction that locks these tables against other writers.
    pub fn begin_filling(&mut self, tables: &[Table]) -> Result<()> {
        let names: Vec<String> = tables.iter().map(|table| quoted(&table.name)).collect();
        self.connection.raw(&format!("{BEGIN}; {NO_TIMEOUTS}"))?;
        if !names.is_empty() {
            self.connection.raw(&format!("LOCK TABLE {} IN EXCLUSIVE MODE", names.join(", ")))?;
        }
        Ok(())
    }
}

impl Tables for PostgresTables {
    fn catalog(&mut self) -> Result<Vec<Table>> {
        let mut lines: Vec<Line> = Vec::new();
        self.connection.query(&TABLES, &[], &mut |row| {
            let kind = match row.get::<String>(2)?.as_str() {
                "int2" => Kind::Int(2),
                "int4" => Kind::Int(4),
                "int8" => Kind::Int(8),
                "text" => Kind::Text,
                "bytea" => Kind::Bytes,
                _ => Kind::Other,
            };
            lines.push((row.get(0)?, row.get(1)?, kind, row.get(3)?, row.get(4)?));
            Ok(())
        })?;
        Ok(gathered(lines))
    }

    fn begin_reading(&mut self) -> Result<()> {
        self.connection
            .raw(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {NO_TIMEOUTS}"))
    }

    fn count(&mut self, table: &Table) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}", quoted(&table.name));
        let count = self.connection.simple(&sql)?.and_then(|text| text.parse().ok());
        count.ok_or_else(|| Error::Other(table.name.clone(), "no count".to_string()))
    }

    fn each(&mut self, table: &Table, keep: Keep<'_>) -> Result<()> {
        let (name, columns) = (quoted(&table.name), table.columns_quoted());
        let sql = format!("COPY (SELECT {columns} FROM {name}) TO STDOUT (FORMAT binary)");
        let client = self.connection.client();
        let stream = self.connection.run(async { client.copy_out(&sql).await })?;
        let mut rows = pin!(BinaryCopyOutStream::new(stream, &types(table)));
        while let Some(row) = self.connection.run(rows.try_next())? {
            keep(&values(table, &row)?)?;
        }
        Ok(())
    }

    fn fill(&mut self, table: &Table, feed: Feed<'_>) -> Result<()> {
        let (name, columns) = (quoted(&table.name), table.columns_quoted());
        let sql = format!("COPY {name} ({columns}) FROM STDIN (FORMAT binary)");
        let client = self.connection.client();
        let sink = self.connection.run(async { client.copy_in(&sql).await })?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types(table)));
        feed(&mut |row| {
            if row.len() != table.columns.len() {
                return Err(cannot(format!("{} has other columns", table.row_named(row))));
            }
            self.connection.run(writer.as_mut().write_raw(row))
        })?;
        // What the server refused of the rows, it says now.
        self.connection.run(writer.finish()).map(drop)
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
        let name = quoted(name).replace('\'', "''");
        self.connection.raw(&format!("SELECT setval('{name}', {value})"))
    }

    fn set_identities(&mut self, tables: &[Table]) -> Result<()> {
        for table in tables {
            for column in table.columns.iter().filter(|column| column.is_identity) {
                let (name, text) = (quoted(&table.name), quoted(&table.name).replace('\'', "''"));
                let (quoted, literal) = (quoted(&column.name), column.name.replace('\'', "''"));
                self.connection.raw(&format!(
                    "SELECT setval(pg_get_serial_sequence('{text}', '{literal}'), \
                     coalesce((SELECT max({quoted}) FROM {name}), 0) + 1, false)"
                ))?;
            }
        }
        Ok(())
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

/// The types of a table's columns.
fn types(table: &Table) -> Vec<Type> {
    let kinds = table.columns.iter().map(|column| match column.kind {
        Kind::Int(2) => Type::INT2,
        Kind::Int(4) => Type::INT4,
        Kind::Int(_) => Type::INT8,
        Kind::Bytes => Type::BYTEA,
        Kind::Text | Kind::Other => Type::TEXT,
    });
    kinds.collect()
}

/// The values of a row.
fn values<'r>(table: &Table, row: &'r BinaryCopyOutRow) -> Result<Vec<Value<'r>>> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let value = match column.kind {
            Kind::Int(2) => row.try_get::<Option<i16>>(index).map(|v| v.map(i64::from).into()),
            Kind::Int(4) => row.try_get::<Option<i32>>(index).map(|v| v.map(i64::from).into()),
            Kind::Int(_) => row.try_get::<Option<i64>>(index).map(Value::from),
            Kind::Bytes => row.try_get::<Option<&[u8]>>(index).map(Value::from),
            Kind::Text | Kind::Other => row.try_get::<Option<&str>>(index).map(Value::from),
        };
        let Ok(value) = value else {
            let (row, name) = (table.row_named(&values), &column.name);
            return Err(cannot(format!("{row} has a value in {name} that cannot be read")));
        };
        values.push(value);
    }
    Ok(values)
}
