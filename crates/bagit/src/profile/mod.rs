//! BagIt Profiles: what a receiver asks of bags beyond RFC 8493. All constraints of version 1.3,
//! and those that 1.4 added; constraints on the tags of any tag file; and DART's format.

mod catalog;
mod check;
mod dart;
mod glob;

pub use catalog::Catalog;
pub(crate) use check::{check, see_file};

use crate::error::Error;
use digest::Algorithm;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A profile is a page of JSON; larger ones are not read.
const PROFILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A BagIt profile.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Profile {
    #[serde(rename = "BagIt-Profile-Info")]
    pub(crate) info: ProfileInfo,
    #[serde(rename = "Bag-Info", default)]
    pub(crate) bag_info: BTreeMap<String, TagRule>,
    #[serde(rename = "Manifests-Required", default)]
    pub(crate) manifests_required: Vec<String>,
    #[serde(rename = "Manifests-Allowed")]
    pub(crate) manifests_allowed: Option<Vec<String>>,
    #[serde(rename = "Tag-Manifests-Required", default)]
    pub(crate) tag_manifests_required: Vec<String>,
    #[serde(rename = "Tag-Manifests-Allowed")]
    pub(crate) tag_manifests_allowed: Option<Vec<String>>,
    #[serde(rename = "Tag-Files-Required", default)]
    pub(crate) tag_files_required: Vec<String>,
    #[serde(rename = "Tag-Files-Allowed")]
    pub(crate) tag_files_allowed: Option<Vec<String>>,
    #[serde(rename = "Payload-Files-Required", default)]
    pub(crate) payload_files_required: Vec<String>,
    #[serde(rename = "Payload-Files-Allowed")]
    pub(crate) payload_files_allowed: Option<Vec<String>>,
    #[serde(rename = "Allow-Fetch.txt", default = "yes")]
    pub(crate) allow_fetch: bool,
    #[serde(rename = "Fetch.txt-Required", default)]
    pub(crate) fetch_required: bool,
    #[serde(rename = "Data-Empty", default)]
    pub(crate) data_empty: bool,
    #[serde(rename = "Serialization", default)]
    pub(crate) serialization: Serialized,
    #[serde(rename = "Accept-Serialization", default)]
    pub(crate) accept_serialization: Vec<String>,
    #[serde(rename = "Accept-BagIt-Version", default)]
    pub(crate) accept_version: Vec<String>,
    /// The tags of tag files other than bag-info.txt, by the path of the file. Our own key: the
    /// specification has none, and lets readers pass over keys that they do not know.
    #[serde(rename = "Tag-Files", default)]
    pub(crate) tag_files: BTreeMap<String, BTreeMap<String, TagRule>>,
    /// A bag need not name the profile in its BagIt-Profile-Identifier.
    #[serde(skip)]
    pub(crate) identifier_optional: bool,
    /// The directory in an archive must be named as the archive is.
    #[serde(skip)]
    pub(crate) base_must_match: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ProfileInfo {
    #[serde(rename = "BagIt-Profile-Identifier")]
    pub identifier: String,
}

/// What a profile says of a tag of a tag file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TagRule {
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub recommended: bool,
    #[serde(default)]
    pub values: Vec<String>,
    #[serde(default = "yes")]
    pub repeatable: bool,
    /// The tag may be there without a value.
    #[serde(skip)]
    pub empty_allowed: bool,
    /// Upper and lower case are the same in `values`.
    #[serde(skip)]
    pub any_case: bool,
}

impl Default for TagRule {
    fn default() -> TagRule {
        TagRule {
            required: false,
            recommended: false,
            values: Vec::new(),
            repeatable: true,
            empty_allowed: false,
            any_case: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Serialized {
    Forbidden,
    Required,
    #[default]
    Optional,
}

fn yes() -> bool {
    true
}

impl Profile {
    /// Reads a profile, and refuses one that contradicts itself.
    pub fn from_json(json: &[u8], name: &str) -> Result<Profile, Error> {
        let wrong = |reason: String| Error::Profile { name: name.to_owned(), reason };
        let none = |e: serde_json::Error| wrong(format!("not a BagIt profile: {e}"));
        let value: serde_json::Value = serde_json::from_slice(json).map_err(none)?;
        let profile = match dart::is_dart(&value) {
            true => serde_json::from_value::<dart::DartProfile>(value)
                .map_err(none)?
                .into_profile()
                .map_err(wrong)?,
            false => serde_json::from_value(value).map_err(none)?,
        };
        profile.check_self().map_err(wrong)?;
        Ok(profile)
    }

    /// Reads a profile from a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Profile, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let failed = |e| Error::io(&name, e);
        if std::fs::metadata(path).map_err(failed)?.len() > PROFILE_BYTES_MAX {
            return Err(Error::Profile { name, reason: "it is larger than 4 MiB".into() });
        }
        Profile::from_json(&std::fs::read(path).map_err(failed)?, &name)
    }

    /// The tag files, beside bag-info.txt, whose tags the profile constrains.
    pub(crate) fn constrained_files(&self) -> impl Iterator<Item = &str> {
        self.tag_files.keys().map(String::as_str)
    }

    /// The URL by which bags name the profile.
    pub fn identifier(&self) -> &str {
        &self.info.identifier
    }

    fn check_self(&self) -> Result<(), String> {
        let covers = |required: &[String], allowed: &Option<Vec<String>>, what: &str| {
            let Some(allowed) = allowed else { return Ok(()) };
            let lacking = required
                .iter()
                .find(|r| !allowed.iter().any(|a| glob::fits(a, r) || check::same_algorithm(a, r)));
            match lacking {
                Some(name) => {
                    Err(format!("{what}-Allowed does not allow {name:?}, which is required"))
                }
                None => Ok(()),
            }
        };
        covers(&self.manifests_required, &self.manifests_allowed, "Manifests")?;
        covers(&self.tag_manifests_required, &self.tag_manifests_allowed, "Tag-Manifests")?;
        covers(&self.tag_files_required, &self.tag_files_allowed, "Tag-Files")?;
        covers(&self.payload_files_required, &self.payload_files_allowed, "Payload-Files")?;
        let mut names = self.tag_files.keys();
        if let Some(name) = names.find(|name| crate::path::check(name).is_err()) {
            return Err(format!("Tag-Files: {name:?} is no path in a bag"));
        }
        if self.fetch_required && !self.allow_fetch {
            return Err("Fetch.txt-Required is true and Allow-Fetch.txt is false".into());
        }
        Ok(())
    }

    /// The algorithms for a new bag: the required ones that are known here.
    pub fn algorithms(&self) -> Vec<Algorithm> {
        self.manifests_required.iter().filter_map(|name| name.parse().ok()).collect()
    }
}
