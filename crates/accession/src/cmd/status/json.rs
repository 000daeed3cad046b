//! The same for programs. Times are RFC 3339.

use super::Snapshot;
use super::finding::Finding;
use db::Micros;
use queue::rules::batch::Batch;
use serde_json::{Value, json};

fn time(at: Micros) -> Value {
    jiff::Timestamp::from_microsecond(at).map_or(Value::Null, |at| at.to_string().into())
}

fn times(at: Option<Micros>) -> Value {
    at.map_or(Value::Null, time)
}

fn batch(batch: &Batch) -> Value {
    json!({
        "id": batch.id,
        "label": batch.label,
        "collection": batch.collection,
        "submitter": batch.submitter,
        "state": batch.state,
        "held": batch.is_held(),
        "total": batch.total,
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "cancelled": batch.cancelled,
        "unfinished": batch.open,
        "created_at": time(batch.created_at),
        "updated_at": time(batch.updated_at),
    })
}

pub fn of(seen: &Snapshot, findings: &[Finding]) -> Value {
    let overview = &seen.overview;
    let findings: Vec<Value> = findings
        .iter()
        .map(|f| {
            json!({
                "level": f.level, "code": f.code, "text": f.text, "count": f.count,
                "since": times(f.since), "who": f.who, "reason": f.reason, "command": f.command,
            })
        })
        .collect();
    let blocked = |on: &str| overview.blocked.iter().find(|b| b.on == on).map_or(0, |b| b.jobs);
    let pauses: Vec<Value> = overview
        .pauses
        .iter()
        .map(|p| {
            let (queue, stage) = seen.place(p).unzip();
            json!({
                "kind": p.scope.kind(), "queue": queue, "stage": stage.flatten(),
                "who": p.who, "at": time(p.at), "reason": p.reason,
            })
        })
        .collect();
    let holds: Vec<Value> = overview
        .holds
        .shown
        .iter()
        .map(|h| json!({"kind": h.kind, "name": h.name, "who": h.who, "at": time(h.at), "reason": h.reason}))
        .collect();
    let targets: Vec<Value> = overview
        .targets_down
        .iter()
        .map(|t| {
            json!({
                "name": t.name, "since": times(t.opened_at), "next_probe": times(t.next_probe),
                "reason": t.reason, "jobs": blocked(&t.name),
            })
        })
        .collect();
    let waits: Vec<Value> = overview
        .blocked
        .iter()
        .map(|b| json!({"on": b.on, "jobs": b.jobs, "since": time(b.since)}))
        .collect();
    let failures: Vec<Value> = overview
        .failures
        .shown
        .iter()
        .map(|g| {
            json!({
                "queue": g.queue, "code": g.code, "jobs": g.jobs, "unseen": g.unseen,
                "first_at": time(g.first_at), "last_at": time(g.last_at), "newest": g.newest,
            })
        })
        .collect();
    let long_runs: Vec<Value> = overview
        .long_runs
        .shown
        .iter()
        .map(|r| {
            json!({
                "id": r.job, "subject": r.subject, "stage": r.stage, "since": time(r.since),
                "worker": r.worker, "progress": r.progress,
            })
        })
        .collect();
    let workers: Vec<Value> = seen
        .workers
        .iter()
        .map(|w| {
            json!({
                "id": w.id, "name": w.name, "host": w.host, "pid": w.pid, "state": w.state,
                "stages": w.stages, "started_at": time(w.started_at), "seen_at": time(w.seen_at),
                "ended_at": times(w.ended_at), "jobs": w.jobs.len(),
            })
        })
        .collect();
    let stages: Vec<Value> = seen
        .stats
        .stages
        .iter()
        .map(|s| {
            json!({
                "queue": s.queue, "stage": s.stage, "paused": s.paused, "ready": s.ready,
                "running": s.running, "parked": s.parked, "delayed": s.delayed, "held": s.held,
                "blocked": s.blocked, "starved": s.starved, "failed": s.failed,
                "oldest_at": times(s.oldest_at),
                "succeeded_last_hour": s.succeeded_last_hour, "errors_last_hour": s.errors_last_hour,
            })
        })
        .collect();
    let counts: Vec<Value> = overview
        .batch_counts
        .iter()
        .map(|c| json!({"state": c.state, "batches": c.batches, "held": c.held, "unfinished": c.open}))
        .collect();
    let bad_copies: Vec<Value> = seen
        .bad_copies
        .iter()
        .map(|bad| {
            json!({
                "store": bad.store, "copies": bad.copies, "since": times(bad.since),
                "example": bad.example,
            })
        })
        .collect();
    let list = |few: &queue::view::Limited<Batch>| {
        let shown: Vec<Value> = few.shown.iter().map(batch).collect();
        json!({"total": few.total, "shown": shown})
    };
    json!({
        "at": time(seen.now),
        "database": seen.database,
        "findings": findings,
        "registry": {"objects": seen.objects, "files": seen.files, "bytes": seen.bytes},
        "bad_copies": bad_copies,
        "work_space": {
            "name": seen.work_space.name,
            "total_bytes": seen.space.as_ref().ok().map(|space| space.total),
            "used_bytes": seen.space.as_ref().ok().map(|space| space.used),
            "error": seen.space.as_ref().err(),
            "admit_percent": seen.work_space.admit_percent,
            "stop_percent": seen.work_space.stop_percent,
        },
        "workers": workers,
        "stages": stages,
        "pauses": pauses,
        "holds": {"total": overview.holds.total, "shown": holds},
        "targets_down": targets,
        "waits": waits,
        "failures": {"jobs": overview.failed_jobs, "total": overview.failures.total, "shown": failures},
        "long_runs": {"total": overview.long_runs.total, "shown": long_runs},
        "batch_counts": counts,
        "batches": {"open": list(&overview.open_batches), "failed": list(&overview.failed_batches)},
    })
}
