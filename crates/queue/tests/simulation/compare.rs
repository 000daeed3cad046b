//! The tables against the model: everything that the model predicts is there, and nothing else.

use crate::call::Whose;
use crate::model::{HeldBy, Job, Model, Place, Tries, Verdict, same};
use crate::tables::{Tables, WaitingRow, lines};
use queue::{Amounts, JobId, StageId, WorkerId};
use std::collections::BTreeMap;

pub fn compare(model: &mut Model, t: &Tables) -> Verdict {
    same("jobs", t.jobs.keys().collect::<Vec<_>>(), model.jobs.keys().collect())?;
    // What the rules chose within their freedom is what the model goes on with.
    for (id, row) in &t.waiting {
        if let Some(Place::Waiting(w)) = model.jobs.get_mut(id).map(|j| &mut j.place) {
            if !(w.due.0..=w.due.1).contains(&row.due) {
                return Err(format!("job {id} is due at {}, not within {:?}", row.due, w.due));
            }
            w.due = (row.due, row.due);
            adopt_hold(model, *id, row);
        }
    }
    for job in model.jobs.values() {
        job_matches(model, job, t).map_err(|e| format!("job {}: {e}", job.id))?;
    }
    tries(model, t)?;
    targets(model, t)?;
    batches(model, t)?;
    others(model, t)
}

/// A job of a held group becomes held when it is flipped, or when a claim meets it before.
fn adopt_hold(model: &mut Model, id: JobId, row: &WaitingRow) {
    let job = &model.jobs[&id];
    let group = model.group_of(job);
    let flipped = row.state == 3 && row.blocked_on.as_deref() != Some("job");
    if let Some(w) = job.waiting()
        && w.held.is_none()
        && flipped
        && group.is_some()
        && let Place::Waiting(w) = &mut model.change(id).place
    {
        w.held = group;
        w.in_line_since = None;
    }
}

fn job_matches(model: &Model, job: &Job, t: &Tables) -> Verdict {
    let row = &t.jobs[&job.id];
    same("subject", &row.subject, &job.subject)?;
    same("lock", &row.lock, &job.lock)?;
    same("batch", row.batch, job.batch)?;
    same("collection", &row.collection, &job.collection)?;
    same("priority", row.priority, job.priority)?;
    same("payload", &row.payload, &job.payload)?;
    same("targets", lines(row.targets.as_deref()), job.targets.clone())?;
    same("work space", &row.workspace, &job.workspace)?;
    same("needs", amounts(row.needs.as_deref()), job.needs.clone())?;
    let (stage, status) = crate::invariants::place(t, job.id);
    same("status", status, job.status().number())?;
    same("stage", stage, model.stage_of(job).id)?;
    let owner = t.owner(&job.lock).filter(|s| s.id == job.id);
    same("owns its lock", owner.is_some(), job.owns())?;
    match &job.place {
        Place::Waiting(w) => {
            let row = t.waiting.get(&job.id).ok_or("it does not wait")?;
            same("begun", row.begun, w.begun)?;
            same("priority while it waits", row.priority, job.priority)?;
            same("targets while it waits", lines(row.targets.as_deref()), job.targets.clone())?;
            same("needs while it waits", amounts(row.needs.as_deref()), job.needs.clone())?;
            let by = w.held.map(|by| match by {
                HeldBy::Job => "job",
                HeldBy::Batch => "batch",
                HeldBy::Collection => "collection",
            });
            same("held by", row.blocked_on.as_deref().filter(|_| row.state == 3), by)?;
            state_is_justified(model, job, row)
        }
        Place::Running(run) => {
            let row = owner.ok_or("it does not run")?;
            same("worker", row.worker, Some(run.worker))?;
            same("token", row.token, run.token)?;
            same("started", row.started_at.is_some(), run.started)?;
            same("asked to stop", row.cancel_by.is_some(), run.cancel)?;
            same("error seen", row.error_seen.is_some(), run.error_seen)?;
            same("probe", &row.probe, &run.probe)?;
            let mine = t.reservations.iter().filter(|r| r.job == job.id);
            let reserved: Amounts = mine.map(|r| (r.resource.clone(), r.amount)).collect();
            same("reserved", reserved, run.reserved.clone())
        }
        Place::Failed(failed) => {
            let row = t.failures.get(&job.id).ok_or("it has no failure")?;
            same("recoverable", row.recoverable, failed.recoverable)?;
            same("needs review", row.needs_review, failed.review)?;
            same("overtaken", row.overtaken, failed.overtaken)?;
            same("discarded", row.discarded, failed.discarded)?;
            same("lock it failed with", &row.lock, &job.lock)
        }
        Place::Ended(_) => Ok(()),
    }
}

