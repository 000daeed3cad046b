//! Which stores have copies, beside which stores are configured.

use crate::ErrorCode;
use crate::config::{Config, DEFAULT_STORE};
use crate::model::error::{Error, Result};
use crate::stores::Stores;
use db::{Db, Statement, Tx, statement};
use std::path::Path;

/// The stores that have a copy of anything.
pub fn stores_with_copies(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    const STORES: Statement = statement!(copies::stores_with_copies);
    Ok(tx.query::<(String,)>(&STORES, &[])?.into_iter().map(|row| row.0).collect())
}

/// Stores with copies that the configuration does not have.
pub fn stores_not_configured(tx: &mut Tx<'_>, config: &Config) -> Result<Vec<String>> {
    let mut stores = stores_with_copies(tx)?;
    stores.retain(|name| !config.stores.contains_key(name));
    Ok(stores)
}

/// Refuses a configuration by which objects could not be read: those that have copies only in stores
/// that it does not name.
pub fn check_configured(tx: &mut Tx<'_>, config: &Config, data: &Path) -> Result<()> {
    const ONLY_IN: Statement = statement!(copies::objects_only_in);
    let missing = stores_not_configured(tx, config)?;
    if missing.is_empty() {
        return Ok(());
    }
    let list = serde_json::json!(missing).to_string();
    let (objects, example, store): (i64, Option<String>, Option<String>) =
        tx.one(&ONLY_IN, &db::params![&list])?;
    let (Some(example), Some(store)) = (example, store) else {
        tracing::warn!(
            stores = missing.join(", "),
            "the registry has copies in stores that are not configured; every object has another copy, and these are neither read nor checked"
        );
        return Ok(());
    };
    let others = if objects == 1 { String::new() } else { format!(" and {} more", objects - 1) };
    Err(Error::permanent(
        ErrorCode::StoreNotConfigured,
        format!(
            "the only copies of {example}{others} are in {}, which the configuration does not name; add `{}` to it",
            match &missing[..] {
                [one] => format!("the store `{one}`"),
                several => format!("the stores {}", several.join(", ")),
            },
            lines_for(&store, data),
        ),
    ))
}

/// The store that has objects while the registry has none: the database is new, and the stores are not.
pub async fn older_store(db: &Db, stores: &Stores) -> Result<Option<String>> {
    const VERSION: Statement = statement!(setup::any_version);
    let is_new = |tx: &mut Tx<'_>| Ok::<_, Error>(tx.first::<(i64,)>(&VERSION, &[])?.is_none());
    match db.read(is_new).await? {
        true => stores.first_with_objects().await,
        false => Ok(None),
    }
}

/// Refuses to take packages into a new database beside older stores: it would give them identifiers that
/// objects of the stores have.
pub async fn check_older_stores(db: &Db, stores: &Stores) -> Result<()> {
    match older_store(db, stores).await? {
        None => Ok(()),
        Some(store) => Err(Error::permanent(ErrorCode::RegistryEmpty, advice(&store))),
    }
}

/// What to do about a store that is older than the database.
pub fn advice(store: &str) -> String {
    format!(
        "store {store} has objects and the registry has none; run `accession registry rebuild --from {store}`, so that what the stores hold is known"
    )
}

/// What brings a store back: `[stores.main] url = "stores/main"`.
pub fn lines_for(store: &str, data: &Path) -> String {
    let usual = format!("stores/{store}");
    let url = match store == DEFAULT_STORE || data.join(&usual).is_dir() {
        true => usual.as_str(),
        false => "where it is",
    };
    format!("[stores.{store}] url = \"{url}\"")
}
