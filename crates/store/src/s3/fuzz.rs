//! What a hostile server may answer, and what a user may type: none of it may panic.
//!
//! Runs for `ACCESSION_FUZZ_SECONDS` (4 if not set); a failure prints the seed, and
//! `ACCESSION_FUZZ_SEED` runs it again.

use super::answer::{self, Refusal};
use super::config::S3Config;
use super::{clock, xml};
use ::http::{HeaderMap, HeaderValue, StatusCode};
use std::time::{Duration, Instant};

const SEEDS: &[&str] = &[
    "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated><Contents><Key>a &amp; b</Key><LastModified>2013-05-24T00:00:01.250Z</LastModified><Size>12</Size></Contents><CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes></ListBucketResult>",
    "<Error><Code>SlowDown</Code><Message>&#x1F600;&#0;&lt;</Message></Error>",
    "<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>",
    "<a><![CDATA[ x ]]><b/><!-- c --><?pi?></a>",
    "s3://bucket/some/prefix%20x?endpoint=http://[::1]:9000/base&region=r&path_style=true&part_mib=8",
    "bytes 0-9/100",
    "2013-05-24T00:00:01.250Z",
    "Fri, 21 Dec 2012 00:00:00 GMT",
    "ongoing-request=\"false\", expiry-date=\"Fri, 21 Dec 2012 00:00:00 GMT\"",
    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=-12",
    "9999999999999999999999-99-99T99:99:99Z",
];

fn mutate(random: &mut fastrand::Rng, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.usize(0..6) {
        let at = random.usize(0..=bytes.len());
        match random.u8(0..6) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(at, random.u8(..)),
            3 => bytes.truncate(at),
            4 => {
                let other = random.choice(SEEDS).map_or(&[][..], |seed| seed.as_bytes());
                let cut = random.usize(0..=other.len());
                bytes.splice(at..at, other[..cut].iter().copied());
            }
            _ => {
                let copy = bytes[at..].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

fn feed(bytes: &[u8]) {
    if let Ok(parsed) = xml::parse(bytes) {
        // What can be read can be written and read again.
        let written = xml::element("a", &parsed.text);
        assert_eq!(xml::parse(written.as_bytes()).map(|again| again.text), Ok(parsed.text));
    }
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(bytes) {
        for name in [
            "x-amz-restore",
            "x-amz-checksum-sha256",
            "retry-after",
            "last-modified",
            "x-amz-storage-class",
            "etag",
            "date",
        ] {
            headers.insert(name, value.clone());
        }
    }
    let _ = answer::meta(&headers, 1);
    let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, headers, bytes);
    let _ = (refusal.remedy(), refusal.retry_after());
    let _ = refusal.into_error("k").to_string();
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = clock::parse_iso(text).map(clock::stamp);
        let _ = S3Config::from_url(text);
        let _ = super::get::parse_content_range(text);
        let _ = crate::key::check_key(text);
    }
}

#[test]
fn nothing_that_arrives_makes_it_panic() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = variable("ACCESSION_FUZZ_SECONDS").unwrap_or(4);
    let first = variable("ACCESSION_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..));
    let end = Instant::now() + Duration::from_secs(seconds);
    SEEDS.iter().for_each(|seed| feed(seed.as_bytes()));
    let mut number = first;
    while Instant::now() < end {
        let mut random = fastrand::Rng::with_seed(number);
        let seed = random.choice(SEEDS).map_or(&[][..], |seed| seed.as_bytes());
        let input = mutate(&mut random, seed);
        if std::panic::catch_unwind(|| feed(&input)).is_err() {
            panic!("ACCESSION_FUZZ_SEED={number}: {:?}", String::from_utf8_lossy(&input));
        }
        number = number.wrapping_add(1);
    }
}
