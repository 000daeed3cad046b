//! A digest of a set of rows, whatever order they come in.

use crate::value::Value;
use ring::digest::{Context, SHA256};
use std::fmt;

/// The sum of the SHA-256 digests of all rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Digest([u64; 4]);

impl Digest {
    pub fn add(&mut self, row: &[Value<'_>]) {
        let mut context = Context::new(&SHA256);
        for value in row {
            let (kind, integer, bytes): (u8, [u8; 8], &[u8]) = match value {
                Value::Null => (0, [0; 8], &[]),
                Value::Int(value) => (1, value.to_be_bytes(), &[]),
                Value::Text(text) => (2, length(text.as_bytes()), text.as_bytes()),
                Value::Bytes(bytes) => (3, length(bytes), bytes),
            };
            context.update(&[kind]);
            context.update(&integer);
            context.update(bytes);
        }
        let digest = context.finish();
        let mut carry = false;
        for (sum, part) in self.0.iter_mut().rev().zip(digest.as_ref().rchunks(8)) {
            let part = u64::from_be_bytes(part.try_into().unwrap_or_default());
            let (added, over) = sum.overflowing_add(part);
            let (added, over_too) = added.overflowing_add(u64::from(carry));
            (*sum, carry) = (added, over || over_too);
        }
    }
}

/// So that `ab`, `c` is another row than `a`, `bc`.
fn length(bytes: &[u8]) -> [u8; 8] {
    (bytes.len() as u64).to_be_bytes()
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| write!(f, "{part:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[&[Value<'_>]]) -> String {
        let mut digest = Digest::default();
        rows.iter().for_each(|row| digest.add(row));
        digest.to_string()
    }

    #[test]
    fn the_order_does_not_matter_and_everything_else_does() {
        let (a, b): ([Value<'_>; 2], [Value<'_>; 2]) =
            ([Value::Int(1), Value::Text("x")], [Value::Int(2), Value::Null]);
        assert_eq!(of(&[&a, &b]), of(&[&b, &a]));
        assert_ne!(of(&[&a, &b]), of(&[&a, &a]));
        assert_ne!(of(&[&a]), of(&[&a, &a, &a]));
        assert_ne!(of(&[&[Value::Text("x")]]), of(&[&[Value::Bytes(b"x")]]));
        assert_ne!(of(&[&[Value::Null]]), of(&[&[Value::Int(0)]]));
        assert_ne!(
            of(&[&[Value::Text("ab"), Value::Text("c")]]),
            of(&[&[Value::Text("a"), Value::Text("bc")]])
        );
        // One row alone: its SHA-256, which other programs can compute.
        assert_eq!(
            of(&[&[Value::Null]]),
            "3e7077fd2f66d689e0cee6a7cf5b37bf2dca7c979af356d0a31cbc5c85605c7d"
        );
    }
}
