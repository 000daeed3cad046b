//! The tables of a PostgreSQL database, read and filled row by row by COPY in its binary format.

use crate::address::Server;
use crate::error::{Error, Result};
use crate::postgres::pipeline::{Pipeline, Trouble, Wrong, refusal};
use crate::postgres::{PostgresConnection, wait_and_prepare};
use crate::row::Row;
use crate::statement::Statement;
use crate::transfer::{Feed, Keep, Kind, Line, Table, Tables, cannot, gathered, quoted};
use crate::value::Value;
use crate::{Migration, Options};
use bytes::{Buf, BufMut, BytesMut};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend::{self, CopyData};
use std::io;

const TABLES: Statement = statement!("sql/tables", per engine);
const SEQUENCES: Statement = statement!("sql/sequences", per engine);
const VERSIONS: Statement = statement!("sql/applied_schemas");

/// The advisory lock that a move runs under ("ACCM").
const MOVE_LOCK: i64 = 0x4143_434d;
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Sent at once.
const SENT_BYTES: usize = 64 * 1024;

/// A move takes longer than anything else.
const PATIENT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on";

pub(crate) struct PostgresTables {
    connection: PostgresConnection,
}

impl PostgresTables {
    /// Connects, and holds a lock that keeps other moves of the same database away.
    pub fn open_locked(server: &Server) -> Result<PostgresTables> {
        let mut connection = PostgresConnection::open(server)?;
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
        self.connection.raw(&format!("BEGIN; {PATIENT}"))?;
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
        self.connection.raw(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {PATIENT}"))
    }

    fn count(&mut self, table: &Table) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}", quoted(&table.name));
        let count = self.connection.simple(&sql)?.and_then(|text| text.parse().ok());
        count.ok_or_else(|| Error::Other(table.name.clone(), "no count".to_string()))
    }

    fn each(&mut self, table: &Table, keep: Keep<'_>) -> Result<()> {
        let (name, columns) = (quoted(&table.name), table.columns_quoted());
        let sql = format!("COPY (SELECT {columns} FROM {name}) TO STDOUT (FORMAT binary)");
        let (mut reader, mut failed) = (Reader::default(), Ok(()));
        let copied = self.connection.pipeline.copy_out(&sql, &mut |bytes| {
            if failed.is_ok() {
                failed = reader.take(bytes, table, keep);
            }
        });
        copied.map_err(|wrong| self.connection.explain(wrong))?;
        failed
    }

    fn fill(&mut self, table: &Table, feed: Feed<'_>) -> Result<()> {
        let (name, columns) = (quoted(&table.name), table.columns_quoted());
        let sql = format!("COPY {name} ({columns}) FROM STDIN (FORMAT binary)");
        let begun = self.connection.pipeline.copy_in(&sql);
        begun.map_err(|wrong| self.connection.explain(wrong))?;
        let mut gathered = BytesMut::with_capacity(SENT_BYTES * 2);
        gathered.extend_from_slice(SIGNATURE);
        gathered.put_i32(0);
        gathered.put_i32(0);
        let pipeline = &mut self.connection.pipeline;
        let shown = &self.connection.shown;
        let fed = feed(&mut |row| {
            put(&mut gathered, table, row)?;
            if gathered.len() >= SENT_BYTES {
                let sent = pipeline.copy_on(&gathered);
                gathered.clear();
                sent.map_err(|e| Error::Unavailable(shown.clone(), e.to_string()))?;
            }
            Ok(())
        });
        gathered.put_i16(-1);
        let ended = pipeline.copy_end(&gathered, fed.is_ok());
        // What failed first says more than what failed because of it; but for a refusal of the server,
        // because of which it could not be told more.
        match (fed, ended) {
            (Ok(()) | Err(Error::Unavailable(..)), Err(wrong)) => {
                Err(self.connection.explain(wrong))
            }
            (fed, _) => fed,
        }
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

/// Adds a row as COPY takes it.
fn put(out: &mut BytesMut, table: &Table, row: &[Value<'_>]) -> Result<()> {
    let count = i16::try_from(row.len()).map_err(|e| cannot(e.to_string()))?;
    out.put_i16(count);
    for (value, column) in row.iter().zip(&table.columns) {
        let bytes: &[u8] = match (value, column.kind) {
            (Value::Null, _) => {
                out.put_i32(-1);
                continue;
            }
            (Value::Int(value), Kind::Int(length)) => {
                out.put_i32(length as i32);
                // As many of its last bytes as the column has; that it fits was looked at.
                out.extend_from_slice(&value.to_be_bytes()[8 - length..]);
                continue;
            }
            (Value::Text(text), Kind::Text) => text.as_bytes(),
            (Value::Bytes(bytes), Kind::Bytes) => bytes,
            _ => {
                let (row, name) = (table.row_named(row), &column.name);
                return Err(cannot(format!("{row} has a value of another kind in {name}")));
            }
        };
        let length = i32::try_from(bytes.len()).map_err(|e| cannot(e.to_string()))?;
        out.put_i32(length);
        out.extend_from_slice(bytes);
    }
    Ok(())
}

/// Puts rows together of what COPY sends.
#[derive(Default)]
struct Reader {
    held: BytesMut,
    has_begun: bool,
    has_ended: bool,
}

impl Reader {
    fn take(&mut self, bytes: &[u8], table: &Table, keep: Keep<'_>) -> Result<()> {
        self.held.extend_from_slice(bytes);
        if !self.has_begun {
            let Some(header) = self.held.get(..SIGNATURE.len() + 8) else { return Ok(()) };
            let mut extension = &header[SIGNATURE.len() + 4..];
            let whole = header.len() + extension.get_u32() as usize;
            if self.held.len() < whole {
                return Ok(());
            }
            self.held.advance(whole);
            self.has_begun = true;
        }
        while !self.has_ended {
            let Some(length) = self.row(table, keep)? else { return Ok(()) };
            self.held.advance(length);
        }
        Ok(())
    }

    /// Reads the next row, if all of it is there; how long it is.
    fn row(&mut self, table: &Table, keep: Keep<'_>) -> Result<Option<usize>> {
        let mut rest = &self.held[..];
        let Ok(count) = rest.try_get_i16() else { return Ok(None) };
        if count < 0 {
            self.has_ended = true;
            return Ok(Some(2));
        }
        let mut values = Vec::with_capacity(table.columns.len());
        for column in table.columns.iter().take(usize::try_from(count).unwrap_or(0)) {
            let Ok(length) = rest.try_get_i32() else { return Ok(None) };
            let Ok(length) = usize::try_from(length) else {
                values.push(Value::Null);
                continue;
            };
            let Some((field, after)) = rest.split_at_checked(length) else { return Ok(None) };
            rest = after;
            let value = match column.kind {
                Kind::Int(2) => {
                    field.try_into().ok().map(|b| Value::from(i64::from(i16::from_be_bytes(b))))
                }
                Kind::Int(4) => {
                    field.try_into().ok().map(|b| Value::from(i64::from(i32::from_be_bytes(b))))
                }
                Kind::Int(_) => field.try_into().ok().map(|b| Value::from(i64::from_be_bytes(b))),
                Kind::Text => std::str::from_utf8(field).ok().map(Value::Text),
                Kind::Bytes => Some(Value::Bytes(field)),
                Kind::Other => None,
            };
            let Some(value) = value else {
                let (row, name) = (table.row_named(&values), &column.name);
                return Err(cannot(format!("{row} has a value in {name} that cannot be read")));
            };
            values.push(value);
        }
        keep(&values)?;
        Ok(Some(self.held.len() - rest.len()))
    }
}

impl Pipeline {
    /// Begins to fill a table.
    fn copy_in(&mut self, sql: &str) -> Result<(), Wrong> {
        self.begin_copy(sql)?;
        loop {
            match self.hear_copy()? {
                Message::CopyInResponse(_) => return Ok(()),
                // It was refused, or is no COPY.
                Message::ReadyForQuery(_) => return Err(broken(io::ErrorKind::InvalidData.into())),
                _ => {}
            }
        }
    }

    fn copy_on(&mut self, bytes: &[u8]) -> io::Result<()> {
        CopyData::new(bytes)?.write(&mut self.wire.out);
        self.wire.flush()
    }

    /// Ends it, or gives it up.
    fn copy_end(&mut self, rest: &[u8], is_good: bool) -> Result<(), Wrong> {
        if is_good {
            self.copy_on(rest).map_err(broken)?;
            frontend::copy_done(&mut self.wire.out);
        } else {
            frontend::copy_fail("given up", &mut self.wire.out).map_err(broken)?;
        }
        self.wire.flush().map_err(broken)?;
        self.hear_copy_end()
    }

    /// Reads what COPY sends.
    fn copy_out(&mut self, sql: &str, keep: &mut dyn FnMut(&[u8])) -> Result<(), Wrong> {
        self.begin_copy(sql)?;
        loop {
            match self.hear_copy()? {
                Message::CopyData(body) => keep(body.data()),
                Message::ReadyForQuery(_) => return Ok(()),
                _ => {}
            }
        }
    }

    fn begin_copy(&mut self, sql: &str) -> Result<(), Wrong> {
        self.settle()?;
        frontend::query(sql, &mut self.wire.out).map_err(broken)?;
        self.wire.flush().map_err(broken)
    }

    fn hear_copy_end(&mut self) -> Result<(), Wrong> {
        while !matches!(self.hear_copy()?, Message::ReadyForQuery(_)) {}
        Ok(())
    }

    /// The next message; a refusal ends the COPY, and is an error once the server is ready again.
    fn hear_copy(&mut self) -> Result<Message, Wrong> {
        let mut refused = None;
        loop {
            match self.wire.read().map_err(broken)? {
                None => {}
                Some(Message::ErrorResponse(body)) => {
                    let trouble = refusal(body.fields()).map_err(broken)?;
                    refused = Some(Wrong::with("", trouble));
                }
                Some(message @ Message::ReadyForQuery(_)) => {
                    return refused.map_or(Ok(message), Err);
                }
                Some(_) if refused.is_some() => {}
                Some(message) => return Ok(message),
            }
        }
    }
}

fn broken(error: io::Error) -> Wrong {
    Wrong::with("", Trouble::Broken(error))
}
