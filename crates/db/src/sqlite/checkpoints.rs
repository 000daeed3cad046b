//! Moving committed pages from the log into the database file, beside the writer, so that no commit
//! waits for it; and having the log begin anew as soon as that costs little. A commit to a part of
//! the log that was written before takes the disk about two thirds of the time of one that makes it
//! longer.

use crate::error::Result;
use crate::sqlite::{SqliteConnection, spawn};
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// So many pages committed since the last time are worth moving.
const PAGES_SOON: i32 = 2000;
/// So few, committed while the others were moved, are moved by the writer itself: the log can only
/// begin anew when all of it is moved, which nobody else gets done while commits come.
const PAGES_REST: i32 = 500;
/// A log of so many pages, 64 MiB, is moved by the writer whatever it costs: it must stay bounded.
const PAGES_MAX: i32 = 16_000;

/// What is left for the writer to move.
#[derive(Clone, Default)]
pub(super) struct Rest(Arc<AtomicBool>);

impl Rest {
    /// Moves it, if there is any; called when those who waited for a commit have their answers.
    pub fn move_on(&self, writer: &SqliteConnection) {
        if self.0.swap(false, Ordering::Relaxed) {
            move_log(writer);
        }
    }
}

/// Has the writer's log moved by a thread of its own, which ends when the writer's connection does.
pub(super) fn attach(writer: &mut SqliteConnection, path: &Path) -> Result<(Rest, JoinHandle<()>)> {
    let mover = SqliteConnection::connect(path)?;
    // A connection that has not read anything yet does not know of the log, and would move nothing.
    let look = mover.inner.query_row("select count(*) from sqlite_schema", [], |_| Ok(()));
    look.map_err(|e| mover.error(e))?;
    let (due, wanted) = mpsc::sync_channel(1);
    // How far that thread has come since the writer last looked; 0 if it has not.
    let reached = Arc::new(AtomicI32::new(0));
    let (mine, rest) = (reached.clone(), Rest::default());
    let (mut noted, left) = (0, rest.clone());
    let after_commit = move |_: &mut Wal, pages: i32| {
        if pages < noted {
            noted = 0; // It began anew.
        }
        let reached = mine.swap(0, Ordering::Relaxed);
        let little_left = reached > 0 && (0..=PAGES_REST).contains(&(pages - reached));
        if little_left || pages >= PAGES_MAX {
            noted = pages;
            left.0.store(true, Ordering::Relaxed);
        } else if pages - noted >= PAGES_SOON {
            noted = pages;
            // If one is due already, that one will do.
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

/// Moves what can be moved; how many pages of the log are moved now.
fn move_log(connection: &SqliteConnection) -> Option<i32> {
    match connection.inner.wal_checkpoint_v2::<&str>(None, CheckpointMode::PASSIVE) {
        Ok((_, moved)) => Some(moved),
        Err(error) => {
            // Another process may be at it, or the disk may be full: nothing is lost but time.
            tracing::debug!(%error, "the log stays as it is for now");
            None
        }
    }
}
