//! The content: every file that should be there is, no other is, and each has its digests.

use super::object::ObjectValidation;
use crate::algorithm::{algorithm_name, algorithm_named};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::fetch;
use crate::intern::Digests;
use crate::inventory::Inventory;
use crate::version::VersionName;
use digest::{Algorithm, Algorithms};
use futures_util::TryStreamExt;
use std::collections::HashSet;
use store::{Kind, list_all};
use tokio::task::JoinSet;

/// A digest that a file should have, and what it means if it has another. Small, because there
/// may be one for every file and fixity algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Expected {
    path: u32,
    algorithm: Algorithm,
    /// Its number in `Content::texts`, in lower case.
    digest: u32,
    code: Code,
    /// The version whose inventory says so; zero for the root's.
    version: u32,
}

/// What is known of the content files, by their numbers in the root inventory.
pub(super) struct Content {
    /// The manifest's digest for each path; `None` for paths that are not content.
    digests: Vec<Option<u32>>,
    /// Which were listed.
    there: Vec<bool>,
    /// The versions whose content directories were listed, and have nothing in them.
    empty: HashSet<VersionName>,
    /// Files that were listed and that the root's manifest does not have.
    unknown: HashSet<String>,
    /// Digests beyond those of the root's manifest, sorted.
    expected: Vec<Expected>,
    texts: Digests,
}

impl Content {
    pub(super) fn new(root: &Inventory) -> Content {
        let mut digests = vec![None; root.paths.len()];
        for entry in &root.manifest {
            digests[entry.path as usize] = Some(entry.digest);
        }
        let mut content = Content {
            digests,
            there: vec![false; root.paths.len()],
            empty: HashSet::new(),
            unknown: HashSet::new(),
            expected: Vec::new(),
            texts: Digests::default(),
        };
        content.expect_fixity(root, root, 0);
        content
    }

    fn expect(&mut self, path: u32, algorithm: Algorithm, digest: &str, code: Code, version: u32) {
        let digest = self.texts.add(&digest.to_ascii_lowercase());
        // Four gibibytes of digests are beyond what the limits let through.
        let Some(digest) = digest else { return };
        self.expected.push(Expected { path, algorithm, digest, code, version });
    }

    /// Sorts what is expected, and forgets what was expected already.
    fn settle(&mut self) {
        self.expected.sort_unstable();
        let same = |e: &Expected| (e.path, e.algorithm, e.digest, e.code);
        self.expected.dedup_by_key(|expected| same(expected));
    }

    fn expect_fixity(&mut self, root: &Inventory, inventory: &Inventory, version: u32) {
        for (name, entries) in &inventory.fixity {
            let Some(algorithm) = algorithm_named(name) else { continue };
            for entry in entries {
                if let Some(path) = root.paths.find(inventory.paths.get(entry.path)) {
                    let digest = inventory.digests.get(entry.digest);
                    self.expect(path, algorithm, &digest, Code::E093, version);
                }
            }
        }
        self.settle();
    }

    /// What is expected of one file beyond the root's manifest.
    fn expected_of(&self, path: u32) -> &[Expected] {
        let from = self.expected.partition_point(|expected| expected.path < path);
        let to = from + self.expected[from..].partition_point(|expected| expected.path == path);
        &self.expected[from..to]
    }

    /// Compares an earlier inventory's manifest with what is there and with the root's, and
    /// takes over what it expects of the content.
    pub(super) fn compare_earlier(
        &mut self,
        object: &mut ObjectValidation,
        root: &Inventory,
        earlier: &Inventory,
        name: VersionName,
        place: &str,
    ) {
        let mut has = vec![false; root.paths.len()];
        for entry in &earlier.manifest {
            let path = earlier.paths.get(entry.path);
            let number = root.paths.find(path);
            let known = number.and_then(|n| self.digests[n as usize].map(|digest| (n, digest)));
            let Some((number, digest)) = known else {
                if !self.unknown.contains(path) {
                    let message = format!("{path:?} is in the manifest, but not there");
                    object.found(Code::E092, place, message);
                }
                continue;
            };
            has[number as usize] = true;
            let then = earlier.digests.get(entry.digest);
            if earlier.algorithm != root.algorithm {
                self.expect(number, earlier.algorithm, &then, Code::E092, name.number());
            } else if !root.digests.get(digest).eq_ignore_ascii_case(&then) {
                // Both cannot be right, whatever the content is.
                let message = format!("{path:?} has another digest in the root inventory");
                object.found(Code::E092, place, message);
            }
        }
        for (number, has) in (0..).zip(has) {
            if has || !self.there[number as usize] {
                continue;
            }
            let path = root.paths.get(number);
            let version = path.split('/').next().and_then(|name| name.parse::<VersionName>().ok());
            if version.is_some_and(|version| version.number() <= name.number()) {
                object.found(Code::E023, place, format!("{path:?} is not in the manifest"));
            }
        }
        self.expect_fixity(root, earlier, name.number());
    }

    /// Compares what is there with what should be.
    pub(super) async fn list(
        &mut self,
        object: &mut ObjectValidation,
        root: &Inventory,
        versions: &[VersionName],
    ) -> Result<()> {
        for version in versions {
            let directory = format!("{version}/{}", root.content_directory());
            match self.list_version(object, root, &directory).await {
                Ok(true) => {}
                Ok(false) => drop(self.empty.insert(*version)),
                Err(error) => {
                    object.unable(&directory, error)?;
                    self.assume_there(root, &directory);
                }
            }
        }
        for (number, digest) in (0..).zip(&self.digests) {
            if digest.is_none() || self.there[number as usize] {
                continue;
            }
            let path = root.paths.get(number);
            object.found(Code::E092, path, "it is in the manifest, but not there");
            if self.expected_of(number).iter().any(|expected| expected.code == Code::E093) {
                object.found(Code::E093, path, "it is in a fixity block, but not there");
            }
        }
        Ok(())
    }

