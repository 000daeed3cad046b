//! Profiles as DART writes them: one list of tags for all tag files, in keys of its own.

use super::{Profile, ProfileInfo, Serialized, TagRule};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A profile in DART's format. What is about DART's forms (defaults, help texts) is passed over.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DartProfile {
    bag_it_profile_info: DartInfo,
    #[serde(default, deserialize_with = "or_none", rename = "acceptBagItVersion")]
    accept_version: Vec<String>,
    #[serde(default, deserialize_with = "or_none")]
    accept_serialization: Vec<String>,
    #[serde(default)]
    allow_fetch_txt: bool,
    #[serde(default, deserialize_with = "or_none")]
    manifests_required: Vec<String>,
    #[serde(default, deserialize_with = "or_none")]
    manifests_allowed: Vec<String>,
    #[serde(default, deserialize_with = "or_none")]
    tag_manifests_required: Vec<String>,
    #[serde(default, deserialize_with = "or_none")]
    tag_manifests_allowed: Vec<String>,
    #[serde(default, deserialize_with = "or_none")]
    tag_files_allowed: Vec<String>,
    #[serde(default)]
    serialization: Serialized,
    #[serde(default, deserialize_with = "or_none")]
    tags: Vec<DartTag>,
    #[serde(default)]
    tar_dir_must_match_name: bool,
    /// Of early versions; `tagFilesAllowed` took their place.
    #[serde(default = "super::yes")]
    allow_misc_top_level_files: bool,
    #[serde(default = "super::yes")]
    allow_misc_directories: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DartInfo {
    bag_it_profile_identifier: String,
}

/// What the profile says of one tag of one tag file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DartTag {
    tag_file: String,
    tag_name: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    empty_ok: bool,
    #[serde(default, deserialize_with = "or_none")]
    values: Vec<String>,
}

/// DART writes `null` for a list that was never filled.
fn or_none<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(from).map(Option::unwrap_or_default)
}

/// Whether a JSON document is such a profile, by the one key that it must have.
pub(super) fn is_dart(json: &serde_json::Value) -> bool {
    json.get("bagItProfileInfo").is_some()
}

impl DartProfile {
    pub(super) fn into_profile(self) -> Result<Profile, String> {
        if !self.allow_misc_top_level_files || !self.allow_misc_directories {
            return Err("allowMiscTopLevelFiles and allowMiscDirectories are of an early version \
                        of DART; name the tag files that are allowed in tagFilesAllowed"
                .into());
        }
        let mut tag_files: BTreeMap<String, BTreeMap<String, TagRule>> = BTreeMap::new();
        for tag in self.tags {
            let rule = TagRule {
                required: tag.required,
                values: tag.values,
                empty_allowed: tag.empty_ok || !tag.required,
                any_case: true,
                ..TagRule::default()
            };
            tag_files.entry(tag.tag_file).or_default().insert(tag.tag_name, rule);
        }
        // An empty list stands for "no restriction", and an empty name for nothing.
        let list = |names: Vec<String>| Some(names).filter(|names| !names.is_empty());
        let mut allowed = self.tag_files_allowed;
        allowed.retain(|name| !name.is_empty());
        if !allowed.is_empty() {
            allowed.extend(tag_files.keys().cloned());
        }
        Ok(Profile {
            info: ProfileInfo { identifier: self.bag_it_profile_info.bag_it_profile_identifier },
            bag_info: tag_files.remove("bag-info.txt").unwrap_or_default(),
            tag_files,
            manifests_required: self.manifests_required,
            manifests_allowed: list(self.manifests_allowed),
            tag_manifests_required: self.tag_manifests_required,
            tag_manifests_allowed: list(self.tag_manifests_allowed),
            tag_files_required: Vec::new(),
            tag_files_allowed: list(allowed),
            payload_files_required: Vec::new(),
            payload_files_allowed: None,
            allow_fetch: self.allow_fetch_txt,
            fetch_required: false,
            data_empty: false,
            serialization: self.serialization,
            accept_serialization: self.accept_serialization,
            accept_version: self.accept_version,
            // DART does not ask bags to name their profile.
            identifier_optional: true,
            base_must_match: self.tar_dir_must_match_name,
        })
    }
}
