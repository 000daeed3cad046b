//! Identifiers that depositors bring: any scheme, one spelling.

use super::{Ark, IDENTIFIER_BYTES_MAX};
use crate::ErrorCode;
use crate::{Error, Result};

/// The one spelling under which a supplied identifier is kept and looked for. ARKs have their
/// normal form; DOIs, whose case does not count, are in lower case, also when they are given as
/// an address of doi.org; of other schemes the scheme, and of http addresses the host, are in
/// lower case. What has no scheme is no identifier (it may be a local id).
pub fn normalise(text: &str) -> Result<String> {
    let text = text.trim();
    let wrong = |why: &str| {
        let shown: String = text.chars().take(100).collect();
        Error::permanent(ErrorCode::IdentifierInvalid, format!("{shown:?} is no identifier: {why}"))
    };
    if text.len() > IDENTIFIER_BYTES_MAX {
        return Err(wrong("it is longer than 1024 bytes"));
    }
    if !text.bytes().all(|b| b.is_ascii_graphic()) || text.contains(['"', '<', '>', '\\', '^', '`'])
    {
        return Err(wrong("it has characters that must be percent-encoded in a URI"));
    }
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("ark:") || resolves_ark(&lower) {
        return Ok(Ark::parse(text)?.to_string());
    }
    for resolver in
        ["https://doi.org/", "http://doi.org/", "https://dx.doi.org/", "http://dx.doi.org/"]
    {
        if let Some(doi) = lower.strip_prefix(resolver).filter(|doi| doi.starts_with("10.")) {
            return Ok(format!("doi:{doi}"));
        }
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(wrong("write it with its scheme, as in ark:/12345/x or doi:10.1234/x"));
    };
    let scheme = scheme.to_ascii_lowercase();
    let letters = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if !letters || !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || scheme.len() > 32 {
        return Err(wrong("its scheme is not one"));
    }
    if rest.trim_matches('/').is_empty() {
        return Err(wrong("nothing follows its scheme"));
    }
    match scheme.as_str() {
        "doi" | "uuid" => Ok(format!("{scheme}:{}", rest.to_ascii_lowercase())),
        "urn" if lower.starts_with("urn:uuid:") => Ok(lower),
        "http" | "https" => {
            with_host_in_lower_case(&scheme, rest).ok_or_else(|| wrong("it names no host"))
        }
        _ => Ok(format!("{scheme}:{rest}")),
    }
}

fn resolves_ark(lower: &str) -> bool {
    (lower.starts_with("http://") || lower.starts_with("https://")) && lower.contains("/ark:")
}

fn with_host_in_lower_case(scheme: &str, rest: &str) -> Option<String> {
    let rest = rest.strip_prefix("//")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    (!host.is_empty()).then(|| format!("{scheme}://{}{path}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        let same = [
            ("ark:12345/x-1", "ark:/12345/x1"),
            ("https://n2t.net/ark:/12345/x1", "ark:/12345/x1"),
            ("DOI:10.5072/FK2ABC", "doi:10.5072/fk2abc"),
            ("https://doi.org/10.5072/FK2ABC", "doi:10.5072/fk2abc"),
            ("urn:UUID:AB", "urn:uuid:ab"),
            ("URN:isbn:X", "urn:isbn:X"),
            (" hdl:2027/Mdp.1 ", "hdl:2027/Mdp.1"),
            ("HTTPS://Example.ORG/A", "https://example.org/A"),
        ];
        for (given, kept) in same {
            assert_eq!(normalise(given).unwrap(), kept);
            assert_eq!(normalise(kept).unwrap(), kept);
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let long = format!("x:{}", "y".repeat(2000));
        for bad in [
            "", "box-17", ":x", "x:", "http:///", "http:x", "a b:c", "x:a b", "x:\u{1}", "1x:y",
            "é:x", "x:<y>", "ark:/1/x", &long,
        ] {
            assert!(normalise(bad).is_err(), "{bad:?}");
        }
    }
}
