//! Keys: `/`-separated names that mean the same in every store.

use crate::error::{Error, ErrorKind, Result};

/// S3 allows 1024 bytes for a key; a key that is longer could not be copied there.
const KEY_BYTES_MAX: usize = 1024;

/// Checks that a key may be written: not empty, no empty, `.` or `..` segment, no control
/// character, at most 1024 bytes. Such a key can leave no root, and is the same object in every
/// store.
pub fn check_key(key: &str) -> Result<()> {
    check_existing_key(key)?;
    let bad = |why: &str| Err(Error::new(ErrorKind::InvalidKey, key, why));
    if key.len() > KEY_BYTES_MAX {
        return bad("a key may have at most 1024 bytes");
    }
    if key.chars().any(|c| c.is_control()) {
        return bad("a key may not contain control characters");
    }
    Ok(())
}

/// Checks that a key may be read, listed or deleted: not empty, no empty, `.` or `..` segment, no
/// NUL. Other programs write names that this crate does not: control characters, and more than
/// 1024 bytes. Such objects have to be readable all the same.
pub fn check_existing_key(key: &str) -> Result<()> {
    let bad = |why: &str| Err(Error::new(ErrorKind::InvalidKey, key, why));
    if key.is_empty() {
        return bad("a key may not be empty");
    }
    if key.contains('\0') {
        return bad("a key may not contain NUL");
    }
    for segment in key.split('/') {
        match segment {
            "" => return bad("a key may not start or end with / or contain //"),
            "." | ".." => return bad("a key may not contain . or .. as a segment"),
            _ => {}
        }
    }
    Ok(())
}

/// Checks that a prefix may be listed: empty for the whole store, else like an existing key.
pub fn check_prefix(prefix: &str) -> Result<()> {
    if prefix.is_empty() { Ok(()) } else { check_existing_key(prefix) }
}

/// `prefix/name`, or `name` where the prefix is empty.
pub fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") }
}

/// Whether `key` lies below `prefix`, by whole segments.
pub(crate) fn is_below(key: &str, prefix: &str) -> bool {
    prefix.is_empty()
        || key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_leave_the_root_or_differ_between_stores_are_refused() {
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b", "a\nb"] {
            assert_eq!(check_key(bad).unwrap_err().kind(), ErrorKind::InvalidKey, "{bad:?}");
        }
        assert!(check_key(&"x".repeat(1025)).is_err());
        for good in ["a", "a/b", "...", "a b", "ü/名", "0=ocfl_1.1", "a\\b", "a%2e"] {
            check_key(good).unwrap();
        }
    }

    #[test]
    fn what_others_wrote_can_be_read_unless_it_could_leave_the_root() {
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b"] {
            assert!(check_existing_key(bad).is_err(), "{bad:?}");
        }
        for good in ["a\nb", "a\u{1b}[31m/b", "\u{7f}", &"x".repeat(1025)] {
            check_existing_key(good).unwrap();
            assert!(check_key(good).is_err(), "{good:?}");
        }
    }

    #[test]
    fn prefixes_end_at_segments() {
        assert!(is_below("a/b", "a"));
        assert!(!is_below("ab", "a"));
        assert!(!is_below("a", "a"));
        assert!(is_below("a", ""));
    }
}
