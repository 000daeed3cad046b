//! Drop folders and receiving buckets: a package that someone puts there is deposited once it has
//! been still for a while.
//!
//! [`Poller::poll`] does one round. It is [`look`] (reads the place), then [`step`] in a transaction
//! (what became of each package, and which are ready), then for each that is ready one transaction
//! with its deposit and [`take`]: the first process to take it has it, so any number of processes may
//! watch the same place.

pub mod beside;
pub mod decide;
pub mod list;
pub mod names;
mod poll;
mod received;
mod results;
pub mod status;

use crate::ErrorCode;
use crate::config::WatchSection;
use crate::{Error, Result};
use db::{Micros, Statement, Tx, statement};
use decide::{Decision, Present, Sighting, State, decide};
use list::{Found, Listing};
pub use poll::Poller;
use queue::BatchId;
use std::collections::BTreeMap;

/// A package to be deposited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Below the watched place: `name`, or `collection/name`.
    pub name: String,
    pub collection: String,
    pub directory: bool,
    pub bytes: u64,
    pub fingerprint: String,
    /// The deposit it was last taken with, if it was there all the time and changed since: this
    /// is a new version of that.
    pub previous_batch: Option<BatchId>,
}

/// Reads a watched place.
pub async fn look(watch: &WatchSection) -> Result<Listing> {
    if watch.path.starts_with("s3://") {
        let store = store::open(&watch.path).await.map_err(|error| {
            Error::transient(
                ErrorCode::WatchUnreadable,
                format!("{} cannot be opened: {error}", watch.path),
            )
            .at(format!("watch {}", watch.path))
        })?;
        return list::bucket(watch, store).await;
    }
    let watch = watch.clone();
    let listed = tokio::task::spawn_blocking(move || list::folder(&watch)).await;
    listed.map_err(|_| Error::Stopped)?
}

/// Compares a listing with the last one, remembers it, and says which packages are ready. They
/// stay ready until they are taken.
pub fn step(tx: &mut Tx<'_>, watch: &WatchSection, listing: &Listing) -> Result<Vec<Ready>> {
    const PUT: Statement = statement!(watch::put_sighting);
    const LEAVE: Statement = statement!(watch::leave_sighting);
    let now = tx.now();
    let known = known(tx, &watch.path)?;
    let still = still_micros(watch);
    let packages = &listing.packages;
    let present: BTreeMap<String, Present> =
        packages.iter().map(|(name, found)| (name.clone(), found.present.clone())).collect();
    let mut ready = Vec::new();
    for (name, decision) in decide(&known, &present, now, still) {
        match (decision, packages.get(name), known.get(name)) {
            (Decision::Gone, _, Some(before)) if before.state == State::Taken => {
                let (fingerprint, left) = (&before.fingerprint, State::Left.as_str());
                tx.send(&LEAVE, &db::params![&watch.path, name, fingerprint, left])?;
            }
            (Decision::Gone, _, Some(before)) => forget(tx, watch, name, before)?,
            (Decision::New | Decision::Moving | Decision::Changed, Some(found), before) => {
                if let (Decision::New, Some(before)) = (decision, before) {
                    // What it was deposited as before does not count any more.
                    forget(tx, watch, name, before)?;
                }
                let fingerprint = &found.present.fingerprint;
                tx.send(
                    &PUT,
                    &db::params![&watch.path, name, fingerprint, now, State::Moving.as_str()],
                )?;
            }
            (Decision::Ready, Some(found), before) => {
                ready.push(as_ready(name, found, before.and_then(|b| b.batch)));
            }
            _ => {}
        }
    }
    Ok(ready)
}

fn still_micros(watch: &WatchSection) -> Micros {
    Micros::try_from(watch.still_seconds).unwrap_or(Micros::MAX).saturating_mul(1_000_000)
}

/// Who deposits what is put into a watched place.
fn submitter(watch: &WatchSection) -> String {
    format!("watch {}", watch.path)
}

/// Marks a package as deposited that an object of the stores was made from, as the registry says
/// that was rebuilt from them. It does so once: what comes back later is deposited anew.
fn recognise(tx: &mut Tx<'_>, watch: &WatchSection, ready: &Ready, place: &str) -> Result<bool> {
    const FIND: Statement = statement!(watch::object_of_watched);
    const FORGET: Statement = statement!(watch::forget_watched);
    const TAKE: Statement = statement!(watch::take_sighting);
    let (fingerprint, collection) = (&ready.fingerprint, &ready.collection);
    let found = tx.first::<(i64,)>(&FIND, &db::params![fingerprint, place, collection])?;
    let Some((object,)) = found else { return Ok(false) };
    tx.send(&FORGET, &db::params![object])?;
    let (told, moving) = (State::Told.as_str(), State::Moving.as_str());
    let none: Option<BatchId> = None;
    tx.send(&TAKE, &db::params![&watch.path, &ready.name, fingerprint, none, told, moving])?;
    Ok(true)
}

fn forget(tx: &mut Tx<'_>, watch: &WatchSection, name: &str, before: &Sighting) -> Result<()> {
    const FORGET: Statement = statement!(watch::forget_sighting);
    tx.send(&FORGET, &db::params![&watch.path, name, &before.fingerprint])?;
    Ok(())
}

fn as_ready(name: &str, found: &Found, previous_batch: Option<BatchId>) -> Ready {
    Ready {
        name: name.to_string(),
        collection: found.collection.clone(),
        directory: found.directory,
        bytes: found.bytes,
        fingerprint: found.present.fingerprint.clone(),
        previous_batch,
    }
}

/// Takes a package that is ready, in the transaction of its deposit. False if another process has
/// taken it, or it has changed: then there must be no deposit.
pub fn take(tx: &mut Tx<'_>, watch: &WatchSection, ready: &Ready, batch: BatchId) -> Result<bool> {
    const TAKE: Statement = statement!(watch::take_sighting);
    let (taken, moving) = (State::Taken.as_str(), State::Moving.as_str());
    let params = db::params![&watch.path, &ready.name, &ready.fingerprint, batch, taken, moving];
    Ok(tx.execute(&TAKE, &params)? == 1)
}

/// What was known at the last look.
fn known(tx: &mut Tx<'_>, watch: &str) -> Result<BTreeMap<String, Sighting>> {
    const SIGHTINGS: Statement = statement!(watch::sightings_of);
    let rows: Vec<(String, String, Micros, String, Option<BatchId>)> =
        tx.query(&SIGHTINGS, &db::params![watch])?;
    let sighting = |(name, fingerprint, seen_at, state, batch): (_, _, _, String, _)| {
        (name, Sighting { fingerprint, seen_at, state: State::parse(&state), batch })
    };
    Ok(rows.into_iter().map(sighting).collect())
}

#[cfg(test)]
mod tests;
