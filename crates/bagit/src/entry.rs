//! Lines of manifests and of `fetch.txt`.

use crate::path::{self, Unsafe};
use digest::{Algorithm, Digest};
use std::borrow::Cow;

/// A line of a manifest: the digest that a file must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry<'a> {
    pub digest: Digest,
    /// The path as it is written, without what tools put before it.
    pub path: Cow<'a, str>,
    /// `md5sum` and its kind mark binary mode by an asterisk before the path.
    pub asterisk: bool,
    /// The path was written with `./` or doubled slashes.
    pub untidy: bool,
}

/// Why a line is no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("the line needs a checksum and a path")]
    NoPath,
    #[error("{0:?} is not a checksum of {1}")]
    BadDigest(String, Algorithm),
    #[error("path {0:?} is unsafe: {1}")]
    UnsafePath(String, Unsafe),
    #[error("the line needs a URL, a length or '-', and a path")]
    NoFields,
    #[error("{0:?} is not a length in bytes")]
    BadLength(String),
    #[error("{0:?} is not an absolute URL")]
    BadUrl(String),
}

const BLANK: [char; 2] = [' ', '\t'];

/// Shows the start of what may be long.
fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

fn safe(path: &str) -> Result<Cow<'_, str>, EntryError> {
    let unsafe_path = |why| EntryError::UnsafePath(short(path), why);
    path::check(path).map_err(unsafe_path)?;
    // An escape must not smuggle in what the check refuses; today's three escapes cannot.
    path::check(&path::percent_decode(path)).map_err(unsafe_path)?;
    Ok(path::tidy(path))
}

/// Reads `<digest> <path>`.
pub fn parse_manifest_line(
    line: &str,
    algorithm: Algorithm,
) -> Result<ManifestEntry<'_>, EntryError> {
    let line = line.trim_start_matches(BLANK);
    let (hex, rest) = line.split_once(BLANK).ok_or(EntryError::NoPath)?;
    let digest = Digest::from_hex(hex)
        .filter(|d| d.as_bytes().len() == algorithm.digest_len())
        .ok_or_else(|| EntryError::BadDigest(short(hex), algorithm))?;
    let rest = rest.trim_start_matches(BLANK);
    let (asterisk, path) = match rest.strip_prefix('*') {
        Some(path) => (true, path),
        None => (false, rest),
    };
    if path.is_empty() {
        return Err(EntryError::NoPath);
    }
    let tidy = safe(path)?;
    Ok(ManifestEntry { digest, untidy: tidy != path, path: tidy, asterisk })
}

/// The path that a line most likely names whose checksum is none: what stands after it, or before
/// it where the two changed places.
pub fn path_of_malformed_line(line: &str) -> Option<Cow<'_, str>> {
    let line = line.trim_matches(BLANK);
    let Some((first, rest)) = line.split_once(BLANK) else {
        // A path alone, or right after its checksum.
        let at = line.find("data/")?;
        let before = line[..at].trim_end_matches("./").trim_end_matches('*');
        let is_checksum = before.bytes().all(|b| b.is_ascii_hexdigit());
        return is_checksum.then(|| safe(&line[at..]).ok()).flatten();
    };
    let swapped = first.trim_start_matches("./").starts_with("data/");
    let path = match line.rsplit_once(BLANK) {
        Some((path, digest)) if swapped && Digest::from_hex(digest).is_some() => path,
        _ if swapped => line,
        _ => rest,
    };
    let path = path.trim_matches(BLANK);
    safe(path.strip_prefix('*').unwrap_or(path)).ok()
}

/// A line of `fetch.txt`: where a payload file can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchEntry<'a> {
    pub url: &'a str,
    pub length: Option<u64>,
    pub path: Cow<'a, str>,
}

