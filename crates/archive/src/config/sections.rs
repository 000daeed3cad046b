//! The sections of the configuration, with the values they have when nothing is said.

use super::bytes;
use crate::model::profile::Profile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything that can be configured. [`super::SETTINGS`] says what each value is and its bounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub stores: BTreeMap<String, StoreSection>,
    pub work_space: WorkSpaceSection,
    pub fetch: FetchSection,
    pub mail: Option<MailSection>,
    pub upload: UploadSection,
    pub limits: LimitsSection,
    pub formats: FormatsSection,
    pub identifiers: IdentifiersSection,
    pub stages: BTreeMap<String, StageSection>,
    pub watch: Vec<WatchSection>,
    pub collections: BTreeMap<String, Profile>,
}

/// A place that keeps copies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSection {
    /// A directory or `s3://bucket/prefix?…`.
    pub url: String,
    pub storage_class: Option<String>,
    pub inventory_storage_class: Option<String>,
    pub concurrency: Option<usize>,
    pub sse: Option<String>,
    pub sse_kms_key_id: Option<String>,
    pub restore_priority: Option<u8>,
    pub thaw_tier: Option<ThawTier>,
    pub thaw_days: Option<u32>,
    pub thaw_look_seconds: Option<u32>,
}

/// How fast, and at what price, cold content is thawed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThawTier {
    Expedited,
    #[default]
    Standard,
    Bulk,
}

impl StoreSection {
    /// The URL, with what every request to the store needs as its parameters: for whoever opens the
    /// store by its address alone.
    pub fn address(&self) -> String {
        if !self.url.starts_with("s3://") {
            return self.url.clone();
        }
        let concurrency = self.concurrency.map(|number| number.to_string());
        let parameters = [
            ("concurrency", &concurrency),
            ("sse", &self.sse),
            ("sse_kms_key_id", &self.sse_kms_key_id),
        ];
        parameters.into_iter().fold(self.url.clone(), |mut url, (name, value)| {
            if let Some(value) = value {
                url.push(if url.contains('?') { '&' } else { '?' });
                url.push_str(&format!("{name}={}", escaped(value)));
            }
            url
        })
    }
}

/// Text as a value in a URL.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'/' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Where jobs keep what they download and unpack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkSpaceSection {
    pub name: String,
    pub path: PathBuf,
    pub admit_percent: u8,
    pub stop_percent: u8,
}

impl Default for WorkSpaceSection {
    fn default() -> WorkSpaceSection {
        WorkSpaceSection {
            name: "main".to_string(),
            path: PathBuf::from("work"),
            admit_percent: 70,
            stop_percent: 80,
        }
    }
}

/// How files are downloaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FetchSection {
    pub connect_timeout_seconds: u64,
    pub timeout_seconds: u64,
    pub connections_per_host: usize,
    pub connections: usize,
    pub tries: u32,
    pub allow_private: AllowPrivate,
    pub file_roots: Vec<PathBuf>,
    #[serde(deserialize_with = "bytes::amount")]
    pub bytes_max: u64,
    /// A server that sends less for a whole window is given up, and tried again later.
    #[serde(deserialize_with = "bytes::amount")]
    pub bytes_per_second_min: u64,
    pub rate_window_seconds: u64,
    /// How long the sizes of an object's files are asked for.
    pub estimate_seconds_max: u64,
}

impl Default for FetchSection {
    fn default() -> FetchSection {
        FetchSection {
            connect_timeout_seconds: 10,
            timeout_seconds: 60,
            connections_per_host: 4,
            connections: 16,
            tries: 5,
            allow_private: AllowPrivate::default(),
            file_roots: Vec::new(),
            bytes_max: 5 << 40,
            bytes_per_second_min: 10 << 10,
            rate_window_seconds: 60,
            estimate_seconds_max: 300,
        }
    }
}

/// Which addresses that are not public may be fetched from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a list of hosts and networks")]
pub enum AllowPrivate {
    All(bool),
    /// Host names, addresses, or networks such as `10.1.0.0/16`.
    Only(Vec<String>),
}

impl Default for AllowPrivate {
    fn default() -> AllowPrivate {
        AllowPrivate::All(false)
    }
}

