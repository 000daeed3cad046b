//! The profile of a collection: whose it is, what it takes, where copies go, who is told.

mod change;

use crate::ErrorCode;
use crate::config::{Problem, bytes, check_bounds, check_name};
use crate::model::item::Update;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    pub owner: String,
    pub description: String,
    /// Stores that a version must be in before it counts as preserved; none means every store
    /// that is configured and not among the later ones.
    pub stores: Vec<String>,
    /// Stores that get copies afterwards.
    pub later_stores: Vec<String>,
    /// A URL or a file name.
    pub bag_profile: Option<String>,
    pub payload_kinds: Vec<PayloadKind>,
    pub priority: Option<i64>,
    pub notify: Vec<Notify>,
    pub callback: Option<Callback>,
    pub identifiers: Identifiers,
    pub local_ids: LocalIds,
    pub update_mode: Update,
    /// How long what failed is kept, where it is not `limits.invalid_package_retention_days`.
    pub invalid_retention_days: Option<u32>,
    /// Whether deposited packages are removed once they are ingested and unchanged.
    pub remove_packages: bool,
    #[serde(deserialize_with = "bytes::maybe")]
    pub bytes_max: Option<u64>,
    pub files_max: Option<u64>,
    pub checks: Vec<Check>,
    pub fixity_days: u32,
    /// Write the receipt, and later the result, beside packages of drop folders.
    pub results_beside: bool,
    /// The directory or bucket that restores are delivered to unless they name another place.
    pub restore_to: Option<String>,
    /// How long what was delivered there stays; for ever if nothing is said.
    pub restored_keep_days: Option<u32>,
    /// How often one object, chosen by chance, is restored to nowhere; never if nothing is said.
    pub restore_drill_days: Option<u32>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            owner: String::new(),
            description: String::new(),
            stores: Vec::new(),
            later_stores: Vec::new(),
            bag_profile: None,
            payload_kinds: PayloadKind::ALL.to_vec(),
            priority: None,
            notify: Vec::new(),
            callback: None,
            identifiers: Identifiers::Mint,
            local_ids: LocalIds::Optional,
            update_mode: Update::Replace,
            invalid_retention_days: None,
            remove_packages: false,
            bytes_max: None,
            files_max: None,
            checks: Vec::new(),
            fixity_days: 90,
            results_beside: false,
            restore_to: None,
            restored_keep_days: None,
            restore_drill_days: None,
        }
    }
}

/// What a deposit can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadKind {
    File,
    Directory,
    Bag,
    Container,
    Manifest,
}

impl PayloadKind {
    pub const ALL: [PayloadKind; 5] = [
        PayloadKind::File,
        PayloadKind::Directory,
        PayloadKind::Bag,
        PayloadKind::Container,
        PayloadKind::Manifest,
    ];
}

/// Someone who gets the collection's reports by mail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    pub address: String,
    #[serde(default = "text_only")]
    pub formats: Vec<ReportFormat>,
}

fn text_only() -> Vec<ReportFormat> {
    vec![ReportFormat::Text]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportFormat {
    Text,
    Html,
    Csv,
    Json,
}

/// Where results are sent as signed JSON. The key is in one of the two places.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Callback {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
}

/// Never shows the secret, nor what may be one in the URL.
impl std::fmt::Debug for Callback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = crate::model::text::shown_url(&self.url);
        f.debug_struct("Callback").field("url", &url).finish_non_exhaustive()
    }
}

/// Where the identifiers of new objects come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Identifiers {
    /// ARKs minted here.
    Mint,
    /// ARKs minted by the EZID service.
    Ezid,
    /// The deposit says.
    Supplied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocalIds {
    Optional,
    Required,
    Forbidden,
}

/// A program that looks at what is deposited, such as a virus scanner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub name: String,
    /// The program and its arguments; `{}` stands for the path, which is added at the end where
    /// there is no `{}`.
    pub program: Vec<String>,
    #[serde(default)]
    pub per: Per,
    #[serde(default = "check_timeout_seconds")]
    pub timeout_seconds: u64,
    #[serde(default = "check_memory_bytes", deserialize_with = "bytes::amount")]
    pub memory_bytes: u64,
    #[serde(default)]
    pub fails: Fails,
}

fn check_timeout_seconds() -> u64 {
    600
}

fn check_memory_bytes() -> u64 {
    2 << 30
}

/// What a check is run on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    #[default]
    File,
    Package,
}

/// What a refusal by a check does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fails {
    #[default]
    Job,
    Warning,
}

impl Profile {
    /// The time between two fixity checks of a copy.
    pub fn fixity_micros(&self) -> db::Micros {
        i64::from(self.fixity_days) * 86_400 * 1_000_000
    }

    /// Reads a profile as it is kept in the database.
    pub fn from_json(text: &str) -> Result<Profile> {
        serde_json::from_str(text).map_err(|error| {
            Error::permanent(ErrorCode::ProfileUnreadable, format!("a collection's profile cannot be read: {error}; set it anew with `accession collection set`"))
        })
    }

