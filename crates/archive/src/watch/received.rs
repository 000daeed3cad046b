//! Packages of buckets, while they are ingested: a directory of the work space for each.
//!
//! A process that fetches a package holds a lock on its directory until the deposit is accepted.
//! Processes that watch the same bucket therefore never write the same file, and a sweep removes
//! nothing that is being fetched.

use super::Ready;
use super::list::Reread;
use super::poll::Poller;
use crate::ErrorCode;
use crate::config::WatchSection;
use crate::pipeline::ingest::provisioning::{Admission, Demand, Space, room_for};
use crate::transfer::fetch::of_disk;
use crate::{Error, Result};
use db::{Db, Micros, Statement, Tx, statement};
use digest::{Sha256, to_hex};
use futures_util::TryStreamExt;
use queue::rules::batch;
use queue::{BatchId, BatchState, JobId};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Kind, Store};
use tokio::io::AsyncWriteExt;

const LOCK: &str = ".lock";

/// A package that is here, whole.
pub(super) struct Received {
    pub path: PathBuf,
    /// The name of its directory.
    pub place: String,
    /// Held until the deposit is accepted.
    _lock: File,
}

/// The directory of a package as it looks now. Two packages may look the same but for their names.
fn place_of(watch: &WatchSection, package: &Ready) -> String {
    let mut hash = Sha256::new();
    for part in [&watch.path, &package.name, &package.fingerprint] {
        hash.update(format!("{}:{part}", part.len()).as_bytes());
    }
    to_hex(&hash.finish())
}

/// Takes the directory for this process; `None` if another has it.
fn lock(directory: &Path) -> Result<Option<File>> {
    let path = directory.join(LOCK);
    let wrong = |e: std::io::Error| of_disk(&path, &e);
    std::fs::create_dir_all(directory).map_err(wrong)?;
    let file = File::create(&path).map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(wrong(error)),
    }
    // Between opening and locking it may have been swept: then this is a lock on nothing.
    let (held, there) = (file.metadata().map_err(wrong)?, std::fs::metadata(&path));
    Ok(there.is_ok_and(|there| there.ino() == held.ino()).then_some(file))
}

/// Brings a package here. What is there whole is not fetched again. `None` if another process has
/// it, or if it changed while it was fetched: then it is not still.
pub(super) async fn fetch(
    watch: &WatchSection,
    package: &Ready,
    poller: &Poller,
) -> Result<Option<Received>> {
    let received = poller.received.as_path();
    let place = place_of(watch, package);
    let directory = received.join(&place);
    let Some(lock) = lock(&directory)? else { return Ok(None) };
    let whole = directory.join(package.name.rsplit('/').next().unwrap_or(&package.name));
    if !whole.exists() {
        let partial = directory.join(".partial");
        remove(&partial).await.map_err(|e| of_disk(&partial, &e))?;
        let target = partial.join("package");
        check_room(package, poller).await?;
        if !copy_package(watch, package, &target).await? {
            return Ok(None);
        }
        // Only what is whole has the package's name; and a deposit is only of what stays.
        tokio::fs::rename(&target, &whole).await.map_err(|e| of_disk(&whole, &e))?;
        for directory in [directory.as_path(), received] {
            sync(directory).await?;
        }
    }
    Ok(Some(Received { path: whole, place, _lock: lock }))
}

/// Refuses a package for which there is no room in the work space beside what jobs have there.
async fn check_room(package: &Ready, poller: &Poller) -> Result<()> {
    let work = poller.work_space.clone();
    let space = Space::of(&work)?;
    let demand = Demand { bytes: package.bytes, written: 0 };
    // No job has this number.
    let ask = move |tx: &mut Tx<'_>| room_for(tx, JobId::default(), &work.name, &demand, &space);
    match poller.db.read(ask).await? {
        Admission::Admitted => Ok(()),
        Admission::Later(why) => {
            Err(Error::transient(ErrorCode::NoSpace, format!("{}: {why}", package.name))
                .at("work space"))
        }
        Admission::Never(why) => {
            Err(Error::permanent(ErrorCode::WorkSpaceTooSmall, format!("{}: {why}", package.name)))
        }
    }
}

async fn sync(directory: &Path) -> Result<()> {
    let opened = tokio::fs::File::open(directory).await;
    let opened = opened.map_err(|e| of_disk(directory, &e))?;
    opened.sync_all().await.map_err(|e| of_disk(directory, &e))
}

