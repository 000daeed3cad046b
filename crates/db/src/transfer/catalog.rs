//! Which tables there are, and what is in their columns, as the databases themselves say.

use crate::error::{Error, Result};
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Tables that belong to an engine or to a schema, not to what is kept.
const OWN: [&str; 3] = ["schema_versions", "counters", "commit_marks"];

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An integer of so many bytes on PostgreSQL; SQLite does not tell them apart.
    Int(usize),
    Text,
    Bytes,
    /// None of ours.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: String,
    pub kind: Kind,
    /// PostgreSQL gives it values by itself.
    pub is_identity: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// Tables that its rows refer to.
    pub refers_to: BTreeSet<String>,
}

pub(crate) type Keep<'a> = &'a mut dyn FnMut(&[Value<'_>]) -> Result<()>;
/// Gives every row to what it is called with.
pub(crate) type Feed<'a> = &'a mut dyn FnMut(Keep<'_>) -> Result<()>;

/// The tables of one database, read and filled row by row.
pub(crate) trait Tables {
    /// All tables of the schema, but for those of the engine.
    fn catalog(&mut self) -> Result<Vec<Table>>;
    /// Begins to read one moment of the database.
    fn begin_reading(&mut self) -> Result<()>;
    fn count(&mut self, table: &Table) -> Result<u64>;
    fn each(&mut self, table: &Table, keep: Keep<'_>) -> Result<()>;
    fn fill(&mut self, table: &Table, feed: Feed<'_>) -> Result<()>;
    /// Sequences and the last value each gave, if it gave any.
    fn sequences(&mut self) -> Result<Vec<(String, Option<i64>)>>;
    /// The next value will be the one after `value`.
    fn set_sequence(&mut self, name: &str, value: i64) -> Result<()>;
    /// Columns with values of their own go on after the largest that is there.
    fn set_identities(&mut self, tables: &[Table]) -> Result<()>;
    fn run(&mut self, sql: &str) -> Result<()>;
    /// The versions of the schema and their names.
    fn versions(&mut self) -> Result<Vec<(i64, String)>>;
}

pub(crate) fn cannot(why: String) -> Error {
    Error::NotMovable(why)
}

/// One row of a catalog: table, column, kind, identity, and a table that the column refers to.
pub(crate) type Line = (String, String, Kind, bool, Option<String>);

pub(crate) fn gathered(lines: Vec<Line>) -> Vec<Table> {
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for (name, column, kind, is_identity, refers_to) in lines {
        if OWN.contains(&name.as_str()) {
            continue;
        }
        let table = tables.entry(name.clone()).or_insert_with(|| Table {
            name,
            columns: Vec::new(),
            refers_to: BTreeSet::new(),
        });
        table.refers_to.extend(refers_to);
        if table.columns.iter().all(|other| other.name != column) {
            table.columns.push(Column { name: column, kind, is_identity });
        }
    }
    tables.into_values().collect()
}

/// The tables of both, in an order in which none refers to a later one. PostgreSQL knows the kinds of
/// columns better; and it may have tables of others, which SQLite's file has not.
pub(crate) fn joined(sqlite: &[Table], mut postgres: Vec<Table>) -> Result<Vec<Table>> {
    postgres.retain(|table| sqlite.iter().any(|same| same.name == table.name));
    let names = |table: &Table| {
        let names = table.columns.iter().map(|column| column.name.clone());
        names.collect::<BTreeSet<_>>()
    };
    for table in sqlite {
        let same = postgres.iter().find(|same| same.name == table.name);
        if same.is_none_or(|same| names(same) != names(table)) {
            return Err(cannot(format!(
                "the table {} is not the same in both databases; use one version of the program, and a new database",
                table.name
            )));
        }
    }
    let kinds = postgres.iter().flat_map(|table| table.columns.iter().map(move |c| (table, c)));
    if let Some((table, column)) = kinds.into_iter().find(|(_, c)| c.kind == Kind::Other) {
        let (table, column) = (&table.name, &column.name);
        return Err(cannot(format!(
            "the column {column} of {table} is of a kind that is not known"
        )));
    }
    let (mut ordered, mut left) = (Vec::<Table>::new(), postgres);
    while !left.is_empty() {
        let is_next = |table: &Table| {
            let mut wanted = table.refers_to.iter().filter(|name| **name != table.name);
            wanted.all(|name| ordered.iter().any(|done| done.name == *name))
        };
        let (next, rest): (Vec<Table>, Vec<Table>) = left.into_iter().partition(is_next);
        if next.is_empty() {
            let names: Vec<String> = rest.into_iter().map(|table| table.name).collect();
            return Err(cannot(format!("tables refer to one another: {}", names.join(", "))));
        }
        ordered.extend(next);
        left = rest;
    }
    Ok(ordered)
}

impl Table {
    /// Its columns for SQL.
    pub fn columns_quoted(&self) -> String {
        self.columns.iter().map(|c| quoted(&c.name)).collect::<Vec<_>>().join(", ")
    }

    /// The table, and which of its rows, for a message.
    pub fn row_named(&self, row: &[Value<'_>]) -> String {
        let value = match row.first() {
            Some(Value::Int(value)) => value.to_string(),
            Some(Value::Text(value)) => format!("{value:?}"),
            _ => "another kind of value".to_string(),
        };
        let column = self.columns.first().map_or("", |column| column.name.as_str());
        format!("the row of {} whose {column} is {value}", self.name)
    }
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_after_those_it_refers_to() {
        let tables = |kind: Kind, more: &[&str]| {
            let line = |name: &str, to: Option<&str>| {
                (name.to_string(), "id".to_string(), kind, false, to.map(String::from))
            };
            let mut lines = vec![
                line("a", Some("c")),
                line("b", Some("a")),
                line("c", Some("c")),
                line("counters", None),
            ];
            lines.extend(more.iter().map(|name| line(name, None)));
            gathered(lines)
        };
        let sqlite = tables(Kind::Int(8), &[]);
        let joined = |postgres| joined(&sqlite, postgres);
        let both = joined(tables(Kind::Int(2), &["of_others"])).unwrap();
        let names: Vec<&str> = both.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["c", "a", "b"]);
        assert_eq!(both[0].columns[0].kind, Kind::Int(2), "as PostgreSQL says");
        let without = tables(Kind::Int(2), &[]).into_iter().filter(|table| table.name != "b");
        assert!(joined(without.collect()).unwrap_err().to_string().contains("table b"));
        assert!(joined(tables(Kind::Other, &[])).is_err());
    }
}
