//! The rules for one inventory that need all of it.

use super::parse::is_uri;
use super::{Entry, Inventory};
use crate::algorithm::{algorithm_name, algorithm_named};
use crate::code::Code;
use crate::findings::Findings;
use crate::path;
use crate::version::VersionName;
use digest::Algorithm;
use std::collections::HashSet;

/// Checks an inventory that was read and sorts its lists. `seen` are the keys that it has.
pub(super) fn check(
    inventory: &mut Inventory,
    seen: &HashSet<String>,
    head: Option<String>,
    findings: &mut Findings,
    place: &str,
) {
    let mut checks = Checks { findings, place };
    checks.keys(seen);
    checks.id_and_algorithm(inventory, seen);
    checks.content_directory(inventory);
    inventory.versions.sort_by_key(|version| version.name.number());
    checks.version_names(inventory, seen);
    checks.head(inventory, head, seen);
    checks.digests(inventory);
    checks.states(inventory);
    checks.paths(inventory);
    // From here on lookups go by order.
    inventory.manifest.sort_unstable();
    for version in &mut inventory.versions {
        version.state.sort_unstable_by_key(|entry| entry.path);
        version.state.dedup_by_key(|entry| entry.path);
    }
}

struct Checks<'a> {
    findings: &'a mut Findings,
    place: &'a str,
}

