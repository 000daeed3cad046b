//! Rows that a statement returns, read by position into typed values.

use crate::error::{Error, Result};
use tokio_postgres::types::Type;

/// One row of a result, of either engine.
pub enum Row<'a> {
    /// A row of SQLite.
    Sqlite(&'a rusqlite::Row<'a>),
    /// A row of PostgreSQL.
    Postgres(&'a tokio_postgres::Row),
}

fn postgres_int(row: &tokio_postgres::Row, index: usize) -> Result<Option<i64>> {
    let found = match row.columns().get(index).map(|column| column.type_()) {
        Some(&Type::INT2) => row.try_get::<_, Option<i16>>(index).map(|v| v.map(i64::from)),
        Some(&Type::INT4) => row.try_get::<_, Option<i32>>(index).map(|v| v.map(i64::from)),
        Some(&Type::BOOL) => row.try_get::<_, Option<bool>>(index).map(|v| v.map(i64::from)),
        _ => row.try_get(index),
    };
    found.map_err(|e| wrong(index, &e))
}

impl Row<'_> {
    /// Reads the value in a column, counted from 0.
    pub fn get<T: FromColumn>(&self, index: usize) -> Result<T> {
        T::from_column(self, index)
    }

    fn int(&self, index: usize) -> Result<Option<i64>> {
        match self {
            Row::Sqlite(row) => row.get(index).map_err(|e| wrong(index, &e)),
            Row::Postgres(row) => postgres_int(row, index),
        }
    }
}

fn wrong(index: usize, error: &dyn std::fmt::Display) -> Error {
    Error::Other(format!("column {index}"), error.to_string())
}

/// A Rust type that a column can be read into.
pub trait FromColumn: Sized {
    /// Reads the column `index`.
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self>;
}

fn present<T>(index: usize, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| wrong(index, &"is null"))
}

/// A type that is kept in a column as one integer.
pub trait FromInt: Sized {
    /// Makes a value of the integer in a column.
    fn from_int(number: i64) -> Self;
}

impl FromInt for i64 {
    fn from_int(number: i64) -> i64 {
        number
    }
}

impl<T: FromInt> FromColumn for Option<T> {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self> {
        Ok(row.int(index)?.map(T::from_int))
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
            Row::Postgres(row) => row.try_get(index).map_err(|e| wrong(index, &e)),
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
            Row::Postgres(row) => row.try_get(index).map_err(|e| wrong(index, &e)),
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
    /// Reads the row.
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
