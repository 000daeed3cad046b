//! A PostgreSQL connection: its settings, and statements prepared once and run by name.

use crate::Step;
use crate::address::Server;
use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::postgres::Attempt;
use crate::postgres::connect;
use crate::postgres::pipeline::{Answer, Pipeline, Prepared, Trouble, Wrong};
use crate::postgres::wire::Wire;
use crate::row::{PostgresRow, Row};
use crate::statement::Statement;
use fallible_iterator::FallibleIterator;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::ToSql;

/// READ COMMITTED and synchronous commits whatever the server's defaults. A process that is
/// stopped in mid-transaction loses its transaction rather than blocking everyone else. Tables that
/// were empty when PostgreSQL last looked are still read by their indexes. Statements are planned
/// once: left to itself PostgreSQL plans those anew each time that are given a short list.
const SETTINGS: &str = "SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off; \
     SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET client_min_messages = warning";

/// Lists with filters that may be absent are planned for those that are there.
const BEGIN_READING: [&str; 2] =
    ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL plan_cache_mode = auto"];

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
const NOTIFY: Statement = statement!("sql/notify");

/// The server's clock in microseconds.
const NOW: &str = "cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";

/// What a transaction leaves behind: whose it is, and which of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub id: i64,
    pub number: i64,
}

/// The answer to a question that was not waited for.
pub(crate) struct Answered {
    prepared: Arc<Prepared>,
    answer: Answer,
}

impl Answered {
    pub fn each(&self, keep: &mut dyn FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let mut ranges = Vec::with_capacity(self.prepared.columns.len());
        for row in &self.answer.rows {
            let wrong = |e: std::io::Error| Error::Other("a row".to_string(), e.to_string());
            ranges.clear();
            let mut found = row.ranges();
            while let Some(range) = found.next().map_err(wrong)? {
                ranges.push(range);
            }
            let columns = &self.prepared.columns;
            keep(&Row::Postgres(PostgresRow { columns, ranges: &ranges, bytes: row.buffer() }))?;
        }
        Ok(())
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
    pub(super) pipeline: Pipeline,
    statements: HashMap<&'static str, Arc<Prepared>>,
    /// Statements whose answers are to come with the next, and those that came.
    asked_ahead: VecDeque<Arc<Prepared>>,
    ahead: Vec<Answer>,
    /// The server's clock when it was last read, and when that was by ours.
    clock: Option<(Micros, Instant)>,
    reckoning: Option<Reckoning>,
    begun_ahead: bool,
    pub(super) shown: String,
    step: Option<Step>,
}

impl PostgresConnection {
    /// Connects to the first of the address's servers that there is and that is as it should be.
    pub fn open(server: &Server) -> Result<PostgresConnection> {
        let none = "it names no server".to_string();
        let mut failed = Error::BadAddress(server.shown().to_string(), none);
        for place in connect::places(server)? {
            let opened = connect::connect(server, &place).and_then(|stream| {
                let mut connection = PostgresConnection {
                    pipeline: Pipeline::new(Wire::new(stream)),
                    statements: HashMap::new(),
                    asked_ahead: VecDeque::new(),
                    ahead: Vec::new(),
                    clock: None,
                    reckoning: None,
                    begun_ahead: false,
                    shown: server.shown().to_string(),
                    step: None,
                };
                connection.check_role(server.config.get_target_session_attrs())?;
                connection.raw(SETTINGS)?;
                connection.check_version()?;
                Ok(connection)
            });
            match opened {
                Err(error) => failed = error,
                opened => return opened,
            }
        }
        Err(failed)
    }

