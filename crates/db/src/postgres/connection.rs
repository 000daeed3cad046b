//! A PostgreSQL connection: its settings, and statements prepared once and run by name.

use crate::Step;
use crate::address::Server;
use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::postgres::Attempt;
use crate::postgres::pipeline::{Answer, Pipeline, Wrong};
use crate::row::Row;
use crate::statement::Statement;
use crate::value::Encoded;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Notification, SimpleQueryMessage};

/// READ COMMITTED and synchronous commits whatever the server's defaults. A process that is
/// stopped in mid-transaction loses its transaction rather than blocking everyone else. Tables that
/// were empty when PostgreSQL last looked are still read by their indexes. Statements are planned
/// once: left to itself PostgreSQL plans those anew each time that are given a short list.
const SETTINGS: &str = "SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off; \
     SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET client_min_messages = warning";

/// Lists with filters that may be absent are planned for those that are there.
const BEGIN_READING: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL plan_cache_mode = auto";

const OLDEST_VERSION: i32 = 130_000;

/// For so long after it was read, the server's clock is reckoned.
const CLOCK_GOOD: Duration = Duration::from_secs(10);
/// How far behind a reckoned time the server's clock may have been when the transaction began.
const CLOCK_OFF: Micros = 50_000;
/// And how far ahead of it: by as long as the server may take to hear of it.
const CLOCK_LATE: Micros = 1_000_000;
/// How long it may take to ask for it, so that what is reckoned from it is off by half of that.
const CLOCK_ASKED_IN: Duration = Duration::from_millis(10);

/// Statements that may be under way unanswered, and the bytes of their parameters.
const SENT_MAX: usize = 64;
const SENT_BYTES_MAX: usize = 1 << 20;

const CLOCK: Statement = statement!("sql/clock");
const MARK: Statement = statement!("sql/mark_commit");

/// The server's clock in microseconds.
const NOW: &str = "cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";

/// What a transaction leaves behind: whose it is, and which of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub id: i64,
    pub number: i64,
}

/// Rows that were asked for and not waited for.
#[derive(Default, Clone)]
pub(crate) struct Answered(Arc<Mutex<Vec<tokio_postgres::Row>>>);

impl Answered {
    pub fn each(&self, keep: &mut dyn FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let rows = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        rows.iter().try_for_each(|row| keep(&Row::Postgres(row)))
    }
}

/// What a transaction took for the server's clock, and when.
struct Reckoning {
    now: Micros,
    at: Instant,
}

impl Reckoning {
    /// Between which times the transaction must have begun by the server's clock.
    fn bounds(&self) -> [Micros; 2] {
        let since = Micros::try_from(self.at.elapsed().as_micros()).unwrap_or(Micros::MAX / 2);
        [self.now - CLOCK_OFF, self.now + since + CLOCK_LATE]
    }
}

pub(crate) struct PostgresConnection {
    pipeline: Pipeline,
    statements: HashMap<&'static str, tokio_postgres::Statement>,
    sent_bytes: usize,
    /// The server's clock when it was last read, and when that was by ours.
    clock: Option<(Micros, Instant)>,
    reckoning: Option<Reckoning>,
    shown: String,
    step: Option<Step>,
}

