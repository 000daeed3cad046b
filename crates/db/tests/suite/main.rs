//! What callers of `db` rely on, on both engines.
//!
//! PostgreSQL tests run on servers of their own where its programs are installed; the full disk
//! needs root. Where something is missing the test says that it was skipped.
#![allow(clippy::unwrap_used)]

mod backup;
mod clocks;
mod commits;
mod failover;
mod full_disk;
mod log;
mod lost_server;
mod migrations;
mod notifications;
mod sending;
mod server;
mod sharing;
mod tls;

use db::{Db, Error, Migration, Options, Result, Statement, Tx, Value};
use std::path::Path;

/// A table without any constraint, so that a row written twice is there twice.
const LETTERS: Migration = Migration {
    number: 1,
    name: "letters",
    sqlite: "create table letters (id integer not null, body text not null)",
    postgres: "create table letters (id bigint not null, body text not null)",
};

const fn both(sql: &'static str) -> Statement {
    Statement { name: sql, sqlite: sql, postgres: sql }
}

const INSERT: Statement = both("insert into letters (id, body) values ($1, $2)");
const IDS: Statement = both("select id from letters order by id");

fn open(path: &Path) -> Result<Db> {
    Db::open(&db::Address::sqlite(path), &[LETTERS], &Options::default())
}

fn insert(tx: &mut Tx<'_>, id: i64) -> Result<()> {
    tx.execute(&INSERT, &[Value::Int(id), Value::Text("Dear Ann")]).map(|_| ())
}

fn ids(db: &Db) -> Vec<i64> {
    let rows: Vec<(i64,)> = db.read_blocking::<_, Error, _>(|tx| tx.query(&IDS, &[])).unwrap();
    rows.into_iter().map(|r| r.0).collect()
}
