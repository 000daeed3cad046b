//! Which object is this? Finds it or reserves an identifier for it, and compares what was
//! deposited with its current version, file by file.

use super::earlier::{self, Counted, Repairs};
use super::verifying::fixity_check;
use super::{Run, Step, failpoint, waits_for_disks};
use crate::ErrorCode;
use crate::metadata::Metadata;
use crate::model::codes::ObjectState;
use crate::model::error::Result;
use crate::model::error::into_queue;
use crate::model::event::Event;
use crate::model::identity::SaidIds;
use crate::model::item::{Mode, Update, stem};
use crate::model::profile::{Identifiers, Profile};
use crate::premis::EventType;
use crate::registry;
use crate::registry::derived::{self, Meeting};
use crate::registry::events;
use crate::registry::ingest::{self, Ingest};
use crate::registry::resolve::{self, Asked, Counts, Found, Resolved};
use db::{Statement, Tx, statement};
use queue::{JobId, Outcome, StageSettings};
use std::sync::Arc;

pub struct Resolving;

impl Step for Resolving {
    const NAME: &'static str = "resolving";

    fn defaults() -> StageSettings {
        waits_for_disks()
    }

    async fn run(mut run: Run<'_>) -> Result<Outcome> {
        let mut asked = asked(&run)?;
        let job = run.id();
        let replaces = update_of(&run) == Update::Replace;
        let derived = asked.identity.derived.then(|| Arc::new(Derived::of(&run)));
        let known = run.ingest.clone();
        run.app.db.read(move |tx| ingest::check_complete(tx, &known)).await?;
        let (resolved, counts) = loop {
            let (question, derived) = (asked.clone(), derived.clone());
            let answer = run
                .app
                .db
                .write(move |tx| answer(tx, job, &question, replaces, derived.as_deref()))
                .await?;
            match answer {
                (Resolved::Elsewhere(lock), _) => return Ok(Outcome::Relock(lock)),
                (Resolved::NeedsIdentifier, _) => {
                    let minted =
                        run.app.mint_outside(run.id(), &run.ingest.said.clone().settled()).await?;
                    failpoint("resolving.minted");
                    asked.minted = Some(minted);
                }
                (Resolved::Found(found), counts) => break (found, counts),
            }
        };
        failpoint("resolving.classified");
        let object = resolved.object;
        let nothing_new = resolved.state == ObjectState::Active
            && counts.files_new + counts.files_changed + counts.files_absent == 0;
        run.ingest.object = Some(object);
        run.ingest.version = Some(resolved.head + 1);
        // What was said is kept apart: if the job resolves again, the version before may be another. Files
        // that are unchanged say what they said before, when an option may have overruled them.
        let said = if nothing_new { &run.item.metadata } else { &run.ingest.said };
        let before =
            resolved.metadata.as_deref().map_or_else(Metadata::default, Metadata::of_registry);
        run.ingest.metadata = said.clone().or(before.clone()).settled();
        run.ingest.unchanged = nothing_new && run.ingest.metadata == before;
        let summary = &mut run.ingest.summary;
        summary.identifier = resolved.identifier.clone();
        summary.local_ids = resolved.local_ids.clone();
        summary.derived = asked.identity.derived.then(|| asked.identity.local_ids.concat());
        // A run that begins again has warned of them already.
        for warning in &resolved.warnings {
            let warning = format!("[{}] {warning}", ErrorCode::LocalIdTaken);
            if !summary.warnings.contains(&warning) {
                summary.warnings.push(warning);
            }
        }
        summary.files = counts.files;
        summary.bytes = counts.bytes;
        summary.files_new = counts.files_new;
        summary.files_changed = counts.files_changed;
        summary.files_unchanged = counts.files_unchanged;
        summary.files_absent = counts.files_absent;
        let checked = match run.ingest.unchanged {
            true => {
                warn_of_directories(&mut run, resolved.head).await?;
                check_copies(&run).await?
            }
            false => Vec::new(),
        };
        let (ingest, is_new) = (run.to_save(), resolved.state == ObjectState::Reserved);
        let identifier = resolved.identifier;
        let here = run.app.installation.clone();
        run.context.record(move |tx| {
            ingest::save(tx, &ingest)?;
            if is_new {
                let assigned = Event::of(&here, job, EventType::IdentifierAssignment, "", tx.now());
                events::keep(tx, job, &[assigned.note(identifier.clone())])?;
            }
            if ingest.unchanged {
                record_checks(tx, &here, &ingest, &checked).map_err(into_queue)?;
            }
            Ok(())
        });
        if run.ingest.unchanged {
            return Ok(Outcome::Skip(format!("nothing changed since version {}", resolved.head)));
        }
        let targets =
            run.required_stores().iter().map(|name| crate::stores::target(name)).collect();
        Ok(Outcome::Success(queue::Handover {
            targets: Some(targets),
            ..queue::Handover::default()
        }))
    }
}