/// Copies a package; false if it is not what was still any more.
async fn copy_package(watch: &WatchSection, package: &Ready, target: &Path) -> Result<bool> {
    let failed = |error: store::Error| {
        let (name, bucket) = (&package.name, &watch.path);
        let message = format!("{name} in {bucket} cannot be read: {error}");
        Error::transient(ErrorCode::WatchUnreadable, message).at(format!("watch {bucket}"))
    };
    let store: Arc<dyn Store> = store::open(&watch.path).await.map_err(failed)?;
    if !package.directory {
        // A key is replaced in one step, so what is read is whole, if perhaps newer.
        return Ok(copy(store.as_ref(), &package.name, target, failed).await? == package.bytes);
    }
    let mut keys = store::list_all(store.clone(), &package.name, true);
    while let Some(entry) = keys.try_next().await.map_err(failed)? {
        if entry.kind != Kind::File {
            continue;
        }
        let Some(below) = below(package, &entry.key).filter(|below| is_inside(below)) else {
            return Err(Error::permanent(
                ErrorCode::WatchName,
                format!(
                    "`{}` in {} cannot be a path of a package; rename it",
                    entry.key, watch.path
                ),
            ));
        };
        copy(store.as_ref(), &entry.key, &target.join(below), failed).await?;
    }
    // Many keys are not replaced in one step: some may be of before a change, and some of after.
    let mut again = Reread::new();
    let mut keys = store::list_all(store, &package.name, true);
    while let Some(entry) = keys.try_next().await.map_err(failed)? {
        if entry.kind == Kind::File {
            again.add(&entry, below(package, &entry.key).unwrap_or_default());
        }
    }
    Ok(again.fingerprint() == package.fingerprint)
}

fn below<'k>(package: &Ready, key: &'k str) -> Option<&'k str> {
    key.strip_prefix(&package.name)?.strip_prefix('/')
}

/// Keys may have any parts; those of paths may not lead elsewhere.
fn is_inside(key: &str) -> bool {
    key.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

/// Copies one key; how many bytes it was.
async fn copy(
    store: &dyn Store,
    key: &str,
    path: &Path,
    failed: impl Fn(store::Error) -> Error,
) -> Result<u64> {
    if let Some(parent) = path.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(|e| of_disk(parent, &e))?;
    }
    let mut file = tokio::fs::File::create(path).await.map_err(|e| of_disk(path, &e))?;
    let object = store.get(key, None).await.map_err(&failed)?;
    let modified = object.meta.modified;
    let mut body = object.body;
    let mut bytes = 0;
    while let Some(chunk) = body.try_next().await.map_err(&failed)? {
        file.write_all(&chunk).await.map_err(|e| of_disk(path, &e))?;
        bytes += chunk.len() as u64;
    }
    file.sync_all().await.map_err(|e| of_disk(path, &e))?;
    if let Some(modified) = modified {
        // The date that the bucket has is the depositor's; that of the copy says nothing.
        let file = file.into_std().await;
        file.set_modified(modified).map_err(|e| of_disk(path, &e))?;
    }
    Ok(bytes)
}

/// Remembers what a directory is kept for, in the transaction of the deposit.
pub(super) fn keep(tx: &mut Tx<'_>, place: &str, batch: BatchId) -> Result<()> {
    const PUT: Statement = statement!(watch::put_received);
    tx.send(&PUT, &db::params![place, batch])?;
    Ok(())
}

fn kept(tx: &mut Tx<'_>) -> Result<BTreeMap<String, BatchId>> {
    const LIST: Statement = statement!(watch::list_received);
    Ok(tx.query::<(String, BatchId)>(&LIST, &[])?.into_iter().collect())
}

/// Directories that are not needed any more: their deposits are done. What failed stays for a while, so
/// that it can be requeued.
fn unneeded(tx: &mut Tx<'_>, retention: Micros) -> Result<Vec<(String, BatchId)>> {
    let mut unneeded = Vec::new();
    for (place, id) in kept(tx)? {
        let batch = batch::load(tx, id)?;
        let is_over = match batch.state {
            BatchState::Completed | BatchState::Deleted => true,
            BatchState::Failed => batch.updated_at.saturating_add(retention) <= tx.now(),
            _ => false,
        };
        if is_over {
            unneeded.push((place, id));
        }
    }
    Ok(unneeded)
}

/// Removes directories that are not needed any more, and those that were fetched and never deposited.
pub(super) async fn sweep(db: &Db, received: &Path, retention: Micros) -> Result<()> {
    const FORGET: Statement = statement!(watch::forget_received);
    for (place, batch) in db.read(move |tx| unneeded(tx, retention)).await? {
        if remove_unlocked(&received.join(&place)).await {
            db.write(move |tx| tx.execute(&FORGET, &db::params![&place, batch]).map(drop)).await?;
        }
    }
    for entry in std::fs::read_dir(received).into_iter().flatten().flatten() {
        let Ok(place) = entry.file_name().into_string() else { continue };
        let Ok(Some(held)) = lock(&entry.path()) else { continue };
        // Asked under the lock: no other process can deposit it at the same time.
        if !db.read(kept).await?.contains_key(&place) {
            let _ = remove(&entry.path()).await;
        }
        drop(held);
    }
    Ok(())
}

async fn remove_unlocked(directory: &Path) -> bool {
    if !directory.exists() {
        return true;
    }
    let Ok(Some(_held)) = lock(directory) else { return false };
    let removed = remove(directory).await;
    if let Err(error) = &removed {
        tracing::warn!("{} cannot be removed: {error}", directory.display());
    }
    removed.is_ok()
}

async fn remove(directory: &Path) -> std::io::Result<()> {
    match tokio::fs::remove_dir_all(directory).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
