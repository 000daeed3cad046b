//! Seals the version in every store — the moment they show it — and records it in one
//! transaction. Killed at any point and run again, it seals and records once. From here the job
//! only goes forward.

use super::resolving::update_of;
use super::storing::submitter;
use super::{Run, Step, failpoint, waits_for_disks};
use crate::ErrorCode;
use crate::model::error::{Error, Result, into_queue};
use crate::model::item::Update;
use crate::registry::ingest;
use crate::registry::record::{self, NewVersion};
use crate::registry::superseding;
use crate::stores::store_error;
use futures_util::future::try_join_all;
use ocfl::{Algorithm, Unsealed};
use queue::{Outcome, StageSettings};

pub struct Recording;

impl Step for Recording {
    const NAME: &'static str = "recording";

    fn defaults() -> StageSettings {
        waits_for_disks()
    }

    async fn run(run: Run<'_>) -> Result<Outcome> {
        let job = run.id();
        if run.ingest.unchanged {
            run.context.record(move |tx| superseding::compare(tx, job).map_err(into_queue));
            return Ok(Outcome::success());
        }
        let known = run.ingest.clone();
        run.app.db.read(move |tx| ingest::check_complete(tx, &known)).await?;
        let version = run.ingest.version.unwrap_or(0);
        let named = ocfl::VersionName::FIRST;
        let name = (1..version).try_fold(named, |name, _| name.next()).ok_or_else(|| {
            Error::permanent(
                ErrorCode::VersionsFull,
                "the object has as many versions as there can be",
            )
        })?;
        try_join_all(run.ingest.stores.iter().map(|(store, waiting)| async {
            let place = run.app.stores.get(store).await?;
            let unsealed = Unsealed {
                id: run.ingest.summary.identifier.clone(),
                path: waiting.path.clone(),
                version: name,
                inventory_digest: waiting.digest.clone(),
                algorithm: Algorithm::Sha512,
            };
            place.root.seal(&unsealed).await.map_err(|e| store_error(store, e))?;
            failpoint("recording.sealed");
            Ok::<_, Error>(())
        }))
        .await?;
        let new = NewVersion {
            submitter: submitter(&run),
            message: Some(format!("Deposit of {}", run.name())),
            place: run.item.place(),
            replaces: update_of(&run) == Update::Replace,
            fixity_micros: run.profile.fixity_micros(),
            ingest: run.ingest.clone(),
        };
        run.context.record(move |tx| {
            record::record(tx, &new).map_err(into_queue)?;
            superseding::compare(tx, job).map_err(into_queue)
        });
        failpoint("recording.end");
        Ok(Outcome::success())
    }
}
