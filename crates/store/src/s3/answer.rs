//! What a server answered, and what an answer that is an error means.

use super::{clock, xml};
use crate::checksum::{Digest, Sha256Digest};
use crate::error::{Error, ErrorKind};
use crate::meta::{Availability, Meta, StorageClass};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, StatusCode};
use std::time::{Duration, SystemTime};

/// The names of the metadata that this crate keeps with an object.
pub(super) const META_SHA256: &str = "x-amz-meta-store-sha256";
pub(super) const META_PART_BYTES: &str = "x-amz-meta-store-part-bytes";
pub(super) const META_PUT: &str = "x-amz-meta-store-put";

/// An answer that is not a success.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub code: String,
    pub message: String,
    /// Where the bucket is, as far as the body says so.
    region: Option<String>,
}

/// What to do about a refusal before giving up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    GiveUp,
    TryAgain,
    SlowDown,
    RefreshCredentials,
    AdjustClock,
    ChangeRegion,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, headers: HeaderMap, body: &[u8]) -> Refusal {
        let parsed = xml::parse(body).ok();
        let text = |name| parsed.as_ref().and_then(|error| error.text_of(name)).map(str::to_owned);
        let code = text("Code").unwrap_or_default();
        let message = text("Message").unwrap_or_default();
        let region = text("Region").filter(|region| !region.is_empty());
        Refusal { status, headers, code, message, region }
    }

    /// The region that the server says the bucket is in: Amazon in a header, Garage in the body.
    pub(super) fn region(&self) -> Option<&str> {
        text(&self.headers, "x-amz-bucket-region").or(self.region.as_deref())
    }

    /// Whether the server says that it is asked too often, rather than that it failed.
    pub(super) fn is_throttling(&self) -> bool {
        matches!(
            self.code.as_str(),
            "SlowDown"
                | "Throttling"
                | "ThrottlingException"
                | "TooManyRequests"
                | "RequestLimitExceeded"
                | "BandwidthLimitExceeded"
                | "SlowDownRead"
                | "SlowDownWrite"
        )
    }

    pub(super) fn remedy(&self) -> Remedy {
        if self.is_throttling() {
            return Remedy::SlowDown;
        }
        match self.code.as_str() {
            "ExpiredToken" | "TokenRefreshRequired" => return Remedy::RefreshCredentials,
            "RequestTimeTooSkewed" => return Remedy::AdjustClock,
            // The bytes changed on the way: what is sent was hashed from memory, so sending it
            // again is right.
            "BadDigest"
            | "XAmzContentSHA256Mismatch"
            | "XAmzContentChecksumMismatch"
            | "IncompleteBody"
            | "RequestTimeout"
            | "OperationAborted"
            | "ConditionalRequestConflict" => return Remedy::TryAgain,
            "XMinioStorageFull" => return Remedy::GiveUp,
            _ => {}
        }
        if self.region().is_some() && matches!(self.status.as_u16(), 301 | 307 | 400 | 403) {
            return Remedy::ChangeRegion;
        }
        match self.status.as_u16() {
            429 | 503 => Remedy::SlowDown,
            408 | 500 | 502 | 504 => Remedy::TryAgain,
            _ => Remedy::GiveUp,
        }
    }

    /// How long the server asks to be left alone.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let text = self.headers.get(http::header::RETRY_AFTER)?.to_str().ok()?;
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        clock::parse_http(text)?.duration_since(SystemTime::now()).ok()
    }

    pub(super) fn kind(&self) -> ErrorKind {
        kind_of_code(&self.code).unwrap_or_else(|| match self.status.as_u16() {
            401 | 403 => ErrorKind::Denied,
            404 => ErrorKind::NotFound,
            409 | 412 => ErrorKind::PreconditionFailed,
            416 => ErrorKind::InvalidRange,
            501 => ErrorKind::Unsupported,
            507 => ErrorKind::NoSpace,
            429 | 503 => ErrorKind::Throttled,
            408 | 500 | 502 | 504 => ErrorKind::Transient,
            _ => ErrorKind::Permanent,
        })
    }

    pub(super) fn into_error(self, key: &str) -> Error {
        let mut kind = self.kind();
        if self.remedy() == Remedy::SlowDown {
            kind = ErrorKind::Throttled;
        }
        let mut detail = format!("the server answered {}", self.status.as_u16());
        for text in [&self.code, &self.message] {
            if !text.is_empty() {
                detail.push(' ');
                detail.push_str(text);
            }
        }
        Error::new(kind, key, detail).with_retry_after(self.retry_after())
    }
}

