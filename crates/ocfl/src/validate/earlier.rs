//! The inventories in version directories, compared with the one in the root.

use super::content::Content;
use super::object::{Directory, ObjectValidation};
use crate::code::Code;
use crate::error::Result;
use crate::inventory::{Entry, INVENTORY, Inventory, Version, state_entry};
use crate::sidecar;
use crate::version::VersionName;

/// Looks into every version directory.
pub(super) async fn validate(
    object: &mut ObjectValidation,
    root: &Inventory,
    root_digest: &str,
    versions: &[VersionName],
    content: &mut Content,
) -> Result<()> {
    let root_findings = object.findings.clone();
    let mut spec = root.spec;
    for name in versions.iter().rev() {
        let relative = name.to_string();
        let directory = match object.directory(&relative).await {
            Ok(directory) => directory,
            Err(error) => {
                object.unable(&relative, error)?;
                continue;
            }
        };
        let found = match object.inventory(&directory, &relative, Some(&root_findings)).await {
            Ok(found) => found,
            Err(error) => {
                object.unable(&format!("{relative}/{INVENTORY}"), error)?;
                None
            }
        };
        let algorithm = found.as_ref().map_or(root.algorithm, |(_, inventory)| inventory.algorithm);
        version_directory(object, root, &directory, &relative, algorithm);
        let has_content = directory.directories.contains(root.content_directory());
        if has_content && content.is_empty(*name) {
            let place = format!("{relative}/{}", root.content_directory());
            object.found(Code::W003, &place, "the version has no files, and a content directory");
        }
        let Some((digest, inventory)) = found else {
            if !directory.files.contains(INVENTORY) {
                object.found(Code::W010, &relative, "the version has no inventory");
            }
            continue;
        };
        let place = format!("{relative}/{INVENTORY}");
        let mut comparison = Comparison { object, root, earlier: &inventory, place: &place };
        if *name == root.head {
            if digest != root_digest {
                let message = "it is not the same file as the root inventory";
                comparison.found(Code::E064, message);
            }
            if digest == root_digest {
                continue;
            }
        }
        if inventory.spec > spec {
            let message = format!("OCFL {}, and a later version has {spec}", inventory.spec);
            comparison.found(Code::E103, message);
        }
        spec = spec.min(inventory.spec);
        comparison.header(*name);
        comparison.versions(*name);
        content.compare_earlier(object, root, &inventory, *name, &place);
    }
    Ok(())
}

/// What may lie in a version directory.
fn version_directory(
    object: &mut ObjectValidation,
    root: &Inventory,
    directory: &Directory,
    relative: &str,
    algorithm: digest::Algorithm,
) {
    for name in &directory.files {
        if name != INVENTORY && *name != sidecar::name(algorithm) {
            let place = format!("{relative}/{name}");
            object.found(Code::E015, &place, "there is no place for this file in a version");
        }
    }
    for name in &directory.directories {
        if name != root.content_directory() {
            let place = format!("{relative}/{name}");
            object.found(Code::W002, &place, "a directory beside the content directory");
        }
    }
    for name in &directory.not_utf8 {
        let place = format!("{relative}/{name}");
        object.found(Code::E015, &place, "there is no place for a name that is not UTF-8");
    }
    for name in &directory.others {
        let place = format!("{relative}/{name}");
        object.found(Code::E090, &place, "a link or special file, where plain ones are expected");
    }
}

struct Comparison<'a> {
    object: &'a mut ObjectValidation,
    root: &'a Inventory,
    earlier: &'a Inventory,
    place: &'a str,
}

