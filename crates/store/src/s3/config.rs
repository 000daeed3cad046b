//! Where a bucket is and how to talk to it.

use super::credentials::CredentialSource;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::StorageClass;
use http::Uri;
use std::path::PathBuf;
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
    /// Memory that all puts, and all gets, share for going faster than one part after the other.
    pub memory_bytes: u64,
    /// Requests under way at once, while the store does not ask for fewer.
    pub requests_max: usize,
    /// How objects are kept that are put without a class of their own.
    pub storage_class: Option<StorageClass>,
    /// How the server encrypts what it keeps: `AES256`, `aws:kms` or `aws:kms:dsse`.
    pub sse: Option<String>,
    /// The key of the server's key management for that.
    pub sse_kms_key_id: Option<String>,
    /// How often a request is tried before its failure is reported.
    pub tries_max: u32,
    /// The longest pause before the second try; it doubles with each, up to 20 seconds.
    pub pause_first: Duration,
    /// A connection, upload or download on which nothing moves for so long is given up.
    pub stall: Duration,
    /// How long the server may think after it has the whole request.
    pub answer: Duration,
    /// Trust the certificates of this file instead of those of the system.
    pub ca_bundle: Option<PathBuf>,
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
            memory_bytes: 64 * MIB,
            requests_max: 32,
            storage_class: None,
            sse: None,
            sse_kms_key_id: None,
            tries_max: 7,
            pause_first: Duration::from_millis(100),
            stall: Duration::from_secs(30),
            answer: Duration::from_secs(120),
            ca_bundle: None,
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
        // The name of an access point has a slash of its own.
        let end = path.match_indices('/').nth(usize::from(path.starts_with("arn:")));
        let end = end.map_or(path.len(), |(at, _)| at);
        let (bucket, prefix) = path.split_at(end);
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_name = !bucket.is_empty() && bucket.chars().all(allowed);
        if !is_name && AccessPoint::of(bucket).is_none() {
            return Err(bad("the name of the bucket is missing or not allowed".into()));
        }
        let mut config = S3Config::new(bucket);
        config.prefix = decode(prefix.trim_matches('/')).ok_or_else(|| bad("bad %".into()))?;
        if !config.prefix.is_empty() {
            crate::key::check_key(&config.prefix).map_err(|error| error.in_store(url))?;
        }
        config.endpoint = env("AWS_ENDPOINT_URL_S3").or_else(|| env("AWS_ENDPOINT_URL"));
        config.ca_bundle = env("AWS_CA_BUNDLE").map(PathBuf::from);
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
                "concurrency" => {
                    let number = value.parse::<usize>().ok().filter(|n| (1..=256).contains(n));
                    let wrong = || bad("concurrency: 1 to 256".into());
                    config.requests_max = number.ok_or_else(wrong)?;
                }
                "sse" => {
                    if !matches!(value.as_str(), "AES256" | "aws:kms" | "aws:kms:dsse") {
                        return Err(bad("sse: AES256, aws:kms or aws:kms:dsse".into()));
                    }
                    config.sse = Some(value);
                }
                "sse_kms_key_id" => config.sse_kms_key_id = Some(value),
                _ => return Err(bad(format!("unknown parameter {name}"))),
            }
        }
        if config.sse_kms_key_id.is_some() && !matches!(&config.sse, Some(s) if s.contains("kms")) {
            return Err(bad("sse_kms_key_id needs sse=aws:kms".into()));
        }
        let of_profile = |name| config.credentials.setting_of_profile(name);
        let of_access_point = AccessPoint::of(&config.bucket).map(|point| point.region.to_owned());
        let region = of_access_point.or(region).or_else(|| of_profile("region"));
        let ignored = env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(|v| v == "true");
        let endpoint = of_profile("endpoint_url").filter(|_| !ignored);
        let ca_bundle = of_profile("ca_bundle").map(PathBuf::from);
        config.endpoint = config.endpoint.or(endpoint);
        config.ca_bundle = config.ca_bundle.or(ca_bundle);
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
        let point = AccessPoint::of(&self.bucket);
        let default = || match &point {
            Some(point) => format!("https://{}", point.host()),
            None => format!("https://s3.{}.{}", self.region, domain(&self.region)),
        };
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
        if point.is_some() {
            let (host, path) = (format!("{host}{port}"), path.to_owned());
            return Ok(Base { scheme: scheme.into(), host, path });
        }
        // A name with dots is not covered by the certificate of the virtual hosts.
        if self.path_style || self.bucket.contains('.') {
            let path = format!("{path}/{}", self.bucket);
            return Ok(Base { scheme: scheme.into(), host: format!("{host}{port}"), path });
        }
        let host = format!("{}.{host}{port}", self.bucket);
        Ok(Base { scheme: scheme.into(), host, path: path.into() })
    }
}

/// The domain that a region's services are in: Amazon keeps its partitions apart.
pub(super) fn domain(region: &str) -> &'static str {
    match region.split('-').take(2).collect::<Vec<_>>().as_slice() {
        ["cn", ..] => "amazonaws.com.cn",
        ["us", "iso"] => "c2s.ic.gov",
        ["us", "isob"] => "sc2s.sgov.gov",
        ["us", "isof"] => "csp.hci.ic.gov",
        ["eu", "isoe"] => "cloud.adc-e.uk",
        ["eusc", ..] => "amazonaws.eu",
        _ => "amazonaws.com",
    }
}

/// A name for a bucket with rules of its own: `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`.
pub(super) struct AccessPoint<'a> {
    pub region: &'a str,
    account: &'a str,
    name: &'a str,
}

impl<'a> AccessPoint<'a> {
    pub(super) fn of(bucket: &'a str) -> Option<AccessPoint<'a>> {
        let mut parts = bucket.splitn(6, ':');
        let (arn, partition, service) = (parts.next()?, parts.next()?, parts.next()?);
        let (region, account, resource) = (parts.next()?, parts.next()?, parts.next()?);
        let name = resource.strip_prefix("accesspoint/")?;
        let plain = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let good = arn == "arn" && partition.starts_with("aws") && service == "s3";
        let good = good && [region, account, name].into_iter().all(plain);
        good.then_some(AccessPoint { region, account, name })
    }

    fn host(&self) -> String {
        let AccessPoint { region, account, name } = self;
        format!("{name}-{account}.s3-accesspoint.{region}.{}", domain(region))
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
            "s3://b?concurrency=0",
            "s3://b?sse=rot13",
            "s3://b?sse_kms_key_id=k",
            "s3://arn:aws:s3:eu-west-1:123:bucket/x",
            "s3://b%/c",
            "s3://b/%zz",
        ] {
            S3Config::from_url(bad).unwrap_err();
        }
    }

    #[test]
    fn partitions_and_access_points_have_hosts_of_their_own() {
        let mut config = S3Config::new("archive");
        config.region = "cn-north-1".into();
        assert_eq!(config.base().unwrap().host, "archive.s3.cn-north-1.amazonaws.com.cn");
        let url = "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/copies/a/b";
        let config = S3Config::from_url(url).unwrap();
        assert_eq!((&*config.prefix, &*config.region), ("a/b", "eu-west-1"));
        let base = config.base().unwrap();
        assert_eq!(base.host, "copies-123456789012.s3-accesspoint.eu-west-1.amazonaws.com");
        assert_eq!(base.path, "");
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
