//! The rows of a batch that has not been expanded: read from the manifest that is kept with it.

use crate::ErrorCode;
use crate::app::App;
use crate::model::error::Result;
use crate::package::manifest::{self, Common, Rows};
use crate::pipeline::batch::expanding;
use crate::registry::deposit::{Deposit, find};
use crate::report::UnfinishedLine;
use queue::BatchState;
use queue::rules::batch::Batch;
use std::path::Path;

/// A larger manifest is not read for a report: its batch is one line until it is expanded.
const READ_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The rows of a pending batch as lines of its report. `None` if the batch is not pending, and where its
/// rows are not known: the manifest has yet to be fetched, cannot be read, or is very large.
pub fn rows(app: &App, batch: &Batch) -> Result<Option<Vec<UnfinishedLine>>> {
    if batch.state != BatchState::Pending {
        return Ok(None);
    }
    let id = batch.id;
    let deposit = match app.db.read_blocking(move |tx| find(tx, id)) {
        Ok(deposit) => deposit,
        // A batch of a plain queue.
        Err(error) if error.is(ErrorCode::UnknownDeposit) => return Ok(None),
        Err(error) => return Err(error),
    };
    let state = if batch.is_held() { "held" } else { "not begun" };
    let line = |subject| UnfinishedLine { subject, state: state.to_string(), ..Default::default() };
    // What is wrong with a manifest is found, and said, when the batch is expanded.
    let subjects = subjects(&app.settings.payloads, &deposit);
    Ok(subjects.map(|subjects| subjects.into_iter().map(line).collect()))
}

fn subjects(payloads: &Path, deposit: &Deposit) -> Option<Vec<String>> {
    let path = payloads.join(deposit.payload.as_ref()?);
    if std::fs::metadata(&path).ok()?.len() > READ_BYTES_MAX {
        return None;
    }
    let mut reader = expanding::open(&path, &deposit.name).ok()?;
    let mut subjects = Vec::new();
    while let Some(row) = reader.next_row().ok()? {
        let profile = reader.header().map(|header| header.profile)?;
        let Rows::Each(kind) = manifest::rows_of(profile) else { return None };
        let Some(item) = manifest::item_of(&row, kind, &Common::default()) else { continue };
        subjects.push(expanding::subject_of_row(&item).ok()?);
    }
    Some(subjects)
}