/// How mail is handed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailSection {
    pub host: String,
    /// The port, where it is not the usual one of the security chosen.
    pub port: Option<u16>,
    #[serde(default)]
    pub security: MailSecurity,
    pub user: Option<String>,
    pub password_file: Option<PathBuf>,
    /// A certificate (PEM) to trust besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// `archive@example.org` or `Archive <archive@example.org>`.
    pub from: String,
    /// Who is told of jobs that need a person.
    #[serde(default)]
    pub operators: Vec<String>,
    #[serde(default = "mail_timeout_seconds")]
    pub timeout_seconds: u64,
}

fn mail_timeout_seconds() -> u64 {
    30
}

impl MailSection {
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.security {
            MailSecurity::None => 25,
            MailSecurity::Starttls => 587,
            MailSecurity::Tls => 465,
        })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MailSecurity {
    None,
    #[default]
    Starttls,
    Tls,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UploadSection {
    #[serde(deserialize_with = "bytes::amount")]
    pub bytes_max: u64,
}

impl Default for UploadSection {
    fn default() -> UploadSection {
        UploadSection { bytes_max: 30 << 30 }
    }
}

/// What one object may be, where its collection does not say otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    pub files_max: u64,
    #[serde(deserialize_with = "bytes::amount")]
    pub bytes_max: u64,
    pub expand_ratio_max: u64,
    pub invalid_package_retention_days: u32,
    pub verify_referenced_days: u32,
}

impl Default for LimitsSection {
    fn default() -> LimitsSection {
        LimitsSection {
            files_max: 1_000_000,
            bytes_max: 5 << 40,
            expand_ratio_max: 250,
            invalid_package_retention_days: 14,
            verify_referenced_days: 30,
        }
    }
}

/// How the formats of files are identified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FormatsSection {
    #[serde(deserialize_with = "bytes::amount")]
    pub scan_bytes_max: u64,
}

impl Default for FormatsSection {
    fn default() -> FormatsSection {
        FormatsSection { scan_bytes_max: pronom::Identifier::FURTHER_BYTES }
    }
}

/// How new objects are named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdentifiersSection {
    pub naan: String,
    pub shoulder: String,
    pub ezid: Option<EzidSection>,
}

impl Default for IdentifiersSection {
    fn default() -> IdentifiersSection {
        // 99999 is the NAAN for tests and examples; fk4 is the shoulder used with it.
        IdentifiersSection { naan: "99999".to_string(), shoulder: "fk4".to_string(), ezid: None }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EzidSection {
    pub url: String,
    pub user: String,
    pub password_file: PathBuf,
    /// With the scheme and the NAAN: `ark:/99999/fk4`.
    pub shoulder: String,
    /// For each request.
    #[serde(default = "ezid_timeout_seconds")]
    pub timeout_seconds: u64,
}

fn ezid_timeout_seconds() -> u64 {
    60
}

/// Settings of a stage that differ from what the stage has by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StageSection {
    pub workers: Option<i64>,
    pub buffer: Option<i64>,
    pub max_attempts: Option<i64>,
    pub max_interruptions: Option<i64>,
    pub backoff_seconds: Option<i64>,
    pub backoff_seconds_max: Option<i64>,
    pub timeout_seconds: Option<i64>,
}

impl StageSection {
    /// The settings that are said here, by name, as the queue takes them.
    pub fn changes(&self) -> Vec<(String, String)> {
        let all = [
            ("workers", self.workers),
            ("buffer", self.buffer),
            ("max_attempts", self.max_attempts),
            ("max_interruptions", self.max_interruptions),
            ("backoff_seconds", self.backoff_seconds),
            ("backoff_seconds_max", self.backoff_seconds_max),
            ("timeout_seconds", self.timeout_seconds),
        ];
        let said = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
        said.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }
}

/// A drop folder or a receiving bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchSection {
    /// A directory or `s3://bucket/prefix?…`.
    pub path: String,
    /// The collection its packages go to; with `prefix_is_collection`, those at the top.
    pub collection: Option<String>,
    #[serde(default = "still_seconds")]
    pub still_seconds: u64,
    /// How often it is looked at.
    #[serde(default = "poll_seconds")]
    pub poll_seconds: u64,
    /// Write the receipt, and later the result, beside the package.
    #[serde(default)]
    pub results: bool,
    /// The first part of a package's path names its collection.
    #[serde(default)]
    pub prefix_is_collection: bool,
    /// At most so many files are looked at in one scan.
    #[serde(default = "watch_files_max")]
    pub files_max: usize,
}

fn still_seconds() -> u64 {
    60
}

fn poll_seconds() -> u64 {
    15
}

fn watch_files_max() -> usize {
    1_000_000
}
