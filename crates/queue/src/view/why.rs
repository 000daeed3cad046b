//! Why a job is not running now: one sentence, from the stored waiting state and the row that
//! caused it, so that it cannot disagree with the claim.

use crate::catalog::{Catalog, Stage};
use crate::codes::{State, Status};
use crate::error::Result;
use crate::id::{JobId, StageId};
use crate::rules::operator::pause::{self, Scope};
use crate::rules::operator::{JobRow, hold, look};
use crate::view::time::{ago, show_time};
use db::{Micros, Statement, Tx, statement};

/// Places in line are counted up to this.
const LINE_MAX: i64 = 1000;

/// Returns one sentence on why a job is not running, or how it ended.
pub fn why(tx: &mut Tx<'_>, now: Micros, catalog: &Catalog, job: JobId) -> Result<String> {
    let found = look(tx, job)?;
    match (found.status(), found.waiting) {
        (Status::Running, _) => running(tx, now, catalog, &found),
        (Status::Queued | Status::Held, Some(state)) => waiting(tx, now, catalog, &found, state),
        (Status::Failed, _) => failed(tx, catalog, &found),
        (status, _) => {
            let view = crate::view::show(tx, catalog, job)?;
            let at = view.ended_at.map(show_time).unwrap_or_default();
            let did = match (status, &view.ended_by) {
                (Status::Cancelled, Some(who)) => format!("was cancelled by {who}"),
                (status, _) => status.to_string(),
            };
            let why = view.ended_why.map(|w| format!(": {w}")).unwrap_or_default();
            Ok(format!("it {did} at {at}{why}"))
        }
    }
}

fn running(tx: &mut Tx<'_>, now: Micros, catalog: &Catalog, found: &JobRow) -> Result<String> {
    let view = crate::view::show(tx, catalog, found.id)?;
    let worker = view.worker.clone().unwrap_or_default();
    let since = view.since.unwrap_or(now);
    let asked = if found.cancel_requested { ", and has been asked to stop" } else { "" };
    let progress = view.progress.map(|p| format!(": {p}")).unwrap_or_default();
    let held = held_after(tx, catalog, found)?.unwrap_or_default();
    Ok(format!(
        "it is running {} on worker {worker} since {} ({}){asked}{held}{progress}",
        view.stage,
        show_time(since),
        ago(now - since)
    ))
}

/// Whether a running job is held when its run of the stage ends.
fn held_after(tx: &mut Tx<'_>, catalog: &Catalog, found: &JobRow) -> Result<Option<String>> {
    const HOLD: Statement = statement!(hold::find_hold);
    let (pipeline, stage) = found.place(catalog)?;
    if !hold::may_be_held(pipeline, stage, true) {
        return Ok(None);
    }
    let names = [
        ("job", Some(found.id.to_string())),
        ("batch", found.batch.map(|b| b.to_string())),
        ("collection", found.collection.clone()),
    ];
    for (kind, name) in names {
        let Some(name) = name else { continue };
        let hold: Option<(String, Micros, String)> = tx.first(&HOLD, &db::params![kind, &name])?;
        if let Some((who, at, reason)) = hold {
            return Ok(Some(format!(
                ", and is held when this stage ends: {kind} `{name}` is held by {who} since {}: {reason}",
                show_time(at)
            )));
        }
    }
    Ok(None)
}

fn failed(tx: &mut Tx<'_>, catalog: &Catalog, found: &JobRow) -> Result<String> {
    let view = crate::view::show(tx, catalog, found.id)?;
    let next = match view.recoverable {
        Some(false) => "it cannot be recovered; add a corrected one",
        _ => "requeue it once the cause is gone, or cancel it",
    };
    let message = view.error.unwrap_or_default();
    let at = view.ended_at.map(show_time).unwrap_or_default();
    Ok(format!(
        "it failed in {} at {at}: {message} ({}); {next}",
        view.stage,
        view.note.unwrap_or_default()
    ))
}

fn waiting(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    found: &JobRow,
    state: State,
) -> Result<String> {
    let (_, stage) = found.place(catalog)?;
    match state {
        State::Held => held(tx, found, found.blocked_on.as_deref().unwrap_or("job")),
        State::Delayed => delayed(tx, now, catalog, found),
        State::Parked => parked(tx, catalog, found),
        State::Blocked => blocked(tx, now, found),
        State::Starved => starved(tx, stage, found),
        State::Ready => ready(tx, now, catalog, stage, found),
    }
}

fn held(tx: &mut Tx<'_>, found: &JobRow, by: &str) -> Result<String> {
    const HOLD: Statement = statement!(hold::find_hold);
    const EVENT: Statement = statement!(hold::last_held_event);
    let name = match by {
        "batch" => found.batch.map(|b| b.to_string()),
        "collection" => found.collection.clone(),
        _ => None,
    };
    if let Some(name) = name
        && let Some((who, at, reason)) =
            tx.first::<(String, Micros, String)>(&HOLD, &db::params![by, &name])?
    {
        return Ok(format!("{by} `{name}` is held by {who} since {}: {reason}", show_time(at)));
    }
    let event: Option<(String, Micros, Option<String>)> =
        tx.first(&EVENT, &db::params![found.id])?;
    Ok(event.map_or("it is held; release it".to_string(), |(who, at, why)| {
        format!("it is held by {who} since {}: {}", show_time(at), why.unwrap_or_default())
    }))
}