    /// Of several servers most cannot be written to.
    fn check_role(&mut self, wanted: TargetSessionAttrs) -> Result<()> {
        let (refused, why) = match wanted {
            TargetSessionAttrs::ReadWrite => ("on", "it cannot be written to"),
            TargetSessionAttrs::ReadOnly => ("off", "it can be written to"),
            _ => return Ok(()),
        };
        match self.simple("SHOW transaction_read_only")?.as_deref() == Some(refused) {
            true => Err(Error::Unavailable(self.shown.clone(), why.to_string())),
            false => Ok(()),
        }
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
        self.asked_ahead.clear();
        self.ahead.clear();
        match (std::mem::take(&mut self.begun_ahead), read_only) {
            (true, false) => {}
            (false, false) => self.send_raw("BEGIN")?,
            (ahead, true) => {
                if ahead {
                    self.send_raw("ROLLBACK")?;
                }
                BEGIN_READING.iter().try_for_each(|text| self.send_raw(text))?;
            }
        }
        // Whoever looks at the order of steps waits for every one of them.
        match self.reckoned().filter(|_| read_only || !self.is_stepped()) {
            Some(now) => {
                self.reckoning = Some(Reckoning { now, at: Instant::now() });
                Ok(now)
            }
            None => self.ask_clock(),
        }
    }

    /// Begins a transaction before it is known what is to be done in it, so that the server is awake
    /// when it is. Nothing is looked at or locked until then.
    pub fn begin_ahead(&mut self) {
        if self.send_raw("BEGIN").is_ok() {
            self.begun_ahead = true;
            self.pipeline.begin_saying();
        }
    }