/// What an error code says by itself, whatever the status of the answer it came in.
pub(super) fn kind_of_code(code: &str) -> Option<ErrorKind> {
    Some(match code {
        "NoSuchKey" | "NoSuchUpload" | "NoSuchVersion" | "NoSuchBucket" => ErrorKind::NotFound,
        "InvalidObjectState" => ErrorKind::Cold,
        "IncompleteBody" | "RequestTimeout" | "InternalError" | "OperationAborted"
        | "ServiceUnavailable" => ErrorKind::Transient,
        "SlowDown" => ErrorKind::Throttled,
        "AccessDenied" => ErrorKind::Denied,
        "PreconditionFailed" => ErrorKind::PreconditionFailed,
        "NotImplemented" => ErrorKind::Unsupported,
        "QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage" => ErrorKind::NoSpace,
        "KeyTooLongError" | "KeyTooLong" | "InvalidURI" => ErrorKind::InvalidKey,
        "BadDigest"
        | "XAmzContentSHA256Mismatch"
        | "XAmzContentChecksumMismatch"
        | "InvalidDigest" => ErrorKind::Corrupt,
        _ => return None,
    })
}

/// A header as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// What the headers of a head or get say of an object of this size.
pub(super) fn meta(headers: &HeaderMap, size: u64) -> Meta {
    let class = text(headers, "x-amz-storage-class").map(StorageClass::new);
    let (digest, vouched) = digest(headers);
    Meta {
        size,
        modified: text(headers, "last-modified").and_then(clock::parse_http),
        etag: text(headers, "etag").map(str::to_owned),
        digest,
        vouched,
        availability: availability(headers, class.as_ref()),
        storage_class: class,
    }
}

/// The digest of the server, or else the one that was announced when the object was put; and
/// whether the server vouches for it. Of an object in parts it has compared each part, and the
/// announced digest is of the bytes that were cut into them: an upload is only completed if so.
pub(super) fn digest(headers: &HeaderMap) -> (Option<Digest>, bool) {
    let of_server = text(headers, "x-amz-checksum-sha256").and_then(parse_checksum);
    // No store has a SHA-256 of the whole of what it got in parts, whatever one may call it.
    let in_parts = headers.contains_key(META_PART_BYTES);
    match of_server {
        Some(Digest::Sha256(_)) if in_parts => (announced(headers).map(Digest::Sha256), false),
        Some(whole @ Digest::Sha256(_)) => (Some(whole), true),
        of_parts => {
            let digest = announced(headers).map(Digest::Sha256).or(of_parts);
            (digest, of_parts.is_some())
        }
    }
}

/// The SHA-256 of the whole that was announced when the object was put.
pub(super) fn announced(headers: &HeaderMap) -> Option<Sha256Digest> {
    text(headers, META_SHA256).and_then(Sha256Digest::from_hex)
}

/// Reads `base64` for a whole object, `base64-N` for one of N parts.
pub(super) fn parse_checksum(text: &str) -> Option<Digest> {
    let (digest, parts) = match text.split_once('-') {
        Some((digest, parts)) => (digest, Some(parts.parse().ok()?)),
        None => (text, None),
    };
    let bytes: [u8; 32] = BASE64.decode(digest).ok()?.try_into().ok()?;
    let digest = Sha256Digest(bytes);
    Some(match parts {
        Some(parts) => Digest::Sha256OfParts { digest, parts },
        None => Digest::Sha256(digest),
    })
}

