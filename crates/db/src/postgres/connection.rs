//! A PostgreSQL connection as a transaction uses it: synchronous, with statements prepared once and run
//! by name, and with statements that are deferred until something is asked.
//!
//! Hides the client, the runtime that drives it, and what is pipelined.

use crate::address::Server;
use crate::clock::Micros;
use crate::error::{Error, Result, source_text};
use crate::postgres::connect::connect;
use crate::postgres::deferred::{Encoded, Failed, Request, pipeline};
use crate::rewrite::{Rewrite, rewritten};
use crate::row::Row;
use crate::statement::Statement;
use crate::{Options, Step};
use futures_util::future::join;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The settings of a session. READ COMMITTED and synchronous commits whatever the server's defaults. A
/// process that is stopped in a transaction loses it instead of blocking the others. We override the
/// planner's statistics, which are often those of an empty table. Statements are planned once.
/// Outside of a transaction that [`BEGIN`] began, nothing can be written: a statement that is pipelined
/// behind a BEGIN that fails changes nothing.
const SETTINGS: &str = "SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off; \
     SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET client_min_messages = warning; \
     SET default_transaction_read_only = on";

pub(super) const BEGIN: &str = "BEGIN READ WRITE";
/// Lists whose filters may be absent are planned for those that are there.
const BEGIN_READING: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL plan_cache_mode = auto";

/// The server's clock is extrapolated for this long after it was read.
const CLOCK_VALID: Duration = Duration::from_secs(10);
/// How far an extrapolated time may be ahead of the time at which the transaction began.
const CLOCK_AHEAD_MAX: Micros = 50_000;
/// How far it may be behind: the server begins the transaction later, by the time the BEGIN takes.
const CLOCK_BEHIND_MAX: Micros = 1_000_000;
/// A time is extrapolated only from an answer that came within this time: half of it is the error.
const CLOCK_ANSWER_MAX: Duration = Duration::from_millis(10);

/// Limits on deferred statements and on the bytes of their parameters.
const DEFERRED_MAX: usize = 64;
const DEFERRED_BYTES_MAX: usize = 1 << 20;

const CLOCK: Statement = statement!("sql/clock");
const MARK: Statement = statement!("sql/mark_commit");
const NOTIFY: Statement = statement!("sql/notify");

/// The server's clock in microseconds.
const NOW: &str = "cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";

/// The trace of a commit in `commit_marks`: the row of a database thread, and the number of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub id: i64,
    pub number: i64,
}

/// A time that a transaction uses for the server's, and when it was computed.
struct Extrapolated {
    now: Micros,
    at: Instant,
}

impl Extrapolated {
    /// The transaction must have begun between these times of the server's clock.
    fn bounds(&self) -> [Micros; 2] {
        let since = Micros::try_from(self.at.elapsed().as_micros()).unwrap_or(Micros::MAX / 2);
        [self.now - CLOCK_AHEAD_MAX, self.now + since + CLOCK_BEHIND_MAX]
    }
}

/// What tests change of a connection.
#[derive(Default)]
pub(crate) struct Hooks {
    step: Option<Step>,
    rewrites: Vec<Rewrite>,
}

impl Hooks {
    pub fn of(options: &Options) -> Hooks {
        Hooks { step: options.step.clone(), rewrites: options.rewrites.clone() }
    }
}

pub(crate) struct PostgresConnection {
    // Dropped before the runtime: statements that are dropped later tell the server nothing.
    client: Arc<Client>,
    statements: HashMap<&'static str, tokio_postgres::Statement>,
    deferred: Vec<Request>,
    deferred_bytes: usize,
    /// The task that talks to the server; it ends with the connection, and says why.
    driver: Option<JoinHandle<Result<(), tokio_postgres::Error>>>,
    runtime: Runtime,
    /// The server's clock when it was last read, and when that was by ours.
    clock: Option<(Micros, Instant)>,
    extrapolated: Option<Extrapolated>,
    pub(super) shown: String,
    step: Option<Step>,
    rewrites: Vec<Rewrite>,
}