    /// Ends a transaction for which there was nothing to do.
    pub fn end_ahead(&mut self) {
        if std::mem::take(&mut self.begun_ahead) && self.send_raw("ROLLBACK").is_ok() {
            self.pipeline.flush();
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
        // If it cannot be said the next transaction finds the connection broken.
        if self.send_raw("COMMIT").is_ok() {
            self.pipeline.flush();
        }
    }

    /// Commits, leaving `mark` behind by which a commit whose answer is lost can be found again.
    /// A transaction's own id would not do: ids that never reached the disk before a crash are
    /// given to other transactions after it.
    ///
    /// The mark is refused if the server's clock was not where the transaction took it to be.
    ///
    /// `news` is for others. The server sees to it right after the COMMIT, before that is answered: a
    /// transaction of its own, for those that notify wait for each other until they are on disk.
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
        let (step, news_told) = (self.step.take(), news.is_some());
        let [earliest, latest] = self.reckoning.take().map_or([None; 2], |r| r.bounds().map(Some));
        let done = self
            .send(&MARK, &[&mark.id, &mark.number, &earliest, &latest])
            .and_then(|()| self.commit_and_tell(news.as_deref()));
        self.step = step;
        match done {
            Ok(told) => Attempt::Committed { wakes, told: told && news_told },
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

    /// Commits, and then tells others the news; false if they could not be told.
    fn commit_and_tell(&mut self, news: Option<&str>) -> Result<bool> {
        let news = news.map(|news| Ok((self.prepared(&NOTIFY)?, news))).transpose()?;
        self.pipeline.send_text("COMMIT", true).map_err(|wrong| self.explain(wrong))?;
        if let Some((prepared, news)) = &news {
            self.say(&NOTIFY, prepared, &[news], false)?;
        }
        match self.pipeline.settle() {
            Ok(_) => Ok(true),
            // The COMMIT was answered: only what came behind it went wrong.
            Err(wrong) if !wrong.before.is_empty() => Ok(false),
            Err(wrong) => Err(self.explain(wrong)),
        }
    }

    /// Tells others the news, in a transaction of its own.
    pub fn notify(&mut self, news: &str) -> Result<()> {
        self.execute(&NOTIFY, &[&news]).map(drop)
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
        let answer = self.pipeline.script(sql).map_err(|wrong| self.explain(wrong))?;
        let Some(row) = answer.rows.last() else { return Ok(None) };
        let first = row.ranges().next().ok().flatten().flatten();
        Ok(first.map(|range| String::from_utf8_lossy(&row.buffer()[range]).into_owned()))
    }

    pub fn raw(&mut self, sql: &str) -> Result<()> {
        self.simple(sql).map(drop)
    }

    /// As `raw`, for one command whose success shows in what is asked after it.
    pub fn send_raw(&mut self, sql: &'static str) -> Result<()> {
        self.pipeline.send_text(sql, false).map_err(|wrong| self.explain(wrong))
    }

    /// The next notification, if one comes in time.
    pub fn notification(&mut self, time: Duration) -> Option<String> {
        self.pipeline.notification(time)
    }

    fn prepared(&mut self, statement: &Statement) -> Result<Arc<Prepared>> {
        if let Some(prepared) = self.statements.get(statement.name) {
            return Ok(prepared.clone());
        }
        let prepared = self
            .pipeline
            .prepare(statement.name, statement.postgres, &mut self.ahead)
            .map_err(|wrong| self.explain(wrong))?;
        self.statements.insert(statement.name, prepared.clone());
        Ok(prepared)
    }

    pub fn execute(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        Ok(self.ask(statement, params)?.answer.changed)
    }

    /// Runs a statement whose answer nobody needs: it goes to the server with the next one, whose
    /// error its own is.
    pub fn send(&mut self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<()> {
        if self.is_stepped() {
            return self.execute(statement, params).map(drop);
        }
        let prepared = self.prepared(statement)?;
        self.say(statement, &prepared, params, false)?;
        let (statements, bytes) = self.pipeline.unsaid();
        if statements >= SENT_MAX || bytes >= SENT_BYTES_MAX {
            let answers = self.pipeline.settle().map_err(|wrong| self.explain(wrong))?;
            self.ahead.extend(answers);
        }
        Ok(())
    }

    fn say(
        &mut self,
        statement: &Statement,
        prepared: &Prepared,
        params: &[&(dyn ToSql + Sync)],
        wanted: bool,
    ) -> Result<()> {
        self.pipeline
            .send(statement.name, prepared, params, wanted)
            .map_err(|wrong| self.explain(wrong))
    }

    /// Asks without waiting: the answer is there once the next question is answered.
    pub fn ask_ahead(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<()> {
        let prepared = self.prepared(statement)?;
        self.say(statement, &prepared, params, true)?;
        self.asked_ahead.push_back(prepared);
        Ok(())
    }

    /// The answer to the first question that was asked ahead.
    pub fn answered(&mut self) -> Option<Answered> {
        if self.ahead.is_empty() {
            return None;
        }
        let prepared = self.asked_ahead.pop_front()?;
        Some(Answered { prepared, answer: self.ahead.remove(0) })
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
        self.ask(statement, params)?.each(keep)
    }

    /// Waits for an answer and for all that was sent before.
    fn ask(&mut self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<Answered> {
        let prepared = self.prepared(statement)?;
        self.pause_before(statement.name);
        self.say(statement, &prepared, params, true)?;
        let mut answers = self.pipeline.settle().map_err(|wrong| self.explain(wrong))?;
        let answer = answers.pop().unwrap_or_default();
        self.ahead.extend(answers);
        Ok(Answered { prepared, answer })
    }

    pub(super) fn explain(&mut self, wrong: Wrong) -> Error {
        if wrong.is_null_in(MARK.name) {
            // The machine slept, or somebody set a clock. The next transaction asks for it.
            self.clock = None;
            let why = "the server's clock is not where it was reckoned";
            return Error::Collision(why.to_string());
        }
        let Wrong { statement, trouble, .. } = wrong;
        let place = if statement.is_empty() { self.shown.as_str() } else { statement };
        let error = match trouble {
            Trouble::Refused { code, text } => Error::from_postgres(&self.shown, &code, &text),
            Trouble::Unfit(text) => Error::Other(place.to_string(), text),
            Trouble::Broken(error) => Error::Unavailable(self.shown.clone(), error.to_string()),
        };
        match error {
            Error::Other(_, text) => Error::Other(place.to_string(), text),
            Error::Constraint(text) => Error::Constraint(format!("{text} in {place}")),
            error => error,
        }
    }
}
