//! 0003 and 0004: directories from a digest of the identifier, so that they fill evenly.

use super::config::Fields;
use super::{check_tuples, tuples};
use crate::algorithm::algorithm_name;
use digest::Algorithm;
use serde_json::{Value, json};
use std::fmt::Write;

/// 0004: directories from a digest, then the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedNTuple {
    algorithm: Algorithm,
    size: usize,
    count: usize,
    short_object_root: bool,
}

impl Default for HashedNTuple {
    fn default() -> HashedNTuple {
        HashedNTuple { algorithm: Algorithm::Sha256, size: 3, count: 3, short_object_root: false }
    }
}

impl HashedNTuple {
    pub const NAME: &'static str = "0004-hashed-n-tuple-storage-layout";

    pub(super) fn read(fields: &Fields) -> Result<HashedNTuple, String> {
        let (algorithm, size, count) = digest_fields(fields)?;
        let short_object_root = fields.flag("shortObjectRoot")?;
        if short_object_root && size * count == algorithm.hex_length() {
            return Err("shortObjectRoot leaves nothing for the object's directory".to_owned());
        }
        Ok(HashedNTuple { algorithm, size, count, short_object_root })
    }

    pub(super) fn config(&self) -> Value {
        json!({
            "digestAlgorithm": algorithm_name(self.algorithm),
            "tupleSize": self.size,
            "numberOfTuples": self.count,
            "shortObjectRoot": self.short_object_root,
        })
    }

    pub(super) fn path(&self, id: &str) -> String {
        let digest = self.algorithm.hex(id.as_bytes());
        let used = if self.short_object_root { self.size * self.count } else { 0 };
        let mut path = tuples(&digest, self.size, self.count);
        path.push_str(digest.get(used..).unwrap_or_default());
        path
    }
}

/// 0003: directories from a digest, then the identifier, percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashAndIdNTuple {
    algorithm: Algorithm,
    size: usize,
    count: usize,
}

impl Default for HashAndIdNTuple {
    fn default() -> HashAndIdNTuple {
        HashAndIdNTuple { algorithm: Algorithm::Sha256, size: 3, count: 3 }
    }
}

impl HashAndIdNTuple {
    pub const NAME: &'static str = "0003-hash-and-id-n-tuple-storage-layout";

    pub(super) fn read(fields: &Fields) -> Result<HashAndIdNTuple, String> {
        let (algorithm, size, count) = digest_fields(fields)?;
        Ok(HashAndIdNTuple { algorithm, size, count })
    }

    pub(super) fn config(&self) -> Value {
        json!({
            "digestAlgorithm": algorithm_name(self.algorithm),
            "tupleSize": self.size,
            "numberOfTuples": self.count,
        })
    }

    pub(super) fn path(&self, id: &str) -> String {
        const LONGEST: usize = 100;
        let digest = self.algorithm.hex(id.as_bytes());
        let mut path = tuples(&digest, self.size, self.count);
        let encoded = percent_encode(id);
        match encoded.get(..LONGEST) {
            Some(start) if encoded.len() > LONGEST => {
                path.push_str(start);
                path.push('-');
                path.push_str(&digest);
            }
            _ => path.push_str(&encoded),
        }
        path
    }
}

fn digest_fields(fields: &Fields) -> Result<(Algorithm, usize, usize), String> {
    let algorithm = fields.algorithm()?;
    let size = fields.number("tupleSize", 0, 3)?;
    let count = fields.number("numberOfTuples", 0, 3)?;
    check_tuples(algorithm, size, count)?;
    Ok((algorithm, size, count))
}

fn percent_encode(id: &str) -> String {
    let mut encoded = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(byte.into()),
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02x}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;
    use serde_json::json;

    fn path(name: &str, config: serde_json::Value, id: &str) -> String {
        Layout::from_config(name, &config).unwrap().path(id).unwrap()
    }

    #[test]
    fn the_examples_of_0004() {
        let plain = "3c0/ff4/240/3c0ff4240c1e116dba14c7627f2319b58aa3d77606d0d90dfc6161608ac987d4";
        assert_eq!(path("0004", json!({}), "object-01"), plain);
        let md5 = json!({"digestAlgorithm": "md5", "tupleSize": 2, "numberOfTuples": 15, "shortObjectRoot": true});
        assert_eq!(
            path("0004", md5, "..hor/rib:le-$id"),
            "08/31/97/66/fb/6c/29/35/dd/17/5b/94/26/77/17/e0"
        );
        let none = json!({"tupleSize": 0, "numberOfTuples": 0});
        let whole = "487326d8c2a3c0b885e23da1469b4d6671fd4e76978924b4443e9e3c316cda6d";
        assert_eq!(path("0004", none, "..hor/rib:le-$id"), whole);
    }

    #[test]
    fn the_examples_of_0003() {
        assert_eq!(path("0003", json!({}), "object-01"), "3c0/ff4/240/object-01");
        let horrible = "373/529/21a/%2e%2eHor%2frib%3al%c3%a8-%24id";
        assert_eq!(path("0003", json!({}), "..Hor/rib:lè-$id"), horrible);
        let long = format!("{}a", "abcdefghij".repeat(10));
        let digest = "5cc73e648fbcff136510e330871180922ddacf193b68fdeff855683a01464220";
        let expected = format!("5cc/73e/648/{}-{digest}", "abcdefghij".repeat(10));
        assert_eq!(path("0003", json!({}), &long), expected);
        let exact = "abcdefghij".repeat(10);
        assert!(path("0003", json!({}), &exact).ends_with(&format!("/{exact}")));
        let none = json!({"tupleSize": 0, "numberOfTuples": 0});
        assert_eq!(path("0003", none, "object-01"), "object-01");
    }

    #[test]
    fn configurations_that_cannot_be_are_refused() {
        for bad in [
            json!({"tupleSize": 0}),
            json!({"tupleSize": 33}),
            json!({"tupleSize": -1}),
            json!({"tupleSize": 2.5}),
            json!({"tupleSize": "3"}),
            json!({"tupleSize": 32, "numberOfTuples": 32}),
            json!({"tupleSize": 32, "numberOfTuples": 2, "shortObjectRoot": true}),
            json!({"digestAlgorithm": "none"}),
            json!({"digestAlgorithm": 1}),
            json!({"shortObjectRoot": 1}),
            json!({"extensionName": "0003-hash-and-id-n-tuple-storage-layout"}),
            json!([]),
        ] {
            assert!(Layout::from_config("0004", &bad).is_err(), "{bad}");
        }
        assert!(Layout::named("0005").is_err());
    }

    #[test]
    fn configurations_read_as_they_are_written() {
        for name in ["0002", "0003", "0004", "0007"] {
            let layout = Layout::named(name).unwrap();
            assert_eq!(Layout::from_config(layout.name(), &layout.config()).unwrap(), layout);
        }
    }
}
