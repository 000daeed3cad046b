//! Replaces damaged content of earlier versions with the deposited bytes of the same digest.

use super::deposited;
use crate::ErrorCode;
use crate::blocking::blocking;
use crate::model::error::{Error, Result};
use crate::model::event::Event;
use crate::pipeline::ingest::Run;
use crate::pipeline::ingest::storing::{Content, content};
use crate::pipeline::ingest::verifying::{differs, sha256_to_announce};
use crate::premis::EventType;
use crate::registry::events;
use crate::registry::ingest::JobFile;
use crate::stores::content::{Fault, Referred};
use crate::stores::{Place, store_error};
use bagit::source::Members;
use ocfl::Sealed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{ErrorKind, PutOptions};

/// So many files are named in one event.
const NAMED_MAX: usize = 100;

/// The deposited bytes, and how many files were repaired with them.
pub struct Repairs<'a> {
    members: &'a Arc<dyn Members>,
    made: AtomicU64,
}

impl<'a> Repairs<'a> {
    pub fn new(members: &'a Arc<dyn Members>) -> Repairs<'a> {
        Repairs { members, made: AtomicU64::new(0) }
    }

    pub fn any(&self) -> bool {
        self.made.load(Ordering::Relaxed) > 0
    }

    /// Repairs content from whatever deposited file has its digest; fails if none has.
    pub async fn make_by_digest(
        &self,
        run: &Run<'_>,
        place: &Place,
        sealed: Sealed<'_>,
        damaged: Vec<(Referred, Fault)>,
    ) -> Result<()> {
        let mut found = Vec::new();
        for (referred, fault) in damaged {
            match deposited(run, &referred.sha512).await? {
                Some(file) => found.push((file, referred, fault)),
                None => {
                    let file = format!("{} ({})", referred.path, referred.key);
                    return Err(beyond(run, place, &file, &fault).about(&referred.path));
                }
            }
        }
        self.make(run, place, sealed, found).await
    }

    /// Repairs content, each from the deposited file that has its digest. The event is kept first,
    /// so that no repair goes unrecorded whenever the process ends.
    pub async fn make(
        &self,
        run: &Run<'_>,
        place: &Place,
        sealed: Sealed<'_>,
        damaged: Vec<(JobFile, Referred, Fault)>,
    ) -> Result<()> {
        let Some((_, first, _)) = damaged.first() else { return Ok(()) };
        let aspect = format!("{} {}", place.name, first.key);
        let (note, here, id) = (note(place, &damaged), run.app.installation.clone(), run.id());
        run.context
            .write(move |tx| {
                let event = Event::of(&here, id, EventType::Recovery, &aspect, tx.now());
                let detail = "damaged content of earlier versions was replaced with the deposited bytes of the same sha512";
                events::keep(tx, id, &[event.detail(detail).note(note.clone())])
            })
            .await?;
        for (file, referred, fault) in damaged {
            tracing::warn!(
                job = id.number(),
                store = place.name,
                key = referred.key,
                "content of an earlier version {fault}; it is replaced with the deposited bytes"
            );
            self.one(run, place, sealed, file, &referred).await?;
            self.made.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn one(
        &self,
        run: &Run<'_>,
        place: &Place,
        sealed: Sealed<'_>,
        file: JobFile,
        referred: &Referred,
    ) -> Result<()> {
        let sha256 = sha256_to_announce(place, self.members, &file).await?;
        let Content { body, reading, stop } = content(run, self.members, &file);
        let storage_class = place.class.clone();
        let options = PutOptions { storage_class, sha256, ..PutOptions::default() };
        let restored = sealed.restore(&referred.sha512, body, &options).await;
        let _ = reading.await;
        if stop.is_raised() {
            return Err(Error::Stopped);
        }
        match restored {
            Ok(()) => Ok(()),
            Err(ocfl::Error::Store(error))
                if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Body) =>
            {
                let (place, members) = (place.clone(), self.members.clone());
                blocking(move || Err(differs(&place, &members, &file))).await
            }
            Err(error) => Err(store_error(&place.name, error)),
        }
    }
}

fn note(place: &Place, damaged: &[(JobFile, Referred, Fault)]) -> String {
    let named = damaged.iter().take(NAMED_MAX);
    let mut names: Vec<String> =
        named.map(|(_, referred, fault)| format!("{} {fault}", referred.key)).collect();
    if damaged.len() > NAMED_MAX {
        names.push(format!("and {} more", damaged.len() - NAMED_MAX));
    }
    format!("{} files in store {}: {}", damaged.len(), place.name, names.join("; "))
}

/// Content that is damaged and that the deposit does not hold.
pub(super) fn beyond(run: &Run<'_>, place: &Place, file: &str, fault: &Fault) -> Error {
    let identifier = &run.ingest.summary.identifier;
    Error::permanent(
        ErrorCode::StoreDamaged,
        format!(
            "store {}: {file} of {identifier} {fault}, and the deposit does not hold its bytes; `accession check --content {identifier}` lists all damage; restore the file from another store or a backup, then requeue the job with `accession jobs requeue {}`",
            place.name,
            run.id()
        ),
    )
}
