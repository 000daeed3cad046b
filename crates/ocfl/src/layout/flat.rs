//! 0002 and 0006: every object directly in the root.

use super::config::Fields;
use serde_json::{Value, json};

/// 0002: the identifier is the name of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlatDirect;

impl FlatDirect {
    pub const NAME: &'static str = "0002-flat-direct-storage-layout";

    pub(super) fn path(&self, id: &str) -> Result<String, &'static str> {
        directory(id)
    }
}

/// 0006: the identifier without its prefix is the name of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlatOmitPrefix {
    /// The prefix ends with the last occurrence of this, in upper or lower case.
    pub delimiter: String,
}

impl FlatOmitPrefix {
    pub const NAME: &'static str = "0006-flat-omit-prefix-storage-layout";

    pub(super) fn read(fields: &Fields) -> Result<FlatOmitPrefix, String> {
        let delimiter = fields.delimiter()?;
        delimiter
            .map(|delimiter| FlatOmitPrefix { delimiter })
            .ok_or_else(|| "delimiter is missing".to_owned())
    }

    pub(super) fn config(&self) -> Value {
        json!({"delimiter": self.delimiter})
    }

    pub(super) fn path(&self, id: &str) -> Result<String, &'static str> {
        directory(without_prefix(id, &self.delimiter)?)
    }
}

/// The identifier without everything up to the last delimiter.
pub(super) fn without_prefix<'a>(id: &'a str, delimiter: &str) -> Result<&'a str, &'static str> {
    let wanted = delimiter.as_bytes();
    let last = id.as_bytes().windows(wanted.len()).rposition(|w| w.eq_ignore_ascii_case(wanted));
    // A match of whole UTF-8 text ends at a character's end.
    let rest = last.and_then(|at| id.get(at + wanted.len()..)).unwrap_or(id);
    if rest.is_empty() { Err("nothing is left after the prefix") } else { Ok(rest) }
}

/// A name that can be a directory everywhere it matters.
pub(super) fn directory(name: &str) -> Result<String, &'static str> {
    const LONGEST: usize = 255;
    if matches!(name, "" | "." | "..") {
        Err("this is no name of a directory")
    } else if name.contains('/') {
        Err("a name of a directory has no slash in it")
    } else if name.len() > LONGEST {
        Err("a name of a directory has at most 255 bytes")
    } else if name.chars().any(char::is_control) {
        Err("a name of a directory has no control characters in it")
    } else {
        Ok(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_extensions() {
        assert_eq!(FlatDirect.path("object-01").unwrap(), "object-01");
        assert_eq!(FlatDirect.path("..hor_rib:lé-$id").unwrap(), "..hor_rib:lé-$id");
        assert!(FlatDirect.path("info:fedora/object-01").is_err());
        let colon = FlatOmitPrefix { delimiter: ":".into() };
        assert_eq!(colon.path("namespace:12887296").unwrap(), "12887296");
        assert_eq!(
            colon.path("urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66").unwrap(),
            "6e8bc430-9c3a-11d9-9669-0800200c9a66"
        );
        let edu = FlatOmitPrefix { delimiter: "edu/".into() };
        assert_eq!(edu.path("https://institution.edu/3448793").unwrap(), "3448793");
        assert_eq!(edu.path("https://institution.edu/abc/EDU/f8.05v").unwrap(), "f8.05v");
        let info = FlatOmitPrefix { delimiter: "info:".into() };
        assert!(info.path("info:fedora/object-01").is_err());
        assert!(info.path("info:").is_err());
    }
}
