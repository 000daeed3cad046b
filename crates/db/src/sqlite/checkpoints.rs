//! Moving committed pages from the log into the database file, beside the writer, so that no commit
//! waits for it.

use crate::error::Result;
use crate::sqlite::{SqliteConnection, spawn};
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// So many pages committed since the last time are worth moving.
const PAGES_SOON: i32 = 2000;
/// A log of so many pages, 64 MiB, is moved by the writer itself: it can only begin anew when no
/// commit comes between, and must stay bounded.
const PAGES_MAX: i32 = 16_000;

/// Has the writer's log moved by a thread of its own, which ends when the writer's connection does.
pub(super) fn attach(writer: &mut SqliteConnection, path: &Path) -> Result<JoinHandle<()>> {
    let mover = SqliteConnection::connect(path)?;
    let (due, wanted) = mpsc::sync_channel(1);
    let mut moved = 0;
    let after_commit = move |log: &mut Wal, pages: i32| {
        if pages < moved {
            moved = 0; // It began anew.
        }
        if pages >= PAGES_MAX {
            moved = pages;
            if let Err(error) = log.checkpoint() {
                tracing::debug!(%error, "the log stays as it is for now");
            }
        } else if pages - moved >= PAGES_SOON {
            moved = pages;
            // If one is due already, that one will do.
            let _ = due.try_send(());
        }
        Ok(())
    };
    writer.inner.wal_hook(Some(after_commit)).map_err(|e| writer.error(e))?;
    spawn("db-checkpoints", move || {
        while wanted.recv().is_ok() {
            // Another process may be at it, or the disk may be full: nothing is lost but time.
            if let Err(error) = mover.inner.wal_checkpoint_v2::<&str>(None, CheckpointMode::PASSIVE)
            {
                tracing::debug!(%error, "the log stays as it is for now");
            }
        }
    })
}