impl Checks<'_> {
    fn found(&mut self, code: Code, message: impl Into<String>) {
        self.findings.add(code, self.place, message);
    }

    fn keys(&mut self, seen: &HashSet<String>) {
        let required = [
            ("id", Code::E036),
            ("type", Code::E036),
            ("digestAlgorithm", Code::E036),
            ("head", Code::E036),
            ("manifest", Code::E041),
            ("versions", Code::E043),
        ];
        for (key, code) in required {
            if !seen.contains(key) {
                self.found(code, format!("there is no {key}"));
            }
        }
    }

    fn id_and_algorithm(&mut self, inventory: &Inventory, seen: &HashSet<String>) {
        if !inventory.id.is_empty() && !is_uri(&inventory.id) {
            self.found(Code::W005, format!("the id {:?} is no URI", inventory.id));
        }
        match inventory.algorithm {
            _ if !seen.contains("digestAlgorithm") => {}
            Algorithm::Sha512 => {}
            Algorithm::Sha256 => self.found(Code::W004, "the digest algorithm is sha256"),
            other => self.found(Code::E025, format!("the digest algorithm is {other}")),
        }
    }

    fn content_directory(&mut self, inventory: &Inventory) {
        let Some(name) = &inventory.content_directory else { return };
        if name.contains('/') {
            self.found(Code::E017, format!("the content directory {name:?} has a slash in it"));
        }
        if matches!(name.as_str(), "" | "." | "..") {
            self.found(Code::E018, format!("the content directory is {name:?}"));
        }
    }

    fn version_names(&mut self, inventory: &Inventory, seen: &HashSet<String>) {
        let names: Vec<VersionName> = inventory.versions.iter().map(|v| v.name).collect();
        let (Some(first), Some(last)) = (names.first(), names.last()) else {
            if seen.contains("versions") {
                self.found(Code::E008, "there are no versions");
            }
            return;
        };
        if first.number() != 1 {
            self.found(Code::E009, format!("the first version is {first}"));
        }
        for pair in names.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if before.number() == after.number() {
                self.found(Code::E012, format!("{before} and {after} are the same version"));
            } else if before.number() + 1 != after.number() {
                self.found(Code::E010, format!("{after} follows {before}"));
            }
        }
        let (padded, plain) =
            (names.iter().find(|n| n.width() > 0), names.iter().find(|n| n.width() == 0));
        if let (Some(padded), Some(plain)) = (padded, plain) {
            if first.width() > 0 {
                let message = format!("{plain} is not padded, as {padded} is");
                self.found(Code::E011, message.clone());
                self.found(Code::E013, message);
            } else {
                self.found(Code::E012, format!("{padded} is padded, and {plain} is not"));
            }
        } else if names.iter().any(|name| name.width() != first.width()) {
            self.found(Code::E012, format!("{first} and {last} are padded differently"));
        } else if padded.is_some() {
            self.found(Code::W001, "version directories are padded with zeros");
        }
    }

    fn head(&mut self, inventory: &mut Inventory, head: Option<String>, seen: &HashSet<String>) {
        let latest = inventory.versions.last().map(|version| version.name);
        if let Some(latest) = latest {
            inventory.head = latest;
        }
        let Some(head) = head else { return };
        match (head.parse::<VersionName>(), latest) {
            (Err(error), _) => self.found(Code::E040, format!("the head is {error}")),
            (Ok(head), Some(latest)) if head != latest => {
                self.found(Code::E040, format!("the head is {head}, the latest version {latest}"));
                inventory.head = head;
            }
            (Ok(head), None) if seen.contains("versions") => {
                self.found(Code::E040, format!("the head is {head}, and there are no versions"));
            }
            _ => {}
        }
    }

    /// The form of digests, and that none occurs twice in different case.
    fn digests(&mut self, inventory: &Inventory) {
        let manifest = &inventory.manifest;
        self.digest_form(inventory, inventory.algorithm, manifest);
        self.digest_case(inventory, manifest, Code::E096);
        for (name, entries) in &inventory.fixity {
            if let Some(algorithm) = algorithm_named(name) {
                self.digest_form(inventory, algorithm, entries);
            }
            self.digest_case(inventory, entries, Code::E097);
        }
    }

    fn digest_form(&mut self, inventory: &Inventory, algorithm: Algorithm, entries: &[Entry]) {
        let code = match algorithm {
            Algorithm::Sha1 => Code::E029,
            Algorithm::Sha256 => Code::E030,
            Algorithm::Sha512 => Code::E031,
            Algorithm::Blake2b512 => Code::E032,
            _ => Code::E057,
        };
        let packed_length = algorithm.hex_length() / 2 + 1;
        for entry in entries {
            let digests = &inventory.digests;
            let good = if digests.is_packed(entry.digest) {
                digests.key(entry.digest).len() == packed_length
            } else {
                algorithm.is_digest(&digests.get(entry.digest))
            };
            if !good {
                let name = algorithm_name(algorithm);
                let message = || format!("{:?} is no {name} digest", digests.get(entry.digest));
                self.findings.add_with(code, self.place, message);
            }
        }
    }

    fn digest_case(&mut self, inventory: &Inventory, entries: &[Entry], code: Code) {
        let digests = &inventory.digests;
        if !digests.any_unpacked() {
            return;
        }
        let numbers: HashSet<u32> = entries.iter().map(|entry| entry.digest).collect();
        let mut lower: HashSet<String> = HashSet::new();
        for number in numbers.iter().filter(|number| !digests.is_packed(**number)) {
            let text = digests.get(*number).to_ascii_lowercase();
            let also_lower = digests.find(&text).is_some_and(|lower| numbers.contains(&lower));
            if also_lower || !lower.insert(text.clone()) {
                self.found(code, format!("the digest {text} is there twice, in different case"));
            }
        }
    }

    /// States refer to the manifest, and all of the manifest is used.
    fn states(&mut self, inventory: &Inventory) {
        let mut in_manifest = vec![false; inventory.digests.len()];
        for entry in &inventory.manifest {
            in_manifest[entry.digest as usize] = true;
        }
        let mut used = vec![false; inventory.digests.len()];
        for version in &inventory.versions {
            for entry in &version.state {
                used[entry.digest as usize] = true;
                if !in_manifest[entry.digest as usize] {
                    let path = inventory.paths.get(entry.path);
                    let digest = inventory.digests.get(entry.digest);
                    let name = version.name;
                    let message = || {
                        format!("{name}: the digest {digest} of {path:?} is not in the manifest")
                    };
                    self.findings.add_with(Code::E050, self.place, message);
                }
            }
        }
        for number in 0..inventory.digests.len() {
            if in_manifest[number] && !used[number] {
                let message = || {
                    let number = u32::try_from(number).unwrap_or(u32::MAX);
                    format!("no version uses the digest {}", inventory.digests.get(number))
                };
                self.findings.add_with(Code::E107, self.place, message);
            }
        }
    }

    /// Paths are unique, none is a directory of another, and content is where it belongs.
    fn paths(&mut self, inventory: &Inventory) {
        let mut order: Vec<u32> =
            (0..u32::try_from(inventory.paths.len()).unwrap_or(u32::MAX)).collect();
        order.sort_unstable_by_key(|number| inventory.paths.bytes(*number));
        let sorted = order.iter().map(|number| (*number, inventory.paths.bytes(*number)));
        let conflicts = path::conflicts(sorted);
        let mut present = vec![0_u32; inventory.paths.len()];
        self.unique(inventory, &inventory.manifest, &conflicts, &mut present, 1, Code::E101, "");
        self.content_places(inventory);
        for (version, stamp) in inventory.versions.iter().zip(2..) {
            let what = format!("{}: ", version.name);
            let state = &version.state;
            self.unique(inventory, state, &conflicts, &mut present, stamp, Code::E095, &what);
        }
        self.fixity_paths(inventory, &mut present);
    }

    #[allow(clippy::too_many_arguments)] // Private, and each of its three callers reads well.
    fn unique(
        &mut self,
        inventory: &Inventory,
        entries: &[Entry],
        conflicts: &[(u32, u32)],
        present: &mut [u32],
        stamp: u32,
        code: Code,
        what: &str,
    ) {
        let paths = &inventory.paths;
        for entry in entries {
            if std::mem::replace(&mut present[entry.path as usize], stamp) == stamp {
                let message =
                    || format!("{what}the path {:?} is there twice", paths.get(entry.path));
                self.findings.add_with(code, self.place, message);
            }
        }
        for (above, below) in conflicts {
            if present[*above as usize] == stamp && present[*below as usize] == stamp {
                let message = || {
                    let (above, below) = (paths.get(*above), paths.get(*below));
                    format!("{what}{above:?} is a file and a directory above {below:?}")
                };
                self.findings.add_with(code, self.place, message);
            }
        }
    }

    fn content_places(&mut self, inventory: &Inventory) {
        let names: HashSet<String> =
            inventory.versions.iter().map(|v| v.name.to_string()).collect();
        for entry in &inventory.manifest {
            let path = inventory.paths.get(entry.path);
            let fault = match path.split_once('/') {
                Some((version, _)) if !names.contains(version) => "in no version of this inventory",
                Some((_, rest)) if !is_below(rest, inventory.content_directory()) => {
                    "outside of the content directory"
                }
                Some(_) => continue,
                None => "not in a version",
            };
            self.findings.add_with(Code::E042, self.place, || format!("{path:?} is {fault}"));
        }
    }

    fn fixity_paths(&mut self, inventory: &Inventory, present: &mut [u32]) {
        const STAMP: u32 = u32::MAX;
        for entry in &inventory.manifest {
            present[entry.path as usize] = STAMP;
        }
        for (name, entries) in &inventory.fixity {
            for entry in entries {
                if present[entry.path as usize] != STAMP {
                    let path = inventory.paths.get(entry.path);
                    let message = || format!("{name}: {path:?} is not in the manifest");
                    self.findings.add_with(Code::E057, self.place, message);
                }
            }
        }
    }
}

/// Whether `path` lies below `directory`, by whole elements.
fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}
