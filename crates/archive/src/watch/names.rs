//! Which names in a watched place are packages, and whose.

use crate::config::{WatchSection, check_name};

/// Written beside a package when it is taken, and when its ingest has ended.
pub const RECEIPT_SUFFIX: &str = ".receipt.json";
pub const RESULT_SUFFIX: &str = ".result.json";

/// What programs call files that they have not finished writing.
const UNFINISHED: [&str; 7] =
    [".part", ".partial", ".tmp", ".filepart", ".crdownload", ".download", "~"];

/// Whether a file says by its name that it is not whole.
pub fn is_unfinished(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    UNFINISHED.iter().any(|suffix| lower.ends_with(suffix))
}

/// Whether a name is no package: hidden, unfinished, or written by us.
pub fn is_ignored(name: &str) -> bool {
    name.starts_with('.')
        || is_unfinished(name)
        || name.ends_with(RECEIPT_SUFFIX)
        || name.ends_with(RESULT_SUFFIX)
}

/// A package's place below what is watched: `name`, or `collection/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub collection: String,
    /// How many parts of the path name the package.
    pub depth: usize,
}

/// Whose package the file at `parts` belongs to; `directory` if more parts follow below it. `None`
/// for what is no package.
pub fn place(watch: &WatchSection, parts: &[&str]) -> Option<Placed> {
    let (first, rest) = parts.split_first()?;
    if is_ignored(first) {
        return None;
    }
    if !watch.prefix_is_collection {
        return Some(Placed { collection: watch.collection.clone()?, depth: 1 });
    }
    match rest.first() {
        // At the top, beside the collections.
        None => Some(Placed { collection: watch.collection.clone()?, depth: 1 }),
        Some(name) if is_ignored(name) || check_name(first).is_err() => None,
        Some(_) => Some(Placed { collection: first.to_string(), depth: 2 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(toml: &str) -> WatchSection {
        toml::from_str(&format!("path = 'in'\n{toml}")).unwrap()
    }

    #[test]
    fn what_is_hidden_unfinished_or_ours_is_no_package() {
        let all = watch("collection = 'c'");
        for name in [
            ".DS_Store",
            "a.zip.part",
            "a.tmp",
            "a.FILEPART",
            "a~",
            "a.zip.receipt.json",
            "a.result.json",
            "x.crdownload",
        ] {
            assert_eq!(place(&all, &[name]), None, "{name}");
        }
        for name in ["a.zip", "part", "a.json", "tmp"] {
            assert_eq!(place(&all, &[name]).unwrap().collection, "c", "{name}");
        }
        assert_eq!(place(&all, &["dir", "deep", "x"]).unwrap().depth, 1);
    }

    #[test]
    fn the_first_part_can_name_the_collection() {
        let only = watch("prefix_is_collection = true");
        let placed = place(&only, &["maps", "a.zip"]).unwrap();
        assert_eq!((placed.collection.as_str(), placed.depth), ("maps", 2));
        assert_eq!(place(&only, &["stray.zip"]), None);
        assert_eq!(place(&only, &["no good name", "a.zip"]), None);
        assert_eq!(place(&only, &["maps", ".hidden"]), None);
        let both = watch("prefix_is_collection = true\ncollection = 'rest'");
        assert_eq!(place(&both, &["stray.zip"]).unwrap().collection, "rest");
    }
}