    /// Whether a version has no content, as far as that could be seen.
    pub(super) fn is_empty(&self, version: VersionName) -> bool {
        self.empty.contains(&version)
    }

    /// Has the content of a directory that cannot be listed looked for by name.
    fn assume_there(&mut self, root: &Inventory, directory: &str) {
        for (number, there) in (0..).zip(&mut self.there) {
            let path = root.paths.get(number);
            *there |= path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
        }
    }

    /// Lists a version's content; tells whether there is any.
    async fn list_version(
        &mut self,
        object: &mut ObjectValidation,
        root: &Inventory,
        directory: &str,
    ) -> Result<bool> {
        // Beyond so many, a file that an earlier inventory knows may be told of twice.
        const UNKNOWN_MAX: usize = 100_000;
        // An inventory that names no such directory was told of already.
        let prefix = object.key(directory);
        if store::check_existing_key(&prefix).is_err() {
            return Ok(true);
        }
        let mut entries = list_all(object.store.clone(), &prefix, true);
        // What the findings call the places: relative to the object.
        let cut = if object.path.is_empty() { 0 } else { object.path.len() + 1 };
        let mut has_content = false;
        while let Some(entry) = entries.try_next().await? {
            has_content |= entry.kind != Kind::Directory;
            let path = entry.key.get(cut..).unwrap_or_default();
            let number = root.paths.find(path).filter(|n| self.digests[*n as usize].is_some());
            match (entry.kind, number) {
                (Kind::File, Some(number)) => self.there[number as usize] = true,
                (Kind::File, None) => {
                    object.found(Code::E023, path, "it is not in the manifest");
                    if self.unknown.len() < UNKNOWN_MAX {
                        self.unknown.insert(path.to_owned());
                    }
                }
                (Kind::Directory, _) => object.found(Code::E024, path, "an empty directory"),
                (Kind::Other, _) => object.found(Code::E090, path, "a link or special file"),
                (Kind::NotUtf8, _) => {
                    let message = "its name is not UTF-8, so that no manifest can have it";
                    object.found(Code::E023, path, message);
                }
            }
        }
        Ok(has_content)
    }

    /// Reads the content and compares its digests.
    pub(super) async fn verify(
        self,
        object: &mut ObjectValidation,
        root: &Inventory,
    ) -> Result<()> {
        if !object.validation.fixity {
            return Ok(());
        }
        // Tasks of their own, so that hashing can use more than one processor.
        let mut reading: JoinSet<(u32, Result<Option<Digested>>)> = JoinSet::new();
        for number in 0..u32::try_from(self.digests.len()).unwrap_or(u32::MAX) {
            if self.digests[number as usize].is_none() || !self.there[number as usize] {
                continue;
            }
            while reading.len() >= object.validation.parallel.max(1) {
                self.compare_next(object, root, &mut reading).await?;
            }
            let (store, key) = (object.store.clone(), object.key(root.paths.get(number)));
            let algorithms = self.algorithms(root, number);
            reading.spawn(async move { (number, fetch::digests(&store, &key, algorithms).await) });
        }
        while !reading.is_empty() {
            self.compare_next(object, root, &mut reading).await?;
        }
        Ok(())
    }

    /// The algorithms of which a file's digests are known.
    fn algorithms(&self, root: &Inventory, number: u32) -> Algorithms {
        let expected = self.expected_of(number).iter().map(|expected| expected.algorithm);
        expected.chain([root.algorithm]).collect()
    }

    async fn compare_next(
        &self,
        object: &mut ObjectValidation,
        root: &Inventory,
        reading: &mut JoinSet<(u32, Result<Option<Digested>>)>,
    ) -> Result<()> {
        let Some(read) = reading.join_next().await else { return Ok(()) };
        let failed = |error: tokio::task::JoinError| Error::Io {
            place: object.path.clone(),
            source: error.into(),
        };
        let (number, read) = read.map_err(failed)?;
        let path = root.paths.get(number);
        match read {
            Ok(Some((digests, length))) => {
                if let Some(progress) = &object.validation.progress {
                    progress(path, length);
                }
                self.compare(object, root, number, &digests);
            }
            Ok(None) => object.found(Code::E092, path, "it is in the manifest, but not there"),
            Err(Error::Store(error)) if error.kind() == store::ErrorKind::Corrupt => {
                object.found(Code::E092, path, error.to_string());
            }
            Err(error) => object.unable(path, error)?,
        }
        Ok(())
    }

    fn compare(
        &self,
        object: &mut ObjectValidation,
        root: &Inventory,
        number: u32,
        digests: &digest::Digests,
    ) {
        let path = root.paths.get(number);
        let manifest = self.digests[number as usize].map(|digest| root.digests.get(digest));
        let found = digests.hex(root.algorithm);
        if !found.zip(manifest).is_some_and(|(found, given)| found.eq_ignore_ascii_case(&given)) {
            let message = format!(
                "it does not have the {} digest of the manifest",
                algorithm_name(root.algorithm)
            );
            object.found(Code::E092, path, message);
        }
        for expected in self.expected_of(number) {
            if digests.hex(expected.algorithm) != Some(self.texts.get(expected.digest)) {
                let place = match expected.version {
                    0 => "the root inventory".to_owned(),
                    number => format!("the inventory of version {number}"),
                };
                let algorithm = algorithm_name(expected.algorithm);
                let message = format!("it does not have the {algorithm} digest of {place}");
                object.found(expected.code, path, message);
            }
        }
    }
}

/// The digests of a file that was read, and its length.
type Digested = (digest::Digests, u64);