    /// As it is kept in the database, secrets included.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists of them always have a JSON form.
        serde_json::json!(self).to_string()
    }

    /// Everything that is wrong with it by itself; keys are relative to the profile.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = check_bounds("collections.x.", &serde_json::json!(self));
        let mut say = |key: &str, message: String| found.push(Problem::new(key, message));
        if self.payload_kinds.is_empty() {
            say("payload_kinds", "is empty, so nothing could be deposited; name what is taken, or leave it out for everything".into());
        }
        if let Some(both) = self.later_stores.iter().find(|name| self.stores.contains(name)) {
            say("later_stores", format!("names `{both}`, which is in `stores` too; name it once"));
        }
        for (key, names) in [("stores", &self.stores), ("later_stores", &self.later_stores)] {
            if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
                say(key, "names a store twice; name it once".into());
            }
        }
        for (at, notify) in self.notify.iter().enumerate() {
            if !is_address(&notify.address) {
                say(
                    &format!("notify.{at}.address"),
                    format!("`{}` is not a mail address", notify.address),
                );
            }
            if notify.formats.is_empty() {
                say(
                    &format!("notify.{at}.formats"),
                    "is empty; name text, html, csv or json".into(),
                );
            }
        }
        if let Some(callback) = &self.callback {
            if !(callback.url.starts_with("https://") || callback.url.starts_with("http://")) {
                say(
                    "callback.url",
                    format!(
                        "`{}` is not an http:// or https:// URL",
                        crate::model::text::shown_url(&callback.url)
                    ),
                );
            }
            if callback.secret.is_some() == callback.secret_file.is_some() {
                say(
                    "callback",
                    "needs either `secret` or `secret_file`, which callbacks are signed with"
                        .into(),
                );
            }
        }
        for (at, check) in self.checks.iter().enumerate() {
            if check.program.first().is_none_or(String::is_empty) {
                say(
                    &format!("checks.{at}.program"),
                    "is empty; give the program and its arguments as a list".into(),
                );
            }
            if let Err(message) = check_name(&check.name) {
                say(&format!("checks.{at}.name"), message);
            }
            if self.checks[..at].iter().any(|other| other.name == check.name) {
                say(&format!("checks.{at}.name"), format!("`{}` is there twice", check.name));
            }
        }
        found
    }

    /// The stores a version must be in, of those that are configured.
    pub fn required_stores<'a>(
        &'a self,
        configured: impl Iterator<Item = &'a String>,
    ) -> Vec<&'a str> {
        if !self.stores.is_empty() {
            return self.stores.iter().map(String::as_str).collect();
        }
        configured.filter(|name| !self.later_stores.contains(name)).map(String::as_str).collect()
    }

    /// Makes paths whole: relative ones are below the data directory.
    pub fn resolve(&mut self, data_dir: &Path) {
        let secret_file = self.callback.as_mut().and_then(|callback| callback.secret_file.as_mut());
        secret_file.into_iter().for_each(|path| *path = data_dir.join(&*path));
        for place in [&mut self.bag_profile, &mut self.restore_to] {
            if let Some(place) = place.as_mut().filter(|place| !place.contains("://")) {
                *place = data_dir.join(&*place).to_string_lossy().into_owned();
            }
        }
    }

    /// The same profile, fit to be shown: without its secrets.
    pub fn masked(&self) -> Profile {
        let mut shown = self.clone();
        if let Some(secret) = shown.callback.as_mut().and_then(|c| c.secret.as_mut()) {
            *secret = MASK.to_string();
        }
        shown
    }
}

/// What is shown in place of a secret.
pub const MASK: &str = "********";

/// Whether a text could be a mail address; the mail server has the last word.
pub(crate) fn is_address(text: &str) -> bool {
    crate::model::mail_address::check_address(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(toml: &str) -> Profile {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn a_profile_of_nothing_takes_everything() {
        let profile = of("");
        assert_eq!(profile, Profile::default());
        assert_eq!(profile.problems(), []);
        assert_eq!(profile.payload_kinds.len(), 5);
        assert_eq!(Profile::from_json(&profile.to_json()).unwrap(), profile);
    }

    #[test]
    fn all_stores_are_required_unless_some_are_named() {
        let configured = ["a".to_string(), "b".to_string(), "c".to_string()];
        let required = |toml: &str| {
            let profile = of(toml);
            let names = profile.required_stores(configured.iter());
            names.into_iter().map(str::to_string).collect::<Vec<_>>()
        };
        assert_eq!(required(""), ["a", "b", "c"]);
        assert_eq!(required("later_stores = ['b']"), ["a", "c"]);
        assert_eq!(required("stores = ['c', 'a']"), ["c", "a"]);
    }

    #[test]
    fn every_problem_is_found_at_once() {
        let profile = of("
            payload_kinds = []
            stores = ['a']
            later_stores = ['a']
            fixity_days = 0
            priority = 100
            notify = [{address = 'nobody'}, {address = 'a@b', formats = []}]
            callback = {url = 'ftp://x'}
            checks = [{name = 'clam', program = []}, {name = 'clam', program = ['x'], memory_bytes = 5}]
        ");
        let keys: Vec<String> = profile.problems().into_iter().map(|p| p.key).collect();
        for key in [
            "fixity_days",
            "priority",
            "payload_kinds",
            "later_stores",
            "notify.0.address",
            "notify.1.formats",
            "callback.url",
            "callback",
            "checks.0.program",
            "checks.1.name",
            "checks.1.memory_bytes",
        ] {
            assert!(keys.iter().any(|k| k == key), "{key} is not among {keys:?}");
        }
        assert_eq!(keys.len(), 11, "{keys:?}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let profile = of("callback = {url = 'https://x/', secret = 'hush'}");
        assert!(!profile.masked().to_json().contains("hush"));
        assert!(profile.to_json().contains("hush"));
    }
}