/// Out of the index of claimable jobs only for a reason that still holds.
fn state_is_justified(model: &Model, job: &Job, row: &WaitingRow) -> Verdict {
    let what = row.blocked_on.as_deref().unwrap_or_default();
    match row.state {
        4 => {
            let down = model.targets.get(what).is_some_and(|t| t.next_probe.is_some());
            same("blocked, and its target is down", (what, down), (what, true))?;
            same("blocked on what it needs", job.targets.iter().any(|t| t == what), true)
        }
        5 => {
            let need = model.needs(job).get(what).copied().unwrap_or(0);
            let (used, _) = model.used(what, WorkerId::default());
            let short = model.totals.get(what).is_some_and(|total| used + need > *total);
            same("starved, and there is too little", (what, short), (what, true))
        }
        _ => Ok(()),
    }
}

fn amounts(json: Option<&str>) -> Amounts {
    json.map(|text| serde_json::from_str(text).expect("needs are JSON")).unwrap_or_default()
}

fn tries(model: &Model, t: &Tables) -> Verdict {
    let mut rows: BTreeMap<(JobId, StageId), Tries> = BTreeMap::new();
    for r in &t.tries {
        let tries = Tries {
            attempts: r.attempts,
            attempts_ever: r.attempts_ever,
            interruptions: r.interruptions,
            interruptions_ever: r.interruptions_ever,
            requeues: r.requeues,
        };
        rows.insert((r.job, r.stage), tries);
    }
    let each = model.jobs.values().flat_map(|j| j.tries.iter().map(|(s, t)| ((j.id, *s), *t)));
    same("I6: tries", rows, each.collect())?;
    let marks: Vec<(JobId, StageId, &str, &str)> =
        t.checkpoints.iter().map(|c| (c.job, c.stage, c.key.as_str(), c.value.as_str())).collect();
    let each = model
        .jobs
        .values()
        .flat_map(|j| j.checkpoints.iter().map(|((s, k), v)| (j.id, *s, k.as_str(), v.as_str())));
    same("checkpoints", marks, each.collect())?;
    let left: Vec<(JobId, StageId, &str)> =
        t.states.iter().map(|s| (s.job, s.stage, s.state.as_str())).collect();
    let each = model.jobs.values();
    let each = each.flat_map(|j| j.states.iter().map(|(s, state)| (j.id, *s, state.as_str())));
    same("states", left, each.collect())
}

fn targets(model: &Model, t: &Tables) -> Verdict {
    for row in &t.targets {
        let known = model.targets.get(&row.name).cloned().unwrap_or_default();
        same("errors of a target", (&row.name, row.errors), (&row.name, known.errors))?;
        same("next probe", row.next_probe.filter(|_| row.opened_at.is_some()), known.next_probe)?;
        same("probing", row.probe_job, known.probe_job)?;
    }
    match model.targets.keys().find(|n| !t.targets.iter().any(|r| r.name == **n)) {
        Some(name) => Err(format!("errors of {name} are forgotten")),
        None => Ok(()),
    }
}

fn batches(model: &Model, t: &Tables) -> Verdict {
    same("batches", t.batches.keys().collect::<Vec<_>>(), model.batches.keys().collect())?;
    for (id, batch) in &model.batches {
        let row = &t.batches[id];
        let sums = model.sums(*id);
        let counted = [row.total, row.open, row.succeeded, row.failed, row.cancelled];
        let expected = [sums.total, sums.open, sums.succeeded, sums.failed, sums.cancelled];
        same("I7: counts of a batch", (id, counted), (id, expected))?;
        same("state of a batch", (id, row.state), (id, batch.state.number()))?;
        same("batch held", (id, row.held), (id, batch.held))?;
        same("job that prepares a batch", (id, row.prepared_by), (id, batch.preparer))?;
        same("entries of a batch", (id, row.entries), (id, batch.entries.len() as i64))?;
    }
    Ok(())
}

/// I10: holds and pauses; and workers.
fn others(model: &Model, t: &Tables) -> Verdict {
    let mut names: Vec<(String, String)> = Vec::new();
    for whose in &model.holds {
        names.push(match whose {
            Whose::Batch(id) => ("batch".to_string(), id.to_string()),
            Whose::Collection(name) => ("collection".to_string(), name.clone()),
        });
    }
    let running = |j: &&Job| j.running().is_some_and(|r| r.hold);
    let held = model.jobs.values().filter(running);
    names.extend(held.map(|j| ("job".to_string(), j.id.to_string())));
    names.extend(model.pauses.iter().map(|(kind, id)| (format!("pause {kind}"), id.to_string())));
    names.sort();
    let rows: Vec<(String, String)> =
        t.names.iter().map(|n| (n.kind.clone(), n.name.clone())).collect();
    same("I10: holds and pauses", rows, names)?;
    let rows: Vec<_> = t.workers.iter().map(|w| (w.id, w.lease_until, w.ended)).collect();
    let known = model.workers.iter().map(|(id, w)| (*id, w.lease_until, w.ended)).collect();
    same("workers", rows, known)
}
