//! The room that a job's downloads, and what it unpacks, take in the work space. A server need not
//! announce how much it sends, and may send more than it announced; a compressed package may grow by
//! more than was expected. Then the job's reservation grows in steps, by the same rule by which it was
//! admitted, or the download or unpacking stops.

use super::Run;
use super::provisioning::{Admission, Demand, Space, admit};
use crate::ErrorCode;
use crate::app::{App, WorkSpace};
use crate::model::error::{Error, Result};
use crate::transfer::fetch::Room;
use db::{Statement, Tx, statement};
use futures_util::future::BoxFuture;
use queue::JobId;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// A reservation grows by at least this much, in a work space that is not small.
const STEP_BYTES: u64 = 64 << 20;

/// What is asked for where nothing is known, or no more than that there will be more: an eighth of
/// what is there, so that large downloads ask seldom.
pub(super) fn step(there: u64, space: &Space) -> u64 {
    (there / 8).max(STEP_BYTES.min(space.admitted() / 64))
}

/// One job's room; its downloads share it, and so does what it unpacks.
pub struct JobRoom {
    app: Arc<App>,
    job: JobId,
    /// Bytes of the job in the work space.
    there: AtomicU64,
    /// Bytes that the job may have there.
    reserved: Mutex<u64>,
}

impl JobRoom {
    /// The room of a job as it is now. A job that failed has none reserved any more; what it
    /// left in the work space counts all the same.
    pub async fn open(run: &Run<'_>) -> Result<JobRoom> {
        let (app, job) = (run.app.clone(), run.id());
        let reserved = app.db.read(move |tx| reserved_by(tx, job)).await?;
        let directory = run.directory();
        let there = crate::blocking::blocking(move || bytes_below(&directory)).await?;
        Ok(JobRoom { app, job, there: there.into(), reserved: reserved.into() })
    }

    async fn grow(&self, there: u64) -> Result<u64> {
        let work = &self.app.settings.work_space;
        let space = Space::of(work)?;
        let demand = Demand { bytes: there + step(there, &space), written: there };
        let (job, name) = (self.job, work.name.clone());
        let answer = self.app.db.write(move |tx| admit(tx, job, &name, &demand, &space)).await?;
        match answer {
            Admission::Admitted => Ok(demand.bytes),
            Admission::Later(why) => Err(no_space(work, &why)),
            Admission::Never(why) => Err(Error::permanent(ErrorCode::WorkSpaceTooSmall, why)),
        }
    }
}

impl Room for JobRoom {
    fn take(&self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut reserved = self.reserved.lock().await;
            let there = self.there.load(Ordering::SeqCst) + bytes;
            if there > *reserved {
                *reserved = self.grow(there).await?;
            }
            self.there.fetch_add(bytes, Ordering::SeqCst);
            Ok(())
        })
    }

    fn give(&self, bytes: u64) {
        let less = |there: u64| Some(there.saturating_sub(bytes));
        let _ = self.there.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }
}

/// Room for what is kept outside of the work space: there is some while the file system is not
/// fuller than a work space may be.
pub struct DiskRoom {
    disk: WorkSpace,
    /// Bytes that may come before the file system is looked at again.
    granted: Mutex<u64>,
}

impl DiskRoom {
    pub fn new(app: &App, directory: &Path) -> DiskRoom {
        let disk = WorkSpace { path: directory.to_path_buf(), ..app.settings.work_space.clone() };
        DiskRoom { disk, granted: 0.into() }
    }
}

impl Room for DiskRoom {
    fn take(&self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut granted = self.granted.lock().await;
            if bytes > *granted {
                let space = Space::of(&self.disk)?;
                let more = bytes + step(0, &space);
                if space.used.saturating_add(more) > space.stopped() {
                    let why = format!("its file system is {}% full", space.stop_percent);
                    return Err(no_space(&self.disk, &why));
                }
                *granted = more;
            }
            *granted -= bytes;
            Ok(())
        })
    }

    fn give(&self, _: u64) {}
}

fn no_space(work: &WorkSpace, why: &str) -> Error {
    let shown = work.path.display();
    let message = format!("there is no more room in {shown}: {why}; make room, or try again later");
    Error::transient(ErrorCode::NoSpace, message).at("work space")
}

fn reserved_by(tx: &mut Tx<'_>, job: JobId) -> Result<u64> {
    const RESERVED: Statement = statement!(space::reserved_by_job);
    let found: Option<(i64,)> = tx.first(&RESERVED, &db::params![job])?;
    Ok(found.and_then(|(bytes,)| u64::try_from(bytes).ok()).unwrap_or(0))
}

/// Bytes of the files below a directory, which need not be there.
fn bytes_below(directory: &Path) -> Result<u64> {
    let fail = |e: std::io::Error| crate::package::unreadable(directory, &e);
    let entries = match std::fs::read_dir(directory) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(fail)?,
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.map_err(fail)?;
        bytes += match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_below(&entry.path())?,
            Ok(meta) => meta.len(),
            Err(_) => 0,
        };
    }
    Ok(bytes)
}
