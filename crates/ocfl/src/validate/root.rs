//! The validation of a storage root: its own files, its hierarchy, and every object in it.

use super::{REGISTERED, Validation, object};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::fetch::{self, Small};
use crate::findings::Findings;
use crate::layout::Layout;
use crate::root::{LAYOUT, UNSEALED};
use crate::version::Spec;
use crate::walk::Directories;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesOrdered;
use futures_util::{StreamExt, TryStreamExt};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use store::{Entry, Kind, Store, join, list_all};

/// What the validation of a storage root found.
#[derive(Debug, Default)]
pub struct RootReport {
    /// Findings of the root and of all objects, with places relative to the root.
    pub findings: Findings,
    pub objects: u64,
    pub objects_invalid: u64,
    /// Objects without errors that could not be checked in full.
    pub objects_unchecked: u64,
    /// Why the validation ended before all objects were seen: the store did not answer any more.
    pub ended: Option<Error>,
}

impl RootReport {
    /// Everything was checked and there are no errors.
    pub fn is_valid(&self) -> bool {
        self.findings.is_valid() && self.ended.is_none()
    }
}

/// Validates a storage root and all objects in it. What cannot be read is in the findings, as
/// unchecked, and the rest is validated. Fails if the root itself cannot be read.
pub async fn validate_root(store: Arc<dyn Store>, validation: &Validation) -> Result<RootReport> {
    let mut root = RootValidation {
        store,
        validation: validation.clone(),
        report: RootReport::default(),
        spec: None,
        layout: None,
        ids: HashSet::new(),
        depths: BTreeSet::new(),
    };
    root.own_files().await?;
    root.report.ended = root.hierarchy().await.err();
    if root.depths.len() > 1 && root.depths.contains(&0) {
        root.found(Code::W015, "", "some objects are at the top, and some in directories");
    }
    Ok(root.report)
}

/// Objects that are validated at the same time. Most of their files are read in parallel as it is.
const OBJECTS_AT_ONCE: usize = 4;

/// What the validation of an object found, and its identifier and specification.
type Validated = (Findings, Option<(String, Spec)>);

/// Objects on their way, in order.
type Validating = FuturesOrdered<BoxFuture<'static, (String, Result<Validated>)>>;

struct RootValidation {
    store: Arc<dyn Store>,
    validation: Validation,
    report: RootReport,
    spec: Option<Spec>,
    layout: Option<Layout>,
    /// Digests of the identifiers seen, to find one that is there twice.
    ids: HashSet<u128>,
    /// How many directories there are above objects.
    depths: BTreeSet<usize>,
}

impl RootValidation {
    fn found(&mut self, code: Code, place: &str, message: impl Into<String>) {
        // A root of OCFL 1.0 has the rules and codes of 1.0.
        if let Some(code) = code.in_terms_of(self.spec.unwrap_or_default()) {
            self.report.findings.add(code, place, message);
        }
    }

    /// Records that something could not be checked, unless the whole store does not answer.
    fn unable(&mut self, place: &str, error: Error) -> Result<()> {
        if object::is_outage(&error) {
            return Err(error);
        }
        self.report.findings.add_unchecked(place, &error);
        Ok(())
    }

    /// Declaration, layout and extensions.
    async fn own_files(&mut self) -> Result<()> {
        let mut declarations = Vec::new();
        let mut entries = list_all(self.store.clone(), "", false);
        while let Some(entry) = entries.try_next().await? {
            if entry.kind == Kind::File && entry.key.starts_with("0=ocfl_") {
                declarations.push(entry.key);
            }
        }
        match declarations.as_slice() {
            [] => self.found(Code::E069, "", "there is no declaration such as 0=ocfl_1.1"),
            [_] => {}
            _ => self.found(Code::E076, "", "there is more than one declaration"),
        }
        for name in declarations {
            let spec = Spec::ALL.into_iter().find(|spec| spec.root_declaration() == name);
            if spec.is_none() {
                self.found(Code::E077, &name, "this version of OCFL is not known here");
            }
            self.spec = self.spec.max(spec);
            let value = name.strip_prefix("0=").unwrap_or_default();
            let content = match fetch::small(&self.store, &name, &self.validation.limits).await {
                Ok(content) => content,
                Err(error) => {
                    self.unable(&name, error)?;
                    continue;
                }
            };
            if content != Small::Whole(format!("{value}\n").into()) {
                self.found(
                    Code::E080,
                    &name,
                    format!("the content is not {value:?} and a newline"),
                );
            }
        }
        if let Err(error) = self.layout().await {
            self.unable(LAYOUT, error)?;
        }
        if let Err(error) = self.extensions().await {
            self.unable("extensions", error)?;
        }
        Ok(())
    }

