//! Comparing a bag with a profile. Every message names the constraint.

use super::{Profile, Serialized, TagRule, glob};
use crate::declaration::Version;
use crate::info::Tags;
use crate::problem::{Code, Problem, Problems};
use crate::validate::tags::TagFiles;
use crate::validate::totals::{Facts, Totals};
use digest::Algorithm;

/// Looks at one file of the bag; notes which required files have been seen.
pub(crate) fn see_file(profile: &Profile, path: &str, seen: &mut Vec<bool>) -> Option<Problem> {
    let required = profile.tag_files_required.iter().chain(&profile.payload_files_required);
    seen.resize(profile.tag_files_required.len() + profile.payload_files_required.len(), false);
    for (pattern, seen) in required.zip(seen.iter_mut()) {
        *seen |= glob::fits(pattern, path);
    }
    let (allowed, code, name) = if path.starts_with("data/") {
        (&profile.payload_files_allowed, Code::ProfilePayloadFileAllowed, "Payload-Files-Allowed")
    } else if is_structural(path) {
        return None;
    } else {
        (&profile.tag_files_allowed, Code::ProfileTagFileAllowed, "Tag-Files-Allowed")
    };
    let allowed = allowed.as_ref()?;
    if allowed.iter().any(|pattern| glob::fits(pattern, path)) {
        return None;
    }
    Some(Problem::error(code, format!("{name}: the profile does not allow this file")).path(path))
}

/// Files with constraints of their own, which the lists of tag files do not name.
fn is_structural(path: &str) -> bool {
    let manifest = path.starts_with("manifest-") || path.starts_with("tagmanifest-");
    matches!(path, "bagit.txt" | "bag-info.txt" | "fetch.txt")
        || (manifest && path.ends_with(".txt") && !path.contains('/'))
}

pub(crate) fn check(
    profile: &Profile,
    facts: &Facts,
    totals: &Totals,
    tags: &TagFiles,
    problems: &mut Problems,
) {
    check_container(profile, facts, problems);
    check_version(profile, tags, problems);
    check_info(profile, tags, problems);
    check_manifests(profile, tags, problems);
    check_files(profile, totals, problems);
    if facts.has_fetch && !profile.allow_fetch {
        let message = "Allow-Fetch.txt: the profile does not allow fetch.txt";
        problems.add(Problem::error(Code::ProfileFetch, message).path("fetch.txt"));
    }
    if !facts.has_fetch && profile.fetch_required {
        let message = "Fetch.txt-Required: the profile requires fetch.txt";
        problems.add(Problem::error(Code::ProfileFetch, message).path("fetch.txt"));
    }
    // The specification lets one empty file stand for an empty payload.
    let empty = totals.payload.octets == 0 && totals.payload.files <= 1;
    if profile.data_empty && !empty {
        let message = "Data-Empty: the profile wants an empty payload";
        problems.add(Problem::error(Code::ProfileDataEmpty, message).path("data"));
    }
}

fn check_container(profile: &Profile, facts: &Facts, problems: &mut Problems) {
    let container = facts.serialization;
    let message = match (profile.serialization, container.is_archive()) {
        (Serialized::Forbidden, true) => "Serialization: the profile forbids archives".to_owned(),
        (Serialized::Required, false) => {
            "Serialization: the profile requires an archive".to_owned()
        }
        (_, true) => {
            let accepted = &profile.accept_serialization;
            let fits = |media: &String| {
                container.media_types().iter().any(|known| media.eq_ignore_ascii_case(known))
            };
            if accepted.is_empty() || accepted.iter().any(fits) {
                return;
            }
            let list = accepted.join(", ");
            format!("Accept-Serialization: the profile accepts {list}, and this is {container}")
        }
        _ => return,
    };
    problems.add(Problem::error(Code::ProfileSerialization, message));
}

fn check_version(profile: &Profile, tags: &TagFiles, problems: &mut Problems) {
    let Some(version) = tags.declaration.version else { return };
    let accepted = &profile.accept_version;
    if accepted.is_empty() || accepted.iter().any(|v| Version::parse(v) == Some(version)) {
        return;
    }
    let list = accepted.join(", ");
    let message =
        format!("Accept-BagIt-Version: the profile accepts {list}, and the bag is {version}");
    problems.add(Problem::error(Code::ProfileVersion, message).file("bagit.txt"));
}

fn check_info(profile: &Profile, tags: &TagFiles, problems: &mut Problems) {
    let none = Tags::default();
    let info = tags.info.as_ref().unwrap_or(&none);
    let name = if tags.info_name.is_empty() { "bag-info.txt" } else { tags.info_name };
    let identifier = profile.identifier();
    let named = info.values("BagIt-Profile-Identifier").any(|value| value == identifier);
    if !named && !profile.identifier_optional {
        let message = format!("BagIt-Profile-Identifier: no tag has the value {identifier}");
        problems.add(Problem::error(Code::ProfileIdentifier, message).file(name));
    }
    for (label, rule) in &profile.bag_info {
        check_tag("Bag-Info", label, rule, info, name, problems);
    }
    for (file, rules) in &profile.tag_files {
        let found = tags.others.get(file).unwrap_or(&none);
        for (label, rule) in rules {
            check_tag(file, label, rule, found, file, problems);
        }
    }
}

