//! One transaction over either engine. Rules see nothing else of a database.

use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::postgres::PostgresConnection;
use crate::row::{FromInt, FromRow, Row};
use crate::sqlite::SqliteConnection;
use crate::statement::Statement;
use crate::transfer::RANGE;
use crate::value::Value;
use std::collections::HashSet;
use tokio_postgres::types::ToSql;

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

pub(crate) enum Inner<'c> {
    Sqlite(&'c SqliteConnection),
    Postgres(&'c mut PostgresConnection),
}

/// An open transaction.
pub struct Tx<'c> {
    inner: Inner<'c>,
    now: Micros,
    /// Set when a statement failed: PostgreSQL would turn a COMMIT into a silent ROLLBACK, and an
    /// engine looks here to decide whether the closure runs again.
    pub(crate) failure: Option<Failure>,
    pub(crate) wakes: Vec<i64>,
    /// The closure does not run again because of a row that was there already.
    pub(crate) last_try: bool,
    /// The closure ran before, and a row that it wanted to add was there already.
    pub(crate) met_duplicate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Collision,
    Duplicate,
    Unavailable,
    Final,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(inner: Inner<'c>, now: Micros) -> Tx<'c> {
        Tx { inner, now, failure: None, wakes: Vec::new(), last_try: false, met_duplicate: false }
    }

    /// Returns the engine.
    pub fn engine(&self) -> Engine {
        match self.inner {
            Inner::Sqlite(_) => Engine::Sqlite,
            Inner::Postgres(_) => Engine::Postgres,
        }
    }

    /// Returns when this transaction began, by the engine's clock or the injected one.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Returns false if the closure will run again when a row that it adds is there already.
    pub fn is_last_try(&self) -> bool {
        self.last_try
    }

    /// Returns whether the closure ran before and failed, because a row that it added was there already.
    /// A closure may add a row that is rarely there without looking, the first time.
    pub fn has_met_duplicate(&self) -> bool {
        self.met_duplicate
    }

    /// Runs a statement and returns how many rows it changed.
    pub fn execute(&mut self, statement: &Statement, params: &[Value<'_>]) -> Result<u64> {
        let done = match &mut self.inner {
            Inner::Sqlite(connection) => connection.execute(statement, params),
            Inner::Postgres(connection) => connection.execute(statement, &dynamic(params)),
        };
        self.note(done)
    }

    /// Defers a statement whose answer is not needed. PostgreSQL gets it together with the next one,
    /// without a round trip of its own; if it fails, that one reports the error, or the commit does.
    pub fn send(&mut self, statement: &Statement, params: &[Value<'_>]) -> Result<()> {
        let done = match &mut self.inner {
            Inner::Sqlite(connection) => connection.query(statement, params, &mut |_| Ok(())),
            Inner::Postgres(connection) => connection.send(statement, &dynamic(params)),
        };
        self.note(done)
    }

    /// Runs a statement and reads all its rows.
    pub fn query<T: FromRow>(
        &mut self,
        statement: &Statement,
        params: &[Value<'_>],
    ) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        let mut keep = |row: &Row<'_>| {
            rows.push(T::from_row(row)?);
            Ok(())
        };
        let done = match &mut self.inner {
            Inner::Sqlite(connection) => connection.query(statement, params, &mut keep),
            Inner::Postgres(connection) => connection.query(statement, &dynamic(params), &mut keep),
        };
        self.note(done)?;
        Ok(rows)
    }

    /// Runs two statements in one round trip. The second must not depend on the first one's answer.
    pub fn query_both<A: FromRow, B: FromRow>(
        &mut self,
        first: (&Statement, &[Value<'_>]),
        second: (&Statement, &[Value<'_>]),
    ) -> Result<(Vec<A>, Vec<B>)> {
        let Inner::Postgres(connection) = &mut self.inner else {
            return Ok((self.query(first.0, first.1)?, self.query(second.0, second.1)?));
        };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let asked = connection.query_both(
            (first.0, &dynamic(first.1)),
            (second.0, &dynamic(second.1)),
            &mut |row| {
                before.push(A::from_row(row)?);
                Ok(())
            },
            &mut |row| {
                after.push(B::from_row(row)?);
                Ok(())
            },
        );
        self.note(asked)?;
        Ok((before, after))
    }

    /// Returns the first row, if there is one.
    pub fn first<T: FromRow>(
        &mut self,
        statement: &Statement,
        params: &[Value<'_>],
    ) -> Result<Option<T>> {
        Ok(self.query(statement, params)?.into_iter().next())
    }

    /// Returns the one row that must be there.
    pub fn one<T: FromRow>(&mut self, statement: &Statement, params: &[Value<'_>]) -> Result<T> {
        self.first(statement, params)?
            .ok_or_else(|| Error::Other(statement.name.to_string(), "no row".to_string()))
    }

    /// Runs a statement once for a set of rows and returns all its rows.
    ///
    /// `common` are parameters `$1…$k`; a row's values follow them. PostgreSQL gets each column of
    /// the rows as one array (its statement uses `unnest`) in one round trip; SQLite, which has no
    /// round trips, runs the prepared statement row by row.
    pub fn each<T: FromRow, const N: usize>(
        &mut self,
        statement: &Statement,
        common: &[Value<'_>],
        rows: &[[Value<'_>; N]],
    ) -> Result<Vec<T>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut keep = |row: &Row<'_>| {
            found.push(T::from_row(row)?);
            Ok(())
        };
        let done = match &mut self.inner {
            Inner::Sqlite(connection) => connection.query_each(statement, common, rows, &mut keep),
            Inner::Postgres(connection) => {
                let columns = columns(rows);
                connection.query(statement, &with_columns(common, &columns), &mut keep)
            }
        };
        self.note(done)?;
        Ok(found)
    }

    /// As [`Tx::each`] for a statement whose answer is not needed, deferred as by [`Tx::send`].
    pub fn send_each<const N: usize>(
        &mut self,
        statement: &Statement,
        common: &[Value<'_>],
        rows: &[[Value<'_>; N]],
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let done = match &mut self.inner {
            Inner::Sqlite(connection) => connection.execute_each(statement, common, rows).map(drop),
            Inner::Postgres(connection) => {
                let columns = columns(rows);
                connection.send(statement, &with_columns(common, &columns))
            }
        };
        self.note(done)
    }

    /// Runs a statement once for a set of rows and returns for which of them it changed something.
    ///
    /// As [`Tx::each`], for hot paths: the PostgreSQL statement returns the value of column `key`
    /// of each row that it changed, and the SQLite one needs no `returning`, which would build a
    /// temporary table for every row.
    pub fn each_hit<const N: usize>(
        &mut self,
        statement: &Statement,
        common: &[Value<'_>],
        rows: &[[Value<'_>; N]],
        key: usize,
    ) -> Result<Vec<bool>> {
        if let Inner::Sqlite(connection) = &self.inner {
            let done = connection.execute_each(statement, common, rows);
            return self.note(done);
        }
        let hit: HashSet<i64> =
            self.each::<(i64,), N>(statement, common, rows)?.into_iter().map(|r| r.0).collect();
        Ok(rows.iter().map(|row| matches!(row[key], Value::Int(id) if hit.contains(&id))).collect())
    }

    /// Returns the next `count` values of a sequence, ascending.
    pub fn next_ids<T: FromInt>(&mut self, sequence: &'static str, count: usize) -> Result<Vec<T>> {
        const TAKE: Statement = statement!("sql/next_ids");
        if count == 0 {
            return Ok(Vec::new());
        }
        let n = i64::try_from(count).unwrap_or(i64::MAX);
        if let Inner::Sqlite(connection) = &self.inner {
            let counted = connection.count_on(sequence, n);
            let last = self.note(counted)?;
            return Ok((last - n + 1..=last).map(T::from_int).collect());
        }
        let params = [Value::Text(sequence), Value::Int(n)];
        let mut ids: Vec<i64> =
            self.query::<(i64,)>(&TAKE, &params)?.into_iter().map(|r| r.0).collect();
        ids.sort_unstable();
        Ok(ids.into_iter().map(T::from_int).collect())
    }

    /// As [`Tx::next_ids`], where only the order matters: PostgreSQL returns whole ranges,
    /// of which the values that are not wanted are dropped.
    pub fn next_range(&mut self, sequence: &'static str, count: usize) -> Result<Vec<i64>> {
        if self.engine() == Engine::Sqlite {
            return self.next_ids(sequence, count);
        }
        let firsts: Vec<i64> = self.next_ids(sequence, count.div_ceil(RANGE as usize))?;
        let all = firsts.into_iter().flat_map(|n| n * RANGE..(n + 1) * RANGE);
        Ok(all.take(count).collect())
    }

    /// Runs `work` so that its failure undoes what it did and nothing else.
    pub fn savepoint<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Tx<'c>) -> Result<T, E>,
    ) -> Result<T, E> {
        match &mut self.inner {
            Inner::Postgres(connection) => connection.send_raw("SAVEPOINT inner_work"),
            Inner::Sqlite(_) => self.raw("SAVEPOINT inner_work")?,
        }
        let mut done = work(self);
        if done.is_ok() && self.failure.is_none() {
            // This also reports the errors of deferred statements.
            done = self.raw("RELEASE SAVEPOINT inner_work").map_err(E::from).and(done);
        }
        match done {
            Ok(value) if self.failure.is_none() => Ok(value),
            failed => {
                // A collision or a lost connection ends the whole transaction.
                if matches!(self.failure, None | Some(Failure::Final)) {
                    self.failure = None;
                    self.raw("ROLLBACK TO SAVEPOINT inner_work")?;
                    self.raw("RELEASE SAVEPOINT inner_work")?;
                }
                failed
            }
        }
    }

    /// Wakes subscribers of `topic`, in this process and others, once the transaction is durable.
    pub fn wake(&mut self, topic: impl Into<i64>) {
        let topic = topic.into();
        if !self.wakes.contains(&topic) {
            self.wakes.push(topic);
        }
    }

    /// Runs text that has no parameters and no results: savepoints, schema.
    pub(crate) fn raw(&mut self, sql: &str) -> Result<()> {
        let done = match &mut self.inner {
            Inner::Sqlite(connection) => connection.raw(sql),
            Inner::Postgres(connection) => connection.raw(sql),
        };
        self.note(done)
    }

    fn note<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done {
            self.failure = Some(match error {
                Error::Collision(_) => Failure::Collision,
                Error::Duplicate(_) if !self.last_try => Failure::Duplicate,
                Error::Unavailable(..) => Failure::Unavailable,
                _ => Failure::Final,
            });
        }
        done
    }
}

fn dynamic<'p>(params: &'p [Value<'_>]) -> Vec<&'p (dyn ToSql + Sync)> {
    params.iter().map(|p| p as &(dyn ToSql + Sync)).collect()
}

/// The columns of a set of rows, which PostgreSQL gets as arrays for `unnest`.
fn columns<'v, const N: usize>(rows: &[[Value<'v>; N]]) -> [Vec<Value<'v>>; N] {
    std::array::from_fn(|index| rows.iter().map(|row| row[index]).collect())
}

fn with_columns<'p, 'v, const N: usize>(
    common: &'p [Value<'_>],
    columns: &'p [Vec<Value<'v>>; N],
) -> Vec<&'p (dyn ToSql + Sync)> {
    let mut params = dynamic(common);
    params.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
    params
}
