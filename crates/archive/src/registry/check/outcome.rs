//! Records what a check of a copy has found: events, and what is known of the copy from now on.

use super::{Counts, Depth, Finding, Seen};
use crate::model::error::Result;
use crate::model::event::Event;
use crate::model::id::ObjectId;
use crate::model::text::plural;
use crate::premis::{EventType, Role};
use crate::registry::events;
use crate::registry::view::CopyView;
use db::{Micros, Statement, Tx, statement};
use queue::JobId;
use std::collections::BTreeMap;

/// A check that is over.
pub struct Outcome<'a> {
    pub installation: &'a str,
    pub object: ObjectId,
    pub identifier: &'a str,
    pub copy: &'a CopyView,
    pub depth: Depth,
    pub seen: &'a Seen,
    /// Why the look ended early.
    pub failed: Option<&'a str>,
    /// When the look began: everything that was read was read after it.
    pub began: Micros,
    pub fixity_micros: Micros,
    /// Who had it checked.
    pub operator: &'a str,
}

/// Events that are written together.
const PORTION: usize = 1000;

/// Records the outcome. A listing that finds nothing is no news: nothing was read. Only a look that
/// read everything and found it good renews `verified_at`.
pub fn record(tx: &mut Tx<'_>, outcome: &Outcome<'_>) -> Result<()> {
    const CHECKED: Statement = statement!(copies::copy_checked);
    let Outcome { depth, seen, copy, began, .. } = outcome;
    let damage: Vec<&Finding> = seen.findings.iter().filter(|f| f.is_damage()).collect();
    let read = has_read(*depth, seen);
    if !read && damage.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    let verified = verifies(*depth, seen).then_some(*began);
    let due = verified.map(|at| at.saturating_add(outcome.fixity_micros));
    tx.send(
        &CHECKED,
        &db::params![
            outcome.object,
            &copy.store,
            &copy.digest,
            now,
            verified,
            i64::from(!damage.is_empty()),
            due
        ],
    )?;
    events::insert(tx, Some(outcome.object), None, None, &[of_copy(outcome, &damage, now)])?;
    let mut by_version: BTreeMap<i64, Vec<&Finding>> = BTreeMap::new();
    for finding in damage.into_iter().filter(|f| f.path.is_some()) {
        if let Some(since) = finding.since {
            by_version.entry(since).or_default().push(finding);
        }
    }
    for (version, bad) in by_version {
        for portion in bad.chunks(PORTION) {
            let portion: Vec<Event> =
                portion.iter().map(|finding| of_file(outcome, finding, now)).collect();
            events::insert(tx, Some(outcome.object), Some(version), None, &portion)?;
        }
    }
    Ok(())
}

fn has_read(depth: Depth, seen: &Seen) -> bool {
    depth == Depth::Reading && seen.counts.read > 0
}

/// Whether a look has read everything and found it good.
pub fn verifies(depth: Depth, seen: &Seen) -> bool {
    has_read(depth, seen) && seen.complete && !seen.findings.iter().any(Finding::is_damage)
}

/// No job does it; the moment it began tells it from other checks.
fn event(outcome: &Outcome<'_>, path: &str, now: Micros) -> Event {
    let Outcome { installation, identifier, copy, began, .. } = outcome;
    let aspect = format!("{} {identifier} {began} {path}", copy.store);
    let event = Event::of(installation, JobId::default(), EventType::FixityCheck, &aspect, now);
    event.person(outcome.operator, Role::Operator)
}

/// The event of the whole copy.
fn of_copy(outcome: &Outcome<'_>, damage: &[&Finding], now: Micros) -> Event {
    let Outcome { depth, seen, copy, .. } = outcome;
    let Counts { files, read, bytes_read, cold } = seen.counts;
    let mut did = match depth {
        Depth::Reading => {
            format!("{} of {bytes_read} bytes read and compared", plural(read, "file"))
        }
        Depth::Listing => format!("{} listed, not read", plural(files, "file")),
    };
    if cold > 0 {
        did.push_str(&format!("; {cold} in cold storage listed, not read"));
    }
    if let Some(error) = outcome.failed {
        did.push_str(&format!("; the check ended early: {error}"));
    }
    let note = match damage {
        [] => format!("{} in store {}", plural(files, "file"), copy.store),
        [only] => format!("store {}: {}: {}", copy.store, only.kind, only.message),
        [first, ..] => format!(
            "store {}: {} findings, the first: {}: {}",
            copy.store,
            damage.len(),
            first.kind,
            first.message
        ),
    };
    let event = event(outcome, "", now).detail(did).note(note);
    match (damage.is_empty(), seen.complete && seen.findings.is_empty()) {
        (false, _) => event.outcome("failure"),
        (true, false) => event.outcome("warning"),
        (true, true) => event,
    }
}

fn of_file(outcome: &Outcome<'_>, finding: &Finding, now: Micros) -> Event {
    let path = finding.path.clone().unwrap_or_default();
    let note = format!("store {}: {}", outcome.copy.store, finding.message);
    let event = event(outcome, &format!("{path} {}", finding.since.unwrap_or(0)), now);
    let event = event.outcome("failure").detail(finding.kind).note(note);
    // Records of versions are no files of the object.
    let path = (!path.contains("/content/accession/")).then_some(path);
    Event { path, ..event }
}
