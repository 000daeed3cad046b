//! The place that a package came from, as objects remember it.

use super::item::{Source, stem};
use digest::{Sha256, to_hex};

/// Where a package was put by its depositor, as objects remember it. URLs are remembered without
/// what can be a key; a digest tells those apart that differ in nothing else.
pub fn place_of(source: &Source) -> String {
    let shown = source.to_string();
    match source {
        Source::Url(url) if url.contains(['?', '#', '@']) => {
            let digest = to_hex(&Sha256::of(url.as_bytes())[..16]);
            format!("{shown} ({digest})")
        }
        _ => shown,
    }
}

/// Whether two places are one. A folder and its archive beside it are, as their names are.
pub fn is_same_place(one: &str, other: &str) -> bool {
    stem(one) == stem(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_places_without_their_keys() {
        let place = |url: &str| place_of(&Source::Url(url.to_string()));
        assert_eq!(place("https://a.org/b.zip"), "https://a.org/b.zip");
        let (one, two) =
            (place("https://a.org/get?id=1&key=s3cret"), place("https://a.org/get?id=2"));
        assert!(one != two && !one.contains("s3cret"), "{one} {two}");
        assert_eq!(place_of(&Source::Path("/a/scans".into())), "/a/scans");
    }
}
