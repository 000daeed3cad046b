//! Restore drills: now and then one object of a collection is restored to nowhere, so that what cannot be
//! restored is found before it is needed.

use crate::app::App;
use crate::model::error::Result;
use crate::model::pipelines::RESTORE_OBJECT;
use crate::model::restore::{Arrangement, Container, Destination, Order};
use crate::registry::collection;
use db::{Micros, Statement, Tx, statement};
use queue::rules::add;
use queue::{Catalog, NewJob};
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(600);
const DAY_MICROS: Micros = 86_400 * 1_000_000;
/// Drills yield to everything that a person waits for.
const PRIORITY: i64 = 90;

/// Looks again and again whether a drill is due.
pub async fn run(app: Arc<App>) {
    loop {
        // A number by chance chooses the object; what decides has no chance of its own.
        let chance = fastrand::u64(..);
        if let Err(error) = app.db.write(move |tx| once(tx, chance)).await {
            tracing::debug!(%error, "restore drills could not be added; it is tried again");
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Adds the drills that are due.
fn once(tx: &mut Tx<'_>, chance: u64) -> Result<()> {
    const BEGIN: Statement = statement!(restores::begin_drill);
    let now = tx.now();
    for collection in collection::list(tx)? {
        let Some(days) = collection.profile.restore_drill_days else { continue };
        let before = now.saturating_sub(Micros::from(days) * DAY_MICROS);
        let name = &collection.name;
        if tx.execute(&BEGIN, &db::params![name, now, before])? > 0 {
            drill(tx, name, chance)?;
        }
    }
    Ok(())
}

/// Adds a drill of one object.
fn drill(tx: &mut Tx<'_>, collection: &str, chance: u64) -> Result<()> {
    const LARGEST: Statement = statement!(restores::largest_object);
    const OBJECT: Statement = statement!(restores::object_for_drill);
    let (largest,): (i64,) = tx.one(&LARGEST, &[])?;
    let from = chance % (largest.unsigned_abs() + 1);
    let mut found: Option<(String, String, i64)> = None;
    for from in [i64::try_from(from).unwrap_or(0), 0] {
        if found.is_none() {
            found = tx.first(&OBJECT, &db::params![collection, from])?;
        }
    }
    let Some((identifier, lock, version)) = found else { return Ok(()) };
    let now = tx.now();
    let order = Order {
        object: identifier.clone(),
        version,
        paths: Vec::new(),
        arrangement: Arrangement::Files,
        container: Container::Tar,
        to: Destination::Nowhere,
        metadata: false,
        kept_days: None,
        by: "accession".to_string(),
        asked_at: now / 1_000_000,
    };
    let job = NewJob {
        subject: queue::subject::encode(identifier.as_bytes())?,
        lock: Some(lock),
        payload: Some(serde_json::json!(order).to_string().into_bytes()),
        priority: Some(PRIORITY),
        collection: Some(collection.to_string()),
        ..NewJob::default()
    };
    let catalog = Catalog::load(tx)?;
    add::add(tx, now, catalog.named(RESTORE_OBJECT)?, "accession", &[job])?;
    Ok(())
}
