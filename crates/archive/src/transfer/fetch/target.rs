//! Which URLs are fetched at all.

use crate::ErrorCode;
use crate::{Error, Result};
use url::Url;

/// A longer URL is a mistake or an attack.
const URL_BYTES_MAX: usize = 8192;

pub(super) fn wrong(url: &str, why: &str) -> Error {
    let start: String = crate::model::text::shown_url(url).chars().take(200).collect();
    Error::permanent(
        ErrorCode::UrlInvalid,
        format!("`{start}` is not a URL that can be fetched: {why}; correct it"),
    )
}

/// Reads a URL that someone else wrote.
pub(super) fn parse(text: &str) -> Result<Url> {
    if text.len() > URL_BYTES_MAX {
        return Err(wrong(text, &format!("it has more than {URL_BYTES_MAX} characters")));
    }
    check(Url::parse(text).map_err(|e| wrong(text, &e.to_string()))?)
}

/// Refuses what is not http, https or file, and names and passwords in URLs.
pub(super) fn check(mut url: Url) -> Result<Url> {
    if !matches!(url.scheme(), "http" | "https" | "file") {
        return Err(Error::permanent(
            ErrorCode::UrlScheme,
            format!(
                "`{}` is not fetched: only http, https and file URLs are; put the file where one of them reaches it",
                super::error::shown(&url)
            ),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // They would end up in logs, reports and the record of the object.
        let host = url.host_str().unwrap_or_default();
        return Err(Error::permanent(
            ErrorCode::UrlCredentials,
            format!(
                "a URL at {host} has a user name or password in it, which would be kept in records; use a URL without"
            ),
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

/// A redirect leads to another page of the web, never to a file of this machine.
pub(super) fn check_redirect(url: Url) -> Result<Url> {
    match check(url)? {
        url if url.scheme() == "file" => Err(Error::permanent(
            ErrorCode::UrlScheme,
            format!(
                "a redirect to {} is not followed; use the URL of the file itself",
                super::error::shown(&url)
            ),
        )),
        url => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_urls_are_taken() {
        assert_eq!(parse("HTTP://Example.org/a b#c").unwrap().as_str(), "http://example.org/a%20b");
        // Every way of writing an address is the same address.
        assert_eq!(parse("http://0x7f.1/").unwrap().host_str(), Some("127.0.0.1"));
        for (url, code) in [
            ("ftp://x/y", "url_scheme"),
            ("gopher://x", "url_scheme"),
            ("s3://bucket/key", "url_scheme"),
            ("javascript:alert(1)", "url_scheme"),
            ("a/b", "url_invalid"),
            ("http://", "url_invalid"),
            ("http://user:secret@x/", "url_credentials"),
        ] {
            let error = parse(url).unwrap_err();
            assert_eq!(error.code(), code, "{url}");
            assert!(!error.to_string().contains("secret"));
        }
        assert_eq!(
            parse(&format!("http://x/{}", "a".repeat(9000))).unwrap_err().code(),
            "url_invalid"
        );
    }
}
