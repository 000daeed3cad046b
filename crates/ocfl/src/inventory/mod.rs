//! The inventory: what an object holds, version by version, in a form that stays small.
//!
//! Each distinct path and digest is kept once and is a number elsewhere, so a state of half a
//! million files is four megabytes, and a file that stays the same costs nothing in later ones.

mod check;
mod parse;
mod write;

pub(crate) use parse::{Parsed, parse};

use crate::Limits;
use crate::code::{Code, Finding};
use crate::error::{Error, Result};
use crate::findings::Findings;
use crate::intern::{Digests, Paths};
use crate::version::{Spec, VersionName};
use digest::Algorithm;
use std::collections::BTreeMap;
use std::io::Read;

/// The name of every inventory.
pub(crate) const INVENTORY: &str = "inventory.json";

/// The content directory where nothing else is set.
pub(crate) const CONTENT: &str = "content";

/// A digest and a path, both as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) digest: u32,
    pub(crate) path: u32,
}

/// What an object holds: every version's files, and where their content is.
#[derive(Debug, Clone)]
pub struct Inventory {
    pub(crate) id: String,
    pub(crate) spec: Spec,
    pub(crate) algorithm: Algorithm,
    pub(crate) head: VersionName,
    pub(crate) content_directory: Option<String>,
    pub(crate) digests: Digests,
    pub(crate) paths: Paths,
    /// Sorted by digest.
    pub(crate) manifest: Vec<Entry>,
    /// Sorted by number.
    pub(crate) versions: Vec<Version>,
    /// Further digests of content, by the name of their algorithm.
    pub(crate) fixity: BTreeMap<String, Vec<Entry>>,
}

/// One version of an object.
#[derive(Debug, Clone)]
pub struct Version {
    pub(crate) name: VersionName,
    pub(crate) about: About,
    /// Sorted by path number.
    pub(crate) state: Vec<Entry>,
}

impl Version {
    pub fn name(&self) -> VersionName {
        self.name
    }

    /// When, why and by whom.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// How many files it has.
    pub fn file_count(&self) -> usize {
        self.state.len()
    }
}

/// When, why and by whom a version was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// RFC 3339; the moment of writing where a new version leaves it empty.
    pub created: String,
    pub message: Option<String>,
    pub user: Option<User>,
}

/// Who made a version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    pub name: String,
    /// A URI: `mailto:…`, an ORCID, or the like.
    pub address: Option<String>,
}

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File<'a> {
    /// Its path in the version.
    pub path: &'a str,
    /// Its digest, of the inventory's algorithm.
    pub digest: String,
    /// Where its content is, relative to the object.
    pub content_path: &'a str,
}

impl Inventory {
    /// An inventory without versions, for a new object.
    pub(crate) fn new(id: &str, spec: Spec, algorithm: Algorithm) -> Inventory {
        Inventory {
            id: id.to_owned(),
            spec,
            algorithm,
            head: VersionName::FIRST,
            content_directory: None,
            digests: Digests::default(),
            paths: Paths::default(),
            manifest: Vec::new(),
            versions: Vec::new(),
            fixity: BTreeMap::new(),
        }
    }

    /// Reads an inventory as a stream; the first error in it, if there is one, is returned.
    pub fn read(source: impl Read, limits: &Limits) -> Result<Inventory> {
        Inventory::from_parsed(parse(source, limits, INVENTORY)?, INVENTORY)
    }

    /// Reads an inventory as a stream and tells everything that is wrong with it. There is none
    /// if it is not JSON, and parts may be missing where there are errors.
    pub fn inspect(source: impl Read, limits: &Limits) -> Result<(Option<Inventory>, Findings)> {
        let parsed = parse(source, limits, INVENTORY)?;
        Ok((parsed.inventory, parsed.findings))
    }

    /// The inventory, if nothing is wrong with it.
    pub(crate) fn from_parsed(parsed: Parsed, place: &str) -> Result<Inventory> {
        let finding = parsed.findings.errors().next().cloned();
        match (finding, parsed.inventory) {
            (None, Some(inventory)) => Ok(inventory),
            (finding, _) => {
                let fallback = || Finding {
                    code: Code::E033,
                    place: place.to_owned(),
                    message: "it cannot be read".to_owned(),
                };
                let finding = Box::new(finding.unwrap_or_else(fallback));
                Err(Error::Invalid { place: place.to_owned(), finding })
            }
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The version of the specification it conforms to.
    pub fn spec(&self) -> Spec {
        self.spec
    }

    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The latest version.
    pub fn head(&self) -> VersionName {
        self.head
    }

    pub fn content_directory(&self) -> &str {
        self.content_directory.as_deref().unwrap_or(CONTENT)
    }

    /// All versions, oldest first.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// The version of this number.
    pub fn version(&self, number: u32) -> Option<&Version> {
        let at = self.versions.binary_search_by_key(&number, |version| version.name.number());
        at.ok().map(|at| &self.versions[at])
    }

    /// How many content files the object keeps.
    pub fn content_count(&self) -> usize {
        self.manifest.len()
    }

    /// The files of a version, in no particular order.
    pub fn files<'a>(&'a self, version: &'a Version) -> impl Iterator<Item = File<'a>> {
        version.state.iter().map(|entry| self.file(*entry))
    }

    /// The files of a version in the order of their paths.
    pub fn sorted_files<'a>(&'a self, version: &'a Version) -> impl Iterator<Item = File<'a>> {
        self.sorted_state(version).into_iter().map(|entry| self.file(entry))
    }

    /// A version's entries in the order of their paths.
    pub(crate) fn sorted_state(&self, version: &Version) -> Vec<Entry> {
        let mut entries = version.state.clone();
        entries.sort_unstable_by_key(|entry| self.paths.bytes(entry.path));
        entries
    }

    /// A file of a version by its path.
    pub fn find<'a>(&'a self, version: &'a Version, path: &str) -> Option<File<'a>> {
        let path = self.paths.find(path)?;
        state_entry(&version.state, path).map(|entry| self.file(entry))
    }

    /// Where content of this digest is, in any case, relative to the object.
    pub fn content_path(&self, digest: &str) -> Option<&str> {
        let digest = self.digests.find_any_case(digest)?;
        self.first_content(digest).map(|path| self.paths.get(path))
    }

    /// Every content file: its path, relative to the object, and its digest.
    pub fn contents(&self) -> impl Iterator<Item = (&str, String)> {
        self.manifest
            .iter()
            .map(|entry| (self.paths.get(entry.path), self.digests.get(entry.digest)))
    }

    pub(crate) fn file(&self, entry: Entry) -> File<'_> {
        let content = self.first_content(entry.digest);
        File {
            path: self.paths.get(entry.path),
            digest: self.digests.get(entry.digest),
            content_path: content.map(|path| self.paths.get(path)).unwrap_or_default(),
        }
    }

    /// The first content path of a digest.
    pub(crate) fn first_content(&self, digest: u32) -> Option<u32> {
        self.content_of(digest).first().map(|entry| entry.path)
    }

    /// The manifest's entries of a digest.
    pub(crate) fn content_of(&self, digest: u32) -> &[Entry] {
        let from = self.manifest.partition_point(|entry| entry.digest < digest);
        let to = from + self.manifest[from..].partition_point(|entry| entry.digest == digest);
        &self.manifest[from..to]
    }
}

/// The entry of a path in a state, which is sorted by path.
pub(crate) fn state_entry(state: &[Entry], path: u32) -> Option<Entry> {
    state.binary_search_by_key(&path, |entry| entry.path).ok().map(|at| state[at])
}
