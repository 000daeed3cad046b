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
/// stopped in mid-transaction loses its transaction rather than blocking everyone else.
const SETTINGS: &str = "SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off; \
     SET client_min_messages = warning";

const OLDEST_VERSION: i32 = 130_000;

pub(crate) struct PostgresConnection {
    client: Client,
    statements: HashMap<&'static str, postgres::Statement>,
    shown: String,
    step: Option<Step>,
    session: i64,
    mark: i64,
}

/// What to look for when the answer to a COMMIT was lost.
pub(crate) struct Ticket {
    transaction: String,
    session: i64,
    mark: i64,
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
        let mut connection = PostgresConnection {
            client,
            statements: HashMap::new(),
            shown,
            step: None,
            session: rand::random(),
            mark: 0,
        };
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
        const NOW: &str = "SELECT cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";
        let mode = if read_only { "ISOLATION LEVEL REPEATABLE READ READ ONLY" } else { "" };
        let now = self.simple(&format!("BEGIN {mode}; {NOW}"))?;
        now.and_then(|n| n.parse().ok()).ok_or_else(|| {
            Error::Other(self.shown.clone(), "the server's clock could not be read".to_string())
        })
    }

    pub fn commit(&mut self, read_only: bool, wakes: Vec<i64>) -> Attempt {
        self.pause_before("commit");
        let signed = if read_only { Ok(None) } else { self.sign() };
        let ticket = match signed {
            Ok(ticket) => ticket,
            Err(Error::Unavailable(_, why)) => return Attempt::Lost(why),
            Err(Error::Collision(why)) => return Attempt::Collided(why),
            Err(error) => return Attempt::Refused(Err(error)),
        };
        match (self.raw("COMMIT"), ticket) {
            (Ok(()), _) => Attempt::Committed(wakes),
            (Err(Error::Collision(why)), _) => Attempt::Collided(why),
            (Err(Error::Unavailable(..)), Some(ticket)) => Attempt::Unknown(ticket, wakes),
            // Nothing had been written, so nothing can have been lost.
            (Err(Error::Unavailable(_, why)), None) => Attempt::Lost(why),
            (Err(error), _) => Attempt::Refused(Err(error)),
        }
    }

    /// Leaves a mark of this transaction in the database, without which a lost answer to COMMIT
    /// could not be looked up; None if the transaction has written nothing.
    ///
    /// The transaction's id alone would not do: a server that crashes before a transaction reaches
    /// its disk gives the same id to another one afterwards.
    fn sign(&mut self) -> Result<Option<Ticket>> {
        self.mark = self.mark.wrapping_add(1);
        let (session, mark) = (self.session, self.mark);
        let transaction = self.simple(&format!(
            "INSERT INTO commit_marks (session, mark, at) SELECT {session}, {mark}, now() \
             WHERE pg_current_xact_id_if_assigned() IS NOT NULL \
             ON CONFLICT (session) DO UPDATE SET mark = excluded.mark, at = excluded.at \
             RETURNING pg_current_xact_id()"
        ))?;
        Ok(transaction.map(|transaction| Ticket { transaction, session, mark }))
    }

    pub fn roll_back(&mut self) {
        // Fails only with the connection, and then the server rolls back.
        let _ = self.raw("ROLLBACK");
    }

    /// Whether a transaction was committed; None while it is still under way.
    pub fn was_committed(&mut self, ticket: &Ticket) -> Result<Option<bool>> {
        // The id came from the server as digits; nothing else is let through.
        let digits: String = ticket.transaction.chars().filter(char::is_ascii_digit).collect();
        let status = self.simple(&format!("SELECT pg_xact_status('{digits}'::xid8)"))?;
        if status.as_deref() == Some("in progress") {
            // The old server process has not noticed yet.
            return Ok(None);
        }
        let Ticket { session, mark, .. } = ticket;
        let found = self.simple(&format!(
            "SELECT 1 FROM commit_marks WHERE session = {session} AND mark = {mark}"
        ))?;
        Ok(Some(found.is_some()))
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
