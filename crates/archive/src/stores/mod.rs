//! The stores of a deployment: opened when first needed, each an OCFL storage root.

pub mod content;
pub mod copies;
pub mod reading;

use crate::ErrorCode;
use crate::config::{Config, StoreSection, ThawTier};
use crate::model::error::{Error, Result};
use futures_util::StreamExt;
use ocfl::{Classes, Layout, Spec, StorageRoot};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{LocalOptions, LocalStore, S3Config, S3Store, StorageClass, Store, Thaw, ThawSpeed};
use tokio::sync::Mutex;

/// Where a store is, and how it keeps things.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreSettings {
    /// A directory, or `s3://…`.
    pub url: String,
    /// How content is kept.
    pub storage_class: Option<String>,
    /// How inventories and records are kept, which have to be readable at once.
    pub inventory_storage_class: Option<String>,
    /// Requests to the store at once.
    pub concurrency: Option<usize>,
    /// How the server encrypts what it keeps, and with which key.
    pub sse: Option<String>,
    pub sse_kms_key_id: Option<String>,
    /// Restores read from the store with the lowest number that can serve.
    pub restore_priority: Option<u8>,
    pub thaw: ThawSettings,
}

/// How content in cold storage is asked for, and how often is looked whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThawSettings {
    pub thaw: Thaw,
    pub look_seconds: u32,
    /// It is in a class that takes longest.
    pub is_deep: bool,
}

impl Default for ThawSettings {
    fn default() -> ThawSettings {
        ThawSettings { thaw: Thaw::default(), look_seconds: 900, is_deep: false }
    }
}

impl ThawSettings {
    fn of(section: &StoreSection) -> ThawSettings {
        let speed = match section.thaw_tier.unwrap_or_default() {
            ThawTier::Expedited => ThawSpeed::Expedited,
            ThawTier::Standard => ThawSpeed::Standard,
            ThawTier::Bulk => ThawSpeed::Bulk,
        };
        let usual = ThawSettings::default();
        ThawSettings {
            thaw: Thaw { days: section.thaw_days.unwrap_or(usual.thaw.days), speed },
            look_seconds: section.thaw_look_seconds.unwrap_or(usual.look_seconds),
            is_deep: section.storage_class.as_deref() == Some("DEEP_ARCHIVE"),
        }
    }

    /// How long the store says it takes at most.
    pub fn hours(self) -> i64 {
        match (self.thaw.speed, self.is_deep) {
            (ThawSpeed::Expedited, false) => 1,
            (ThawSpeed::Expedited | ThawSpeed::Standard, true) => 12,
            (ThawSpeed::Standard, false) => 5,
            (ThawSpeed::Bulk, false) => 12,
            (ThawSpeed::Bulk, true) => 48,
        }
    }

    pub fn look_micros(self) -> db::Micros {
        db::Micros::from(self.look_seconds) * 1_000_000
    }
}

/// The `restore_priority` of a store that is given none.
const RESTORE_PRIORITY: u8 = 50;

impl StoreSettings {
    pub fn is_cold(&self) -> bool {
        self.storage_class.as_deref().is_some_and(|name| StorageClass::new(name).is_cold())
    }

    /// Content in the class that is configured; what is read to find it in a class that can be read.
    fn classes(&self) -> Classes {
        let content = self.storage_class.clone().map(StorageClass::new);
        let own = self.inventory_storage_class.clone().map(StorageClass::new);
        let own = own.or_else(|| match self.is_cold() {
            true => Some(StorageClass::new("STANDARD")),
            false => content.clone(),
        });
        Classes { content, own }
    }

    fn s3(&self) -> store::Result<S3Config> {
        let mut config = S3Config::from_url(&self.url)?;
        config.requests_max = self.concurrency.unwrap_or(config.requests_max);
        config.sse = self.sse.clone().or(config.sse);
        config.sse_kms_key_id = self.sse_kms_key_id.clone().or(config.sse_kms_key_id);
        Ok(config)
    }
}

