//! What can go wrong while fetching, in the words of people.

use crate::Error;
use crate::ErrorCode;
use crate::model::text::shown_url;
use http::StatusCode;
use url::Url;

/// A URL as it may be shown: see [`shown_url`].
pub(super) fn shown(url: &Url) -> String {
    shown_url(url.as_str())
}

pub(super) fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_ascii_lowercase()
}

fn at_host(error: Error, url: &Url) -> Error {
    error.at(format!("host {}", host_of(url)))
}

/// What an answer that is not the file means.
pub(super) fn of_status(url: &Url, status: StatusCode) -> Error {
    let (place, code) = (shown(url), status.as_u16());
    match code {
        404 | 410 => Error::permanent(
            ErrorCode::UrlNotFound,
            format!(
                "there is nothing at {place} (HTTP {code}); correct the URL or put the file there, then deposit again"
            ),
        ),
        401 | 403 | 407 => Error::permanent(
            ErrorCode::UrlForbidden,
            format!(
                "{place} may not be read (HTTP {code}); make it readable for the archive, or use a URL that carries permission"
            ),
        ),
        408 => at_host(
            Error::transient(
                ErrorCode::HostTimeout,
                format!("{place}: the server gave up waiting (HTTP 408)"),
            ),
            url,
        ),
        429 | 503 => at_host(
            Error::transient(
                ErrorCode::HostBusy,
                format!("{place}: the server asks to be tried later (HTTP {code})"),
            ),
            url,
        ),
        500..=599 => at_host(
            Error::transient(
                ErrorCode::HostFailed,
                format!("{place}: the server failed (HTTP {code})"),
            ),
            url,
        ),
        _ => Error::permanent(
            ErrorCode::UrlRefused,
            format!(
                "{place} was refused with HTTP {code}; check the URL with its server's keepers"
            ),
        ),
    }
}

pub(super) fn unreachable(url: &Url, why: &str) -> Error {
    at_host(
        Error::transient(
            ErrorCode::HostUnreachable,
            format!("{} cannot be reached: {why}", shown(url)),
        ),
        url,
    )
}

pub(super) fn timeout(url: &Url, why: &str) -> Error {
    at_host(Error::transient(ErrorCode::HostTimeout, format!("{}: {why}", shown(url))), url)
}

pub(super) fn slow(url: &Url, bytes: u64, time: std::time::Duration) -> Error {
    at_host(
        Error::transient(
            ErrorCode::HostSlow,
            format!(
                "{}: {bytes} bytes came in {} s, which is slower than fetch.bytes_per_second_min; what came is kept, and the download goes on later",
                shown(url),
                time.as_secs_f32().round()
            ),
        ),
        url,
    )
}

pub(super) fn encoded(url: &Url, encoding: &str) -> Error {
    Error::permanent(
        ErrorCode::ContentEncoded,
        format!(
            "{} is sent with Content-Encoding `{}` although the file was asked for as it is; have its server send it without",
            shown(url),
            encoding.escape_debug()
        ),
    )
}

pub(super) fn lost(url: &Url, why: &str) -> Error {
    at_host(Error::transient(ErrorCode::ConnectionLost, format!("{}: {why}", shown(url))), url)
}

pub(super) fn bad_answer(url: &Url, why: &str) -> Error {
    at_host(
        Error::transient(
            ErrorCode::BadAnswer,
            format!("{}: the server's answer makes no sense: {why}", shown(url)),
        ),
        url,
    )
}

pub(super) fn private(url: &str, host: &str) -> Error {
    Error::permanent(
        ErrorCode::UrlPrivateAddress,
        format!(
            "{url} is not fetched: {host} is an address inside a private network; if it should be, add it to fetch.allow_private"
        ),
    )
}

pub(super) fn size_mismatch(url: &Url, expected: u64, found: u64) -> Error {
    Error::permanent(
        ErrorCode::SizeMismatch,
        format!(
            "{} has {found} bytes but should have {expected}; correct the manifest or the file",
            shown(url)
        ),
    )
}

pub(super) fn too_large(url: &Url, limit: u64) -> Error {
    Error::permanent(
        ErrorCode::FileTooLarge,
        format!(
            "{} has more than {limit} bytes, which is the most that is downloaded (fetch.bytes_max)",
            shown(url)
        ),
    )
}

/// An error of the disk that the file is written to.
pub(crate) fn of_disk(path: &std::path::Path, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let path = path.display();
    match error.kind() {
        StorageFull | QuotaExceeded => Error::transient(
            ErrorCode::NoSpace,
            format!("{path} cannot be written: {error}; make room in the work space"),
        )
        .at("work space"),
        _ => Error::transient(
            ErrorCode::WorkSpace,
            format!("{path} cannot be written: {error}; check the work space"),
        )
        .at("work space"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_urls_are_not_shown() {
        let url = Url::parse("https://x.org/a?X-Amz-Signature=abc").unwrap();
        assert_eq!(shown(&url), "https://x.org/a?…");
        assert!(!of_status(&url, StatusCode::NOT_FOUND).to_string().contains("abc"));
        for (url, safe) in [
            ("https://ann:pw@x.org/a@b?t=1#f", "https://…@x.org/a@b?…"),
            ("http://ann:p@w@x.org", "http://…@x.org"),
            ("ftp://ann:pw@", "ftp://…@"),
            ("ann:pw@x.org/a", "…@x.org/a"),
            ("https://x.org/a", "https://x.org/a"),
        ] {
            assert_eq!(shown_url(url), safe);
        }
    }

    #[test]
    fn a_full_disk_has_its_own_code() {
        let full = std::io::Error::from_raw_os_error(28);
        let error = of_disk(std::path::Path::new("/w/x"), &full);
        assert_eq!(error.code(), "no_space");
        assert!(error.is_transient());
    }

    #[test]
    fn what_could_pass_is_transient() {
        let url = Url::parse("https://x.org/a").unwrap();
        for (status, transient) in [
            (404, false),
            (410, false),
            (401, false),
            (403, false),
            (400, false),
            (408, true),
            (429, true),
            (500, true),
            (503, true),
        ] {
            let error = of_status(&url, StatusCode::from_u16(status).unwrap());
            assert_eq!(error.is_transient(), transient, "{status}");
        }
    }
}
