//! Where a bucket is and how to talk to it.

use super::credentials::CredentialSource;
use crate::error::{Error, ErrorKind, Result};
use http::Uri;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// How an S3 store is reached. [`S3Config::from_url`] fills it from a URL and the environment.
#[derive(Debug, Clone)]
pub struct S3Config {
    pub bucket: String,
    /// All keys lie below this, which may be empty.
    pub prefix: String,
    /// The address of a store other than Amazon's: `https://minio.example.org:9000`.
    pub endpoint: Option<String>,
    /// Where Amazon keeps the bucket; other stores mostly do not care.
    pub region: String,
    /// Name the bucket in the path instead of the host; the default where there is an endpoint.
    pub path_style: bool,
    pub credentials: CredentialSource,
    /// Objects above this are sent in parts of this size, at least 5 MiB for most stores.
    pub part_bytes: u64,
    /// Whole parts held in memory at once by one put or get, in bytes.
    pub buffer_bytes: u64,
    /// Requests under way at once.
    pub requests_max: usize,
    /// How often a request is tried before its failure is reported.
    pub tries_max: u32,
    /// The longest pause before the second try; it doubles with each, up to 20 seconds.
    pub pause_first: Duration,
    /// A connection, upload or download on which nothing moves for so long is given up.
    pub stall: Duration,
    /// How long the server may think after it has the whole request.
    pub answer: Duration,
    /// Objects above this are copied in parts; S3 itself allows 5 GiB.
    pub copy_bytes_max: u64,
    /// Try out on opening what the store supports; without it, nothing optional is assumed.
    pub probe: bool,
}

impl S3Config {
    pub fn new(bucket: impl Into<String>) -> S3Config {
        S3Config {
            bucket: bucket.into(),
            prefix: String::new(),
            endpoint: None,
            region: "us-east-1".into(),
            path_style: false,
            credentials: CredentialSource::default(),
            part_bytes: 16 * MIB,
            buffer_bytes: 64 * MIB,
            requests_max: 64,
            tries_max: 7,
            pause_first: Duration::from_millis(100),
            stall: Duration::from_secs(30),
            answer: Duration::from_secs(120),
            copy_bytes_max: 5 * 1024 * MIB,
            probe: true,
        }
    }

