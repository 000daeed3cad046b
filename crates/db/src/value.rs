//! Values that go into a statement: the same four kinds on both engines.

use bytes::BytesMut;
use postgres_protocol::types::{ArrayDimension, array_to_sql};
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::error::Error as StdError;
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

/// A parameter of a statement. Times and ids are integers, JSON is text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// The integer, or 0 for anything else.
    pub fn int(&self) -> i64 {
        match self {
            Value::Int(value) => *value,
            _ => 0,
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(v: i64) -> Self {
        Value::Int(v)
    }
}
impl From<&i64> for Value<'_> {
    fn from(v: &i64) -> Self {
        Value::Int(*v)
    }
}
impl From<i32> for Value<'_> {
    fn from(v: i32) -> Self {
        Value::Int(i64::from(v))
    }
}
impl From<bool> for Value<'_> {
    fn from(v: bool) -> Self {
        Value::Int(i64::from(v))
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(v: &'a str) -> Self {
        Value::Text(v)
    }
}
impl<'a> From<&'a String> for Value<'a> {
    fn from(v: &'a String) -> Self {
        Value::Text(v)
    }
}
impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(v: &'a [u8]) -> Self {
        Value::Bytes(v)
    }
}
impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(v: &'a Vec<u8>) -> Self {
        Value::Bytes(v)
    }
}
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Null, Into::into)
    }
}
impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(v: &'a Option<String>) -> Self {
        v.as_deref().into()
    }
}
impl<'a> From<&'a Option<Vec<u8>>> for Value<'a> {
    fn from(v: &'a Option<Vec<u8>>) -> Self {
        v.as_deref().into()
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(v) => ValueRef::Integer(*v),
            Value::Text(v) => ValueRef::Text(v.as_bytes()),
            Value::Bytes(v) => ValueRef::Blob(v),
        }))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (self, ty) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Int(v), &Type::INT2) => i16::try_from(*v)?.to_sql(ty, out),
            (Value::Int(v), &Type::INT4) => i32::try_from(*v)?.to_sql(ty, out),
            (Value::Int(v), _) => v.to_sql(ty, out),
            (Value::Text(v), _) => v.to_sql(ty, out),
            (Value::Bytes(v), _) => v.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// One column of a set of rows, sent to PostgreSQL as an array for `unnest`.
#[derive(Debug)]
pub(crate) struct Column<'r, 'v, const N: usize> {
    pub rows: &'r [[Value<'v>; N]],
    pub index: usize,
}

impl<const N: usize> ToSql for Column<'_, '_, N> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Kind::Array(member) = ty.kind() else {
            return Err(format!(
                "a set of rows needs an array parameter, and the statement has {ty}"
            )
            .into());
        };
        let dimension = ArrayDimension { len: i32::try_from(self.rows.len())?, lower_bound: 1 };
        let elements = self.rows.iter().map(|row| &row[self.index]);
        array_to_sql(
            Some(dimension),
            member.oid(),
            elements,
            |value, out| match value.to_sql(member, out)? {
                IsNull::Yes => Ok(postgres_protocol::IsNull::Yes),
                IsNull::No => Ok(postgres_protocol::IsNull::No),
            },
            out,
        )?;
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// `params![id, name, now]`: an array of [`Value`]s.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$($crate::Value::from($value)),*] };
}
