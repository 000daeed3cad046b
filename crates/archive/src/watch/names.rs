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

/// Why a name is no package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPackage {
    /// A receipt or a result that we wrote.
    Ours,
    Hidden,
    Unfinished,
    NoCollection,
    NotACollection,
}

impl NoPackage {
    /// What to do about it; `None` for what is of no interest to anyone.
    pub fn why(self) -> Option<&'static str> {
        match self {
            NoPackage::Ours => None,
            NoPackage::Hidden => Some("its name begins with a dot; rename it to have it taken"),
            NoPackage::Unfinished => {
                Some("its name says that it is not whole; rename it when it is")
            }
            NoPackage::NoCollection => Some(
                "no collection is set for what lies at the top; move it into the directory of its collection",
            ),
            NoPackage::NotACollection => {
                Some("its directory has a name that no collection can have; move it")
            }
        }
    }
}

fn check_name_of_package(name: &str) -> Result<(), NoPackage> {
    if name.ends_with(RECEIPT_SUFFIX) || name.ends_with(RESULT_SUFFIX) {
        return Err(NoPackage::Ours);
    }
    if name.starts_with('.') {
        return Err(NoPackage::Hidden);
    }
    if is_unfinished(name) { Err(NoPackage::Unfinished) } else { Ok(()) }
}

/// A package's place below what is watched: `name`, or `collection/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub collection: String,
    /// How many parts of the path name the package.
    pub depth: usize,
}

/// Whose package the file at `parts` belongs to; `directory` if more parts follow below it. An
/// error for what is no package.
pub fn place(watch: &WatchSection, parts: &[&str]) -> Result<Placed, NoPackage> {
    let (first, rest) = parts.split_first().ok_or(NoPackage::Hidden)?;
    check_name_of_package(first)?;
    let at_the_top = || {
        let collection = watch.collection.clone().ok_or(NoPackage::NoCollection)?;
        Ok(Placed { collection, depth: 1 })
    };
    match rest.first() {
        Some(name) if watch.prefix_is_collection => {
            check_name_of_package(name)?;
            check_name(first).map_err(|_| NoPackage::NotACollection)?;
            Ok(Placed { collection: first.to_string(), depth: 2 })
        }
        // At the top, beside the collections if there are any.
        _ => at_the_top(),
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
            assert!(place(&all, &[name]).is_err(), "{name}");
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
        assert_eq!(place(&only, &["stray.zip"]), Err(NoPackage::NoCollection));
        assert_eq!(place(&only, &["no good name", "a.zip"]), Err(NoPackage::NotACollection));
        assert_eq!(place(&only, &["maps", ".hidden"]), Err(NoPackage::Hidden));
        let both = watch("prefix_is_collection = true\ncollection = 'rest'");
        assert_eq!(place(&both, &["stray.zip"]).unwrap().collection, "rest");
    }
}
