//! Where the files of a package are in the object, and which names no object may have.

use bagit::Algorithm;

/// Paths of an object are at most this long.
pub const PATH_BYTES_MAX: usize = 4096;

/// Where a file of a package goes: payload below `data/`, tag files of a bag below `tags/`, and
/// what only describes the bag itself nowhere: its content is in the inventory.
pub fn in_object(path: &str, is_bag: bool) -> Option<String> {
    if !is_bag {
        return Some(format!("data/{path}"));
    }
    if path.starts_with("data/") {
        return Some(path.to_string());
    }
    (!is_structure(path)).then(|| format!("tags/{path}"))
}

/// The files that BagIt itself writes about a bag. What is only called a manifest is not compared
/// with anything, so the object keeps it.
fn is_structure(path: &str) -> bool {
    let manifest = |start: &str| {
        let algorithm = path.strip_prefix(start).and_then(|rest| rest.strip_suffix(".txt"));
        algorithm.is_some_and(|name| name.parse::<Algorithm>().is_ok())
    };
    matches!(path, "bagit.txt" | "fetch.txt") || manifest("manifest-") || manifest("tagmanifest-")
}

/// Why a path cannot be one of an object; `None` if it can.
pub fn fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("it is empty");
    }
    if path.len() > PATH_BYTES_MAX {
        return Some("it is longer than 4096 bytes");
    }
    if path.starts_with('/') {
        return Some("it is absolute");
    }
    if path.contains('\0') {
        return Some("it has a NUL in it");
    }
    match path.split('/').find(|part| matches!(*part, "" | "." | "..")) {
        Some("..") => Some("it leads out of the package"),
        Some(_) => Some("it has an empty part or a dot for a part"),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_tags_and_structure_go_their_ways() {
        assert_eq!(in_object("data/a", true).as_deref(), Some("data/a"));
        assert_eq!(in_object("bag-info.txt", true).as_deref(), Some("tags/bag-info.txt"));
        assert_eq!(in_object("manifest-md5.txt", true), None);
        for kept in ["manifest-of-letters.txt", "tagmanifest-crc32.txt", "manifest-md5"] {
            assert_eq!(in_object(kept, true), Some(format!("tags/{kept}")));
        }
        assert_eq!(
            in_object("x/manifest-md5.txt", true).as_deref(),
            Some("tags/x/manifest-md5.txt")
        );
        assert_eq!(in_object("manifest-md5.txt", false).as_deref(), Some("data/manifest-md5.txt"));
    }

    #[test]
    fn paths_that_lead_elsewhere_are_faults() {
        for bad in ["", "/etc/passwd", "a/../../b", "..", "a//b", "a/./b", "a\0b", "a/"] {
            assert!(fault(bad).is_some(), "{bad:?}");
        }
        for good in ["a", "a b/c\n", "..a/b..", "…"] {
            assert_eq!(fault(good), None, "{good:?}");
        }
    }
}
