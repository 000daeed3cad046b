//! What a version on its way consists of: its files, and the content that it adds.

use super::Start;
use crate::algorithm::{algorithm_name, algorithm_named};
use crate::error::{Error, Result};
use crate::inventory::{About, Entry, Inventory, Version};
use crate::path;
use crate::version::VersionName;
use digest::Algorithm;
use std::collections::{HashMap, HashSet};

#[derive(Debug)]
pub(crate) struct Contents {
    inventory: Inventory,
    version: VersionName,
    /// Paths of the version, and the digests they have.
    state: HashMap<u32, u32>,
    /// Content that this version adds: where it is, by digest.
    added: HashMap<u32, u32>,
    /// Content paths of this version that are in use, or still being written.
    reserved: HashSet<String>,
    /// The directories above them.
    directories: HashSet<String>,
    /// Further digests of content, by the digest it has here.
    fixity: Vec<(u32, Algorithm, String)>,
}

/// What became of content that was put.
pub(super) enum Recorded {
    New,
    /// The object has it already, here.
    Known(String),
}

impl Contents {
    pub(super) fn new(inventory: Inventory, version: VersionName, start: Start) -> Contents {
        let head = inventory.versions.last().filter(|_| start == Start::Head);
        let state = head.map(|head| head.state.iter().map(|e| (e.path, e.digest)).collect());
        Contents {
            state: state.unwrap_or_default(),
            inventory,
            version,
            added: HashMap::new(),
            reserved: HashSet::new(),
            directories: HashSet::new(),
            fixity: Vec::new(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.inventory.id
    }

    pub(super) fn file_count(&self) -> usize {
        self.state.len()
    }

    /// A place for content of a file: its own path where that is possible everywhere, another
    /// name where it is not, or where something is in the way.
    pub(super) fn reserve(&mut self, path: &str) -> String {
        let directory = format!("{}/{}", self.version, self.inventory.content_directory());
        let own = format!("{directory}/{path}");
        if is_portable(path) && self.is_free(&own) {
            self.take(&own, &directory);
            return own;
        }
        // Made of the path alone where that is free, so that whoever takes the version up again
        // finds it under the same name, in whatever order.
        let digest = Algorithm::Sha256.hex(path.as_bytes());
        let mut other = format!("{directory}/~{}", &digest[..32]);
        let mut number = 0;
        while !self.is_free(&other) {
            number += 1;
            other = format!("{directory}/~{}-{number}", &digest[..32]);
        }
        self.take(&other, &directory);
        other
    }

    fn is_free(&self, content_path: &str) -> bool {
        !self.reserved.contains(content_path)
            && !self.directories.contains(content_path)
            && !above(content_path).any(|directory| self.reserved.contains(directory))
    }

    fn take(&mut self, content_path: &str, stop: &str) {
        self.reserved.insert(content_path.to_owned());
        for directory in above(content_path).take_while(|directory| directory.len() > stop.len()) {
            if !self.directories.insert(directory.to_owned()) {
                break;
            }
        }
    }

    /// Nothing was put in a place that was reserved. Its directories stay reserved: they may be
    /// there, and others may be in them.
    pub(super) fn give_up(&mut self, content_path: &str) {
        self.reserved.remove(content_path);
    }

    /// Notes content that was put for a path.
    pub(super) fn record(
        &mut self,
        path: &str,
        digest: &str,
        content_path: &str,
    ) -> Result<Recorded> {
        let path = number(self.inventory.paths.add(path))?;
        if let Some((digest, known)) = self.known(digest) {
            self.state.insert(path, digest);
            let known = self.inventory.paths.get(known).to_owned();
            if known == content_path {
                return Ok(Recorded::New);
            }
            self.give_up(content_path);
            return Ok(Recorded::Known(known));
        }
        let digest = number(self.inventory.digests.add(digest))?;
        let content = number(self.inventory.paths.add(content_path))?;
        self.state.insert(path, digest);
        self.added.insert(digest, content);
        Ok(Recorded::New)
    }

    /// The number of a digest whose content the object has, and a place of that content.
    fn known(&self, digest: &str) -> Option<(u32, u32)> {
        let digest = self.inventory.digests.find_any_case(digest)?;
        let place = self.inventory.first_content(digest);
        place.or_else(|| self.added.get(&digest).copied()).map(|place| (digest, place))
    }

    pub(super) fn remove(&mut self, path: &str) -> bool {
        self.inventory.paths.find(path).is_some_and(|path| self.state.remove(&path).is_some())
    }

    pub(super) fn copy(&mut self, from: &str, to: &str) -> Result<bool> {
        let from = self.inventory.paths.find(from).and_then(|path| self.state.get(&path).copied());
        let Some(digest) = from else { return Ok(false) };
        let to = number(self.inventory.paths.add(to))?;
        self.state.insert(to, digest);
        Ok(true)
    }

    pub(super) fn fixity(&mut self, path: &str, algorithm: Algorithm, digest: &str) -> Result<()> {
        let path_number = self.inventory.paths.find(path);
        let content = path_number.and_then(|number| self.state.get(&number).copied());
        let content = content.ok_or_else(|| Error::NoSuchFile {
            id: self.inventory.id.clone(),
            version: self.version,
            path: path.to_owned(),
        })?;
        self.fixity.push((content, algorithm, digest.to_ascii_lowercase()));
        Ok(())
    }

    /// Makes `path` a file of content that the object has; returns where that is.
    pub(super) fn refer(&mut self, path: &str, digest: &str) -> Result<Option<String>> {
        let Some((digest, place)) = self.known(digest) else { return Ok(None) };
        let path = number(self.inventory.paths.add(path))?;
        self.state.insert(path, digest);
        Ok(Some(self.inventory.paths.get(place).to_owned()))
    }

    /// The number of a path, if it occurs in the object.
    pub(crate) fn number(&self, path: &str) -> Option<u32> {
        self.inventory.paths.find(path)
    }

    /// Where a sealed version has content of this digest: the number of the path, and the path.
    pub(crate) fn sealed(&self, digest: &str) -> Option<(u32, String)> {
        let digest = self.inventory.digests.find_any_case(digest)?;
        let path = self.inventory.first_content(digest)?;
        Some((path, self.inventory.paths.get(path).to_owned()))
    }

    pub(super) fn has(&self, digest: &str) -> bool {
        self.known(digest).is_some()
    }

    /// Whether a content path of this version is in use by it.
    pub(super) fn is_reserved(&self, content_path: &str) -> bool {
        self.reserved.contains(content_path)
    }

    /// Ends the work: the inventory with the new version, and content paths that nothing uses.
    pub(super) fn finish(&mut self, about: About) -> Result<(Inventory, Vec<String>)> {
        self.check_conflicts()?;
        let used: HashSet<u32> = self.state.values().copied().collect();
        let mut unused = Vec::new();
        // From here on, what has a place is what the manifest has.
        self.reserved.clear();
        // Taken, not copied: there may be a great many paths in it, and the draft ends here.
        let (spec, algorithm) = (self.inventory.spec, self.inventory.algorithm);
        let mut inventory =
            std::mem::replace(&mut self.inventory, Inventory::new("", spec, algorithm));
        for (digest, content) in &self.added {
            if used.contains(digest) {
                self.reserved.insert(inventory.paths.get(*content).to_owned());
                inventory.manifest.push(Entry { digest: *digest, path: *content });
            } else {
                unused.push(inventory.paths.get(*content).to_owned());
            }
        }
        inventory.manifest.sort_unstable();
        self.add_fixity(&mut inventory)?;
        let state = self.state.iter().map(|(path, digest)| Entry { path: *path, digest: *digest });
        let mut state: Vec<Entry> = state.collect();
        state.sort_unstable_by_key(|entry| entry.path);
        inventory.versions.push(Version { name: self.version, about, state });
        inventory.head = self.version;
        Ok((inventory, unused))
    }

    fn add_fixity(&self, inventory: &mut Inventory) -> Result<()> {
        let mut has: HashSet<(Algorithm, u32)> = HashSet::new();
        for (name, entries) in &inventory.fixity {
            if let Some(algorithm) = algorithm_named(name) {
                has.extend(entries.iter().map(|entry| (algorithm, entry.path)));
            }
        }
        for (content, algorithm, digest) in &self.fixity {
            // Content that is not used after all has no place; one that has a digest keeps it.
            let place = inventory.first_content(*content);
            let Some(content) = place.filter(|content| has.insert((*algorithm, *content))) else {
                continue;
            };
            let digest = number(inventory.digests.add(digest))?;
            let block = inventory.fixity.entry(algorithm_name(*algorithm).to_owned()).or_default();
            block.push(Entry { digest, path: content });
        }
        Ok(())
    }

    /// A path cannot be a file and a directory.
    fn check_conflicts(&self) -> Result<()> {
        let paths = &self.inventory.paths;
        let mut sorted: Vec<u32> = self.state.keys().copied().collect();
        sorted.sort_unstable_by_key(|path| paths.bytes(*path));
        let found = path::conflicts(sorted.iter().map(|path| (*path, paths.bytes(*path))));
        match found.first() {
            None => Ok(()),
            Some((above, _)) => {
                let why = "it is a file and a directory of another file";
                Err(Error::BadPath(paths.get(*above).to_owned(), why))
            }
        }
    }
}

fn number(number: Option<u32>) -> Result<u32> {
    number.ok_or_else(|| Error::Limit {
        place: "the new version".to_owned(),
        what: "the length of all paths or digests".to_owned(),
        limit: u64::from(u32::MAX),
    })
}

/// The directories above a path, the nearest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/'), |(above, _)| above.rsplit_once('/'))
        .map(|(above, _)| above)
}

/// Whether every store can have a file of this name, whatever it puts in front of it.
fn is_portable(path: &str) -> bool {
    const PATH_BYTES_MAX: usize = 350;
    const NAME_BYTES_MAX: usize = 240;
    path.len() <= PATH_BYTES_MAX
        && path.split('/').all(|name| name.len() <= NAME_BYTES_MAX)
        && !path.chars().any(char::is_control)
}