impl PostgresConnection {
    pub fn open(server: &Server) -> Result<PostgresConnection> {
        let mut connection = PostgresConnection {
            pipeline: Pipeline::open(server)?,
            statements: HashMap::new(),
            sent_bytes: 0,
            clock: None,
            reckoning: None,
            shown: server.shown().to_string(),
            step: None,
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
        self.pipeline.is_closed()
    }

    /// Opens a transaction; the time is the server's. Where it can be reckoned nobody asks for it: one
    /// that only reads decides nothing by the clock, and what one that writes takes for it is looked
    /// at by the server before it commits.
    pub fn begin(&mut self, read_only: bool) -> Result<Micros> {
        self.reckoning = None;
        self.send_raw(if read_only { BEGIN_READING } else { "BEGIN" });
        // Whoever looks at the order of steps waits for every one of them.
        match self.reckoned().filter(|_| read_only || !self.is_stepped()) {
            Some(now) => {
                self.reckoning = Some(Reckoning { now, at: Instant::now() });
                Ok(now)
            }
            None => self.ask_clock(),
        }
    }

    fn ask_clock(&mut self) -> Result<Micros> {
        let (mut now, steps, before) = (None, self.step.take(), Instant::now());
        let asked = self.query(&CLOCK, &[], &mut |row| {
            now = Some(row.get(0)?);
            Ok(())
        });
        self.step = steps;
        asked?;
        let now = now.ok_or_else(|| {
            Error::Other(self.shown.clone(), "the server's clock could not be read".to_string())
        })?;
        // The server read it somewhere between; from an answer that was long under way nothing can
        // be reckoned.
        let took = before.elapsed();
        self.clock = (took < CLOCK_ASKED_IN).then(|| (now, before + took / 2));
        Ok(now)
    }

    fn reckoned(&self) -> Option<Micros> {
        let (then, at) = self.clock?;
        let since = Some(at.elapsed()).filter(|since| *since < CLOCK_GOOD)?;
        Some(then + Micros::try_from(since.as_micros()).ok()?)
    }

    /// Ends a transaction that only read. Nothing depends on the answer, so nobody waits for it.
    pub fn end_reading(&mut self) {
        self.send_raw("COMMIT");
        self.pipeline.flush();
    }

    /// Commits, leaving `mark` behind by which a commit whose answer is lost can be found again.
    /// A transaction's own id would not do: ids that never reached the disk before a crash are
    /// given to other transactions after it.
    ///
    /// The mark is refused if the server's clock was not where the transaction took it to be.
    ///
    /// `news` is a NOTIFY that the server sees to right after the COMMIT, while its answer is on the
    /// way: a transaction of its own, for those that notify wait for each other until they are on disk.
    pub fn commit(
        &mut self,
        mark: Mark,
        wakes: Vec<i64>,
        news: Option<String>,
        last_try: bool,
    ) -> Attempt {
        self.pause_before("commit");
        // One round trip for both, and for what was sent before. If something failed, the server
        // takes the COMMIT for a ROLLBACK, and the error is that of what was sent.
        let (step, told) = (self.step.take(), news.is_some());
        let [earliest, latest] = self.reckoning.take().map_or([None; 2], |r| r.bounds().map(Some));
        let done = self
            .send(&MARK, &[&mark.id, &mark.number, &earliest, &latest])
            .and_then(|()| self.commit_and_tell(news));
        self.step = step;
        match done {
            Ok(()) => Attempt::Committed { wakes, told },
            // If nothing had been written there is no mark, and it runs again.
            Err(Error::Unavailable(..)) => Attempt::Unknown(mark, wakes),
            Err(error) => {
                self.roll_back();
                match error {
                    Error::Collision(why) => Attempt::Collided(why),
                    Error::Duplicate(_) if !last_try => Attempt::Duplicate,
                    error => Attempt::Refused(Err(error)),
                }
            }
        }
    }

    fn commit_and_tell(&mut self, news: Option<String>) -> Result<()> {
        let client = self.pipeline.client();
        let news = news.map(|text| {
            let client = client.clone();
            let told: Answer = Box::pin(async move {
                // Whoever does not hear of it finds the work by polling.
                if let Err(error) = client.batch_execute(&text).await {
                    tracing::debug!(%error, "a wake-up was not sent");
                }
                Ok(())
            });
            ("notify", told)
        });
        self.sent_bytes = 0;
        self.pipeline
            .ask_and_send(async move { client.batch_execute("COMMIT").await }, news)
            .map_err(|wrong| match wrong.is_null_in(MARK.name) {
                // The machine slept, or somebody set a clock. The next transaction asks for it.
                true => {
                    self.clock = None;
                    let why = "the server's clock is not where it was reckoned";
                    Error::Collision(why.to_string())
                }
                false => self.explain("", wrong),
            })
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
        let client = self.pipeline.client();
        let messages = self.ask("", async move { client.simple_query(sql).await })?;
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
        let client = self.pipeline.client();
        self.ask("", async move { client.batch_execute(sql).await })
    }

    /// As `raw`, for text whose success shows in what is asked after it.
    pub fn send_raw(&mut self, sql: &'static str) {
        let client = self.pipeline.client();
        self.pipeline.send(sql, async move { client.batch_execute(sql).await });
    }

    /// The next notification, if one comes in time.
    pub fn notification(&mut self, time: Duration) -> Option<Notification> {
        self.pipeline.notification(time)
    }

    fn prepared(&mut self, statement: &Statement) -> Result<tokio_postgres::Statement> {
        if let Some(prepared) = self.statements.get(statement.name) {
            return Ok(prepared.clone());
        }
        let (client, text) = (self.pipeline.client(), statement.postgres);
        let prepared = self.ask(statement.name, async move { client.prepare(text).await })?;
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
        let client = self.pipeline.client();
        self.ask(statement.name, async move { client.execute(&prepared, params).await })
    }

    /// Runs a statement whose answer nobody needs: it goes to the server with the next one, whose
    /// error its own is.
    pub fn send(&mut self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<()> {
        if self.is_stepped() {
            return self.execute(statement, params).map(drop);
        }
        let prepared = self.prepared(statement)?;
        let encoded = Encoded::all(params, prepared.params())
            .map_err(|e| Error::Other(statement.name.to_string(), e.to_string()))?;
        self.sent_bytes += encoded.iter().map(Encoded::len).sum::<usize>();
        let client = self.pipeline.client();
        self.pipeline.send(statement.name, async move {
            client.execute_raw(&prepared, encoded).await.map(drop)
        });
        if self.pipeline.unanswered() >= SENT_MAX || self.sent_bytes >= SENT_BYTES_MAX {
            self.ask("", std::future::ready(Ok(())))?;
        }
        Ok(())
    }

    /// Asks without waiting: the answer is there once the next question is answered.
    pub fn ask_ahead(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Answered> {
        let prepared = self.prepared(statement)?;
        let encoded = Encoded::all(params, prepared.params())
            .map_err(|e| Error::Other(statement.name.to_string(), e.to_string()))?;
        let (client, answered) = (self.pipeline.client(), Answered::default());
        let mine = answered.clone();
        self.pipeline.send(statement.name, async move {
            let params: Vec<&(dyn ToSql + Sync)> =
                encoded.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
            let rows = client.query(&prepared, &params).await?;
            *mine.0.lock().unwrap_or_else(PoisonError::into_inner) = rows;
            Ok(())
        });
        Ok(answered)
    }

    /// True if someone looks at the order in which transactions take their steps.
    pub fn is_stepped(&self) -> bool {
        self.step.is_some()
    }

    pub fn query(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
        keep: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let prepared = self.prepared(statement)?;
        self.pause_before(statement.name);
        let client = self.pipeline.client();
        let rows =
            self.ask(statement.name, async move { client.query(&prepared, params).await })?;
        rows.iter().try_for_each(|row| keep(&Row::Postgres(row)))
    }

    /// Waits for an answer and for all that was sent before; `name` is what is asked.
    fn ask<T>(
        &mut self,
        name: &'static str,
        question: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        self.sent_bytes = 0;
        self.pipeline.ask(question).map_err(|wrong| self.explain(name, wrong))
    }

    fn explain(&self, name: &'static str, Wrong { sent, error }: Wrong) -> Error {
        let name = sent.unwrap_or(name);
        match Error::from_postgres(&self.shown, error) {
            Error::Other(_, text) if !name.is_empty() => Error::Other(name.to_string(), text),
            Error::Constraint(text) if !name.is_empty() => {
                Error::Constraint(format!("{text} in {name}"))
            }
            error => error,
        }
    }
}