impl PostgresConnection {
    /// Connects to the first server of the address that can be used. Blocks: not for async code.
    /// `hooks` are those of tests.
    pub fn open(server: &Server, hooks: Hooks) -> Result<PostgresConnection> {
        let shown = server.shown().to_string();
        let runtime = runtime()?;
        let (client, driver) = runtime.block_on(async {
            let (client, connection) = connect(server).await?;
            Ok::<_, Error>((client, tokio::spawn(connection)))
        })?;
        let mut connection = PostgresConnection {
            client: Arc::new(client),
            statements: HashMap::new(),
            deferred: Vec::new(),
            deferred_bytes: 0,
            driver: Some(driver),
            runtime,
            clock: None,
            extrapolated: None,
            shown,
            step: hooks.step,
            rewrites: hooks.rewrites,
        };
        connection.raw(SETTINGS)?;
        Ok(connection)
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed() || self.driver.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Begins a transaction and returns the server's time. BEGIN goes to the server with the first
    /// statement. The clock is not asked where its time can be extrapolated: a transaction that only
    /// reads decides nothing by it, and for one that writes the server checks the time at the commit.
    pub fn begin(&mut self, read_only: bool) -> Result<Micros> {
        self.forget_deferred();
        self.extrapolated = None;
        self.deferred.push(Request::Text(if read_only { BEGIN_READING } else { BEGIN }));
        match self.extrapolate() {
            Some(now) => {
                self.extrapolated = Some(Extrapolated { now, at: Instant::now() });
                Ok(now)
            }
            None => self.ask_clock(),
        }
    }

    fn ask_clock(&mut self) -> Result<Micros> {
        let prepared = self.prepared(&CLOCK)?;
        let (client, before) = (self.client.clone(), Instant::now());
        let (_, row) =
            self.round_trip(CLOCK.name, false, async { client.query_one(&prepared, &[]).await })?;
        let now = Row::Postgres(&row).get(0)?;
        // The server read it at some time between. A late answer is too inexact to extrapolate from.
        let took = before.elapsed();
        self.clock = (took < CLOCK_ANSWER_MAX).then(|| (now, before + took / 2));
        Ok(now)
    }

    fn extrapolate(&self) -> Option<Micros> {
        let (then, at) = self.clock?;
        let since = Some(at.elapsed()).filter(|since| *since < CLOCK_VALID)?;
        Some(then + Micros::try_from(since.as_micros()).ok()?)
    }

    /// Ends a transaction that only read. If that fails the next one finds the connection broken.
    pub fn end_reading(&mut self) {
        match self.has_begun() {
            true => _ = self.raw("COMMIT"),
            false => self.forget_deferred(),
        }
    }

    /// Commits, and leaves `mark` behind, by which a commit whose answer is lost can be found again.
    /// The transaction's own id would not do: ids that never reached the disk before a crash are given
    /// to other transactions after it.
    ///
    /// The server refuses the mark if its clock was not where the transaction took it to be.
    ///
    /// `notification` is for other processes: a transaction of its own, right behind the COMMIT, because
    /// transactions that notify wait for each other until they are on disk. Returns whether it was sent.
    pub fn commit(&mut self, mark: Mark, notification: Option<&str>) -> Result<bool> {
        let is_sent = Cell::new(false);
        let done = self.try_commit(mark, notification, &is_sent);
        // What failed before a COMMIT that was sent made a ROLLBACK of it.
        if done.is_err() && !is_sent.get() {
            self.roll_back();
        }
        done
    }

    fn try_commit(
        &mut self,
        mark: Mark,
        notification: Option<&str>,
        is_sent: &Cell<bool>,
    ) -> Result<bool> {
        let [earliest, latest] =
            self.extrapolated.take().map_or([None; 2], |time| time.bounds().map(Some));
        let notify = match notification {
            Some(text) => Some((self.prepared(&NOTIFY)?, text)),
            None => None,
        };
        self.defer(&MARK, &[&mark.id, &mark.number, &earliest, &latest])?;
        let client = self.client.clone();
        let commit = async {
            is_sent.set(true);
            client.batch_execute("COMMIT").await
        };
        let tell = async {
            match &notify {
                Some((statement, text)) => client.execute(statement, &[text]).await.is_ok(),
                None => false,
            }
        };
        let (_, is_told) = self.round_trip("commit", true, async {
            let (committed, is_told) = join(commit, tell).await;
            committed.map(|()| is_told)
        })?;
        Ok(is_told)
    }

    /// Returns whether the transaction that left this mark was committed. Waits for one that the server
    /// still works on: it holds the mark's row.
    pub fn finds(&mut self, mark: Mark) -> Result<bool> {
        let found = self.simple(&format!(
            "{BEGIN}; INSERT INTO commit_marks (id, number, at) VALUES ({}, 0, {NOW}) \
             ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING number; COMMIT",
            mark.id
        ));
        if found.is_err() {
            self.roll_back();
        }
        Ok(found?.is_some_and(|number| number == mark.number.to_string()))
    }

    /// Rolls back. That fails only with the connection, and then the server rolls back.
    pub fn roll_back(&mut self) {
        let has_begun = self.has_begun();
        self.forget_deferred();
        if has_begun && !self.is_closed() {
            if let Some(step) = &self.step {
                step("rollback");
            }
            _ = self.raw("ROLLBACK");
        }
    }

    /// False while the BEGIN of the transaction is itself deferred.
    fn has_begun(&self) -> bool {
        !matches!(self.deferred.first(), Some(Request::Text(BEGIN | BEGIN_READING)))
    }

    fn forget_deferred(&mut self) {
        self.deferred.clear();
        self.deferred_bytes = 0;
    }

    /// Runs text of any number of commands and returns the first column of the last row.
    pub fn simple(&mut self, sql: &str) -> Result<Option<String>> {
        let client = self.client.clone();
        let (_, messages) = self.round_trip("", false, async { client.simple_query(sql).await })?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(rows.last().and_then(|row| row.get(0)).map(str::to_string))
    }

    /// Runs text that returns nothing.
    pub fn raw(&mut self, sql: &str) -> Result<()> {
        let client = self.client.clone();
        self.round_trip("", false, async { client.batch_execute(sql).await }).map(drop)
    }

    /// Defers a command without parameters.
    pub fn send_raw(&mut self, sql: &'static str) {
        self.deferred.push(Request::Text(sql));
    }

    /// Runs a future of the client, which must not depend on what is deferred.
    pub(super) fn run<T>(
        &mut self,
        future: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let done = self.runtime.block_on(future);
        done.map_err(|error| self.explain(Failed { statement: "", error }))
    }

    pub(super) fn client(&self) -> Arc<Client> {
        self.client.clone()
    }

    fn prepared(&mut self, statement: &Statement) -> Result<tokio_postgres::Statement> {
        if let Some(prepared) = self.statements.get(statement.name) {
            return Ok(prepared.clone());
        }
        let text = rewritten(&self.rewrites, statement.name, statement.postgres.to_string());
        let client = self.client.clone();
        let (_, prepared) =
            self.round_trip(statement.name, false, async { client.prepare(&text).await })?;
        self.statements.insert(statement.name, prepared.clone());
        Ok(prepared)
    }

    /// Runs a statement and returns how many rows it changed.
    pub fn execute(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        let (prepared, client) = (self.prepared(statement)?, self.client.clone());
        let asked = async { client.execute(&prepared, params).await };
        self.round_trip(statement.name, true, asked).map(|(_, changed)| changed)
    }

    /// Runs a statement and passes its rows on.
    pub fn query(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
        keep: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let (prepared, client) = (self.prepared(statement)?, self.client.clone());
        let asked = async { client.query(&prepared, params).await };
        let (_, rows) = self.round_trip(statement.name, true, asked)?;
        rows.iter().try_for_each(|row| keep(&Row::Postgres(row)))
    }

    /// Runs two statements in one round trip.
    pub fn query_both(
        &mut self,
        first: (&Statement, &[&(dyn ToSql + Sync)]),
        second: (&Statement, &[&(dyn ToSql + Sync)]),
        keep_first: &mut dyn FnMut(&Row<'_>) -> Result<()>,
        keep_second: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let (prepared, client) = (self.prepared(second.0)?, self.client.clone());
        self.defer(first.0, first.1)?;
        let asked = async { client.query(&prepared, second.1).await };
        let (mut before, after) = self.round_trip(second.0.name, true, asked)?;
        let before = before.pop().unwrap_or_default();
        before.iter().try_for_each(|row| keep_first(&Row::Postgres(row)))?;
        after.iter().try_for_each(|row| keep_second(&Row::Postgres(row)))
    }

    /// Defers a statement whose answer is not needed: it goes to the server with the next one that is
    /// asked, which reports its error.
    pub fn send(&mut self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<()> {
        self.defer(statement, params)?;
        if self.deferred.len() < DEFERRED_MAX && self.deferred_bytes < DEFERRED_BYTES_MAX {
            return Ok(());
        }
        self.round_trip("", false, async { Ok(()) }).map(drop)
    }

    fn defer(&mut self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<()> {
        let prepared = self.prepared(statement)?;
        let encoded = Encoded::all(params, prepared.params());
        let params = encoded.map_err(|why| Error::Other(statement.name.to_string(), why))?;
        self.deferred_bytes += params.iter().map(Encoded::len).sum::<usize>();
        self.deferred.push(Request::Statement { name: statement.name, prepared, params });
        Ok(())
    }

    /// Sends what is deferred and then what is asked, and waits for all answers: the rows of the
    /// deferred statements, and the answer. The first error counts: in a transaction everything behind
    /// it fails because of it. `is_step` says whether what is asked is a step of a schedule.
    fn round_trip<T>(
        &mut self,
        name: &'static str,
        is_step: bool,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<(Vec<Vec<tokio_postgres::Row>>, T)> {
        let deferred = std::mem::take(&mut self.deferred);
        self.deferred_bytes = 0;
        let step = self.step.as_deref();
        let done =
            self.runtime.block_on(pipeline(&self.client, &deferred, (name, is_step), asked, step));
        done.map_err(|failed| self.explain(failed))
    }

    fn explain(&mut self, Failed { statement, error }: Failed) -> Error {
        let code = error.code();
        if statement == MARK.name && code == Some(&SqlState::NOT_NULL_VIOLATION) {
            // The machine slept, or a clock was set. The next transaction asks for the time.
            self.clock = None;
            let why = "the server's clock is not where it was expected";
            return Error::Collision(why.to_string());
        }
        if statement == BEGIN && code == Some(&SqlState::FEATURE_NOT_SUPPORTED) {
            return Error::ReadOnly(self.shown.clone());
        }
        let place = if statement.is_empty() { self.shown.as_str() } else { statement };
        match Error::from_postgres_client(&self.shown, &error) {
            Error::Unavailable(shown, why) => {
                Error::Unavailable(shown, self.why_closed().unwrap_or(why))
            }
            Error::Other(_, text) => Error::Other(place.to_string(), text),
            Error::Constraint(text) => Error::Constraint(format!("{text} in {place}")),
            error => error,
        }
    }

    /// What the connection ended with. The client's own error only says that it is closed.
    fn why_closed(&mut self) -> Option<String> {
        let ended = self.driver.take_if(|driver| driver.is_finished())?;
        match self.runtime.block_on(ended) {
            Ok(Err(error)) => Some(source_text(&error)),
            _ => None,
        }
    }
}

/// A runtime for the thread that uses a connection, which drives it while it waits.
pub(super) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Other("starting a runtime".to_string(), error.to_string()))
}
