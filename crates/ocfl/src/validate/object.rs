//! The validation of one object: what lies in its root, then inventories, then content.

use super::{REGISTERED, Validation, content, earlier};
use crate::algorithm::{algorithm_name, algorithm_named};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::fetch::{self, Fetched, Small};
use crate::findings::Findings;
use crate::inventory::{INVENTORY, Inventory};
use crate::sidecar;
use crate::version::{Spec, VersionName};
use digest::{Algorithm, Algorithms, Digests};
use futures_util::TryStreamExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Kind, Store, join, list_all};

/// Validates the object at `path` in a store. What cannot be read is in the findings, as
/// unchecked; this fails only if the store as a whole does not answer.
pub async fn validate_object(
    store: Arc<dyn Store>,
    path: &str,
    validation: &Validation,
) -> Result<Findings> {
    validate(store, path, validation).await.map(|(findings, _)| findings)
}

/// Validates an object, and tells its identifier and specification where it has them.
pub(super) async fn validate(
    store: Arc<dyn Store>,
    path: &str,
    validation: &Validation,
) -> Result<(Findings, Option<(String, Spec)>)> {
    // A version may be sealed meanwhile: part of what was seen is of the object before, then.
    const TRIES: usize = 5;
    let is_replaced = store.capabilities().rename;
    let key = join(path, INVENTORY);
    // What prevents this is met again below.
    let identity = || async { fetch::found(store.head(&key).await).ok().flatten() };
    let mut before = if is_replaced { identity().await } else { None };
    for tries in 1.. {
        let mut object = ObjectValidation {
            store: store.clone(),
            path: path.to_owned(),
            validation: validation.clone(),
            findings: Findings::default(),
            spec: None,
        };
        let known = match object.run().await {
            Ok(known) => known,
            Err(error) => {
                object.unable("", error)?;
                None
            }
        };
        let findings = object.findings.in_terms_of(object.spec.unwrap_or_default());
        if !is_replaced || findings.is_valid() || tries == TRIES {
            return Ok((findings, known));
        }
        let now = identity().await;
        if now == before {
            return Ok((findings, known));
        }
        before = now;
    }
    unreachable!("the last try returns")
}

pub(super) struct ObjectValidation {
    pub(super) store: Arc<dyn Store>,
    pub(super) path: String,
    pub(super) validation: Validation,
    pub(super) findings: Findings,
    /// The specification that the object declares, or else its inventory.
    spec: Option<Spec>,
}

/// What lies directly in a directory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) files: BTreeSet<String>,
    pub(super) directories: BTreeSet<String>,
    /// Links and special files.
    pub(super) others: BTreeSet<String>,
    /// Names that are not UTF-8, of whatever they name.
    pub(super) not_utf8: BTreeSet<String>,
}

impl Directory {
    /// The algorithms for which there is a sidecar.
    pub(super) fn sidecars(&self) -> Algorithms {
        let names = self.files.iter().filter_map(|name| name.strip_prefix("inventory.json."));
        names.filter_map(algorithm_named).collect()
    }
}

/// Whether an error is about the store, and not about something in it: it was met again by every
/// retry.
pub(super) fn is_outage(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_retryable())
}

impl ObjectValidation {
    pub(super) fn found(&mut self, code: Code, place: &str, message: impl Into<String>) {
        self.findings.add(code, place, message);
    }

    /// Records that something could not be checked. Fails with the error instead where the store
    /// as a whole does not answer, so that nothing else could be checked either.
    pub(super) fn unable(&mut self, place: &str, error: Error) -> Result<()> {
        if is_outage(&error) {
            return Err(error);
        }
        self.findings.add_unchecked(place, &error);
        Ok(())
    }

    pub(super) fn key(&self, relative: &str) -> String {
        join(&self.path, relative)
    }

    pub(super) async fn directory(&self, relative: &str) -> Result<Directory> {
        // One bound for all directories that should hold a handful of names.
        const NAMES_MAX: usize = 1_000_000;
        let prefix = if relative.is_empty() { self.path.clone() } else { self.key(relative) };
        let mut entries = list_all(self.store.clone(), &prefix, false);
        let mut directory = Directory::default();
        let mut count = 0;
        while let Some(entry) = entries.try_next().await? {
            let name = entry.key.rsplit('/').next().unwrap_or_default().to_owned();
            match entry.kind {
                Kind::File => directory.files.insert(name),
                Kind::Directory => directory.directories.insert(name),
                Kind::Other => directory.others.insert(name),
                Kind::NotUtf8 => directory.not_utf8.insert(name),
            };
            count += 1;
            if count > NAMES_MAX {
                let what = "the number of names in one directory".to_owned();
                return Err(crate::Error::Limit { place: prefix, what, limit: NAMES_MAX as u64 });
            }
        }
        Ok(directory)
    }