/// An opened store.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: String,
    pub root: StorageRoot,
    pub class: Option<StorageClass>,
    /// Why content in a cold class cannot be verified here, if it cannot.
    pub unverifiable: Option<String>,
}

impl Place {
    /// Refuses a store in which a version that counts could not be verified.
    pub fn check_verifiable(&self) -> Result<()> {
        match &self.unverifiable {
            None => Ok(()),
            Some(why) => Err(Error::permanent(ErrorCode::ColdStoreUnverifiable, why.clone())),
        }
    }

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
    /// Whether stores may be tried out, which writes to them.
    may_write: AtomicBool,
}

impl Stores {
    pub fn new(settings: BTreeMap<String, StoreSettings>) -> Stores {
        Stores { settings, open: Mutex::default(), may_write: AtomicBool::new(false) }
    }

    /// The stores that a configuration names.
    pub fn configured(config: &Config) -> Stores {
        let settings = config.stores.iter().map(|(name, section)| {
            let section = section.clone();
            let thaw = ThawSettings::of(&section);
            let settings = StoreSettings {
                url: section.url,
                storage_class: section.storage_class,
                inventory_storage_class: section.inventory_storage_class,
                concurrency: section.concurrency,
                sse: section.sse,
                sse_kms_key_id: section.sse_kms_key_id,
                restore_priority: section.restore_priority,
                thaw,
            };
            (name.clone(), settings)
        });
        Stores::new(settings.collect())
    }

    /// Lets stores be tried out when they are opened, as a process that works needs it.
    pub fn allow_writing(&self) {
        self.may_write.store(true, Ordering::Relaxed);
    }

    /// Whether a store keeps content in a class that cannot be read at once.
    pub fn is_cold(&self, name: &str) -> bool {
        self.settings.get(name).is_some_and(StoreSettings::is_cold)
    }

    /// How content of a store is thawed.
    pub fn thaw_settings(&self, name: &str) -> ThawSettings {
        self.settings.get(name).map(|settings| settings.thaw).unwrap_or_default()
    }