    /// Reads `s3://bucket/prefix`, with `endpoint`, `region`, `path_style`, `profile`,
    /// `anonymous` and `part_mib` as optional parameters after a `?`. What the URL leaves open
    /// comes from the environment (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, `AWS_REGION`,
    /// `AWS_DEFAULT_REGION`) and the profile.
    pub fn from_url(url: &str) -> Result<S3Config> {
        let bad = |why: String| Error::new(ErrorKind::Permanent, "", why).in_store(url);
        let rest = url.strip_prefix("s3://").ok_or_else(|| bad("not an s3:// URL".into()))?;
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if bucket.is_empty() || !bucket.chars().all(allowed) {
            return Err(bad("the name of the bucket is missing or not allowed".into()));
        }
        let mut config = S3Config::new(bucket);
        config.prefix = decode(prefix.trim_matches('/')).ok_or_else(|| bad("bad %".into()))?;
        crate::key::check_prefix(&config.prefix).map_err(|error| error.in_store(url))?;
        config.endpoint = env("AWS_ENDPOINT_URL_S3").or_else(|| env("AWS_ENDPOINT_URL"));
        let mut region = env("AWS_REGION").or_else(|| env("AWS_DEFAULT_REGION"));
        let mut path_style = None;
        for pair in parameters.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = decode(value).ok_or_else(|| bad(format!("bad % in {name}")))?;
            match name {
                "endpoint" => config.endpoint = Some(value),
                "region" => region = Some(value),
                "path_style" => path_style = Some(value == "true"),
                "profile" => config.credentials = CredentialSource::Profile(value),
                "anonymous" if value == "true" => config.credentials = CredentialSource::Anonymous,
                "part_mib" => {
                    let mib = value.parse::<u64>().ok().filter(|mib| (5..=5120).contains(mib));
                    config.part_bytes = mib.ok_or_else(|| bad("part_mib: 5 to 5120".into()))? * MIB;
                }
                _ => return Err(bad(format!("unknown parameter {name}"))),
            }
        }
        let region = region.or_else(|| config.credentials.region_of_profile());
        config.region = region.unwrap_or(config.region);
        config.path_style = path_style.unwrap_or(config.endpoint.is_some());
        config.base()?;
        Ok(config)
    }

    pub(super) fn url(&self) -> String {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        format!("s3://{}{slash}{}", self.bucket, self.prefix)
    }

    /// The scheme and host of requests, and the start of their path.
    pub(super) fn base(&self) -> Result<Base> {
        let default = || format!("https://s3.{}.amazonaws.com", self.region);
        let endpoint = self.endpoint.clone().unwrap_or_else(default);
        let bad = |why: &str| {
            Error::new(ErrorKind::Permanent, "", format!("endpoint {endpoint}: {why}"))
                .in_store(&self.url())
        };
        let uri: Uri = endpoint.parse().map_err(|_| bad("not a URL"))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        if !matches!(scheme, "http" | "https") {
            return Err(bad("must start with http:// or https://"));
        }
        if uri.query().is_some() {
            return Err(bad("must have no parameters"));
        }
        let authority = uri.authority().ok_or_else(|| bad("has no host"))?;
        let default_port = if scheme == "https" { 443 } else { 80 };
        let port = match authority.port_u16() {
            Some(port) if port != default_port => format!(":{port}"),
            _ => String::new(),
        };
        let (host, path) = (authority.host(), uri.path().trim_end_matches('/'));
        // A name with dots is not covered by the certificate of the virtual hosts.
        if self.path_style || self.bucket.contains('.') {
            let path = format!("{path}/{}", self.bucket);
            return Ok(Base { scheme: scheme.into(), host: format!("{host}{port}"), path });
        }
        let host = format!("{}.{host}{port}", self.bucket);
        Ok(Base { scheme: scheme.into(), host, path: path.into() })
    }
}

/// The part of a request's address that all requests share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub scheme: String,
    pub host: String,
    pub path: String,
}

pub(super) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || (rest.next()? as char).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_a_bucket_is() {
        let config = S3Config::from_url(
            "s3://archive/copies/a%20b?endpoint=http://localhost:9000&region=eu-1&part_mib=8",
        )
        .unwrap();
        assert_eq!((&*config.bucket, &*config.prefix), ("archive", "copies/a b"));
        assert_eq!(config.url(), "s3://archive/copies/a b");
        assert_eq!((config.part_bytes, config.path_style), (8 * MIB, true));
        let base = config.base().unwrap();
        assert_eq!((&*base.host, &*base.path), ("localhost:9000", "/archive"));
        for bad in [
            "s3://",
            "http://x",
            "s3:///a",
            "s3://b?x=1",
            "s3://b/../c",
            "s3://b?endpoint=ftp://x",
            "s3://b?part_mib=1",
            "s3://b%/c",
            "s3://b/%zz",
        ] {
            S3Config::from_url(bad).unwrap_err();
        }
    }

    #[test]
    fn amazon_has_the_bucket_in_the_host_unless_it_has_dots() {
        let mut config = S3Config::new("archive");
        config.region = "eu-central-1".into();
        let base = config.base().unwrap();
        assert_eq!(base.host, "archive.s3.eu-central-1.amazonaws.com");
        assert_eq!((&*base.scheme, &*base.path), ("https", ""));
        config.bucket = "a.b".into();
        let base = config.base().unwrap();
        assert_eq!((&*base.host, &*base.path), ("s3.eu-central-1.amazonaws.com", "/a.b"));
    }
}
