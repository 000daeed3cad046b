//! Packages of buckets, while they are ingested: a directory of the work space for each, named by
//! its fingerprint.

use super::Ready;
use super::decide::State;
use crate::config::WatchSection;
use crate::fetch::of_disk;
use crate::{Error, Result};
use db::Db;
use futures_util::TryStreamExt;
use queue::BatchState;
use queue::rules::batch;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Kind, Store};
use tokio::io::AsyncWriteExt;

/// Brings a package here. What is there whole is not fetched again.
pub(super) async fn fetch(
    watch: &WatchSection,
    package: &Ready,
    received: &Path,
) -> Result<PathBuf> {
    let failed = |error: store::Error| {
        Error::transient(
            "watch_unreadable",
            format!("{} in {} cannot be read: {error}", package.name, watch.path),
        )
        .at(format!("watch {}", watch.path))
    };
    let place = received.join(&package.fingerprint);
    let whole = place.join(package.name.rsplit('/').next().unwrap_or(&package.name));
    if whole.exists() {
        return Ok(whole);
    }
    let store: Arc<dyn Store> = store::open(&watch.path).await.map_err(failed)?;
    let partial = place.join(".partial");
    tokio::fs::create_dir_all(&partial).await.map_err(|e| of_disk(&partial, &e))?;
    let target = partial.join("package");
    if !package.directory {
        copy(store.as_ref(), &package.name, &target, failed).await?;
    } else {
        let mut keys = store::list_all(store.clone(), &package.name, true);
        while let Some(entry) = keys.try_next().await.map_err(failed)? {
            if entry.kind != Kind::File {
                continue;
            }
            let below = entry.key.strip_prefix(&format!("{}/", package.name));
            let Some(below) = below.filter(|below| is_inside(below)) else {
                return Err(Error::permanent(
                    "watch_name",
                    format!(
                        "`{}` in {} cannot be a path of a package; rename it",
                        entry.key, watch.path
                    ),
                ));
            };
            copy(store.as_ref(), &entry.key, &target.join(below), failed).await?;
        }
    }
    // Only what is whole has the package's name.
    tokio::fs::rename(&target, &whole).await.map_err(|e| of_disk(&whole, &e))?;
    Ok(whole)
}

/// Keys may have any parts; those of paths may not lead elsewhere.
fn is_inside(key: &str) -> bool {
    key.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

async fn copy(
    store: &dyn Store,
    key: &str,
    path: &Path,
    failed: impl Fn(store::Error) -> Error,
) -> Result<()> {
    if let Some(parent) = path.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(|e| of_disk(parent, &e))?;
    }
    let mut file = tokio::fs::File::create(path).await.map_err(|e| of_disk(path, &e))?;
    let mut body = store.get(key, None).await.map_err(&failed)?.body;
    while let Some(chunk) = body.try_next().await.map_err(&failed)? {
        file.write_all(&chunk).await.map_err(|e| of_disk(path, &e))?;
    }
    file.sync_all().await.map_err(|e| of_disk(path, &e))
}

/// Removes what belongs to deposits that are done. What failed stays, so that it can be requeued,
/// until its batch is deleted.
pub(super) async fn sweep(db: &Db, watch: &WatchSection, received: &Path) -> Result<()> {
    let path = watch.path.clone();
    let done: BTreeSet<String> = db
        .read(move |tx| -> Result<BTreeSet<String>> {
            let mut done = BTreeSet::new();
            for sighting in super::known(tx, &path)?.into_values() {
                let (Some(id), true) = (sighting.batch, sighting.state != State::Moving) else {
                    continue;
                };
                if matches!(batch::load(tx, id)?.state, BatchState::Completed | BatchState::Deleted)
                {
                    done.insert(sighting.fingerprint);
                }
            }
            Ok(done)
        })
        .await?;
    for fingerprint in done {
        let place = received.join(fingerprint);
        match tokio::fs::remove_dir_all(&place).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("{} cannot be removed: {error}", place.display());
            }
            _ => {}
        }
    }
    Ok(())
}