    async fn run(&mut self) -> Result<Option<(String, Spec)>> {
        let top = self.directory("").await?;
        let spec = self.declaration(&top).await?;
        self.spec = spec;
        self.extensions(&top).await?;
        let root = match self.inventory(&top, "", None).await {
            Ok(root) => root,
            Err(error) => {
                self.unable(INVENTORY, error)?;
                None
            }
        };
        let algorithm = root.as_ref().map(|(_, inventory)| inventory.algorithm);
        self.top_level(&top, algorithm);
        let Some((digest, inventory)) = root else { return Ok(None) };
        self.spec = spec.or(Some(inventory.spec));
        if spec.is_some_and(|spec| spec != inventory.spec) {
            let message =
                format!("the type is for OCFL {}, unlike the declaration", inventory.spec);
            self.found(Code::E038, INVENTORY, message);
        }
        let versions = self.version_directories(&top, &inventory);
        let mut content = content::Content::new(&inventory);
        content.list(self, &inventory, &versions).await?;
        earlier::validate(self, &inventory, &digest, &versions, &mut content).await?;
        content.verify(self, &inventory).await?;
        Ok(Some((inventory.id, inventory.spec)))
    }

    /// The declaration of the specification's version.
    async fn declaration(&mut self, top: &Directory) -> Result<Option<Spec>> {
        let declarations: Vec<&String> =
            top.files.iter().filter(|name| name.starts_with("0=ocfl_object_")).collect();
        match declarations.as_slice() {
            [] => {
                self.found(Code::E003, "", "there is no declaration such as 0=ocfl_object_1.1");
                return Ok(None);
            }
            [_] => {}
            _ => self.found(Code::E003, "", "there is more than one declaration"),
        }
        let mut declared = None;
        for name in declarations {
            let spec = Spec::ALL.into_iter().find(|spec| spec.object_declaration() == **name);
            if spec.is_none() {
                self.found(Code::E004, name, "this version of OCFL is not known here");
            }
            declared = declared.max(spec);
            let value = name.strip_prefix("0=").unwrap_or_default();
            let content =
                match fetch::small(&self.store, &self.key(name), &self.validation.limits).await {
                    Ok(content) => content,
                    Err(error) => {
                        self.unable(name, error)?;
                        continue;
                    }
                };
            if content != Small::Whole(format!("{value}\n").into()) {
                let message = format!("the content is not {value:?} and a newline");
                self.found(Code::E007, name, message);
            }
        }
        Ok(declared)
    }

    /// What may lie in an object's root.
    fn top_level(&mut self, top: &Directory, algorithm: Option<Algorithm>) {
        let sidecar = algorithm.map(sidecar::name);
        for name in &top.files {
            let is_sidecar = match &sidecar {
                Some(sidecar) => name == sidecar,
                // Without an algorithm there is no telling which sidecar is too many.
                None => name.starts_with("inventory.json."),
            };
            if name != INVENTORY && !is_sidecar && !name.starts_with("0=ocfl_object_") {
                self.found(Code::E001, name, "there is no place for this file in an object");
            }
        }
        for name in &top.directories {
            let known = matches!(name.as_str(), "extensions" | "logs");
            if !known && name.parse::<VersionName>().is_err() {
                self.found(Code::E001, name, "there is no place for this directory in an object");
            }
        }
        for name in &top.not_utf8 {
            self.found(Code::E001, name, "there is no place for a name that is not UTF-8");
        }
        for name in &top.others {
            self.found(Code::E090, name, "a link or special file, where plain ones are expected");
        }
    }

    async fn extensions(&mut self, top: &Directory) -> Result<()> {
        if !top.directories.contains("extensions") {
            return Ok(());
        }
        let extensions = match self.directory("extensions").await {
            Ok(extensions) => extensions,
            Err(error) => return self.unable("extensions", error),
        };
        for name in &extensions.files {
            let place = format!("extensions/{name}");
            self.found(Code::E067, &place, "only directories belong in extensions");
        }
        let unregistered =
            extensions.directories.iter().filter(|name| !REGISTERED.contains(&name.as_str()));
        for name in unregistered.chain(&extensions.not_utf8) {
            let place = format!("extensions/{name}");
            self.found(Code::W013, &place, "this is no registered extension");
        }
        Ok(())
    }

