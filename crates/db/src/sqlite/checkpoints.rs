//! Checkpoints on a thread of their own, so that no commit waits for one; and a restart of the
//! write-ahead log as soon as that costs little. A commit that overwrites a part of the log takes the
//! disk about two thirds of the time of one that makes it longer.

use crate::error::Result;
use crate::sqlite::{SqliteConnection, spawn};
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A checkpoint is due after this number of pages.
const PAGES_SOON: i32 = 2000;
/// Up to this number of pages, committed during a checkpoint, are moved by the writer itself: the log
/// can only restart when all of it is moved, and only the writer can do that while commits come.
const PAGES_REST: i32 = 500;
/// At this length (64 MiB) the writer moves the log whatever it costs: it must stay bounded.
const PAGES_MAX: i32 = 16_000;

/// Whether a rest of the log is left for the writer to move.
#[derive(Clone, Default)]
pub(super) struct Rest(Arc<AtomicBool>);

impl Rest {
    /// Moves the rest, if there is any; called after the callers of a commit have their answers.
    pub fn move_on(&self, writer: &SqliteConnection) {
        if self.0.swap(false, Ordering::Relaxed) {
            move_log(writer);
        }
    }
}

/// Starts the thread for the writer's log, which ends when the writer's connection does.
pub(super) fn attach(writer: &mut SqliteConnection, path: &Path) -> Result<(Rest, JoinHandle<()>)> {
    let mover = SqliteConnection::connect(path)?;
    // A connection that has not read anything does not know of the log, and would move nothing.
    let look = mover.inner.query_row("select count(*) from sqlite_schema", [], |_| Ok(()));
    look.map_err(|e| mover.error(e))?;
    let (due, wanted) = mpsc::sync_channel(1);
    // The pages that the thread has moved since the writer last looked; 0 if none.
    let reached = Arc::new(AtomicI32::new(0));
    let (mine, rest) = (reached.clone(), Rest::default());
    let (mut noted, left) = (0, rest.clone());
    let after_commit = move |_: &mut Wal, pages: i32| {
        if pages < noted {
            noted = 0; // It was restarted.
        }
        let reached = mine.swap(0, Ordering::Relaxed);
        let little_left = reached > 0 && (0..=PAGES_REST).contains(&(pages - reached));
        if little_left || pages >= PAGES_MAX {
            noted = pages;
            left.0.store(true, Ordering::Relaxed);
        } else if pages - noted >= PAGES_SOON {
            noted = pages;
            // One that is due already is enough.
            let _ = due.try_send(());
        }
        Ok(())
    };
    writer.inner.wal_hook(Some(after_commit)).map_err(|e| writer.error(e))?;
    let mover = spawn("db-checkpoints", move || {
        while wanted.recv().is_ok() {
            if let Some(moved) = move_log(&mover) {
                reached.store(moved, Ordering::Relaxed);
            }
        }
    })?;
    Ok((rest, mover))
}

/// Runs a checkpoint and returns how many pages of the log are moved.
fn move_log(connection: &SqliteConnection) -> Option<i32> {
    match connection.inner.wal_checkpoint_v2::<&str>(None, CheckpointMode::PASSIVE) {
        Ok((_, moved)) => Some(moved),
        Err(error) => {
            // Another process may run one, or the disk may be full. The next one does it.
            tracing::debug!(%error, "the log stays as it is for now");
            None
        }
    }
}
