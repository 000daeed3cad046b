//! Which root and which object a person means: a root by its address or by the name of a store, an
//! object by its identifier, by a local identifier that the registry knows, or by its place.

use super::failure;
use crate::cli::Global;
use crate::cmd::app;
use crate::error_code::ErrorCode;
use crate::exit::Failure;
use crate::session::existing;
use archive::config::StoreSection;
use archive::registry::view;
use ocfl::{Object, StorageRoot};
use std::collections::BTreeMap;
use std::path::Path;

/// How roots and objects are named: options of all commands that look at objects.
#[derive(clap::Args)]
pub struct Naming {
    /// A store of the configuration, instead of ROOT
    #[arg(long, value_name = "NAME")]
    pub store: Option<String>,
    /// OBJECT is where the object is in the root
    #[arg(long)]
    pub path: bool,
}

impl Naming {
    /// Divides what was given into the root's address and the rest, which `wanted` names.
    pub fn divide(
        &self,
        names: &[String],
        wanted: &[&str],
        global: &Global,
    ) -> Result<(String, Vec<String>), Failure> {
        let (root, rest) = match (&self.store, names) {
            (Some(store), rest) => (store_address(store, global)?, rest),
            (None, [root, rest @ ..]) => (address(root, global), rest),
            (None, []) => return Err(usage(wanted)),
        };
        match rest.len() == wanted.len() {
            true => Ok((root, rest.to_vec())),
            false => Err(usage(wanted)),
        }
    }

    /// Opens the object that is named.
    pub async fn open(
        &self,
        root: &StorageRoot,
        name: &str,
        global: &Global,
    ) -> Result<Object, Failure> {
        if self.path {
            return root.object_at(name.trim_matches('/')).await.map_err(failure);
        }
        match root.object(name).await {
            Err(error @ ocfl::Error::NoSuchObject(_)) => match identifier(name, global).await? {
                Some(identifier) => root.object(&identifier).await.map_err(failure),
                None => Err(failure(error)),
            },
            found => found.map_err(failure),
        }
    }

    /// Where an object is in its root, whether it is there or not.
    pub async fn place_of(
        &self,
        root: &StorageRoot,
        name: &str,
        global: &Global,
    ) -> Result<String, Failure> {
        if let Err(ocfl::Error::NoSuchObject(_)) = root.object(name).await
            && let Some(identifier) = identifier(name, global).await?
        {
            return root.object_path(&identifier).map_err(failure);
        }
        root.object_path(name).map_err(failure)
    }
}

fn usage(wanted: &[&str]) -> Failure {
    let wanted = wanted.join(" ");
    Failure::refused(
        ErrorCode::Usage,
        format!("write ROOT {wanted}, or --store NAME {wanted}; --help has examples"),
    )
}

/// The address of a root: what looks like one, or is there, is taken as it is; else it may be the
/// name of a store.
pub fn address(text: &str, global: &Global) -> String {
    section(text, global).map_or_else(|| text.to_string(), |section| section.address())
}

/// The store of the configuration that a text names, unless it is an address.
pub fn section(text: &str, global: &Global) -> Option<StoreSection> {
    let is_address = text.contains('/') || text.starts_with('.') || Path::new(text).exists();
    // Without a configuration that can be read there are no names, and addresses work all the same.
    let stores = if is_address { None } else { stores(global).ok() };
    stores.and_then(|mut stores| stores.remove(text))
}

/// The address of the root that a command of roots is given, one way or the other.
pub fn root_address(
    root: Option<String>,
    store: Option<String>,
    global: &Global,
) -> Result<String, Failure> {
    match (root, store) {
        (_, Some(store)) => store_address(&store, global),
        (Some(root), None) => Ok(address(&root, global)),
        (None, None) => {
            Err(Failure::refused(ErrorCode::Usage, "name a storage root, or --store NAME"))
        }
    }
}

/// The address of a store of the configuration.
pub fn store_address(name: &str, global: &Global) -> Result<String, Failure> {
    let stores = stores(global)?;
    stores.get(name).map(StoreSection::address).ok_or_else(|| {
        let names: Vec<&str> = stores.keys().map(String::as_str).collect();
        Failure::refused(
            archive::ErrorCode::UnknownStore,
            format!("no store `{name}` is configured; there are: {}", names.join(", ")),
        )
    })
}

fn stores(global: &Global) -> Result<BTreeMap<String, StoreSection>, Failure> {
    Ok(app::configuration(global)?.config.stores)
}

/// The identifier of an object that the registry knows by this name; `None` if it does not, or if
/// no database is at hand.
pub async fn identifier(name: &str, global: &Global) -> Result<Option<String>, Failure> {
    let Some(session) = existing(global) else { return Ok(None) };
    let wanted = name.to_string();
    match session.db.read(move |tx| view::find(tx, &wanted)).await {
        Ok(object) if object.identifier != name => Ok(Some(object.identifier)),
        Err(error) if error.is(archive::ErrorCode::Ambiguous) => Err(error.into()),
        // The root has been asked already, and its answer stands.
        _ => Ok(None),
    }
}