/// Empty directories alone make no version, and so they are not recorded.
async fn warn_of_directories(run: &mut Run<'_>, head: i64) -> Result<()> {
    let (job, object) = (run.id(), run.ingest.object.unwrap_or_default());
    let count = run.app.db.read(move |tx| resolve::new_directories(tx, job, object, head)).await?;
    if count == 0 {
        return Ok(());
    }
    let told = format!("[{}]", ErrorCode::DirectoriesNotRecorded);
    run.ingest.summary.warnings.retain(|warning| !warning.starts_with(&told));
    run.ingest.summary.warnings.push(format!(
        "{told} empty directories ({count}) are new, and nothing else is: they make no version, so they are not recorded"
    ));
    Ok(())
}

/// A deposit changes nothing only if every required store has what it would change.
async fn check_copies(run: &Run<'_>) -> Result<Vec<(String, Counted)>> {
    let members = super::storing::package(run)?.open()?;
    let mut checked = Vec::new();
    for name in run.required_stores() {
        let place = run.app.stores.get(&name).await?;
        let repairs = Repairs::new(&members);
        checked.push((name, earlier::whole_copy(run, &place, &repairs).await?));
    }
    Ok(checked)
}

/// Records what was repaired and what was read. The events belong to the object and to no version:
/// the deposit makes none. The copies are not verified by it: content of earlier versions was not
/// read.
fn record_checks(
    tx: &mut Tx<'_>,
    here: &str,
    ingest: &Ingest,
    checked: &[(String, Counted)],
) -> Result<()> {
    const CURRENT_READ: Statement = statement!(stages::copy_current_read);
    let now = tx.now();
    let mut events = events::kept(tx, ingest.job)?;
    events.retain(|event| event.kind == EventType::Recovery.as_str());
    for (store, counted) in checked {
        events.extend(fixity_check(here, ingest.job, store, *counted, now));
        if counted.listed == 0 {
            tx.send(&CURRENT_READ, &db::params![ingest.object, store, now])?;
        }
    }
    registry::events::insert(tx, ingest.object, None, Some(ingest.job), &events)
}

/// Which object it is, and if that is known, what of it is new.
fn answer(
    tx: &mut Tx<'_>,
    job: JobId,
    asked: &Asked,
    replaces: bool,
    derived: Option<&Derived>,
) -> Result<(Resolved, Counts)> {
    let resolved = resolve::resolve(tx, job, asked)?;
    let counts = match &resolved {
        Resolved::Found(found) => resolve::classify(tx, job, found.object, replaces)?,
        _ => Counts::default(),
    };
    if let (Resolved::Found(found), false) = (&resolved, replaces) {
        resolve::carry_directories(tx, job, found)?;
    }
    if let (Resolved::Found(found), Some(derived)) = (&resolved, derived) {
        derived.check(found, &counts)?;
    }
    Ok((resolved, counts))
}

/// What has to be known of a deposit that is recognised by its name only.
struct Derived {
    name: String,
    place: String,
    mode: Mode,
    profile: Profile,
    is_row: bool,
}

impl Derived {
    fn of(run: &Run<'_>) -> Derived {
        Derived {
            name: stem(&run.item.name).to_string(),
            place: run.item.place(),
            mode: run.item.mode,
            profile: run.profile.clone(),
            is_row: run.item.line.is_some(),
        }
    }

    fn check(&self, found: &Found, counts: &Counts) -> Result<()> {
        if found.state != ObjectState::Active {
            return Ok(());
        }
        let leaving = counts.files_changed + counts.files_absent;
        let meeting = Meeting::of(found, &self.name, &self.place, leaving);
        derived::check(&meeting, self.mode, &self.profile, self.is_row)
    }
}

/// The deposit's choice, else the collection's.
pub fn update_of(run: &Run<'_>) -> Update {
    run.item.update.unwrap_or(run.profile.update_mode)
}

/// What the deposit and the package say of which object this is.
fn asked(run: &Run<'_>) -> Result<Asked> {
    let collection = run.ingest.collection.clone();
    let summary = &run.ingest.summary;
    let of_package = match summary.identifier.is_empty() && summary.of_package.is_empty() {
        // Validated by an earlier version of this program, which kept them there.
        true => &summary.local_ids,
        false => &summary.of_package,
    };
    let said = SaidIds {
        identifier: run.item.identifier.as_deref(),
        local_ids: &run.item.local_ids,
        of_package,
        name: &run.item.name,
    };
    let identity = said.identity(&run.profile, &collection)?;
    Ok(Asked {
        place: identity.derived.then(|| run.item.place()),
        identity,
        minted: None,
        lock: run.job.lease.lock.clone(),
        mode: run.item.mode,
        minted_by: match run.profile.identifiers {
            Identifiers::Mint => resolve::MintedBy::Us(run.app.minter()?),
            Identifiers::Ezid => resolve::MintedBy::Service,
            Identifiers::Supplied => resolve::MintedBy::Nobody,
        },
        title: run.ingest.said.clone().settled().what,
        collection,
    })
}