/// Checks one tag; `list` is what the profile calls the list of rules.
fn check_tag(
    list: &str,
    label: &str,
    rule: &TagRule,
    info: &Tags,
    name: &str,
    problems: &mut Problems,
) {
    let found: Vec<_> = info.all(label).collect();
    if found.is_empty() && rule.required {
        let message = format!("{list}: the profile requires the tag {label}");
        problems.add(Problem::error(Code::ProfileTagMissing, message).file(name));
    } else if found.is_empty() && rule.recommended {
        let message = format!("{list}: the profile recommends the tag {label}");
        problems.add(Problem::warning(Code::ProfileTagRecommended, message).file(name));
    }
    if let Some(second) = found.get(1).filter(|_| !rule.repeatable) {
        let message = format!("{list}: the profile does not let the tag {label} be repeated");
        let problem = Problem::error(Code::ProfileTagRepeated, message);
        problems.add(problem.file(name).line(second.line));
    }
    for tag in found {
        let allows = |value: &String| match rule.any_case {
            true => value.to_lowercase() == tag.value.to_lowercase(),
            false => *value == tag.value,
        };
        if tag.value.is_empty() && rule.empty_allowed {
            continue;
        }
        if rule.required && tag.value.is_empty() {
            let message = format!("{list}: the required tag {label} is empty");
            let problem = Problem::error(Code::ProfileTagMissing, message);
            problems.add(problem.file(name).line(tag.line));
        } else if !rule.values.is_empty() && !rule.values.iter().any(allows) {
            let shown: String = tag.value.chars().take(100).collect();
            let allowed = rule.values.join(", ");
            let message = format!("{list}: {label} is {shown:?}, and the profile allows {allowed}");
            let problem = Problem::error(Code::ProfileTagValue, message);
            problems.add(problem.file(name).line(tag.line));
        }
    }
}

fn check_manifests(profile: &Profile, tags: &TagFiles, problems: &mut Problems) {
    let rules = [
        (
            false,
            ("Manifests-Required", Code::ProfileManifestRequired, &profile.manifests_required),
            ("Manifests-Allowed", Code::ProfileManifestAllowed, &profile.manifests_allowed),
        ),
        (
            true,
            (
                "Tag-Manifests-Required",
                Code::ProfileTagManifestRequired,
                &profile.tag_manifests_required,
            ),
            (
                "Tag-Manifests-Allowed",
                Code::ProfileTagManifestAllowed,
                &profile.tag_manifests_allowed,
            ),
        ),
    ];
    for (is_tag, (required_name, required_code, required), (allowed_name, allowed_code, allowed)) in
        rules
    {
        let there = tags.manifest_algorithms(is_tag);
        let file = |name: &str| format!("{}manifest-{name}.txt", if is_tag { "tag" } else { "" });
        for name in required.iter().filter(|r| !there.iter().any(|t| same_algorithm(t, r))) {
            let message = format!("{required_name}: the profile requires {}", file(name));
            problems.add(Problem::error(required_code, message).path(file(name)));
        }
        let Some(allowed) = allowed else { continue };
        for name in
            there.iter().filter(|t| !allowed.iter().any(|a| same_algorithm(t, a) || a == "*"))
        {
            let message = format!("{allowed_name}: the profile does not allow {}", file(name));
            problems.add(Problem::error(allowed_code, message).path(file(name)));
        }
    }
}

/// Algorithms are the same when they compare so by the rule of RFC 8493, known or not.
pub(super) fn same_algorithm(a: &str, b: &str) -> bool {
    match (a.parse::<Algorithm>(), b.parse::<Algorithm>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.eq_ignore_ascii_case(b),
    }
}

fn check_files(profile: &Profile, totals: &Totals, problems: &mut Problems) {
    let seen = |index: usize| totals.required_seen.get(index).copied().unwrap_or(false);
    let tag_files = profile.tag_files_required.len();
    for (index, path) in profile.tag_files_required.iter().enumerate().filter(|(i, _)| !seen(*i)) {
        debug_assert!(index < tag_files);
        let message = "Tag-Files-Required: the profile requires this tag file";
        problems.add(Problem::error(Code::ProfileTagFileRequired, message).path(path));
    }
    for (index, path) in profile.payload_files_required.iter().enumerate() {
        if !seen(tag_files + index) {
            let message = "Payload-Files-Required: the profile requires this payload file";
            problems.add(Problem::error(Code::ProfilePayloadFileRequired, message).path(path));
        }
    }
}
