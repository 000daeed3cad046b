//! Removes what the job owns: its directory and its reservation; and, if the collection says so,
//! the deposited package, only if it is unchanged since it was ingested. A failure here never
//! makes an object count as not preserved.

use super::{Run, Step, failpoint};
use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::package::fingerprint_of;
use crate::pipeline::ingest::provisioning::give_back;
use crate::registry::ingest;
use bagit::beneath::{self, EntryKind};
use db::{Statement, Tx, statement};
use queue::{JobId, Outcome};
use std::path::Path;

pub struct Cleaning;

impl Step for Cleaning {
    const NAME: &'static str = "cleaning";

    async fn run(run: Run<'_>) -> Result<Outcome> {
        let note = if run.profile.remove_packages { remove_package(&run).await? } else { None };
        remove_directory(&run.directory())?;
        failpoint("cleaning.removed");
        let job = run.id();
        run.context.record(move |tx| forget(tx, job));
        Ok(Outcome::Success(queue::Handover { note, ..queue::Handover::default() }))
    }
}

/// The directory of one job, whose name no other job's begins with.
pub fn remove_directory(directory: &Path) -> Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::transient(
            ErrorCode::WorkSpace,
            format!(
                "{} cannot be removed: {error}; remove it by hand, the object is preserved",
                directory.display()
            ),
        )),
        _ => Ok(()),
    }
}

/// The rows of a job that only its way through the stages needed.
pub fn forget(tx: &mut Tx<'_>, job: JobId) -> queue::Result<()> {
    const EVENTS: Statement = statement!(stages::forget_ingest_events);
    const CLEANED: Statement = statement!(stages::ingest_cleaned);
    ingest::forget_files(tx, job)?;
    tx.send(&EVENTS, &db::params![job])?;
    give_back(tx, job)?;
    let now = tx.now();
    tx.send(&CLEANED, &db::params![job, now])?;
    Ok(())
}

/// What was deposited is the depositor's: it goes only if the collection says so, and only if it
/// is, byte for byte, what is preserved now in every store.
async fn remove_package(run: &Run<'_>) -> Result<Option<String>> {
    let Some(path) = run.item.source.path() else { return Ok(None) };
    let shown = path.display();
    // A link above the package would lead to what another user has under the same name.
    let (folder, name) = match beneath::open_parent(&path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Ok(Some(format!("{shown} was not removed: {error}"))),
    };
    let Ok(found) = folder.info(name) else { return Ok(None) };
    if found.kind == EntryKind::Directory {
        return Ok(Some(format!(
            "{shown} is a directory and stays; only archives and files are removed"
        )));
    }
    let known = run.ingest.package.as_ref().and_then(|p| p.deposited.clone());
    if found.kind != EntryKind::File || known != Some(fingerprint_of(&found)) {
        return Ok(Some(format!("{shown} has changed since it was ingested, and stays")));
    }
    if run.ingest.summary.goes_on {
        return Ok(Some(format!(
            "{shown} stays, because it has data that is in no file of the object, beside the archive or outside of the bag; see what that is, and remove the package by hand"
        )));
    }
    let job = run.id();
    let kept = run.app.db.read(move |tx| preserved_in(tx, job)).await?;
    if let Some(store) = run.required_stores().into_iter().find(|store| !kept.contains(store)) {
        return Ok(Some(format!(
            "{shown} stays, because store {store} has no verified copy of what was ingested"
        )));
    }
    match folder.remove_file(name) {
        Ok(()) => Ok(Some(format!("{shown} was removed, as the collection's profile says"))),
        Err(error) => Ok(Some(format!("{shown} could not be removed: {error}"))),
    }
}

/// The stores that have a verified copy of everything that the job has read.
fn preserved_in(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<String>> {
    const STORES: Statement = statement!(stages::preserved_in);
    Ok(tx.query::<(String,)>(&STORES, &db::params![job])?.into_iter().map(|(name,)| name).collect())
}
