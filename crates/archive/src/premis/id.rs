//! Names of versions, files and events that come out the same however often they are made.

use super::EventType;
use crate::xml;
use digest::Sha256;
use queue::JobId;
use std::fmt::Write as _;

/// What an event is named after. The same job, kind and path give the same id in every run, so
/// that a run that is cut short and repeated records each event once. Numbers of jobs are only
/// unique within one installation and begin again when a registry is rebuilt, so `installation`
/// (a random name made with the database) is part of it. The result is a UUID of version 8 (RFC
/// 9562: made of a digest, here SHA-256).
pub fn event_id(installation: &str, job: JobId, kind: EventType, path: Option<&str>) -> String {
    let mut digest = Sha256::new();
    // Each part is preceded by its length, so that no two lists of parts look alike.
    for part in [Some(installation), Some(&job.to_string()), Some(kind.as_str()), path] {
        match part {
            Some(part) => {
                digest.update(&(part.len() as u64).to_be_bytes());
                digest.update(part.as_bytes());
            }
            None => digest.update(&u64::MAX.to_be_bytes()),
        }
    }
    let mut bytes: [u8; 16] = digest.finish()[..16].try_into().unwrap_or_default();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut id = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            id.push('-');
        }
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// `ark:/12345/x#v2`
pub fn version_id(object: &str, version: i64) -> String {
    format!("{}#v{version}", uri(object).replace('#', "%23"))
}

/// `ark:/12345/x#v2/data/a%20b.tif`
pub fn file_id(object: &str, version: i64, path: &str) -> String {
    let mut id = version_id(object, version);
    id.push('/');
    encode(path, b"-._~/!$&'()*+,;=:@", &mut id);
    id
}

/// What [`version_id`] and [`file_id`] were made from; the object as a URI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub object: String,
    pub version: i64,
    pub path: Option<String>,
}

pub(super) fn named(id: &str) -> Option<Named> {
    let (object, rest) = id.split_once("#v")?;
    let (version, path) = match rest.split_once('/') {
        Some((version, path)) => (version, Some(xml::name_taken_back(path))),
        None => (rest, None),
    };
    Some(Named { object: object.to_owned(), version: version.parse().ok()?, path })
}

/// An identifier as a URI: unchanged if it is one.
pub(super) fn uri(identifier: &str) -> String {
    let mut written = String::with_capacity(identifier.len());
    encode(identifier, b"-._~/!$&'()*+,;=:@%?#[]", &mut written);
    written
}

fn encode(text: &str, kept: &[u8], to: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            to.push(byte.into());
        } else {
            let _ = write!(to, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn events_have_one_id_in_every_run() {
        let id = event_id("here", JobId::new(7), EventType::Ingestion, None);
        assert_eq!(id, "3bb5f32c-1ff8-8609-9079-aa3cd3936012");
        let mut seen = HashSet::from([id.clone()]);
        for other in [
            event_id("there", JobId::new(7), EventType::Ingestion, None),
            event_id("here", JobId::new(8), EventType::Ingestion, None),
            event_id("here", JobId::new(7), EventType::Validation, None),
            event_id("here", JobId::new(7), EventType::Ingestion, Some("")),
            event_id("here", JobId::new(7), EventType::Ingestion, Some("a")),
            event_id("her", JobId::new(7), EventType::Ingestion, Some("ea")),
            event_id("here7", JobId::new(7), EventType::Ingestion, None),
        ] {
            assert_eq!((other.len(), &other[14..15]), (36, "8"));
            assert!("89ab".contains(&other[19..20]));
            assert!(seen.insert(other));
        }
    }

    #[test]
    fn names_are_uris() {
        assert_eq!(version_id("ark:/12345/x", 2), "ark:/12345/x#v2");
        assert_eq!(
            file_id("ark:/12345/x", 2, "a b/é#\n%20.tif"),
            "ark:/12345/x#v2/a%20b/%C3%A9%23%0A%2520.tif"
        );
        assert_eq!(uri("a <b>"), "a%20%3Cb%3E");
        assert_eq!(version_id("http://x/y#z", 1), "http://x/y%23z#v1");
    }
}
