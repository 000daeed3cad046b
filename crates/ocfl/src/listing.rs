//! Everything that lies in an object, as its store lists it, compared with its inventory.

use crate::error::Result;
use crate::inventory::INVENTORY;
use crate::object::Object;
use crate::sealed::{ContentSizes, SealedContent};
use crate::sidecar;
use crate::unsealed::Work;
use crate::version::VersionName;
use futures_util::TryStreamExt;
use std::collections::BTreeSet;
use store::{Kind, join, list_all};

/// What a store lists of an object.
#[derive(Debug, Default)]
pub struct Listing {
    /// The sizes of content files.
    pub sizes: ContentSizes,
    /// What is to be there beside the content, and is not: inventories, their sidecars, and the
    /// declaration. Relative to the object.
    pub missing: Vec<String>,
    /// What no inventory names and what has no place in an object; the first
    /// [`Listing::UNEXPECTED_MAX`]. Relative to the object.
    pub unexpected: Vec<String>,
    /// How many those are.
    pub unexpected_count: u64,
    /// Versions that are being written and lie in their place already. They are not part of the
    /// object.
    pub unsealed: Option<VersionName>,
}

impl Listing {
    pub const UNEXPECTED_MAX: usize = 1000;
}

/// Content files of an object, by what the inventory numbers them with.
#[derive(Debug, Default)]
pub struct ContentSet {
    has: Vec<bool>,
}

impl ContentSet {
    /// Adds a content file; false if it was there.
    pub fn insert(&mut self, content: &SealedContent) -> bool {
        let at = content.path as usize;
        if at >= self.has.len() {
            self.has.resize(at + 1, false);
        }
        !std::mem::replace(&mut self.has[at], true)
    }

    fn has(&self, path: u32) -> bool {
        self.has.get(path as usize).copied().unwrap_or(false)
    }
}

impl Object {
    /// The content files that a set does not have, with their digests.
    pub fn contents_beside<'a>(
        &'a self,
        set: &'a ContentSet,
    ) -> impl Iterator<Item = (SealedContent, String)> + 'a {
        let inventory = &self.inventory;
        inventory.manifest.iter().filter(|entry| !set.has(entry.path)).map(|entry| {
            let key = join(&self.path, inventory.paths.get(entry.path));
            (SealedContent { key, path: entry.path }, inventory.digests.get(entry.digest))
        })
    }

    /// Lists the whole object in one go.
    pub async fn list(&self) -> Result<Listing> {
        let inventory = &self.inventory;
        let mut content = vec![false; inventory.paths.len()];
        for entry in &inventory.manifest {
            content[entry.path as usize] = true;
        }
        let unsealed = self.unsealed().await?;
        let mut wanted = self.structure();
        let mut listing = Listing { unsealed, ..Listing::default() };
        let cut = if self.path.is_empty() { 0 } else { self.path.len() + 1 };
        let mut entries = list_all(self.root.store.clone(), &self.path, true);
        while let Some(entry) = entries.try_next().await? {
            let path = entry.key.get(cut..).unwrap_or_default();
            if entry.kind == Kind::Directory || is_unsealed(path, unsealed) {
                continue;
            }
            let number = inventory.paths.find(path).filter(|number| content[*number as usize]);
            match number {
                Some(number) if entry.kind == Kind::File => listing.sizes.set(number, entry.size),
                None if entry.kind == Kind::File
                    && (wanted.remove(path) || has_a_place(path, inventory.versions.len())) => {}
                _ => {
                    listing.unexpected_count += 1;
                    if listing.unexpected.len() < Listing::UNEXPECTED_MAX {
                        listing.unexpected.push(path.to_owned());
                    }
                }
            }
        }
        listing.missing = wanted.into_iter().collect();
        Ok(listing)
    }

    /// The version that a note says is being written. It lies in the object where the store cannot
    /// rename.
    async fn unsealed(&self) -> Result<Option<VersionName>> {
        let note = self.root.note(&self.path).await?;
        Ok(note.and_then(|note| match note.work {
            Work::Version { name, .. } if name > self.inventory.head => Some(name),
            _ => None,
        }))
    }

    /// The files that every object of this inventory has beside its content.
    fn structure(&self) -> BTreeSet<String> {
        let inventory = &self.inventory;
        let sidecar = sidecar::name(inventory.algorithm);
        let mut wanted = BTreeSet::from([
            inventory.spec.object_declaration(),
            INVENTORY.to_owned(),
            sidecar.clone(),
        ]);
        for version in &inventory.versions {
            let name = version.name.to_string();
            wanted.insert(join(&name, INVENTORY));
            wanted.insert(join(&name, &sidecar));
        }
        wanted
    }
}

fn is_unsealed(path: &str, unsealed: Option<VersionName>) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    unsealed.is_some_and(|name| first.parse() == Ok(name))
}

/// Logs and extensions, and sidecars of other algorithms beside the inventories of earlier versions.
fn has_a_place(path: &str, versions: usize) -> bool {
    match path.split_once('/') {
        Some(("logs" | "extensions", _)) => true,
        Some((first, rest)) => {
            let number = first.parse::<VersionName>().map(|name| name.number() as usize);
            number.is_ok_and(|number| number <= versions) && rest.starts_with("inventory.json.")
        }
        None => false,
    }
}