impl Comparison<'_> {
    fn found(&mut self, code: Code, message: impl Into<String>) {
        self.object.found(code, self.place, message);
    }

    fn header(&mut self, name: VersionName) {
        if self.earlier.id != self.root.id {
            let message = format!("the id is {:?}, not {:?}", self.earlier.id, self.root.id);
            self.found(Code::E037, message.clone());
            self.found(Code::E110, message);
        }
        if self.earlier.head != name {
            self.found(Code::E040, format!("the head is {}, not {name}", self.earlier.head));
        }
        match (&self.earlier.content_directory, &self.root.content_directory) {
            (None, Some(_))
                if self.root.content_directory() != self.earlier.content_directory() =>
            {
                self.found(Code::E019, "the content directory is not set here, but later");
            }
            (_, _) if self.root.content_directory() != self.earlier.content_directory() => {
                let (here, later) =
                    (self.earlier.content_directory(), self.root.content_directory());
                let message = format!("the content directory is {here:?}, and {later:?} later");
                self.found(Code::E019, message.clone());
                self.found(Code::E020, message);
            }
            _ => {}
        }
    }

    fn versions(&mut self, name: VersionName) {
        let translation = Translation::new(self.root, self.earlier);
        let (root, earlier) = (self.root, self.earlier);
        for version in &earlier.versions {
            if version.name.number() > name.number() {
                let message = format!("it describes {}, which came later", version.name);
                self.found(Code::E066, message);
                continue;
            }
            match root.version(version.name.number()) {
                None => self.found(Code::E066, format!("the root does not have {}", version.name)),
                Some(current) => {
                    self.state(&translation, version, current);
                    self.metadata(version, current);
                }
            }
        }
        for version in root.versions.iter().filter(|v| v.name.number() <= name.number()) {
            if earlier.version(version.name.number()).is_none() {
                self.found(Code::E066, format!("it does not have {}", version.name));
            }
        }
    }

    fn state(&mut self, translation: &Translation, earlier: &Version, current: &Version) {
        for entry in &earlier.state {
            let same = translation.paths[entry.path as usize]
                .and_then(|path| state_entry(&current.state, path))
                .is_some_and(|now| translation.same_content(*entry, now));
            if !same {
                let path = self.earlier.paths.get(entry.path);
                let message = format!("{path:?} in {} is not what it is in the root", earlier.name);
                self.object.findings.add_with(Code::E066, self.place, || message);
            }
        }
        if earlier.state.len() != current.state.len() {
            let (then, now) = (earlier.state.len(), current.state.len());
            self.found(
                Code::E066,
                format!("{} has {then} files here, {now} in the root", earlier.name),
            );
        }
    }

    fn metadata(&mut self, earlier: &Version, current: &Version) {
        let (then, now) = (&earlier.about, &current.about);
        let differences = [
            (then.created != now.created, "created"),
            (then.message != now.message, "message"),
            (then.user != now.user, "user"),
        ];
        for (differs, key) in differences {
            if differs {
                self.found(Code::W011, format!("{key} of {} differs from the root", earlier.name));
            }
        }
    }
}

/// The numbers of one inventory in terms of another.
struct Translation<'a> {
    root: &'a Inventory,
    earlier: &'a Inventory,
    /// For each path of the earlier inventory, its number in the root's.
    paths: Vec<Option<u32>>,
    /// The same for digests, where both use one algorithm.
    digests: Option<Vec<Option<u32>>>,
}

impl<'a> Translation<'a> {
    fn new(root: &'a Inventory, earlier: &'a Inventory) -> Translation<'a> {
        let count = |length: usize| 0..u32::try_from(length).unwrap_or(u32::MAX);
        let paths = count(earlier.paths.len()).map(|n| root.paths.find(earlier.paths.get(n)));
        let digests = (root.algorithm == earlier.algorithm).then(|| {
            let all = count(earlier.digests.len());
            all.map(|n| root.digests.find_any_case(&earlier.digests.get(n))).collect()
        });
        Translation { root, earlier, paths: paths.collect(), digests }
    }

    /// Whether two entries mean the same content: by digest, or by where the content is.
    fn same_content(&self, then: Entry, now: Entry) -> bool {
        if let Some(digests) = &self.digests {
            let then = digests[then.digest as usize];
            return then == Some(now.digest)
                || then.is_some_and(|then| {
                    let (then, now) =
                        (self.root.digests.get(then), self.root.digests.get(now.digest));
                    then.eq_ignore_ascii_case(&now)
                });
        }
        let (then, now) = (self.earlier.content_of(then.digest), self.root.content_of(now.digest));
        !then.is_empty()
            && then.iter().all(|entry| {
                let path = self.paths[entry.path as usize];
                now.iter().any(|now| Some(now.path) == path)
            })
    }
}
