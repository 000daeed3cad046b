//! A PostgreSQL connection: its settings, and statements prepared once and run by name.

use crate::Step;
use crate::address::Server;
use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::postgres::{Attempt, tls};
use crate::row::Row;
use crate::statement::Statement;
use postgres::types::ToSql;
use postgres::{Client, SimpleQueryMessage};
use std::collections::HashMap;

/// READ COMMITTED and synchronous commits whatever the server's defaults. A process that is
/// stopped in mid-transaction loses its transaction rather than blocking everyone else. Tables that
/// were empty when PostgreSQL last looked are still read by their indexes.
const SETTINGS: &str = "SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off; \
     SET enable_seqscan = off; SET client_min_messages = warning";

const OLDEST_VERSION: i32 = 130_000;

/// The server's clock in microseconds.
const NOW: &str = "cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";

/// What a transaction leaves behind: whose it is, and which of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub id: i64,
    pub number: i64,
}

pub(crate) struct PostgresConnection {
    client: Client,
    statements: HashMap<&'static str, postgres::Statement>,
    shown: String,
    step: Option<Step>,
}

impl PostgresConnection {
    pub fn open(server: &Server) -> Result<PostgresConnection> {
        let shown = server.shown().to_string();
        let connected = match tls::connector(server)? {
            None => server.config.connect(postgres::NoTls),
            Some(connector) => server.config.connect(connector),
        };
        let client = connected.map_err(|e| match Error::from_postgres(&shown, e) {
            // Nothing but the server's own refusal is final before a connection stands.
            Error::Other(context, text) => Error::Unavailable(context, text),
            error => error,
        })?;
        let mut connection =
            PostgresConnection { client, statements: HashMap::new(), shown, step: None };
        connection.raw(SETTINGS)?;
        connection.check_version()?;
        Ok(connection)
    }

    /// As `open`, for a connection that works on closures.
    pub fn open_for_work(server: &Server, step: Option<Step>) -> Result<PostgresConnection> {
        Ok(PostgresConnection { step, ..PostgresConnection::open(server)? })
    }

    fn pause_before(&self, statement: &'static str) {
        if let Some(step) = &self.step {
            step(statement);
        }
    }

    fn check_version(&mut self) -> Result<()> {
        let version = self.simple("SHOW server_version_num")?.unwrap_or_default();
        match version.parse::<i32>() {
            Ok(number) if number >= OLDEST_VERSION => Ok(()),
            _ => Err(Error::CannotOpen(
                self.shown.clone(),
                format!("PostgreSQL 13 or newer is needed, and this is {version}"),
            )),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Opens a transaction and asks for the server's clock in the same round trip.
    pub fn begin(&mut self, read_only: bool) -> Result<Micros> {
        let mode = if read_only { "ISOLATION LEVEL REPEATABLE READ READ ONLY" } else { "" };
        let now = self.simple(&format!("BEGIN {mode}; SELECT {NOW}"))?;
        now.and_then(|n| n.parse().ok()).ok_or_else(|| {
            Error::Other(self.shown.clone(), "the server's clock could not be read".to_string())
        })
    }

    /// Ends a transaction that only read.
    pub fn end_reading(&mut self) -> Attempt {
        match self.raw("COMMIT") {
            Ok(()) => Attempt::Committed(Vec::new()),
            Err(error) => Attempt::Lost(error.to_string()),
        }
    }

    /// Commits, leaving `mark` behind by which a commit whose answer is lost can be found again.
    /// A transaction's own id would not do: ids that never reached the disk before a crash are
    /// given to other transactions after it.
    pub fn commit(&mut self, mark: Mark, wakes: Vec<i64>) -> Attempt {
        self.pause_before("commit");
        // One round trip for both: if the mark cannot be left, the server does not come to COMMIT.
        let done = self.simple(&format!(
            "INSERT INTO commit_marks (id, number, at) SELECT {}, {}, {NOW} \
             WHERE pg_current_xact_id_if_assigned() IS NOT NULL \
             ON CONFLICT (id) DO UPDATE SET number = excluded.number, at = excluded.at; COMMIT",
            mark.id, mark.number
        ));
        match done {
            Ok(_) => Attempt::Committed(wakes),
            Err(Error::Collision(why)) => {
                self.roll_back();
                Attempt::Collided(why)
            }
            // If nothing had been written there is no mark, and it runs again.
            Err(Error::Unavailable(..)) => Attempt::Unknown(mark, wakes),
            Err(error) => {
                self.roll_back();
                Attempt::Refused(Err(error))
            }
        }
    }

    /// True if the transaction that left this mark was committed. Waits for one that is still
    /// under way on the server: it holds the mark's row.
    pub fn finds(&mut self, mark: Mark) -> Result<bool> {
        let found = self.simple(&format!(
            "INSERT INTO commit_marks (id, number, at) VALUES ({}, 0, {NOW}) \
             ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING number",
            mark.id
        ))?;
        Ok(found.is_some_and(|number| number == mark.number.to_string()))
    }

    pub fn roll_back(&mut self) {
        // Fails only with the connection, and then the server rolls back.
        let _ = self.raw("ROLLBACK");
    }

    /// Runs text and returns the first column of its last row.
    pub fn simple(&mut self, sql: &str) -> Result<Option<String>> {
        let messages =
            self.client.simple_query(sql).map_err(|e| Error::from_postgres(&self.shown, e))?;
        Ok(messages
            .iter()
            .rev()
            .find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_string)),
                _ => None,
            })
            .flatten())
    }

    pub fn raw(&mut self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).map_err(|e| Error::from_postgres(&self.shown, e))
    }

    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    fn prepared(&mut self, statement: &Statement) -> Result<postgres::Statement> {
        if let Some(prepared) = self.statements.get(statement.name) {
            return Ok(prepared.clone());
        }
        let prepared =
            self.client.prepare(statement.postgres).map_err(|e| self.named(statement, e))?;
        self.statements.insert(statement.name, prepared.clone());
        Ok(prepared)
    }

    pub fn execute(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        let prepared = self.prepared(statement)?;
        self.pause_before(statement.name);
        self.client.execute(&prepared, params).map_err(|e| self.named(statement, e))
    }

    pub fn query(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
        keep: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let prepared = self.prepared(statement)?;
        self.pause_before(statement.name);
        let rows = self.client.query(&prepared, params).map_err(|e| self.named(statement, e))?;
        rows.iter().try_for_each(|row| keep(&Row::Postgres(row)))
    }

    fn named(&self, statement: &Statement, error: postgres::Error) -> Error {
        match Error::from_postgres(&self.shown, error) {
            Error::Other(_, text) => Error::Other(statement.name.to_string(), text),
            Error::Constraint(text) => Error::Constraint(format!("{text} in {}", statement.name)),
            error => error,
        }
    }
}
