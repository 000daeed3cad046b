//! Content of earlier versions. A new version refers to it, and a deposit counts as unchanged, only
//! if that content is known good:
//!
//! - the copy is the one that the registry has recorded: its head, and the digest of its inventory;
//! - what the deposit holds too is read and compared;
//! - everything else is listed with its size, and read and compared where the last check is older
//!   than `limits.verify_referenced_days`.
//!
//! Damaged content is replaced with the deposited bytes of the same digest. Where the deposit does
//! not hold them, the job fails.

mod repair;

pub(super) use repair::Repairs;

use super::Run;
use super::storing::stop_if_told;
use crate::ErrorCode;
use crate::model::codes::CopyState;
use crate::model::error::{Error, Result};
use crate::registry::ingest::{self, JobFile};
use crate::registry::view::{self, CopyView, FileView};
use crate::stores::content::{ContentState, Fault, Method, Referred, look_at_all};
use crate::stores::{Place, store_error};
use db::{Micros, Statement, Tx, statement};
use ocfl::Sealed;

/// Files that are looked at together.
const PAGE: i64 = 2000;

/// How content of earlier versions was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Read and compared by digest.
    pub read: u64,
    /// Compared by a checksum that the store keeps and vouches for.
    pub vouched: u64,
    /// Only listed, with the right size.
    pub listed: u64,
}

impl Counted {
    /// So many files, of which some could only be listed; the others were compared in the way of
    /// the store.
    pub fn of(place: &Place, files: u64, listed: u64) -> Counted {
        let compared = files.saturating_sub(listed);
        match place.root.store().capabilities().digests {
            true => Counted { read: 0, vouched: compared, listed },
            false => Counted { read: compared, vouched: 0, listed },
        }
    }

    pub fn add(&mut self, other: Counted) {
        self.read += other.read;
        self.vouched += other.vouched;
        self.listed += other.listed;
    }
}

/// What the registry has recorded of an object in one store, and when that was looked up.
pub(super) struct Recorded {
    pub copy: CopyView,
    now: Micros,
}

impl Recorded {
    /// Whether what was last seen of the content is too old to be relied on, or was bad.
    fn is_stale(&self, days: i64) -> bool {
        let age = self.now.saturating_sub(self.copy.current_read_at);
        self.copy.state == CopyState::Bad || age >= days.saturating_mul(86_400_000_000)
    }
}

/// What the registry has recorded of the job's object in this store.
pub(super) async fn recorded(run: &Run<'_>, place: &Place) -> Result<Recorded> {
    let (object, store) = (run.ingest.object.unwrap_or_default(), place.name.clone());
    let find = move |tx: &mut Tx<'_>| {
        let copy = view::copies(tx, object)?.into_iter().find(|copy| copy.store == store);
        Ok::<_, Error>((copy, tx.now()))
    };
    match run.app.db.read(find).await? {
        (Some(copy), now) => Ok(Recorded { copy, now }),
        (None, _) => Err(out_of_step(
            run,
            place,
            &format!(
                "the registry has recorded no copy of it there; if the store has one, run `accession registry rebuild --from {}`; if it has none, copy the object there from another store first",
                place.name
            ),
        )),
    }
}

/// Refuses to build on a copy that is not the recorded one. `base` is the digest of its inventory.
pub(super) async fn check_base(run: &Run<'_>, place: &Place, base: Option<&str>) -> Result<()> {
    let recorded = recorded(run, place).await?;
    let head = run.ingest.version.unwrap_or(0) - 1;
    check_recorded(run, place, &recorded.copy, head, base)
}

fn check_recorded(
    run: &Run<'_>,
    place: &Place,
    copy: &CopyView,
    head: i64,
    digest: Option<&str>,
) -> Result<()> {
    if copy.version != head {
        let what = format!(
            "its copy there is recorded at version {}, and its current version is {head}; {}",
            copy.version,
            see_check(run)
        );
        return Err(out_of_step(run, place, &what));
    }
    if digest != Some(copy.digest.as_str()) {
        let what =
            format!("its inventory there is not the one that was recorded; {}", see_check(run));
        return Err(out_of_step(run, place, &what));
    }
    Ok(())
}

fn see_check(run: &Run<'_>) -> String {
    let identifier = &run.ingest.summary.identifier;
    format!("`accession check --content {identifier}` says more")
}

fn out_of_step(run: &Run<'_>, place: &Place, what: &str) -> Error {
    let identifier = &run.ingest.summary.identifier;
    Error::permanent(
        ErrorCode::StoreOutOfStep,
        format!("store {}, {identifier}: {what}", place.name),
    )
}

/// Which files of the current version are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those that the deposit holds too. They are read: their bytes are at hand for a repair.
    Held,
    /// Those that the deposit does not hold. They are read if their last check is too old.
    Carried,
}

