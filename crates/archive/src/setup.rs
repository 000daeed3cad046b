//! The pipelines of the archive, and the collections that the configuration names: made when a
//! process starts, if they are not there.

use crate::ErrorCode;
use crate::app::{App, Settings};
use crate::config::Config;
use crate::model;
use crate::model::error::{Error, Result};
use crate::pipeline::{self, Pipeline};
use crate::registry::collection;
use crate::registry::placed;
use crate::stores::Stores;
use crate::transfer::fetch::Fetcher;
use crate::transfer::share::Shares;
use db::{Db, Statement, Tx, statement};
use pronom::Identifier;
use queue::Catalog;
use queue::rules::pipelines;
use std::path::Path;
use std::sync::Arc;

/// Who makes things when no person does.
const WHO: &str = "accession";

/// Opens what a process needs. The database is prepared if it was not.
pub fn open(db: Db, config: &Config, data: &Path, identifier: Identifier) -> Result<App> {
    let (prepared, place) = (config.clone(), data.to_path_buf());
    let name = db.write_blocking(move |tx| {
        placed::check_configured(tx, &prepared, &place)?;
        prepare(tx, &prepared)?;
        installation(tx)
    })?;
    Ok(App {
        db,
        installation: name,
        settings: Settings::of(config, data)?,
        stores: Stores::configured(config),
        identifier: Arc::new(identifier.with_further_bytes(config.formats.scan_bytes_max)),
        fetcher: Fetcher::new(&config.fetch)?,
        shares: Shares::default(),
    })
}

/// Makes what is missing. What is there keeps its settings, but for those that the configuration
/// names.
pub fn prepare(tx: &mut Tx<'_>, config: &Config) -> Result<Catalog> {
    let catalog = Catalog::load(tx)?;
    for spec in pipeline::ALL.map(Pipeline::spec) {
        match catalog.named(&spec.name) {
            Err(_) => {
                pipelines::create(tx, tx.now(), WHO, &spec)?;
            }
            Ok(there) if there.plain => return Err(in_the_way(&spec.name)),
            Ok(_) => {}
        }
    }
    let catalog = Catalog::load(tx)?;
    for (name, section) in &config.stages {
        let (pipeline, stage) = (catalog.named(model::pipelines::INGEST)?, name.as_str());
        let before = pipeline.stage_named(stage)?.settings.clone();
        let changes = section.changes();
        let same = changes.iter().all(|(key, value)| {
            serde_json::json!(before).get(key).is_some_and(|v| v.as_i64() == value.parse().ok())
        });
        if !same {
            pipelines::set(tx, &catalog, model::pipelines::INGEST, Some(stage), &changes)?;
        }
    }
    for (name, profile) in &config.collections {
        collection::put(tx, name, profile, WHO)?;
    }
    if collection::find(tx, crate::config::DEFAULT_COLLECTION)?.is_none() {
        collection::put(tx, crate::config::DEFAULT_COLLECTION, &Default::default(), WHO)?;
    }
    Ok(Catalog::load(tx)?)
}

/// True for the names of the archive's own pipelines, which no queue may have.
pub fn is_taken(name: &str) -> bool {
    pipeline::ALL.iter().any(|pipeline| pipeline.name == name)
}

/// A queue that someone made before the archive's own pipelines were.
fn in_the_way(name: &str) -> Error {
    Error::permanent(
        ErrorCode::NameTaken,
        format!(
            "there is a queue called `{name}`, and the archive needs that name for itself; see what is in it with `accession queue list {name}`, and delete it with `accession queue delete {name}`"
        ),
    )
}

/// This installation's name for itself: made once, by chance.
pub fn installation(tx: &mut Tx<'_>) -> Result<String> {
    const FIND: Statement = statement!(setup::find_installation);
    const NAME: Statement = statement!(setup::name_installation);
    if let Some((found,)) = tx.first::<(String,)>(&FIND, &[])? {
        return Ok(found);
    }
    let fresh = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
    // Two processes that start at once agree on the first.
    tx.send(&NAME, &db::params![&fresh])?;
    Ok(tx.one::<(String,)>(&FIND, &[])?.0)
}
