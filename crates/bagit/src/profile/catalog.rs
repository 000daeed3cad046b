//! Copies of profiles at hand, so that a bag's `BagIt-Profile-Identifier` finds its profile
//! without asking the network.

use super::Profile;
use crate::error::Error;
use std::collections::BTreeMap;
use std::path::Path;

/// Profiles by their identifiers.
#[derive(Debug, Clone, Default)]
pub struct Catalog(BTreeMap<String, Profile>);

impl Catalog {
    /// Reads every `.json` file of a directory.
    pub fn open(directory: impl AsRef<Path>) -> Result<Catalog, Error> {
        let directory = directory.as_ref();
        let failed = |e| Error::io(directory.display().to_string(), e);
        let mut catalog = Catalog::default();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|e| e == "json") {
                catalog.add(Profile::open(&path)?);
            }
        }
        Ok(catalog)
    }

    pub fn add(&mut self, profile: Profile) {
        self.0.insert(profile.identifier().to_owned(), profile);
    }

    /// Finds a profile by the URL that names it.
    pub fn get(&self, identifier: &str) -> Option<&Profile> {
        self.0.get(identifier.trim())
    }

    pub fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