    /// The names and addresses of all stores.
    pub fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(name, settings)| (name.as_str(), settings.url.as_str()))
    }

    /// Where a store stands among those that a restore can read from; the lowest goes first.
    pub fn restore_priority(&self, name: &str) -> u8 {
        let said = self.settings.get(name).and_then(|settings| settings.restore_priority);
        said.unwrap_or(RESTORE_PRIORITY)
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
                ErrorCode::UnknownStore,
                format!(
                    "no store `{name}` is configured; there are: {}. Add it to the configuration, or change the collection's stores",
                    there.join(", ")
                ),
            )
        })?;
        let may_write = self.may_write.load(Ordering::Relaxed);
        let opened = open_root(settings, may_write).await.map_err(|e| store_error(name, e))?;
        let class = settings.storage_class.clone().map(StorageClass::new);
        let unverifiable = settings.is_cold().then(|| unverifiable(name, settings, &opened));
        let unverifiable = unverifiable.flatten();
        let place = Place { name: name.to_string(), root: opened, class, unverifiable };
        open.insert(name.to_string(), place.clone());
        Ok(place)
    }

    /// The first store that has an object. No store is made for it, and nothing is written.
    pub async fn first_with_objects(&self) -> Result<Option<String>> {
        for (name, settings) in &self.settings {
            let wrong = |error| store_error(name, error);
            let store = match open_store(settings, false, false).await {
                Ok(store) => store,
                Err(error) if error.kind() == store::ErrorKind::NotFound => continue,
                Err(error) => return Err(wrong(error.into())),
            };
            let root = match StorageRoot::open(store).await {
                Ok(root) => root,
                Err(ocfl::Error::NotARoot(_)) => continue,
                Err(error) => return Err(wrong(error)),
            };
            if let Some(first) = root.object_paths().next().await {
                first.map_err(wrong)?;
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }
}

/// Why content in a cold class of this store cannot be verified, if it cannot.
fn unverifiable(name: &str, settings: &StoreSettings, root: &StorageRoot) -> Option<String> {
    let can = root.store().capabilities();
    let what = match (can.digests, can.digests_of_large) {
        (true, true) => return None,
        (false, _) => "objects",
        (true, false) => "objects that are sent in parts",
    };
    let class = settings.storage_class.as_deref().unwrap_or_default();
    Some(format!(
        "store {name} keeps content in the class {class}, which cannot be read back at once, and \
         does not compare and keep the SHA-256 of {what}, so that nothing vouches for the bytes; \
         make it a later store of the collection, or choose a class that can be read"
    ))
}

async fn open_store(
    settings: &StoreSettings,
    may_write: bool,
    create: bool,
) -> store::Result<Arc<dyn Store>> {
    let url = settings.url.as_str();
    Ok(if url.starts_with("s3://") {
        let config = settings.s3()?;
        Arc::new(match may_write {
            true => S3Store::open_remembering(config, StorageRoot::SUPPORT).await?,
            false => S3Store::connect(config, Some(StorageRoot::SUPPORT)).await?,
        })
    } else {
        let path = url.strip_prefix("file://").unwrap_or(url);
        let temporaries = StorageRoot::TEMPORARIES.to_owned();
        Arc::new(LocalStore::open_with(
            Path::new(path),
            &LocalOptions { temporaries, create, ..LocalOptions::default() },
        )?)
    })
}

async fn open_root(settings: &StoreSettings, may_write: bool) -> ocfl::Result<StorageRoot> {
    let store = open_store(settings, may_write, true).await?;
    let classes = settings.classes();
    let made = match StorageRoot::open(store.clone()).await {
        Err(ocfl::Error::NotARoot(_)) => {
            let (spec, layout) = (Spec::V1_1, Layout::default());
            StorageRoot::init_with(store.clone(), spec, layout, classes.clone()).await
        }
        other => other,
    };
    let root = match made {
        // Another process was quicker.
        Err(ocfl::Error::NotEmpty(_)) => StorageRoot::open(store).await,
        other => other,
    };
    root.map(|root| root.with_classes(classes))
}

/// An error of a store, with the store's name as what is to blame, so that its breaker trips and
/// the package is not blamed.
pub fn store_error(name: &str, error: ocfl::Error) -> Error {
    use store::ErrorKind as K;
    let message = format!("store {name}: {error}");
    let kind = match &error {
        ocfl::Error::Store(error) => error.kind(),
        ocfl::Error::Io { .. } => K::Transient,
        ocfl::Error::Conflict { .. } => return Error::transient(ErrorCode::StoreConflict, message),
        _ => K::Permanent,
    };
    let code = match kind {
        K::NoSpace => ErrorCode::StoreFull,
        K::Denied => ErrorCode::StoreDenied,
        // The client has waited and tried again by then: the store has too much to do.
        K::Throttled => return Error::down(ErrorCode::StoreThrottled, message, target(name)),
        K::Corrupt => ErrorCode::StoreCorrupt,
        // The body is ours: what failed is the reading of the package.
        K::Body => return Error::transient(ErrorCode::PackageUnreadable, message),
        // It waits to be asked again, as one that is down does.
        K::Unavailable => return Error::down(ErrorCode::StoreDown, message, target(name)),
        K::Transient | K::NotFound => ErrorCode::StoreUnavailable,
        _ => return Error::permanent(ErrorCode::StoreRefused, message),
    };
    Error::transient(code, message).at(target(name))
}

/// An error in reading one object. It is permanent where it is about a file of the object and not
/// about the store as a whole.
pub fn object_error(name: &str, error: ocfl::Error) -> Error {
    use store::ErrorKind as K;
    match &error {
        ocfl::Error::Store(e) if matches!(e.kind(), K::Corrupt | K::NotFound | K::Denied) => {
            Error::permanent(ErrorCode::ObjectUnreadable, format!("store {name}: {error}"))
        }
        _ => store_error(name, error),
    }
}
