//! Moves everything from a database of one engine into an empty one of the other.
//!
//! The source is frozen first: a mark in `schema_versions` makes [`Db::open`] refuse it, and triggers
//! refuse every change of a process that had it open already. Then all tables are copied in one
//! transaction (PostgreSQL), or into a file that gets its name when it is complete (SQLite), and read
//! again and compared before that. A move that is killed leaves a frozen source and an empty target:
//! the same call continues, and [`reopen`] undoes it.

mod catalog;
mod digest;
mod mark;
mod target;

pub(crate) use catalog::{Feed, Keep, Kind, Line, Table, Tables, cannot, gathered, quoted};
pub(crate) use mark::{MOVED, refuse_moved};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::postgres::PostgresTables;
use crate::sqlite::SqliteTables;
use crate::tx::Tx;
use crate::{Db, Engine, Migration, Options};
use digest::Digest;
use mark::{Mark, State};
use target::Target;

/// Values of a sequence that PostgreSQL gives out as one: see [`Tx::next_range`].
pub(crate) const RANGE: i64 = 4096;

/// A move of a database to another engine.
pub struct Move<'a> {
    /// The database to move.
    pub from: &'a Address,
    /// Where it goes: a new file, or an empty database on a server.
    pub to: &'a Address,
    /// The schema of both.
    pub migrations: &'a [Migration],
    /// Sequences that are only used by [`Tx::next_range`], and by statements that multiply their values
    /// as it does.
    pub ranged: &'a [&'a str],
    /// How both are opened.
    pub options: Options,
}

/// How far a move is. `total` is 0 while it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The source refuses changes from now on.
    Frozen,
    /// Rows of a table are copied.
    Copying {
        /// The table.
        table: &'a str,
        /// Rows that are copied.
        done: u64,
        /// Rows of the table.
        total: u64,
    },
    /// Rows of a table are read from the target and compared.
    Comparing {
        /// The table.
        table: &'a str,
        /// Rows that are compared.
        done: u64,
        /// Rows of the table.
        total: u64,
    },
    /// The target is complete, and the source is not marked as moved yet.
    Committed,
}

/// The result of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The tables, in the order in which they were copied.
    pub tables: Vec<MovedTable>,
    /// An earlier call that was killed had copied everything: only the source had to be marked.
    pub was_complete: bool,
}

/// One table's rows, found equal in both databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedTable {
    /// Its name.
    pub name: String,
    /// Its number of rows.
    pub rows: u64,
    /// The digest of all rows in any order: the sum of their SHA-256 digests, as hexadecimal digits.
    pub digest: String,
}

/// Where a database was moved to, and when, by its own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedTo {
    /// The address it was moved to.
    pub address: String,
    /// When it was moved.
    pub at: crate::Micros,
    /// False if the move was interrupted.
    pub is_complete: bool,
}

