//! The stores of a deployment: opened when first needed, each an OCFL storage root.

use crate::error::{Error, Result};
use ocfl::{Layout, Spec, StorageRoot};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use store::{LocalOptions, LocalStore, StorageClass, Store};
use tokio::sync::Mutex;

/// Where a store is, and how it keeps things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// A directory, or `s3://…`.
    pub url: String,
    pub storage_class: Option<String>,
}

/// An opened store.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: String,
    pub root: StorageRoot,
    pub class: Option<StorageClass>,
}

impl Place {
    /// What breakers know the store by.
    pub fn target(&self) -> String {
        target(&self.name)
    }
}

pub fn target(name: &str) -> String {
    format!("store {name}")
}

#[derive(Debug)]
pub struct Stores {
    settings: BTreeMap<String, StoreSettings>,
    open: Mutex<BTreeMap<String, Place>>,
}

impl Stores {
    pub fn new(settings: BTreeMap<String, StoreSettings>) -> Stores {
        Stores { settings, open: Mutex::default() }
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.settings.keys()
    }

    /// Opens a store; one that is empty becomes a storage root.
    pub async fn get(&self, name: &str) -> Result<Place> {
        let mut open = self.open.lock().await;
        if let Some(place) = open.get(name) {
            return Ok(place.clone());
        }
        let settings = self.settings.get(name).ok_or_else(|| {
            let there: Vec<&str> = self.names().map(String::as_str).collect();
            Error::permanent(
                "unknown_store",
                format!(
                    "no store `{name}` is configured; there are: {}. Add it to the configuration, or change the collection's stores",
                    there.join(", ")
                ),
            )
        })?;
        let root = open_root(&settings.url).await.map_err(|e| store_error(name, e))?;
        let class = settings.storage_class.clone().map(StorageClass::new);
        let place = Place { name: name.to_string(), root, class };
        open.insert(name.to_string(), place.clone());
        Ok(place)
    }
}

async fn open_root(url: &str) -> ocfl::Result<StorageRoot> {
    let store: Arc<dyn Store> = if url.starts_with("s3://") {
        store::open(url).await?
    } else {
        let path = url.strip_prefix("file://").unwrap_or(url);
        let temporaries = StorageRoot::TEMPORARIES.to_owned();
        Arc::new(LocalStore::open_with(
            Path::new(path),
            &LocalOptions { temporaries, create: true },
        )?)
    };
    let made = match StorageRoot::open(store.clone()).await {
        Err(ocfl::Error::NotARoot(_)) => {
            StorageRoot::init(store.clone(), Spec::V1_1, Layout::default()).await
        }
        other => return other,
    };
    match made {
        // Another process was quicker.
        Err(ocfl::Error::NotEmpty(_)) => StorageRoot::open(store).await,
        other => other,
    }
}

/// An error of a store, with the store's name as what is to blame, so that its breaker trips and
/// the package is not blamed.
pub fn store_error(name: &str, error: ocfl::Error) -> Error {
    use store::ErrorKind as K;
    let message = format!("store {name}: {error}");
    let kind = match &error {
        ocfl::Error::Store(error) => error.kind(),
        ocfl::Error::Io { .. } => K::Transient,
        ocfl::Error::Conflict { .. } => return Error::transient("store_conflict", message),
        _ => K::Permanent,
    };
    let code = match kind {
        K::NoSpace => "store_full",
        K::Denied => "store_denied",
        K::Throttled => "store_throttled",
        K::Corrupt => "store_corrupt",
        // The body is ours: what failed is the reading of the package.
        K::Body => return Error::transient("package_unreadable", message),
        K::Transient | K::NotFound => "store_unavailable",
        _ => return Error::permanent("store_refused", message),
    };
    Error::transient(code, message).at(target(name))
}

/// An error in reading one object. It is permanent where it is about a file of the object and not
/// about the store as a whole.
pub fn object_error(name: &str, error: ocfl::Error) -> Error {
    use store::ErrorKind as K;
    match &error {
        ocfl::Error::Store(e) if matches!(e.kind(), K::Corrupt | K::NotFound | K::Denied) => {
            Error::permanent("object_unreadable", format!("store {name}: {error}"))
        }
        _ => store_error(name, error),
    }
}
