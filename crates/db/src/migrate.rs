//! Numbered, forward-only changes to the schema, run at start inside one transaction under a lock.

use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::statement::Statement;
use crate::transfer::{self, MOVED};
use crate::tx::{Engine, Tx};

/// One step of the schema. Steps run in the order of their numbers; a crate on its own may lack
/// those of another.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its place in the order; a number is never used again.
    pub number: i64,
    /// The name that is recorded with the number.
    pub name: &'static str,
    /// The text for SQLite.
    pub sqlite: &'static str,
    /// The text for PostgreSQL.
    pub postgres: &'static str,
}

/// Includes a migration: `migration!(1, "queue")` is `src/migrations/0001_queue.{sqlite,postgres}.sql`.
#[macro_export]
macro_rules! migration {
    ($number:literal, $name:literal) => {
        $crate::Migration {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/migrations/",
                $name,
                ".sqlite.sql"
            )),
            postgres: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/migrations/",
                $name,
                ".postgres.sql"
            )),
        }
    };
}

const APPLIED: Statement = statement!("sql/applied_schemas");
const RECORD: Statement = statement!("sql/record_schema");

/// The caller holds the engine's lock and commits.
pub(crate) fn run(
    tx: &mut Tx<'_>,
    shown: &str,
    migrations: &[Migration],
    may_be_moved: bool,
) -> Result<()> {
    tx.raw("create table if not exists schema_versions (version bigint primary key, name text not null, applied_at bigint not null)")?;
    tx.raw(match tx.engine() {
        Engine::Sqlite => {
            "create table if not exists counters (name text primary key, value integer not null) without rowid"
        }
        Engine::Postgres => {
            "create table if not exists commit_marks (id bigint primary key, number bigint not null, at bigint not null) with (fillfactor = 50)"
        }
    })?;
    let rows: Vec<(i64, String, Micros)> = tx.query(&APPLIED, &[])?;
    if !may_be_moved {
        transfer::refuse_moved(shown, &rows)?;
    }
    let applied: Vec<i64> =
        rows.into_iter().map(|row| row.0).filter(|version| *version != MOVED).collect();
    let newest = applied.iter().copied().max().unwrap_or(0);
    let known = migrations.last().map_or(0, |m| m.number);
    if newest > known {
        return Err(Error::TooNew(shown.to_string(), newest, known));
    }
    for migration in migrations.iter().filter(|m| !applied.contains(&m.number)) {
        tx.raw(match tx.engine() {
            Engine::Sqlite => migration.sqlite,
            Engine::Postgres => migration.postgres,
        })?;
        let now = tx.now();
        tx.execute(&RECORD, &params![migration.number, migration.name, now])?;
        tracing::info!(
            database = shown,
            version = migration.number,
            name = migration.name,
            "schema migrated"
        );
    }
    Ok(())
}
