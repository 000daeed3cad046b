//! 0007: directories from the identifier itself, without its prefix.

use super::config::Fields;
use super::flat::{directory, without_prefix};
use serde_json::{Value, json};

/// On which side of a short identifier zeros are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZeroPadding {
    #[default]
    Left,
    Right,
}

/// 0007: directories from the identifier without its prefix, then that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NTupleOmitPrefix {
    delimiter: String,
    size: usize,
    count: usize,
    zero_padding: ZeroPadding,
    reverse: bool,
}

impl NTupleOmitPrefix {
    pub const NAME: &'static str = "0007-n-tuple-omit-prefix-storage-layout";

    pub(super) fn read(fields: &Fields) -> Result<NTupleOmitPrefix, String> {
        Ok(NTupleOmitPrefix {
            delimiter: fields.delimiter()?.unwrap_or_else(|| ":".to_owned()),
            size: fields.number("tupleSize", 1, 3)?,
            count: fields.number("numberOfTuples", 1, 3)?,
            zero_padding: match fields.text("zeroPadding")? {
                None | Some("left") => ZeroPadding::Left,
                Some("right") => ZeroPadding::Right,
                Some(other) => return Err(format!("zeroPadding is {other:?}, not left or right")),
            },
            reverse: fields.flag("reverseObjectRoot")?,
        })
    }

    pub(super) fn config(&self) -> Value {
        json!({
            "delimiter": self.delimiter,
            "tupleSize": self.size,
            "numberOfTuples": self.count,
            "zeroPadding": if self.zero_padding == ZeroPadding::Left { "left" } else { "right" },
            "reverseObjectRoot": self.reverse,
        })
    }

    pub(super) fn path(&self, id: &str) -> Result<String, &'static str> {
        let name = directory(without_prefix(id, &self.delimiter)?)?;
        if !name.is_ascii() {
            // The extension splits by grapheme clusters, whose rules change over the years; a
            // place in an archive must not depend on the year.
            return Err("only ASCII can be divided into tuples in a way that stays the same");
        }
        let missing = (self.size * self.count).saturating_sub(name.len());
        let zeros = "0".repeat(missing);
        let padded = match self.zero_padding {
            ZeroPadding::Left => zeros + &name,
            ZeroPadding::Right => name.clone() + &zeros,
        };
        let padded = if self.reverse { padded.chars().rev().collect() } else { padded };
        let path = super::tuples(&padded, self.size, self.count);
        if path.split('/').any(|tuple| matches!(tuple, "." | "..")) {
            return Err("a tuple would be . or ..");
        }
        Ok(path + &name)
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;
    use serde_json::json;

    #[test]
    fn the_examples_of_the_extension() {
        let config = json!({"delimiter": ":", "tupleSize": 4, "numberOfTuples": 2,
            "zeroPadding": "left", "reverseObjectRoot": true});
        let layout = Layout::from_config("0007", &config).unwrap();
        assert_eq!(layout.path("namespace:12887296").unwrap(), "6927/8821/12887296");
        let uuid = "6e8bc430-9c3a-11d9-9669-0800200c9a66";
        assert_eq!(layout.path(&format!("urn:uuid:{uuid}")).unwrap(), format!("66a9/c002/{uuid}"));
        assert_eq!(layout.path("abc123").unwrap(), "321c/ba00/abc123");
        let config = json!({"delimiter": "edu/", "zeroPadding": "right"});
        let layout = Layout::from_config("0007", &config).unwrap();
        assert_eq!(layout.path("https://institution.edu/3448793").unwrap(), "344/879/300/3448793");
        let path = layout.path("https://institution.edu/abc/edu/f8.05v").unwrap();
        assert_eq!(path, "f8./05v/000/f8.05v");
        assert!(layout.path("https://institution.edu/").is_err());
        assert!(Layout::named("0007").unwrap().path("a:...b").is_ok());
        let pairs = json!({"tupleSize": 2});
        assert!(Layout::from_config("0007", &pairs).unwrap().path("a:..bcde").is_err());
    }
}
