//! Which object is this? Finds it or reserves an identifier for it, and compares what was
//! deposited with its current version, file by file.

use super::earlier::{self, Counted, Repairs};
use super::recording::into_queue;
use super::verifying::fixity_detail;
use super::{Run, failpoint};
use crate::codes::ObjectState;
use crate::error::{Error, Result};
use crate::event::{self, Event};
use crate::identifier;
use crate::ingest::{self, Ingest};
use crate::item::{Mode, Update, stem};
use crate::premis::EventType;
use crate::profile::{Identifiers, LocalIds, Profile, UpdateMode};
use crate::registry;
use crate::registry::resolve::{self, Asked, Counts, Resolved};
use db::{Micros, Statement, Tx, statement};
use queue::Outcome;

pub async fn run(mut run: Run<'_>) -> Result<Outcome> {
    let mut asked = asked(&run)?;
    let job = run.id();
    let replaces = update_of(&run) == Update::Replace;
    let known = run.ingest.clone();
    run.site.db.read(move |tx| ingest::check_complete(tx, &known)).await?;
    let (resolved, counts) = loop {
        let question = asked.clone();
        let answer = run.site.db.write(move |tx| answer(tx, job, &question, replaces)).await?;
        match answer {
            (Resolved::Elsewhere(lock), _) => return Ok(Outcome::Relock(lock)),
            (Resolved::NeedsIdentifier, _) => {
                let minted = run.site.mint_outside(run.id(), &run.ingest.metadata).await?;
                failpoint("resolving.minted");
                asked.identifier = Some(minted);
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
    run.ingest.unchanged = nothing_new
        && resolved.metadata.as_deref()
            == Some(serde_json::json!(run.ingest.metadata).to_string().as_str());
    let summary = &mut run.ingest.summary;
    summary.identifier = resolved.identifier.clone();
    summary.local_ids = resolved.local_ids.clone();
    summary.files = counts.files;
    summary.bytes = counts.bytes;
    summary.files_new = counts.files_new;
    summary.files_changed = counts.files_changed;
    summary.files_unchanged = counts.files_unchanged;
    summary.files_absent = counts.files_absent;
    let checked = match run.ingest.unchanged {
        true => check_copies(&run).await?,
        false => Vec::new(),
    };
    let (ingest, is_new) = (run.to_save(), resolved.state == ObjectState::Reserved);
    let identifier = resolved.identifier;
    let here = run.site.installation.clone();
    let fixity_micros = i64::from(run.profile.fixity_days) * 86_400_000_000;
    run.context.record(move |tx| {
        ingest::save(tx, &ingest)?;
        if is_new {
            let assigned = Event::of(&here, job, EventType::IdentifierAssignment, "", tx.now());
            event::keep(tx, job, &[assigned.note(identifier.clone())])?;
        }
        if ingest.unchanged {
            record_checks(tx, &here, &ingest, &checked, fixity_micros).map_err(into_queue)?;
        }
        Ok(())
    });
    if run.ingest.unchanged {
        return Ok(Outcome::Skip(format!("nothing changed since version {}", resolved.head)));
    }
    let targets = run.required_stores().iter().map(|name| crate::stores::target(name)).collect();
    Ok(Outcome::Success(queue::Handover { targets: Some(targets), ..queue::Handover::default() }))
}

/// A deposit changes nothing only if every required store has what it would change.
async fn check_copies(run: &Run<'_>) -> Result<Vec<(String, Counted)>> {
    let members = super::storing::package(run)?.open()?;
    let mut checked = Vec::new();
    for name in run.required_stores() {
        let place = run.site.stores.get(&name).await?;
        let repairs = Repairs::new(&members);
        checked.push((name, earlier::whole_copy(run, &place, &repairs).await?));
    }
    Ok(checked)
}

/// Records what was repaired and what was read. The events belong to the object and to no version:
/// the deposit makes none.
fn record_checks(
    tx: &mut Tx<'_>,
    here: &str,
    ingest: &Ingest,
    checked: &[(String, Counted)],
    fixity_micros: Micros,
) -> Result<()> {
    const VERIFIED: Statement = statement!("sql/copy_verified");
    let now = tx.now();
    let mut events = event::kept(tx, ingest.job)?;
    events.retain(|event| event.kind == EventType::Recovery.as_str());
    for (store, counted) in checked.iter().filter(|(_, counted)| counted.read > 0) {
        let check = Event::of(here, ingest.job, EventType::FixityCheck, store, now);
        let note = format!("{} files in store {store}", counted.read + counted.listed);
        events.push(check.detail(fixity_detail(counted.read, counted.listed)).note(note));
        if counted.listed == 0 {
            let due = now.saturating_add(fixity_micros);
            tx.send(&VERIFIED, &db::params![ingest.object, store, now, due])?;
        }
    }
    registry::events::insert(tx, ingest.object, None, Some(ingest.job), &events)
}

/// Which object it is, and if that is known, what of it is new.
fn answer(tx: &mut Tx<'_>, job: i64, asked: &Asked, replaces: bool) -> Result<(Resolved, Counts)> {
    let resolved = resolve::resolve(tx, job, asked)?;
    let counts = match &resolved {
        Resolved::Found(found) => resolve::classify(tx, job, found.object, replaces)?,
        _ => Counts::default(),
    };
    Ok((resolved, counts))
}

/// The deposit's choice, else the collection's.
pub fn update_of(run: &Run<'_>) -> Update {
    run.item.update.unwrap_or(match run.profile.update_mode {
        UpdateMode::Replace => Update::Replace,
        UpdateMode::Add => Update::Add,
    })
}

/// What the deposit and the package say of which object this is.
fn asked(run: &Run<'_>) -> Result<Asked> {
    let collection = run.ingest.collection.clone();
    let said = SaidIds {
        identifier: run.item.identifier.as_deref(),
        local_ids: &run.item.local_ids,
        of_package: &run.ingest.summary.local_ids,
    };
    let (identifier, mut local_ids) = said.check(&run.profile, &collection)?;
    if local_ids.is_empty() && identifier.is_none() {
        // The package's name is what a later deposit of it can be recognised by.
        local_ids.push(stem(&run.item.name).to_string());
    }
    local_ids.sort();
    local_ids.dedup();
    Ok(Asked {
        identifier,
        local_ids,
        lock: run.job.lease.lock.clone(),
        mode: run.item.mode,
        minted_by: match run.profile.identifiers {
            Identifiers::Mint => resolve::MintedBy::Us(run.site.minter()?),
            Identifiers::Ezid => resolve::MintedBy::Service,
            Identifiers::Supplied => resolve::MintedBy::Nobody,
        },
        title: run.ingest.metadata.what.clone(),
        collection,
    })
}

/// What is said of which object a package is: by the deposit, and by the package itself.
pub struct SaidIds<'a> {
    pub identifier: Option<&'a str>,
    pub local_ids: &'a [String],
    /// The identifiers in `bag-info.txt`, of which one may be an ARK.
    pub of_package: &'a [String],
}

impl SaidIds<'_> {
    /// The object's identifier, if it is said, and its local identifiers; an error if they are not
    /// valid, contradict each other, or are not what the collection takes.
    pub fn check(
        &self,
        profile: &Profile,
        collection: &str,
    ) -> Result<(Option<String>, Vec<String>)> {
        let given = self.identifier.map(identifier::normalise).transpose()?;
        let (arks, others): (Vec<&String>, Vec<&String>) =
            self.of_package.iter().partition(|id| identifier::is_ark(id));
        let inside = arks.first().map(|ark| identifier::normalise(ark)).transpose()?;
        if let (Some(given), Some(inside)) = (&given, &inside)
            && given != inside
        {
            return Err(Error::permanent(
                "contradictory_identifiers",
                format!(
                    "the deposit says it is {given}, and the package says it is {inside}; correct the one that is wrong"
                ),
            ));
        }
        let mut local_ids = self.local_ids.to_vec();
        local_ids.extend(others.into_iter().cloned());
        check_policy(profile, collection, &local_ids)?;
        Ok((given.or(inside), local_ids))
    }
}

fn check_policy(profile: &Profile, collection: &str, local_ids: &[String]) -> Result<()> {
    match profile.local_ids {
        LocalIds::Required if local_ids.is_empty() => Err(Error::permanent(
            "local_id_required",
            format!(
                "collection `{collection}` wants a local identifier for every object; give one with --local-id, in the manifest, or as External-Identifier in bag-info.txt"
            ),
        )),
        LocalIds::Forbidden if !local_ids.is_empty() => Err(Error::permanent(
            "local_id_forbidden",
            format!(
                "collection `{collection}` takes no local identifiers, and `{}` was given; leave it out",
                local_ids[0]
            ),
        )),
        _ => Ok(()),
    }
}

/// Refuses what contradicts the deposit's mode.
pub fn check_mode(mode: Mode, exists: bool, name: &str) -> Result<()> {
    match (mode, exists) {
        (Mode::New, true) => Err(Error::permanent(
            "object_exists",
            format!(
                "the deposit says that {name} is new, and it is there already; deposit it with --mode update or either"
            ),
        )),
        (Mode::Update, false) => Err(Error::permanent(
            "object_missing",
            format!(
                "the deposit says that {name} is there already, and it is not; deposit it with --mode new or either, or correct its identifier"
            ),
        )),
        _ => Ok(()),
    }
}