/// Reads `<url> <length> <path>`.
pub fn parse_fetch_line(line: &str) -> Result<FetchEntry<'_>, EntryError> {
    let line = line.trim_start_matches(BLANK);
    let (url, rest) = line.split_once(BLANK).ok_or(EntryError::NoFields)?;
    let (length, path) =
        rest.trim_start_matches(BLANK).split_once(BLANK).ok_or(EntryError::NoFields)?;
    let path = path.trim_start_matches(BLANK);
    if path.is_empty() {
        return Err(EntryError::NoFields);
    }
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !is_scheme {
        return Err(EntryError::BadUrl(short(url)));
    }
    let length = match length {
        "-" => None,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| EntryError::BadLength(short(digits)))?)
        }
        other => return Err(EntryError::BadLength(short(other))),
    };
    Ok(FetchEntry { url, length, path: safe(path)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: &str = "b1946ac92492d2347c6235b4d2611184";

    fn parse(rest: &str) -> Result<(String, bool, bool), EntryError> {
        let line = format!("{MD5}{rest}");
        parse_manifest_line(&line, Algorithm::Md5)
            .map(|e| (e.path.into_owned(), e.asterisk, e.untidy))
    }

    #[test]
    fn manifest_lines_of_all_tools_are_read() {
        assert_eq!(parse("  data/a b"), Ok(("data/a b".into(), false, false)));
        assert_eq!(parse("\tdata/a"), Ok(("data/a".into(), false, false)));
        assert_eq!(parse(" *data/a"), Ok(("data/a".into(), true, false)));
        assert_eq!(parse("  ./data/a"), Ok(("data/a".into(), false, true)));
    }

    #[test]
    fn wrong_lines_say_why() {
        assert_eq!(parse(""), Err(EntryError::NoPath));
        assert_eq!(parse("  "), Err(EntryError::NoPath));
        assert!(matches!(parse("00 data/a"), Err(EntryError::BadDigest(..))));
        assert!(matches!(parse("  ../a"), Err(EntryError::UnsafePath(_, Unsafe::Parent))));
    }

    #[test]
    fn the_path_of_a_malformed_line_is_guessed() {
        let guess = |line: &str| path_of_malformed_line(line).map(Cow::into_owned);
        assert_eq!(guess("00zz  data/a b").as_deref(), Some("data/a b"));
        assert_eq!(guess(" 00 *./data/a").as_deref(), Some("data/a"));
        assert_eq!(guess(&format!("data/a b  {MD5}")).as_deref(), Some("data/a b"));
        assert_eq!(guess("data/a b").as_deref(), Some("data/a b"));
        assert_eq!(guess("data/a").as_deref(), Some("data/a"));
        assert_eq!(guess("./data/data/a").as_deref(), Some("data/data/a"));
        assert_eq!(guess(&format!("{MD5}data/a")).as_deref(), Some("data/a"));
        assert_eq!(guess(&format!("{MD5}*data/a")).as_deref(), Some("data/a"));
        assert_eq!(guess("nothing"), None);
        assert_eq!(guess("metadata/a"), None);
        assert_eq!(guess("data/../a"), None);
        assert_eq!(guess("00 ../a"), None);
    }

    #[test]
    fn fetch_lines_have_three_fields() {
        let entry = parse_fetch_line("http://x/a%20b 12 data/a b").unwrap();
        assert_eq!((entry.url, entry.length), ("http://x/a%20b", Some(12)));
        assert_eq!(entry.path, "data/a b");
        assert_eq!(parse_fetch_line("http://x/ - data/a").unwrap().length, None);
        assert_eq!(parse_fetch_line("http://x/ data/a"), Err(EntryError::NoFields));
        assert!(matches!(parse_fetch_line("x - data/a"), Err(EntryError::BadUrl(_))));
        assert!(matches!(parse_fetch_line("http://x/ 1k data/a"), Err(EntryError::BadLength(_))));
        assert!(matches!(
            parse_fetch_line("http://x/ - ~/a"),
            Err(EntryError::UnsafePath(_, Unsafe::Home))
        ));
    }
}
