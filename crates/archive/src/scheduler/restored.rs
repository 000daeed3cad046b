//! Removes what restores that did not end well have left at their destinations, and what the archive has
//! delivered to its own place and keeps no longer.

use crate::ErrorCode;
use crate::app::App;
use crate::blocking::blocking;
use crate::delivery::local::LocalPlace;
use crate::model::error::{Error, Result};
use crate::model::restore::{Container, Destination};
use crate::registry::restoring::{self, Restore};
use db::Micros;
use digest::{Sha256, to_hex};
use queue::JobId;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use store::{S3Config, S3Store, Store};

const DAY_MICROS: Micros = 86_400 * 1_000_000;
const PAGE: i64 = 100;

/// Cleans up what is due.
pub async fn once(app: &Arc<App>) -> Result<()> {
    let mut after = JobId::default();
    loop {
        let read = move |tx: &mut db::Tx<'_>| {
            Ok::<_, Error>((tx.now(), restoring::left_over(tx, after, PAGE)?))
        };
        let (now, page) = app.db.read(read).await?;
        let Some(last) = page.last().map(|(restore, _)| restore.job) else { break };
        for (restore, failed_at) in page {
            let kept = failed_at
                .is_some_and(|at| at + app.settings.failed_retention_days * DAY_MICROS > now);
            if kept {
                continue;
            }
            if let Err(error) = clean(app, &restore).await {
                tracing::warn!(job = restore.job.number(), %error, "the janitor could not clean up after the restore; it is tried again");
            }
        }
        after = last;
    }
    let expired = app.db.read(|tx| restoring::expired(tx, PAGE)).await?;
    for restore in expired {
        if let Err(error) = remove(app, &restore).await {
            tracing::warn!(job = restore.job.number(), %error, "what was restored could not be removed; it is tried again");
        }
    }
    Ok(())
}

/// Removes what was written and not delivered.
async fn clean(app: &Arc<App>, restore: &Restore) -> Result<()> {
    let job = restore.job;
    match &restore.order.to {
        Destination::S3 { url, key } => {
            let store = open(url).await?;
            for unfinished in store.unfinished("").await.map_err(failed)? {
                if restore.delivered_at.is_none() && unfinished.key.as_ref() == Some(key) {
                    store.abort(&unfinished).await.map_err(failed)?;
                }
            }
        }
        to => {
            if let Some(path) = to.path() {
                let place = LocalPlace::new(path, &app.installation, job);
                blocking(move || place.clean()).await?;
            }
        }
    }
    app.db.write(move |tx| restoring::cleaned(tx, job)).await?;
    Ok(())
}

/// Removes what was delivered, if it is still that.
async fn remove(app: &Arc<App>, restore: &Restore) -> Result<()> {
    let job = restore.job;
    match &restore.order.to {
        Destination::S3 { url, key } => {
            let store = open(url).await?;
            let is_same = match store.head(key).await {
                Ok(meta) => Some(meta.size) == restore.package.bytes,
                Err(error) if error.is_not_found() => false,
                Err(error) => return Err(failed(error)),
            };
            if is_same {
                store.delete(key).await.map_err(failed)?;
            }
        }
        to => {
            if let Some(path) = to.path() {
                let (container, sha256) = (restore.order.container, restore.package.sha256.clone());
                blocking(move || remove_local(&path, container, sha256.as_deref())).await?;
            }
        }
    }
    app.db.write(move |tx| restoring::removed(tx, job)).await?;
    tracing::info!(
        job = job.number(),
        place = restore.place,
        "what was restored was removed: its time is over"
    );
    Ok(())
}

/// A file that someone has changed since is theirs, and stays.
fn remove_local(path: &Path, container: Container, sha256: Option<&str>) -> Result<()> {
    let unremovable = |error: std::io::Error| {
        Error::transient(
            ErrorCode::RestoredStays,
            format!("{} cannot be removed: {error}; remove it by hand", path.display()),
        )
    };
    let meta = match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        meta => meta.map_err(unremovable)?,
    };
    match container {
        Container::Directory if meta.is_dir() => std::fs::remove_dir_all(path).map_err(unremovable),
        Container::Directory => Ok(()),
        _ if meta.is_file() && Some(digest_of(path).map_err(unremovable)?.as_str()) == sha256 => {
            std::fs::remove_file(path).map_err(unremovable)
        }
        _ => Ok(()),
    }
}

fn digest_of(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 256 * 1024]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(to_hex(&hasher.finish())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

async fn open(url: &str) -> Result<S3Store> {
    let config = S3Config::from_url(url).map_err(failed)?;
    S3Store::connect(config, None).await.map_err(failed)
}

fn failed(error: store::Error) -> Error {
    Error::transient(ErrorCode::DestinationUnwritable, error.to_string())
}
