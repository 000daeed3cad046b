//! Rows that come out of a statement, read by position into typed values.

use crate::error::{Error, Result};
use std::ops::Range;
use tokio_postgres::types::{FromSql, Type};

/// One row of a result, of either engine.
pub enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(PostgresRow<'a>),
}

/// A row as it came over the wire.
pub struct PostgresRow<'a> {
    pub(crate) columns: &'a [Type],
    /// Where each column is in the bytes; nowhere if it is null.
    pub(crate) ranges: &'a [Option<Range<usize>>],
    pub(crate) bytes: &'a [u8],
}

impl<'a> PostgresRow<'a> {
    fn get<T: FromSql<'a>>(&self, index: usize) -> Result<Option<T>> {
        let (Some(kind), Some(range)) = (self.columns.get(index), self.ranges.get(index)) else {
            return Err(wrong(index, &"is not there"));
        };
        if !T::accepts(kind) {
            return Err(wrong(index, &format!("is of type {kind}")));
        }
        let raw = range.clone().and_then(|range| self.bytes.get(range));
        raw.map(|raw| T::from_sql(kind, raw)).transpose().map_err(|e| wrong(index, &e))
    }

    fn int(&self, index: usize) -> Result<Option<i64>> {
        match self.columns.get(index) {
            Some(&Type::INT2) => Ok(self.get::<i16>(index)?.map(i64::from)),
            Some(&Type::INT4) => Ok(self.get::<i32>(index)?.map(i64::from)),
            Some(&Type::BOOL) => Ok(self.get::<bool>(index)?.map(i64::from)),
            _ => self.get(index),
        }
    }
}

impl Row<'_> {
    /// The value in a column, counted from 0.
    pub fn get<T: FromColumn>(&self, index: usize) -> Result<T> {
        T::from_column(self, index)
    }

    fn int(&self, index: usize) -> Result<Option<i64>> {
        match self {
            Row::Sqlite(row) => row.get(index).map_err(|e| wrong(index, &e)),
            Row::Postgres(row) => row.int(index),
        }
    }
}

fn wrong(index: usize, error: &dyn std::fmt::Display) -> Error {
    Error::Other(format!("column {index}"), error.to_string())
}

/// A Rust type that a column can be read into.
pub trait FromColumn: Sized {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self>;
}

fn present<T>(index: usize, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| wrong(index, &"is null"))
}

impl FromColumn for Option<i64> {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        row.int(index)
    }
}
impl FromColumn for i64 {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        present(index, row.int(index)?)
    }
}
impl FromColumn for bool {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        Ok(present(index, row.int(index)?)? != 0)
    }
}
impl FromColumn for Option<String> {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        match row {
            Row::Sqlite(row) => row.get(index).map_err(|e| wrong(index, &e)),
            Row::Postgres(row) => row.get(index),
        }
    }
}
impl FromColumn for String {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        present(index, Option::<String>::from_column(row, index)?)
    }
}
impl FromColumn for Option<Vec<u8>> {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        match row {
            Row::Sqlite(row) => row.get(index).map_err(|e| wrong(index, &e)),
            Row::Postgres(row) => row.get(index),
        }
    }
}
impl FromColumn for Vec<u8> {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        present(index, Option::<Vec<u8>>::from_column(row, index)?)
    }
}

/// A Rust type that a whole row can be read into.
pub trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> Result<Self>;
}

impl FromRow for () {
    fn from_row(_: &Row<'_>) -> Result<Self> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt),+) => {
        impl<$($name: FromColumn),+> FromRow for ($($name,)+) {
            fn from_row(row: &Row<'_>) -> Result<Self> {
                Ok(($(row.get::<$name>($index)?,)+))
            }
        }
    };
}
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