/// Looks at the files that a version carries over from the one before.
pub(super) async fn carried_over(
    run: &Run<'_>,
    place: &Place,
    sealed: Sealed<'_>,
    repairs: &Repairs<'_>,
) -> Result<Counted> {
    if page(run, Which::Carried, "", 1).await?.is_empty() {
        return Ok(Counted::default());
    }
    let recorded = recorded(run, place).await?;
    let sizes = sealed.list().await.map_err(|e| store_error(&place.name, e))?;
    check(run, place, sealed, &sizes, &recorded, Which::Carried, repairs).await
}

/// Looks at a whole copy of an object that a deposit would leave as it is, and repairs it where the
/// deposit holds the bytes.
pub(super) async fn whole_copy(
    run: &Run<'_>,
    place: &Place,
    repairs: &Repairs<'_>,
) -> Result<Counted> {
    let recorded = recorded(run, place).await?;
    let identifier = &run.ingest.summary.identifier;
    let object = place.root.object(identifier).await.map_err(|error| match error {
        ocfl::Error::NoSuchObject(_) => out_of_step(
            run,
            place,
            &format!(
                "the registry has recorded version {} at {}, and nothing is there; copy that directory from another store or a backup, and run `accession check --content {identifier}`",
                recorded.copy.version, recorded.copy.key
            ),
        ),
        ocfl::Error::Invalid { .. } | ocfl::Error::WrongObject { .. } => {
            out_of_step(run, place, &format!("{error}; {}", see_check(run)))
        }
        other => store_error(&place.name, other),
    })?;
    let head = i64::from(object.inventory().head().number());
    let current = run.ingest.version.unwrap_or(0) - 1;
    if head != current {
        let what = format!(
            "it has version {head} there, and version {current} in the registry; {}",
            see_check(run)
        );
        return Err(out_of_step(run, place, &what));
    }
    check_recorded(run, place, &recorded.copy, current, Some(object.digest()))?;
    let sealed = Sealed::Object(&object);
    let sizes = sealed.list().await.map_err(|e| store_error(&place.name, e))?;
    let held = check(run, place, sealed, &sizes, &recorded, Which::Held, repairs).await?;
    let carried = check(run, place, sealed, &sizes, &recorded, Which::Carried, repairs).await?;
    let mut counted = held;
    counted.add(carried);
    // What is left over is content of older versions, and records: no deposit holds those.
    let sizes = match repairs.any() {
        true => sealed.list().await.map_err(|e| store_error(&place.name, e))?,
        false => sizes,
    };
    if let Some(content) = object.unlisted(&sizes).next() {
        return Err(repair::beyond(run, place, content, &Fault::Missing));
    }
    Ok(counted)
}

async fn page(run: &Run<'_>, which: Which, after: &str, limit: i64) -> Result<Vec<FileView>> {
    const HELD: Statement = statement!(stages::held_files);
    const CARRIED: Statement = statement!(stages::carried_files);
    let (object, job, after) = (run.ingest.object.unwrap_or_default(), run.id(), after.to_string());
    let statement = match which {
        Which::Held => HELD,
        Which::Carried => CARRIED,
    };
    let read = move |tx: &mut Tx<'_>| {
        Ok::<_, Error>(tx.query(&statement, &db::params![object, job, &after, limit])?)
    };
    run.app.db.read(read).await
}

async fn check(
    run: &Run<'_>,
    place: &Place,
    sealed: Sealed<'_>,
    sizes: &ocfl::ContentSizes,
    recorded: &Recorded,
    which: Which,
    repairs: &Repairs<'_>,
) -> Result<Counted> {
    let reads = which == Which::Held || recorded.is_stale(run.app.settings.verify_referenced_days);
    let (mut files_seen, mut listed, mut after) = (0, 0, String::new());
    loop {
        let files = page(run, which, &after, PAGE).await?;
        let Some(last) = files.last().map(|file| file.path.clone()) else {
            return Ok(Counted::of(place, files_seen, listed));
        };
        files_seen += files.len() as u64;
        let (mut good, mut damaged) = (Vec::new(), Vec::new());
        for file in files {
            let Some(content) = sealed.find(&file.sha512) else {
                let what =
                    format!("its inventory there does not name {}; {}", file.path, see_check(run));
                return Err(out_of_step(run, place, &what).about(&file.path));
            };
            let listed = sealed.size(sizes, &content);
            let referred = Referred::of_view(file, content.key);
            match Fault::of_size(listed, referred.size) {
                Some(fault) => damaged.push((referred, fault)),
                None => good.push(referred),
            }
        }
        if reads {
            for (referred, state) in look_at_all(place, good, Method::Checksum).await? {
                match state {
                    ContentState::Good => {}
                    ContentState::Listed => listed += 1,
                    ContentState::Damaged(fault) => damaged.push((referred, fault)),
                }
            }
        } else {
            listed += good.len() as u64;
        }
        repairs.make_by_digest(run, place, sealed, damaged).await?;
        stop_if_told(run)?;
        after = last;
    }
}

/// A deposited file that has this digest.
async fn deposited(run: &Run<'_>, sha512: &str) -> Result<Option<JobFile>> {
    let (job, sha512) = (run.id(), sha512.to_string());
    run.app.db.read(move |tx| ingest::file_by_digest(tx, job, &sha512)).await
}
