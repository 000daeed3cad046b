//! What a path in an inventory may look like.

/// Why a path is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathFault {
    Empty,
    /// It starts or ends with `/`.
    Slash,
    /// An element is empty, `.` or `..`.
    Element,
}

impl PathFault {
    pub(crate) fn why(self) -> &'static str {
        match self {
            PathFault::Empty => "the path is empty",
            PathFault::Slash => "the path starts or ends with /",
            PathFault::Element => "an element of the path is empty, . or ..",
        }
    }
}

/// Every fault of a path; none for a good one.
pub(crate) fn faults(path: &str) -> impl Iterator<Item = PathFault> {
    let slash = path.starts_with('/') || path.ends_with('/');
    let inner = path.trim_matches('/');
    let element = !inner.is_empty() && inner.split('/').any(|e| matches!(e, "" | "." | ".."));
    [(path.is_empty(), PathFault::Empty), (slash, PathFault::Slash), (element, PathFault::Element)]
        .into_iter()
        .filter_map(|(is, fault)| is.then_some(fault))
}

/// Whether a path is safe to use: relative, and within whatever it is relative to.
pub(crate) fn is_good(path: &str) -> bool {
    faults(path).next().is_none()
}

/// All pairs of a path and another that would be a directory above it, in `sorted`, which is in
/// byte order. Strings that start alike stand together there, so one pass with a stack finds them.
pub(crate) fn conflicts<'a>(sorted: impl Iterator<Item = (u32, &'a [u8])>) -> Vec<(u32, u32)> {
    let mut stack: Vec<(u32, &[u8])> = Vec::new();
    let mut found = Vec::new();
    for (number, path) in sorted {
        while stack.last().is_some_and(|(_, above)| !path.starts_with(above)) {
            stack.pop();
        }
        for (above_number, above) in &stack {
            if path.get(above.len()) == Some(&b'/') {
                found.push((*above_number, number));
            }
        }
        stack.push((number, path));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_escape_are_faulty() {
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a/.", "//"] {
            assert!(!is_good(bad), "{bad:?}");
        }
        for good in ["a", "a/b", "...", "a/.b", " ", "a\\b", "ü"] {
            assert!(is_good(good), "{good:?}");
        }
        assert_eq!(faults("/a/../b").collect::<Vec<_>>(), [PathFault::Slash, PathFault::Element]);
    }

    #[test]
    fn a_file_cannot_also_be_a_directory() {
        let mut paths = ["a", "a!", "a/b", "ab", "a/b/c", "b", "b-/c", "b/"];
        paths.sort_unstable();
        let numbered = paths.iter().zip(0..).map(|(path, number)| (number, path.as_bytes()));
        let found: Vec<_> = conflicts(numbered)
            .into_iter()
            .map(|(above, below)| (paths[above as usize], paths[below as usize]))
            .collect();
        assert_eq!(found, [("a", "a/b"), ("a", "a/b/c"), ("a/b", "a/b/c"), ("b", "b/")]);
    }
}