pub(super) fn base64(digest: Sha256Digest) -> String {
    BASE64.encode(digest.0)
}

fn availability(headers: &HeaderMap, class: Option<&StorageClass>) -> Availability {
    let archived = text(headers, "x-amz-archive-status").is_some();
    let cold = archived || class.is_some_and(StorageClass::is_cold);
    match text(headers, "x-amz-restore") {
        _ if !cold => Availability::Ready,
        None => Availability::Cold,
        Some(restore) if restore.contains("ongoing-request=\"true\"") => Availability::Thawing,
        Some(restore) => {
            let date =
                restore.split("expiry-date=\"").nth(1).and_then(|rest| rest.split('"').next());
            Availability::Thawed { until: date.and_then(clock::parse_http) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect()
    }

    #[test]
    fn thaws_as_headers_tell_them() {
        let of = |restore: Option<&'static str>| {
            let mut map = headers(&[("x-amz-storage-class", "GLACIER")]);
            if let Some(restore) = restore {
                map.insert("x-amz-restore", restore.parse().unwrap());
            }
            meta(&map, 1).availability
        };
        assert_eq!(of(None), Availability::Cold);
        assert_eq!(of(Some("ongoing-request=\"true\"")), Availability::Thawing);
        let done = "ongoing-request=\"false\", expiry-date=\"Fri, 21 Dec 2012 00:00:00 GMT\"";
        let until = clock::parse_iso("2012-12-21T00:00:00Z");
        assert_eq!(of(Some(done)), Availability::Thawed { until });
        assert_eq!(meta(&headers(&[]), 1).availability, Availability::Ready);
    }

    #[test]
    fn checksums_of_wholes_and_of_parts() {
        let digest = Sha256Digest::of(b"x");
        let text = base64(digest);
        assert_eq!(parse_checksum(&text), Some(Digest::Sha256(digest)));
        let of_parts = Digest::Sha256OfParts { digest, parts: 3 };
        assert_eq!(parse_checksum(&format!("{text}-3")), Some(of_parts));
        assert_eq!(parse_checksum("AAAA"), None);
        assert_eq!(parse_checksum(&format!("{text}-x")), None);
    }

    #[test]
    fn refusals_are_sorted_by_what_to_do() {
        let refusal = |status: u16, code: &str| {
            let body = format!("<Error><Code>{code}</Code><Message>why</Message></Error>");
            Refusal::new(StatusCode::from_u16(status).unwrap(), headers(&[]), body.as_bytes())
        };
        let cases = [
            (503, "SlowDown", Remedy::SlowDown, ErrorKind::Throttled),
            (500, "InternalError", Remedy::TryAgain, ErrorKind::Transient),
            (400, "BadDigest", Remedy::TryAgain, ErrorKind::Corrupt),
            (403, "InvalidObjectState", Remedy::GiveUp, ErrorKind::Cold),
            (403, "AccessDenied", Remedy::GiveUp, ErrorKind::Denied),
            (404, "NoSuchKey", Remedy::GiveUp, ErrorKind::NotFound),
            (412, "PreconditionFailed", Remedy::GiveUp, ErrorKind::PreconditionFailed),
            (507, "XMinioStorageFull", Remedy::GiveUp, ErrorKind::NoSpace),
            (400, "MalformedXML", Remedy::GiveUp, ErrorKind::Permanent),
        ];
        for (status, code, remedy, kind) in cases {
            assert_eq!(refusal(status, code).remedy(), remedy, "{code}");
            assert_eq!(refusal(status, code).into_error("k").kind(), kind, "{code}");
        }
        let error = refusal(500, "InternalError").into_error("k").to_string();
        assert!(error.contains("500 InternalError why"), "{error}");
    }
}