fn delayed(tx: &mut Tx<'_>, now: Micros, catalog: &Catalog, found: &JobRow) -> Result<String> {
    let due = found.due.unwrap_or(now);
    let why = crate::view::show(tx, catalog, found.id)?.note;
    let at = format!("{} (in {})", show_time(due), ago(due - now));
    Ok(match why {
        Some(why) => format!("it waits until {at}: {why}"),
        None => format!("it is not due before {at}"),
    })
}

fn parked(tx: &mut Tx<'_>, catalog: &Catalog, found: &JobRow) -> Result<String> {
    const OWNER: Statement = statement!(line::lock_owner);
    const AHEAD: Statement = statement!(line::first_of_lock);
    let owner: Option<(JobId, StageId, Micros, Option<String>)> =
        tx.first(&OWNER, &db::params![&found.lock])?;
    if let Some((job, stage, since, worker)) = owner {
        let place = match worker {
            Some(worker) => format!("on worker {worker}"),
            None => format!("which waits in {}", catalog.stage_name(stage)),
        };
        return Ok(format!(
            "job {job} {place} owns the same lock `{}` since {}",
            found.lock,
            show_time(since)
        ));
    }
    let first: Option<(JobId,)> = tx.first(&AHEAD, &db::params![&found.lock, found.id])?;
    Ok(first.map_or("it is about to be let through".to_string(), |(job,)| {
        format!("job {job} has the same lock `{}` and goes first", found.lock)
    }))
}

fn blocked(tx: &mut Tx<'_>, now: Micros, found: &JobRow) -> Result<String> {
    let name = found.blocked_on.clone().unwrap_or_default();
    let target = crate::rules::breaker::all(tx)?
        .into_iter()
        .find(|t| t.name == name && t.opened_at.is_some());
    let Some(target) = target else {
        return Ok(format!("`{name}` is up again, and jobs that waited for it are being released"));
    };
    let since = show_time(target.opened_at.unwrap_or(now));
    let probe = match (target.probe_job, target.next_probe) {
        (Some(job), _) => format!("job {job} is looking whether it is up"),
        (None, Some(at)) if at > now => format!("next probe in {}", ago(at - now)),
        _ => "the next claim is a probe".to_string(),
    };
    let reason = target.reason.map(|r| format!(" ({r})")).unwrap_or_default();
    Ok(format!("`{name}` is down since {since}{reason}, {probe}"))
}

fn starved(tx: &mut Tx<'_>, stage: &Stage, found: &JobRow) -> Result<String> {
    const BUDGET: Statement = statement!(why::find_budget);
    const NEEDS: Statement = statement!(why::waiting_needs);
    let name = found.blocked_on.clone().unwrap_or_default();
    let (total, used): (Option<i64>, i64) = tx.one(&BUDGET, &db::params![&name])?;
    let own: Option<(Option<String>,)> = tx.first(&NEEDS, &db::params![found.id])?;
    let own: crate::Amounts =
        own.and_then(|o| o.0).and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
    let needs = own
        .get(&name)
        .copied()
        .unwrap_or(0)
        .max(stage.settings.needs.get(&name).copied().unwrap_or(0));
    let total = total.unwrap_or(i64::MAX);
    let hint = if needs > total { "; it can never fit: raise the budget or cancel it" } else { "" };
    Ok(format!("it needs {needs} of `{name}`; {} free of {total}{hint}", (total - used).max(0)))
}

fn ready(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    stage: &Stage,
    found: &JobRow,
) -> Result<String> {
    const LINE: Statement = statement!(line::place_in_line);
    const LIVE: Statement = statement!(workers::live_worker_stages);
    for p in pause::all(tx)? {
        let what = match p.scope {
            Scope::Everything => "everything".to_string(),
            Scope::Pipeline(id) if id == stage.pipeline => {
                format!("`{}`", catalog.pipeline(id)?.name)
            }
            Scope::Stage(id) if id == stage.id => format!("stage `{}`", stage.name),
            Scope::Pipeline(_) | Scope::Stage(_) => continue,
        };
        return Ok(format!(
            "{what} is paused by {} since {}: {}",
            p.who,
            show_time(p.at),
            p.reason
        ));
    }
    if hold::may_be_held(catalog.pipeline(stage.pipeline)?, stage, found.begun)
        && let Some(by) = hold::held_names(tx)?.of(found.batch, found.collection.as_deref())
    {
        return held(tx, found, by);
    }
    let live: Vec<(String, String)> = tx.query(&LIVE, &db::params![now])?;
    let name = format!("{}/{}", catalog.pipeline(stage.pipeline)?.name, stage.name);
    let serving: Vec<&(String, String)> = live
        .iter()
        .filter(|(stages, _)| {
            serde_json::from_str::<Vec<String>>(stages).is_ok_and(|s| s.contains(&name))
        })
        .collect();
    if serving.is_empty() {
        return Ok(format!("no worker is running for {name}; start one"));
    }
    let workspace = crate::rules::claim::workspace_of(tx, found.id)?;
    if let Some(workspace) = workspace
        && !serving.iter().any(|(_, spaces)| {
            serde_json::from_str::<Vec<String>>(spaces).is_ok_and(|s| s.contains(&workspace))
        })
    {
        return Ok(format!("no running worker of {name} reaches its work space `{workspace}`"));
    }
    let (before,): (i64,) = tx.one(&LINE, &db::params![found.id, LINE_MAX])?;
    Ok(match before {
        0 => "it is next in line".to_string(),
        LINE_MAX => format!("it is over {LINE_MAX}th in line"),
        n => format!("{} in line behind {n} other jobs of {name}", ordinal(n + 1)),
    })
}

fn ordinal(n: i64) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}
