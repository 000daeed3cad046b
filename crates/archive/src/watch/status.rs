//! What each watched place sees and waits for, for people. Nothing is taken here, and nothing is
//! remembered.

use super::decide::{Decision, Present, Sighting, decide};
use super::list::{Found, Listing, Stray};
use super::look;
use crate::config::WatchSection;
use crate::registry::collection;
use crate::{Error, Result};
use db::{Db, Micros, Statement, Tx, statement};
use queue::rules::batch::{self, Batch};
use queue::view::show_time;
use queue::{BatchId, BatchState};
use serde::Serialize;
use std::collections::BTreeMap;

/// Deposits of a place that are shown.
const DEPOSITS: i64 = 10;

/// One watched place.
#[derive(Debug, Clone, Serialize)]
pub struct PlaceStatus {
    pub path: String,
    pub collection: Option<String>,
    pub prefix_is_collection: bool,
    pub still_seconds: u64,
    pub poll_seconds: u64,
    /// Why it cannot be read: then nothing is said of what is in it.
    pub error: Option<Unreadable>,
    /// How many packages are in each state.
    pub states: BTreeMap<&'static str, usize>,
    /// What needs attention or time first.
    pub packages: Vec<PackageStatus>,
    pub skipped_total: usize,
    pub skipped: Vec<Stray>,
    /// The newest first.
    pub deposits: Vec<LastDeposit>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Unreadable {
    pub code: &'static str,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageStatus {
    pub name: String,
    pub collection: String,
    pub bytes: u64,
    pub state: PackageState,
    /// Since when it has looked as it does.
    #[serde(serialize_with = "time")]
    pub since: Option<Micros>,
    /// The deposit it was last taken with.
    pub batch: Option<BatchId>,
    pub why: String,
}

/// In the order in which packages are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageState {
    /// It cannot be taken before a person does something.
    Blocked,
    /// Its last deposit failed.
    Failed,
    /// It says of itself that it is not whole.
    Unfinished,
    /// It has changed since the last look.
    Changing,
    /// It has not been still for long enough, or its last version is still on its way.
    Waiting,
    /// The next look takes it.
    Ready,
    /// It was deposited and is on its way.
    Deposited,
    /// It is in the stores.
    Done,
}