    async fn layout(&mut self) -> Result<()> {
        let content = match fetch::small(&self.store, LAYOUT, &self.validation.limits).await? {
            Small::Missing => return Ok(()),
            Small::TooLarge => {
                self.found(Code::E070, LAYOUT, "it is too large");
                return Ok(());
            }
            Small::Whole(content) => content,
        };
        let value: serde_json::Value = serde_json::from_slice(&content).unwrap_or_default();
        let text = |key: &str| value.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        let (Some(extension), Some(_)) = (text("extension"), text("description")) else {
            self.found(Code::E070, LAYOUT, "it has no extension or no description");
            return Ok(());
        };
        if !REGISTERED.contains(&extension.as_str()) {
            self.found(Code::E071, LAYOUT, format!("{extension:?} is no registered extension"));
        }
        match crate::root::layout(&self.store, &self.validation.limits).await {
            Ok(layout) => self.layout = layout,
            Err(crate::Error::Layout(error)) => {
                let place = format!("extensions/{extension}/config.json");
                // A layout that is not known here may still be a good one.
                if !matches!(error, crate::LayoutError::Unknown(_)) {
                    self.found(Code::E071, &place, error.to_string());
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn extensions(&mut self) -> Result<()> {
        let mut entries = list_all(self.store.clone(), "extensions", false);
        while let Some(entry) = entries.try_next().await? {
            let name = entry.key.rsplit('/').next().unwrap_or_default();
            match entry.kind {
                Kind::Directory if REGISTERED.contains(&name) => {}
                // Unsealed versions are ours, and expected here.
                Kind::Directory if entry.key == UNSEALED => {}
                Kind::Directory => {
                    self.found(Code::W016, &entry.key, "this is no registered extension");
                }
                _ => self.found(Code::E112, &entry.key, "only directories belong in extensions"),
            }
        }
        Ok(())
    }

    /// Goes down from directory to directory until objects are found.
    async fn hierarchy(&mut self) -> Result<()> {
        let mut below = Directories::new(self.store.clone(), "");
        let mut objects = Validating::new();
        while let Some((directory, listed)) = below.next().await {
            let listed = match listed {
                Ok(listed) => listed,
                Err(error) => {
                    self.unable(&directory, error.into())?;
                    continue;
                }
            };
            let (files, directories) = self.names(listed)?;
            let is_root = directory.is_empty();
            if !is_root && files.iter().any(|name| name.starts_with("0=ocfl_object_")) {
                objects.push_back(self.begin(directory));
                if objects.len() >= OBJECTS_AT_ONCE
                    && let Some((path, validated)) = objects.next().await
                {
                    self.object(&path, validated?);
                }
                continue;
            }
            if !is_root && files.is_empty() && directories.is_empty() {
                self.found(Code::E073, &directory, "an empty directory");
            }
            for name in &files {
                let known = is_root && (name == LAYOUT || name.starts_with("0=ocfl_"));
                // At the top, files that are not known are to be ignored.
                if !known && !is_root {
                    let place = join(&directory, name);
                    self.found(Code::E072, &place, "a file that is not part of an object");
                }
            }
            let inner = directories.into_iter().filter(|name| !(is_root && name == "extensions"));
            below.descend(inner.map(|name| join(&directory, &name)).collect());
        }
        while let Some((path, validated)) = objects.next().await {
            self.object(&path, validated?);
        }
        Ok(())
    }

    fn names(&mut self, entries: Vec<Entry>) -> Result<(Vec<String>, Vec<String>)> {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for entry in entries {
            let name = entry.key.rsplit('/').next().unwrap_or_default().to_owned();
            match entry.kind {
                Kind::File => files.push(name),
                Kind::Directory => directories.push(name),
                Kind::Other => self.found(Code::E090, &entry.key, "a link or special file"),
                // There may be objects below it. A path to them would not be one in any report.
                Kind::NotUtf8 => {
                    let detail = "its name is not UTF-8; rename it";
                    let kind = store::ErrorKind::NotPlain;
                    let error = store::Error::new(kind, &entry.key, detail);
                    self.unable(&entry.key, error.in_store(self.store.url()).into())?;
                }
            }
        }
        Ok((files, directories))
    }

    fn begin(&self, path: String) -> BoxFuture<'static, (String, Result<Validated>)> {
        let (store, validation) = (self.store.clone(), self.validation.clone());
        async move {
            let validated = object::validate(store, &path, &validation).await;
            (path, validated)
        }
        .boxed()
    }

    fn object(&mut self, path: &str, (findings, known): Validated) {
        self.report.objects += 1;
        self.depths.insert(path.matches('/').count());
        if findings.has_errors() {
            self.report.objects_invalid += 1;
        } else if !findings.is_valid() {
            self.report.objects_unchecked += 1;
        }
        self.report.findings.merge(findings, path);
        let Some((id, spec)) = known else { return };
        if self.spec.is_some_and(|root| spec > root) {
            self.found(Code::E081, path, format!("OCFL {spec}, which is later than the root's"));
        }
        // The specification wants one place for each identifier (E083), and does not say that it
        // is the one of the layout that the root declares. Another place is another layout.
        match self.layout.as_ref().map(|layout| layout.path(&id)) {
            Some(Ok(expected)) if expected != path => {
                let message = format!("the root's layout puts {id:?} at {expected}");
                self.found(Code::W014, path, message);
            }
            Some(Err(error)) => self.found(Code::W014, path, error.to_string()),
            _ => {}
        }
        if !self.ids.insert(short_digest(&id)) {
            let message = format!("{:?} is the id of another object too", id);
            self.found(Code::E083, path, message);
        }
    }
}

/// Enough of a digest to tell identifiers apart, in sixteen bytes for each.
fn short_digest(id: &str) -> u128 {
    let digest = digest::Algorithm::Sha256.hex(id.as_bytes());
    u128::from_str_radix(&digest[..32], 16).unwrap_or_default()
}
