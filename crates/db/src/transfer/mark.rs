//! How a database says that it was moved: a version of the schema that no program knows, so that
//! earlier programs refuse it too, and triggers for those that have it open.

use super::catalog::quoted;
use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::statement::Statement;
use crate::tx::{Engine, Tx};
use crate::value::Value;

/// The version that says that a database was moved, or is being moved.
pub(crate) const MOVED: i64 = i64::MAX;
/// The version that says where a database's content came from.
const ORIGIN: i64 = -1;

const RECORD: Statement = statement!("sql/record_schema");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Moving,
    Moved,
}

/// Where a database goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub state: State,
    /// The same in the target once it is complete.
    pub id: String,
    /// Its address, without a password.
    pub to: String,
    pub at: Micros,
}

impl Mark {
    fn parse(text: &str, at: Micros) -> Option<Mark> {
        let mut parts = text.splitn(3, ' ');
        let state = match parts.next()? {
            "moving" => State::Moving,
            "moved" => State::Moved,
            _ => return None,
        };
        Some(Mark { state, id: parts.next()?.to_string(), to: parts.next()?.to_string(), at })
    }

    fn text(&self) -> String {
        let state = match self.state {
            State::Moving => "moving",
            State::Moved => "moved",
        };
        format!("{state} {} {}", self.id, self.to)
    }

    pub fn refusal(&self, shown: &str) -> Error {
        let to = &self.to;
        Error::Moved(match self.state {
            State::Moved => format!(
                "the database {shown} was moved to {to}; use that one, or `accession db reopen` to go on with this one"
            ),
            State::Moving => format!(
                "the database {shown} is being moved to {to}, or that was interrupted; run `accession db migrate --to {to}` again, or `accession db reopen` to go on with this one"
            ),
        })
    }
}

pub(super) fn new_id() -> String {
    format!("{:016x}", fastrand::u64(..))
}

/// Refuses a database that was moved; the rows are those of `schema_versions`.
pub(crate) fn refuse_moved(shown: &str, rows: &[(i64, String, Micros)]) -> Result<()> {
    let mark = rows.iter().find(|row| row.0 == MOVED);
    match mark.and_then(|(_, text, at)| Mark::parse(text, *at)) {
        Some(mark) => Err(mark.refusal(shown)),
        None => Ok(()),
    }
}

/// The versions that say what the tables are like.
pub(super) fn schema(mut versions: Vec<(i64, String)>) -> Vec<(i64, String)> {
    versions.retain(|(version, _)| (0..MOVED).contains(version));
    versions
}

/// True if these are the versions of a database that was filled by the move of this id.
pub(super) fn is_copy(versions: &[(i64, String)], id: &str) -> bool {
    let of_move = format!("from {id} ");
    versions.iter().any(|(version, text)| *version == ORIGIN && text.starts_with(&of_move))
}

/// Says in the target where its content came from.
pub(super) fn origin(id: &str, from: &str, now: Micros) -> String {
    let text = format!("from {id} {from}").replace('\'', "''");
    format!(
        "insert into schema_versions (version, name, applied_at) values ({ORIGIN}, '{text}', {now})"
    )
}

pub(super) fn find(tx: &mut Tx<'_>) -> Result<Option<Mark>> {
    const FIND: Statement = statement!("sql/find_mark");
    let found: Option<(String, Micros)> = tx.first(&FIND, &[Value::Int(MOVED)])?;
    Ok(found.and_then(|(text, at)| Mark::parse(&text, at)))
}

/// Refuses every change from now on, by those that have the database open and by those to come.
pub(super) fn freeze(tx: &mut Tx<'_>, tables: &[String], mark: &Mark) -> Result<()> {
    let text = format!(
        "this database is being moved, or was moved, to {}; end this program and use that one",
        mark.to
    );
    let text = text.replace('\'', "''");
    let mut sql = String::new();
    match tx.engine() {
        Engine::Sqlite => {
            for (table, act) in tables.iter().flat_map(|t| ACTS.map(|act| (t, act))) {
                let (name, table) = (quoted(&trigger(act, table)), quoted(table));
                sql.push_str(&format!(
                    "create trigger {name} before {act} on {table} begin select raise(abort, '{text}'); end;\n"
                ));
            }
        }
        Engine::Postgres => {
            sql.push_str(&format!(
                "create or replace function accession_moved() returns trigger language plpgsql as $moved$ begin \
                 raise exception using errcode = 'AC001', message = '{text}'; end $moved$;\n"
            ));
            for table in tables {
                sql.push_str(&format!(
                    "create trigger accession_moved before insert or update or delete or truncate on {} \
                     for each statement execute function accession_moved();\n",
                    quoted(table)
                ));
            }
        }
    }
    tx.raw(&sql)?;
    let now = tx.now();
    tx.execute(&RECORD, &params![MOVED, &mark.text(), now])?;
    Ok(())
}

/// Ends what [`freeze`] began.
pub(super) fn thaw(tx: &mut Tx<'_>, tables: &[String]) -> Result<()> {
    const REMOVE: Statement = statement!("sql/remove_mark");
    let mut sql = String::new();
    match tx.engine() {
        Engine::Sqlite => {
            for (table, act) in tables.iter().flat_map(|t| ACTS.map(|act| (t, act))) {
                sql.push_str(&format!(
                    "drop trigger if exists {};\n",
                    quoted(&trigger(act, table))
                ));
            }
        }
        Engine::Postgres => {
            for table in tables {
                sql.push_str(&format!(
                    "drop trigger if exists accession_moved on {};\n",
                    quoted(table)
                ));
            }
            sql.push_str("drop function if exists accession_moved();\n");
        }
    }
    tx.raw(&sql)?;
    tx.execute(&REMOVE, &[Value::Int(MOVED)])?;
    Ok(())
}

/// Says that the target is complete.
pub(super) fn complete(tx: &mut Tx<'_>) -> Result<()> {
    const UPDATE: Statement = statement!("sql/update_mark");
    if let Some(mark) = find(tx)? {
        let (text, now) = (Mark { state: State::Moved, ..mark }.text(), tx.now());
        tx.execute(&UPDATE, &params![MOVED, &text, now])?;
    }
    Ok(())
}

const ACTS: [&str; 3] = ["insert", "update", "delete"];

fn trigger(act: &str, table: &str) -> String {
    format!("moved_{act}_{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_written() {
        for state in [State::Moving, State::Moved] {
            let to = "sqlite:///a directory/b.db".to_string();
            let mark = Mark { state, id: new_id(), to, at: 7 };
            assert_eq!(Mark::parse(&mark.text(), 7), Some(mark));
        }
        assert_eq!(Mark::parse("queue", 0), None);
    }
}