    /// The directories of versions, compared with the inventory's versions.
    fn version_directories(&mut self, top: &Directory, inventory: &Inventory) -> Vec<VersionName> {
        let mut there: Vec<VersionName> =
            top.directories.iter().filter_map(|name| name.parse().ok()).collect();
        there.sort_unstable();
        for name in &there {
            if inventory.version(name.number()).is_none_or(|version| version.name != *name) {
                let message = "a version directory that the inventory does not name";
                self.found(Code::E046, &name.to_string(), message);
            }
        }
        let mut missing = Vec::new();
        for version in &inventory.versions {
            if !there.contains(&version.name) {
                self.found(Code::E046, &version.name.to_string(), "the version has no directory");
                missing.push(version.name.number());
            }
        }
        // The last ones may have been forgotten together; a hole is a broken sequence.
        let last = there.last().map(|name| name.number()).unwrap_or_default();
        if missing.iter().any(|number| *number < last) {
            self.found(Code::E010, "", "the version directories are not continuous");
        }
        there.retain(|name| inventory.version(name.number()).is_some_and(|v| v.name == *name));
        there
    }

    /// Reads the inventory in a directory and checks its sidecar. Returns it with its digest.
    pub(super) async fn inventory(
        &mut self,
        directory: &Directory,
        relative: &str,
        quiet: Option<&Findings>,
    ) -> Result<Option<(String, Inventory)>> {
        let place = join(relative, INVENTORY);
        if !directory.files.contains(INVENTORY) {
            if relative.is_empty() {
                self.found(Code::E063, "", "there is no inventory.json");
            }
            return Ok(None);
        }
        let mut algorithms = directory.sidecars();
        algorithms.insert(Algorithm::Sha512);
        algorithms.insert(Algorithm::Sha256);
        let (store, limits) = (self.store.clone(), self.validation.limits);
        let fetched =
            fetch::inventory(&store, &self.key(&place), algorithms, &limits, &place).await?;
        let Some(Fetched { parsed, digests, .. }) = fetched else { return Ok(None) };
        let spec = parsed.inventory.as_ref().map(|inventory| inventory.spec);
        self.take_findings(parsed.findings.in_terms_of(spec.unwrap_or_default()), quiet);
        let Some(inventory) = parsed.inventory else { return Ok(None) };
        self.sidecar(directory, relative, &inventory, &digests).await?;
        // The digest that tells whether two inventories are the same file.
        let digest = digests.hex(Algorithm::Sha512).unwrap_or_default();
        Ok(Some((digest, inventory)))
    }

    /// An earlier inventory repeats what a later one has; its warnings are not worth repeating.
    fn take_findings(&mut self, findings: Findings, quiet: Option<&Findings>) {
        let Some(known) = quiet else { return self.findings.extend(findings) };
        for finding in findings.iter() {
            if finding.code.is_error() || !known.has(finding.code) {
                self.findings.add(finding.code, finding.place.clone(), finding.message.clone());
            }
        }
    }

    pub(super) async fn sidecar(
        &mut self,
        directory: &Directory,
        relative: &str,
        inventory: &Inventory,
        digests: &Digests,
    ) -> Result<()> {
        let name = sidecar::name(inventory.algorithm);
        let place = join(relative, &name);
        if !directory.files.contains(&name) {
            self.found(
                Code::E058,
                &join(relative, INVENTORY),
                format!("there is no sidecar {name}"),
            );
            return Ok(());
        }
        let content = fetch::small(&self.store, &self.key(&place), &self.validation.limits).await;
        let digest = match content {
            Ok(Small::Whole(content)) => sidecar::read(&content, inventory.algorithm),
            Ok(Small::TooLarge | Small::Missing) => None,
            Err(error) => return self.unable(&place, error),
        };
        match digest {
            None => {
                let message = format!(
                    "it is not a {} digest and inventory.json",
                    algorithm_name(inventory.algorithm)
                );
                self.found(Code::E061, &place, message);
            }
            Some(digest) if digests.hex(inventory.algorithm).as_ref() != Some(&digest) => {
                self.found(Code::E060, &place, "the inventory does not have this digest");
            }
            Some(_) => {}
        }
        Ok(())
    }
}