impl PackageState {
    pub fn name(self) -> &'static str {
        match self {
            PackageState::Blocked => "blocked",
            PackageState::Failed => "failed",
            PackageState::Unfinished => "unfinished",
            PackageState::Changing => "changing",
            PackageState::Waiting => "waiting",
            PackageState::Ready => "ready",
            PackageState::Deposited => "deposited",
            PackageState::Done => "done",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct LastDeposit {
    pub batch: BatchId,
    pub name: String,
    pub state: String,
    #[serde(serialize_with = "time")]
    pub at: Option<Micros>,
}

/// As RFC 3339 has it.
fn time<S: serde::Serializer>(at: &Option<Micros>, to: S) -> std::result::Result<S::Ok, S::Error> {
    let shown = at.and_then(|at| jiff::Timestamp::from_microsecond(at).ok());
    shown.map(|at| format!("{at:.6}")).serialize(to)
}

/// Looks at a watched place, and lists at most so many packages and skipped names of it.
pub async fn of_place(db: &Db, watch: &WatchSection, limit: usize) -> Result<PlaceStatus> {
    let (listing, error) = match look(watch).await {
        Ok(listing) => (listing, None),
        Err(Error::Queue(error)) => return Err(error.into()),
        Err(error) => {
            let (code, message) = (error.code(), error.to_string());
            (Listing::default(), Some(Unreadable { code, message }))
        }
    };
    let it = watch.clone();
    db.read(move |tx| {
        let mut packages = match error {
            None => packages(tx, &it, &listing)?,
            Some(_) => Vec::new(),
        };
        let mut states = BTreeMap::new();
        for package in &packages {
            *states.entry(package.state.name()).or_default() += 1;
        }
        packages.sort_by(|a, b| (a.state, &a.name).cmp(&(b.state, &b.name)));
        packages.truncate(limit);
        Ok(PlaceStatus {
            path: it.path.clone(),
            collection: it.collection.clone(),
            prefix_is_collection: it.prefix_is_collection,
            still_seconds: it.still_seconds,
            poll_seconds: it.poll_seconds,
            error: error.clone(),
            states,
            packages,
            skipped_total: listing.strays_total,
            skipped: listing.strays.iter().take(limit).cloned().collect(),
            deposits: deposits(tx, &it)?,
        })
    })
    .await
}

fn packages(
    tx: &mut Tx<'_>,
    watch: &WatchSection,
    listing: &Listing,
) -> Result<Vec<PackageStatus>> {
    let known = super::known(tx, &watch.path)?;
    let present: BTreeMap<String, Present> = listing
        .packages
        .iter()
        .map(|(name, found)| (name.clone(), found.present.clone()))
        .collect();
    let (now, still) = (tx.now(), super::still_micros(watch));
    let mut collections: BTreeMap<&str, bool> = BTreeMap::new();
    let mut packages = Vec::new();
    for (name, decision) in decide(&known, &present, now, still) {
        let Some(found) = listing.packages.get(name) else { continue };
        let its = found.collection.as_str();
        if !collections.contains_key(its) {
            collections.insert(its, collection::find(tx, its)?.is_some());
        }
        let before = known.get(name);
        let batch = match before.and_then(|before| before.batch) {
            Some(id) => load(tx, id)?,
            None => None,
        };
        let seen = Seen {
            found,
            decision,
            before,
            batch: batch.as_ref(),
            is_collection: collections.get(its).copied().unwrap_or_default(),
            still,
        };
        packages.push(seen.status(name));
    }
    Ok(packages)
}

/// A batch; `None` if there is none of this number any more.
fn load(tx: &mut Tx<'_>, id: BatchId) -> Result<Option<Batch>> {
    match batch::load(tx, id) {
        Ok(batch) => Ok(Some(batch)),
        Err(queue::Error::Unknown { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn deposits(tx: &mut Tx<'_>, watch: &WatchSection) -> Result<Vec<LastDeposit>> {
    const NEWEST: Statement = statement!(watch::newest_batches_of);
    let submitter = super::submitter(watch);
    let ids: Vec<(BatchId,)> = tx.query(&NEWEST, &db::params![&submitter, DEPOSITS])?;
    let mut deposits = Vec::new();
    for (id,) in ids {
        let Some(batch) = load(tx, id)? else { continue };
        deposits.push(LastDeposit {
            batch: id,
            name: batch.label,
            state: batch.state.to_string(),
            at: Some(batch.created_at),
        });
    }
    Ok(deposits)
}

/// A package with all that is known of it.
struct Seen<'a> {
    found: &'a Found,
    decision: Decision,
    before: Option<&'a Sighting>,
    batch: Option<&'a Batch>,
    is_collection: bool,
    still: Micros,
}

impl Seen<'_> {
    fn status(&self, name: &str) -> PackageStatus {
        let (state, why) = self.state();
        let same = self.before.filter(|b| b.fingerprint == self.found.present.fingerprint);
        PackageStatus {
            name: name.to_string(),
            collection: self.found.collection.clone(),
            bytes: self.found.bytes,
            state,
            since: same.map(|before| before.seen_at),
            batch: self.before.and_then(|before| before.batch),
            why,
        }
    }

    fn state(&self) -> (PackageState, String) {
        let is_deposited = self.decision == Decision::Unchanged;
        if let (Some(why), false) = (&self.found.unfinished_why, is_deposited) {
            return (PackageState::Unfinished, why.clone());
        }
        if !self.is_collection && !is_deposited {
            let collection = &self.found.collection;
            return (
                PackageState::Blocked,
                format!(
                    "there is no collection `{collection}`; make it with `accession collection create {collection}`, or move the package"
                ),
            );
        }
        let seconds = self.still / 1_000_000;
        match self.decision {
            Decision::New | Decision::Gone => (
                PackageState::Waiting,
                format!(
                    "no worker has seen it yet; it is taken when workers have seen no change for {seconds} s"
                ),
            ),
            Decision::Changed => {
                let batch = self.before.and_then(|before| before.batch);
                let last = batch.map(|id| format!(" since batch {id}")).unwrap_or_default();
                (
                    PackageState::Changing,
                    format!(
                        "it changed{last}; it is taken again after {seconds} s without a change"
                    ),
                )
            }
            Decision::Moving => self.moving(seconds),
            Decision::Ready => self.ready(),
            Decision::Unchanged => self.deposited(),
        }
    }

    fn moving(&self, seconds: i64) -> (PackageState, String) {
        let same = self.before.filter(|b| b.fingerprint == self.found.present.fingerprint);
        match same {
            Some(before) => {
                let due = show_time(before.seen_at.saturating_add(self.still));
                (PackageState::Waiting, format!("it is taken at {due} if it stays as it is"))
            }
            None => (
                PackageState::Changing,
                format!(
                    "it has changed since the last look; it is taken after {seconds} s without a change"
                ),
            ),
        }
    }

    fn ready(&self) -> (PackageState, String) {
        match self.batch.filter(|batch| !is_over(batch)) {
            Some(batch) => (
                PackageState::Waiting,
                format!("its last version, batch {}, is {}; it is taken after that", batch.id, batch.state),
            ),
            None => (
                PackageState::Ready,
                "the next look takes it; if it stays, see that `accession work` runs and what it logs"
                    .to_string(),
            ),
        }
    }

    fn deposited(&self) -> (PackageState, String) {
        let Some(id) = self.before.and_then(|before| before.batch) else {
            let why = "the stores had it when this database was new".to_string();
            return (PackageState::Done, why);
        };
        let Some(batch) = self.batch else {
            return (PackageState::Done, format!("it was deposited as batch {id}"));
        };
        match batch.state {
            BatchState::Completed => (PackageState::Done, format!("batch {id} is completed")),
            BatchState::Deleted => (PackageState::Done, format!("batch {id} was deleted")),
            BatchState::Failed => (
                PackageState::Failed,
                format!(
                    "batch {id} failed; `accession batches show {id}` says why. A package that changes is deposited again"
                ),
            ),
            state => (PackageState::Deposited, format!("batch {id} is {state}")),
        }
    }
}

fn is_over(batch: &Batch) -> bool {
    matches!(batch.state, BatchState::Completed | BatchState::Failed | BatchState::Deleted)
}
