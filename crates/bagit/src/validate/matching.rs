//! Which file a line of a manifest means, when spellings differ.

use crate::path;

/// How a line's path and a file's path are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    Exact,
    /// The line has escapes, but the file's name has them too: a bag from before RFC 8493.
    Literal,
    Normalization,
    Case,
}

/// How well a file fits a line; nothing if it does not. Both have the same key.
pub(crate) fn compare(written: &str, file: &str, strict: bool) -> Option<Match> {
    let decoded = path::percent_decode(written);
    if written == file {
        // Before 1.0 there were no escapes, so a path means what it says.
        return Some(if strict && decoded != written { Match::Literal } else { Match::Exact });
    }
    if decoded == file {
        return Some(Match::Exact);
    }
    let file = path::normal(file);
    let spellings = [path::normal(&decoded), path::normal(written)];
    if spellings.contains(&file) {
        return Some(Match::Normalization);
    }
    let file = file.to_lowercase();
    spellings.iter().any(|s| s.to_lowercase() == file).then_some(Match::Case)
}

/// Chooses the file that a line means among those with its key.
pub(crate) fn choose<'a>(
    written: &str,
    files: impl Iterator<Item = &'a str>,
    strict: bool,
) -> Option<(usize, Match)> {
    // Where two files fit, the one under the decoded name is meant since 1.0 and the one under
    // the literal name before.
    files
        .enumerate()
        .filter_map(|(index, file)| {
            let how = compare(written, file, strict)?;
            let literal_first = !strict && file != written;
            Some(((how, literal_first), index))
        })
        .min()
        .map(|((how, _), index)| (index, how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_with_the_literal_name_as_fallback() {
        let both = ["data/100%25", "data/100%"];
        assert_eq!(choose("data/100%25", both.into_iter(), true), Some((1, Match::Exact)));
        assert_eq!(choose("data/100%25", both.into_iter(), false), Some((0, Match::Exact)));
        assert_eq!(
            choose("data/100%25", both[..1].iter().copied(), true),
            Some((0, Match::Literal))
        );
        assert_eq!(
            choose("data/100%25", both[1..].iter().copied(), false),
            Some((0, Match::Exact))
        );
    }

    #[test]
    fn an_exact_name_wins_over_a_similar_one() {
        let files = ["data/A", "data/a"];
        assert_eq!(choose("data/a", files.into_iter(), true), Some((1, Match::Exact)));
        assert_eq!(choose("data/a", files[..1].iter().copied(), true), Some((0, Match::Case)));
        let nfd = ["data/u\u{301}"];
        assert_eq!(choose("data/\u{fa}", nfd.into_iter(), true), Some((0, Match::Normalization)));
        assert_eq!(choose("data/\u{da}", nfd.into_iter(), true), Some((0, Match::Case)));
    }

    #[test]
    fn a_percent_sign_does_not_stand_for_an_escape() {
        assert_eq!(compare("data/100%", "data/100%25", true), None);
    }
}
