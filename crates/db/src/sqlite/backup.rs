//! Backups of a database that is in use, and their restoration.

use crate::error::{Error, Result};
use crate::sqlite::fair_lock::FairLock;
use crate::sqlite::{SqliteConnection, beside};
use rusqlite::backup::{Backup, StepResult};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

const PAGES_PER_STEP: i32 = 1024;

/// Copies the database at `from` into the new file `to` while others go on using it.
/// `progress` is told (pages done, pages in all).
pub fn backup(from: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    refuse_existing(to)?;
    if !from.exists() {
        return Err(Error::CannotOpen(
            from.display().to_string(),
            "there is no such file".to_string(),
        ));
    }
    let partial = beside(to, ".partial");
    remove(&partial)?;
    let source = SqliteConnection::open_for_reading(from)?;
    copy(&source, &partial, progress)?;
    finish(&partial, to)
}

/// Puts a backup in the place of the database at `to`, which must not exist yet.
pub fn restore(from: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    refuse_existing(to)?;
    if !from.exists() {
        return Err(Error::CannotOpen(
            from.display().to_string(),
            "there is no such file".to_string(),
        ));
    }
    // Waits for a process that makes a database of this name.
    let lock = FairLock::open(to)?;
    lock.enter(|| true)?;
    let partial = beside(to, ".partial");
    let restored = remove(&partial).and_then(|()| {
        let source = SqliteConnection::open_for_reading(from)?;
        check(&source)?;
        copy(&source, &partial, progress)?;
        finish(&partial, to)
    });
    lock.leave();
    restored
}

fn copy(source: &SqliteConnection, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let cannot = |e: String| {
        Error::CannotOpen(
            to.display().to_string(),
            format!("{e}; check that its directory is writable"),
        )
    };
    // The copy is for its owner alone, wherever it is put.
    let private = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    private.map_err(|e| cannot(e.to_string()))?;
    let mut target = rusqlite::Connection::open(to).map_err(|e| cannot(e.to_string()))?;
    let error = |e| Error::from_sqlite(&to.display().to_string(), e);
    let backup = Backup::new(&source.inner, &mut target).map_err(error)?;
    loop {
        let step = backup.step(PAGES_PER_STEP).map_err(error)?;
        let state = backup.progress();
        let total = u64::try_from(state.pagecount).unwrap_or(0);
        progress(total - u64::try_from(state.remaining).unwrap_or(0), total);
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Checks every page, and that it is a database of this program.
fn check(source: &SqliteConnection) -> Result<()> {
    let found: String = source
        .inner
        .query_row("pragma integrity_check(1)", [], |r| r.get(0))
        .map_err(|e| source.error(e))?;
    if found != "ok" {
        return Err(Error::NotOurs(source.shown.clone(), format!("it is damaged: {found}")));
    }
    let tables: i64 = source
        .inner
        .query_row("select count(*) from sqlite_schema where name = 'schema_versions'", [], |r| {
            r.get(0)
        })
        .map_err(|e| source.error(e))?;
    match tables {
        0 => Err(Error::NotOurs(
            source.shown.clone(),
            "it is an SQLite database of another program".to_string(),
        )),
        _ => Ok(()),
    }
}

/// Makes the copy durable under its real name.
pub(super) fn finish(partial: &Path, to: &Path) -> Result<()> {
    let io = |e: std::io::Error| Error::Other(to.display().to_string(), e.to_string());
    std::fs::File::open(partial).and_then(|f| f.sync_all()).map_err(io)?;
    std::fs::rename(partial, to).map_err(io)?;
    let parent = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(parent).and_then(|d| d.sync_all()).map_err(io)
}

pub(super) fn refuse_existing(to: &Path) -> Result<()> {
    let refused = |why: &str| Err(Error::CannotOpen(to.display().to_string(), why.to_string()));
    // SQLite would take the log of a database that is gone for that of the new one.
    let has_log = |suffix| std::fs::metadata(beside(to, suffix)).is_ok_and(|log| log.len() > 0);
    if to.exists() {
        return refused("it exists already; name a file that does not");
    }
    if has_log("-wal") || has_log("-journal") {
        return refused(
            "the log of another database is beside it (-wal, -journal); put that where its database is, or name another file",
        );
    }
    Ok(())
}

pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Other(path.display().to_string(), e.to_string()))
        }
        _ => Ok(()),
    }
}