/// Moves a database. `check` is run on the source in the transaction that freezes it, and refuses the
/// move by an error; it sees everything that was ever committed there.
pub fn transfer<E, C>(
    moved: &Move<'_>,
    check: C,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<Moved, E>
where
    E: From<Error> + Send + 'static,
    C: Fn(&mut Tx<'_>) -> Result<(), E> + Send + 'static,
{
    if moved.from.engine() == moved.to.engine() {
        return Err(Error::NotMovable(match moved.from.engine() {
            Engine::Sqlite => "both are SQLite databases; copy one with `accession db backup FILE`, and use the copy".to_string(),
            Engine::Postgres => "both are PostgreSQL databases; use pg_dump and pg_restore (docs/database.md)".to_string(),
        })
        .into());
    }
    if let Address::Sqlite(path) = moved.from
        && !path.exists()
    {
        let shown = path.display().to_string();
        return Err(Error::CannotOpen(shown, "there is no such file".to_string()).into());
    }
    let mut source = open_locked(moved.from)?;
    let options = Options { moved: true, ..moved.options.clone() };
    let db = Db::open(moved.from, moved.migrations, &options)?;
    let begun = db.read_blocking(mark::find)?;
    if let Some(mark) = &begun
        && (mark.state == State::Moved || mark.to != moved.to.to_string())
    {
        return Err(mark.refusal(&moved.from.to_string()).into());
    }
    let id = begun.as_ref().map_or_else(mark::new_id, |mark| mark.id.clone());
    let mut target = Target::open(moved)?;
    if target.is_copy(&id)? {
        db.write_blocking(mark::complete)?;
        return Ok(Moved { tables: Vec::new(), was_complete: true });
    }
    let ours = source.catalog()?;
    let names = names_of(&ours);
    target.prepare(moved, &names)?;
    let theirs = target.tables()?.catalog()?;
    let tables = match moved.from.engine() {
        Engine::Sqlite => catalog::joined(&ours, theirs)?,
        Engine::Postgres => catalog::joined(&theirs, ours)?,
    };
    if mark::schema(source.versions()?) != mark::schema(target.tables()?.versions()?) {
        return Err(cannot(format!(
            "{} and {} have different schemas; use a new database",
            moved.from, moved.to
        ))
        .into());
    }
    if begun.is_none() {
        let mark = Mark { state: State::Moving, id: id.clone(), to: moved.to.to_string(), at: 0 };
        let names = names_of(&tables);
        db.write_blocking(move |tx| -> Result<(), E> {
            // Before the check, so that nothing comes between.
            mark::freeze(tx, &names, &mark)?;
            check(tx)
        })?;
    }
    progress(Step::Frozen);
    let copied = copy(&mut *source, &mut target, &tables, moved, progress)
        .and_then(|copied| target.commit(&id, &moved.from.to_string()).map(|()| copied));
    match copied {
        Ok(copied) => {
            progress(Step::Committed);
            db.write_blocking(mark::complete)?;
            Ok(Moved { tables: copied, was_complete: false })
        }
        // Whether the target is complete is not known, so the source stays as it is.
        Err(error @ Error::UnknownOutcome(_)) => Err(error.into()),
        Err(error) => {
            drop(target);
            let names = names_of(&tables);
            let thawed = db.write_blocking(move |tx| mark::thaw(tx, &names));
            if let Err(thaw) = thawed {
                tracing::error!(database = %moved.from, error = %thaw, "the database stays closed; `accession db reopen` opens it again");
            }
            Err(error.into())
        }
    }
}

/// Lets a database be used again that was moved, or whose move was interrupted, and returns where it was
/// moved to; None if it was not.
pub fn reopen(
    address: &Address,
    migrations: &[Migration],
    options: &Options,
) -> Result<Option<MovedTo>> {
    if let Address::Sqlite(path) = address
        && !path.exists()
    {
        let shown = path.display().to_string();
        return Err(Error::CannotOpen(shown, "there is no such file".to_string()));
    }
    let mut locked = open_locked(address)?;
    let options = Options { moved: true, ..options.clone() };
    let db = Db::open(address, migrations, &options)?;
    let Some(mark) = db.read_blocking(mark::find)? else { return Ok(None) };
    let names = names_of(&locked.catalog()?);
    db.write_blocking(move |tx| mark::thaw(tx, &names))?;
    Ok(Some(MovedTo { address: mark.to, at: mark.at, is_complete: mark.state == State::Moved }))
}

fn names_of(tables: &[Table]) -> Vec<String> {
    tables.iter().map(|table| table.name.clone()).collect()
}

/// A connection that reads, and that keeps other moves of the same database away.
fn open_locked(address: &Address) -> Result<Box<dyn Tables>> {
    Ok(match address {
        Address::Sqlite(path) => Box::new(SqliteTables::open_locked(path)?),
        Address::Postgres(server) => Box::new(PostgresTables::open_locked(server)?),
    })
}

fn copy(
    source: &mut dyn Tables,
    target: &mut Target,
    tables: &[Table],
    moved: &Move<'_>,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<Vec<MovedTable>> {
    source.begin_reading()?;
    let mut copied = Vec::new();
    for table in tables {
        let total = source.count(table)?;
        let (mut digest, mut rows) = (Digest::default(), 0);
        progress(Step::Copying { table: &table.name, done: 0, total });
        target.tables()?.fill(table, &mut |put| {
            source.each(table, &mut |row| {
                digest.add(row);
                rows += 1;
                if rows % 1000 == 0 {
                    progress(Step::Copying { table: &table.name, done: rows, total });
                }
                put(row)
            })
        })?;
        let differs = |what: &str, found: u64| {
            let name = &table.name;
            cannot(format!("{name} has {total} rows, and {found} {what}; run the command again"))
        };
        if rows != total {
            return Err(differs("were read", rows));
        }
        let (mut again, mut found) = (Digest::default(), 0);
        target.tables()?.each(table, &mut |row| {
            again.add(row);
            found += 1;
            if found % 1000 == 0 {
                progress(Step::Comparing { table: &table.name, done: found, total });
            }
            Ok(())
        })?;
        if found != total {
            return Err(differs("arrived", found));
        }
        if again != digest {
            return Err(cannot(format!(
                "rows of {} arrived with another content than they had; nothing was moved, and this should be reported",
                table.name
            )));
        }
        copied.push(MovedTable { name: table.name.clone(), rows, digest: digest.to_string() });
    }
    let sequences = source.sequences()?;
    let known = target.tables()?.sequences()?;
    let converted = sequences.into_iter().filter_map(|(name, value)| {
        let value = match (moved.ranged.contains(&name.as_str()), moved.to.engine()) {
            (false, _) => value?,
            (true, Engine::Postgres) => value? / RANGE,
            (true, Engine::Sqlite) => (value? + 1).saturating_mul(RANGE) - 1,
        };
        Some((name, value))
    });
    for (name, value) in converted.filter(|(_, value)| *value > 0) {
        if moved.to.engine() == Engine::Postgres && !known.iter().any(|(other, _)| *other == name) {
            return Err(cannot(format!("the counter {name} has no sequence on PostgreSQL")));
        }
        target.tables()?.set_sequence(&name, value)?;
    }
    target.tables()?.set_identities(tables)?;
    Ok(copied)
}
