//! The storage root: where objects are, and how they are found.

use crate::Limits;
use crate::error::{Error, Result};
use crate::fetch::{self, Small};
use crate::layout::{Layout, LayoutError};
use crate::version::Spec;
use crate::walk;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Body, ListOptions, PutOptions, SmallFile, StorageClass, Store, join};

/// The file that names a root's layout.
pub(crate) const LAYOUT: &str = "ocfl_layout.json";

/// Where versions wait that are not sealed.
pub(crate) const UNSEALED: &str = "extensions/unsealed-versions";

/// A storage root, opened.
#[derive(Debug, Clone)]
pub struct StorageRoot {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: Limits,
    spec: Spec,
    layout: Option<Layout>,
    pub(crate) classes: Classes,
}

/// How files are kept, in stores that have storage classes; `None` for the store's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes {
    /// The content of versions.
    pub content: Option<StorageClass>,
    /// What is read to find content: inventories, declarations, sidecars, notes and logs. It must
    /// be a class that can be read at once.
    pub own: Option<StorageClass>,
}

impl StorageRoot {
    /// Where a local store that holds a root should keep its temporary files: a place in the root
    /// that other tools do not mind. For [`store::LocalOptions::temporaries`].
    pub const TEMPORARIES: &'static str = "extensions/unsealed-versions/temporaries";

    /// The key at which what an S3 store supports is remembered.
    pub const SUPPORT: &'static str = "extensions/unsealed-versions/store-support.json";

    /// Makes a storage root in an empty store, or finishes one whose making was cut short.
    pub async fn init(store: Arc<dyn Store>, spec: Spec, layout: Layout) -> Result<StorageRoot> {
        StorageRoot::init_with(store, spec, layout, Classes::default()).await
    }

    /// The same for a root whose files are kept in certain storage classes.
    pub async fn init_with(
        store: Arc<dyn Store>,
        spec: Spec,
        layout: Layout,
        classes: Classes,
    ) -> Result<StorageRoot> {
        let options = ListOptions { recursive: false, limit: 20, ..ListOptions::default() };
        let page = store.list("", &options).await?;
        if page.next.is_some() || !page.entries.iter().all(|entry| is_begun(&entry.key)) {
            return Err(Error::NotEmpty(store.url().to_owned()));
        }
        let config = format!("extensions/{}/config.json", layout.name());
        let named = json!({"extension": layout.name(), "description": layout.description()});
        let declaration = spec.root_declaration();
        let value = declaration.strip_prefix("0=").unwrap_or_default();
        // The declaration comes last: without it, this is no root.
        let files = [
            (config, pretty(&layout.config())),
            (LAYOUT.to_owned(), pretty(&named)),
            (declaration.clone(), format!("{value}\n")),
        ];
        for (key, content) in files {
            let options =
                PutOptions { storage_class: classes.own.clone(), ..PutOptions::default() };
            store.put(&key, Body::from_bytes(content), &options).await?;
        }
        let limits = Limits::default();
        Ok(StorageRoot { store, limits, spec, layout: Some(layout), classes })
    }

    /// How what is written is kept.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Keeps what is written from now on in these storage classes.
    pub fn with_classes(self, classes: Classes) -> StorageRoot {
        StorageRoot { classes, ..self }
    }

    /// How a file is put that is read to find content.
    pub(crate) fn own(&self) -> PutOptions {
        PutOptions { storage_class: self.classes.own.clone(), ..PutOptions::default() }
    }

    /// A small file of that kind.
    pub(crate) fn own_file(&self, key: String, content: impl Into<Bytes>) -> SmallFile {
        let storage_class = self.classes.own.clone();
        SmallFile { key, content: content.into(), storage_class }
    }

    /// Opens the storage root that a store holds.
    pub async fn open(store: Arc<dyn Store>) -> Result<StorageRoot> {
        StorageRoot::open_with(store, Limits::default()).await
    }

    /// Opens the storage root that a store holds, with other bounds on what is read.
    pub async fn open_with(store: Arc<dyn Store>, limits: Limits) -> Result<StorageRoot> {
        for spec in Spec::ALL.into_iter().rev() {
            if fetch::found(store.head(&spec.root_declaration()).await)?.is_some() {
                let layout = match layout(&store, &limits).await {
                    // Objects can still be found by their paths.
                    Err(Error::Layout(LayoutError::Unknown(_))) => None,
                    layout => layout?,
                };
                let classes = Classes::default();
                return Ok(StorageRoot { store, limits, spec, layout, classes });
            }
        }
        let options = ListOptions { recursive: false, limit: 100, ..ListOptions::default() };
        let page = store.list("", &options).await?;
        let declared = page.entries.iter().find_map(|entry| entry.key.strip_prefix("0=ocfl_"));
        let root = store.url().to_owned();
        Err(match declared {
            Some(version) => Error::UnknownSpec { root, version: version.to_owned() },
            None => Error::NotARoot(root),
        })
    }

    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// The layout, if the root says which it has and it is known here.
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Where the object of this identifier is or would be.
    pub fn object_path(&self, id: &str) -> Result<String> {
        const LONGEST: usize = 4096;
        if id.is_empty() || id.len() > LONGEST {
            return Err(Error::BadId(id.chars().take(100).collect()));
        }
        match &self.layout {
            Some(layout) => Ok(layout.path(id)?),
            None => Err(Error::NoLayout { root: self.store.url().to_owned() }),
        }
    }

    /// The paths of all objects, found by walking through the hierarchy. A directory that cannot be
    /// listed is an error; the walk goes on with the others.
    pub fn object_paths(&self) -> BoxStream<'static, Result<String>> {
        walk::object_paths(self.store.clone(), self.layout.as_ref())
    }
}

/// Whether this may be of a root that is being made, here or by another process just now: all but
/// the declaration, and what a store tries itself out with.
fn is_begun(key: &str) -> bool {
    key == LAYOUT || key == "extensions" || key.starts_with(".store-probe-")
}

/// The layout that a root names; `None` if it names none.
pub(crate) async fn layout(store: &Arc<dyn Store>, limits: &Limits) -> Result<Option<Layout>> {
    let Some(named) = small_json(store, LAYOUT, limits).await? else { return Ok(None) };
    let Some(name) = named.get("extension").and_then(Value::as_str) else {
        return Err(LayoutError::Config(format!("{LAYOUT} names no extension")).into());
    };
    // The name is part of a key: one that is unknown stays away from the store.
    if !Layout::NAMES.contains(&name) {
        return Err(LayoutError::Unknown(name.to_owned()).into());
    }
    let key = join("extensions", &format!("{name}/config.json"));
    let config = small_json(store, &key, limits).await?.unwrap_or_else(|| json!({}));
    Ok(Some(Layout::from_config(name, &config)?))
}

async fn small_json(store: &Arc<dyn Store>, key: &str, limits: &Limits) -> Result<Option<Value>> {
    match fetch::small(store, key, limits).await? {
        Small::Missing => Ok(None),
        Small::TooLarge => Err(LayoutError::Config(format!("{key} is too large")).into()),
        Small::Whole(content) => match serde_json::from_slice(&content) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(LayoutError::Config(format!("{key} is not JSON: {error}")).into()),
        },
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
