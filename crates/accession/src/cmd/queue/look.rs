//! Commands that look and change nothing (but `review --seen`).

use super::define::told;
use crate::cli::{Global, number};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Act, Session, parse_duration};
use queue::rules::history;
use queue::rules::operator::{Actor, review as seen_rule};
use queue::view::{self, JobView, ListFilter, ago, show_time};
use queue::{BatchId, Catalog, JobId, PipelineId, StageId, Status};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(clap::Args)]
pub struct List {
    /// Only this queue, or one stage of it: ingest/validating
    name: Option<String>,
    /// queued, running, held, failed, succeeded or cancelled
    #[arg(long)]
    status: Option<String>,
    /// Only this batch
    #[arg(value_parser = number::<BatchId>, long)]
    batch: Option<BatchId>,
    #[arg(long)]
    collection: Option<String>,
    /// Only this subject, as it is shown
    #[arg(long)]
    subject: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    limit: i64,
    /// Only jobs older than this one: how to page on
    #[arg(long, value_name = "JOB")]
    before: Option<JobId>,
}

pub fn list(args: List, global: &Global) -> Result<Exit, Failure> {
    let status = args.status.as_deref().map(status_named).transpose()?;
    let session = Session::open(global)?;
    let (limit, (jobs, now)) = (
        args.limit,
        session.read(move |tx, now, catalog| {
            let (pipeline, stage) = place(catalog, args.name.as_deref())?;
            let filter = ListFilter {
                pipeline,
                stage,
                status,
                batch: args.batch,
                collection: args.collection.clone(),
                subject: args.subject.clone(),
                before: args.before,
                limit: args.limit,
            };
            Ok((view::list(tx, catalog, &filter)?, now))
        })?,
    );
    let next = next_page(&jobs, limit, |job| job.id);
    if session.json {
        output::json_list("jobs", &jobs, next)?;
        return Ok(Exit::Yes);
    }
    jobs_table(&jobs, now)?;
    tell_next(next.as_ref());
    Ok(Exit::Yes)
}

/// Where the next page begins, if this one is full.
pub fn next_page<T, Id: Into<i64>>(
    page: &[T],
    limit: i64,
    id: impl Fn(&T) -> Id,
) -> Option<serde_json::Value> {
    let is_full = usize::try_from(limit).is_ok_and(|limit| page.len() >= limit);
    page.last().filter(|_| is_full).map(|last| serde_json::Value::from(id(last).into()))
}

pub fn tell_next(next: Option<&serde_json::Value>) {
    if let Some(last) = next {
        anstream::eprintln!("there may be more: --before {last}");
    }
}

fn status_named(name: &str) -> Result<Status, Failure> {
    Status::from_name(name).ok_or_else(|| {
        let all: Vec<&str> = Status::ALL.iter().map(|s| s.name()).collect();
        Failure::refused(
            queue::ErrorCode::Unknown,
            format!("there is no status `{name}`; there are: {}", all.join(", ")),
        )
    })
}

fn pipeline_id(catalog: &Catalog, name: Option<&str>) -> queue::Result<Option<PipelineId>> {
    name.map(|name| catalog.named(name).map(|p| p.id)).transpose()
}

/// A queue, or a stage of it as it is shown.
fn place(
    catalog: &Catalog,
    name: Option<&str>,
) -> queue::Result<(Option<PipelineId>, Option<StageId>)> {
    let Some(name) = name else { return Ok((None, None)) };
    let (pipeline, stage) = catalog.place(name)?;
    Ok((Some(pipeline.id), stage.map(|s| s.id)))
}

/// `ingest/validating`, or the queue's name where it has one stage.
fn shown_place(job: &JobView) -> String {
    match job.queue == job.stage {
        true => job.queue.clone(),
        false => format!("{}/{}", job.queue, job.stage),
    }
}

fn jobs_table(jobs: &[JobView], now: db::Micros) -> Result<(), Failure> {
    let rows = jobs.iter().map(|j| {
        vec![
            j.id.to_string(),
            shown_place(j),
            j.shown_state(),
            ago(now - j.ended_at.or(j.since).unwrap_or(j.added_at)),
            j.subject.clone(),
            j.worker
                .clone()
                .or(j.error.as_deref().or(j.ended_why.as_deref()).map(output::in_one_line))
                .unwrap_or_default(),
        ]
    });
    let headers = ["job", "queue", "status", "for", "subject", "what"];
    Ok(output::list(&headers, rows, &["subject", "what"])?)
}

#[derive(clap::Args)]
pub struct Show {
    /// The job's number
    #[arg(value_parser = number::<JobId>)]
    job: JobId,
    /// At most this many rows of history
    #[arg(long, default_value_t = 200)]
    limit: i64,
}

pub fn show(args: Show, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let (job, events, tries, states, why, names) = session.read(move |tx, now, catalog| {
        let job = view::show(tx, catalog, args.job)?;
        let events = history::of_job(tx, args.job, 0, args.limit)?;
        let tries = view::tries(tx, catalog, args.job)?;
        let states = view::states(tx, catalog, args.job)?;
        let why = view::why(tx, now, catalog, args.job)?;
        Ok((job, events, tries, states, why, catalog.clone()))
    })?;
    let place = |(stage, status): (Option<StageId>, Option<Status>)| match (stage, status) {
        (Some(stage), Some(status)) => format!("{status} in {}", names.stage_name(stage)),
        _ => String::new(),
    };
    if session.json {
        let events: Vec<_> = events
            .iter()
            .map(|e| {
                serde_json::json!({
                    "at": e.at, "who": e.who, "event": e.event,
                    "from": {"stage": e.from.0.map(|s| names.stage_name(s)), "status": e.from.1},
                    "to": {"stage": e.to.0.map(|s| names.stage_name(s)), "status": e.to.1},
                    "why": e.why, "code": e.code, "target": e.target, "token": e.token,
                })
            })
            .collect();
        output::json(
            &serde_json::json!({"job": job, "why": why, "tries": tries, "states": states, "history": events}),
        )?;
        return Ok(Exit::Yes);
    }
    let mut facts = vec![
        vec!["job".to_string(), job.id.to_string()],
        vec!["queue".to_string(), format!("{} (stage {})", job.queue, job.stage)],
        vec!["subject".to_string(), job.subject.clone()],
        vec!["lock".to_string(), job.lock.clone()],
        vec!["status".to_string(), job.shown_state()],
        vec!["why".to_string(), output::in_one_line(&why)],
        vec!["priority".to_string(), job.priority.to_string()],
        vec!["added".to_string(), format!("{} by {}", show_time(job.added_at), job.added_by)],
    ];
    for (name, value) in [
        ("batch", job.batch.map(|b| b.to_string())),
        ("collection", job.collection.clone()),
        ("progress", job.progress.clone()),
        (
            "payload",
            (job.payload_bytes > 0).then(|| output::size(job.payload_bytes.unsigned_abs())),
        ),
        (
            "ended",
            job.ended_at.map(|at| {
                format!("{} by {}", show_time(at), job.ended_by.clone().unwrap_or_default())
            }),
        ),
    ] {
        facts.extend(value.map(|value| vec![name.to_string(), value]));
    }
    for t in &tries {
        let text = format!(
            "{}, {}, {}",
            output::count(t.attempts_ever, "attempt"),
            output::count(t.interruptions_ever, "interruption"),
            output::count(t.requeues, "requeue")
        );
        facts.push(vec![format!("in {}", t.stage), text]);
    }
    for left in states {
        let state = serde_json::Value::Object(left.state).to_string();
        facts.push(vec![format!("state after {}", left.stage), state]);
    }
    output::table(&["", ""], facts)?;
    output::line("")?;
    let rows = events.iter().map(|e| {
        vec![
            show_time(e.at),
            e.who.clone(),
            e.event.clone(),
            place(e.to),
            e.why.as_deref().map(output::in_one_line).unwrap_or_default(),
        ]
    });
    output::table(&["at", "who", "event", "then", "why"], rows)?;
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
pub struct Why {
    /// The job's number
    #[arg(value_parser = number::<JobId>)]
    job: JobId,
}

pub fn why(args: Why, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let job = args.job;
    let why = session.read(move |tx, now, catalog| view::why(tx, now, catalog, job))?;
    told(&session, &serde_json::json!({"id": job, "why": why}), &why)
}

#[derive(clap::Args)]
pub struct Stats {
    /// Only this queue
    name: Option<String>,
}

pub fn stats(args: Stats, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let (stats, now) = session.read(move |tx, now, catalog| {
        let pipeline = pipeline_id(catalog, args.name.as_deref())?;
        Ok((view::stats(tx, now, catalog, pipeline)?, now))
    })?;
    if session.json {
        output::json(&stats)?;
        return Ok(Exit::Yes);
    }
    print_stats(&stats, now)?;
    Ok(Exit::Yes)
}

/// All columns of the statistics fit from here on.
const WIDE: u16 = 110;

pub fn print_stats(stats: &view::Stats, now: db::Micros) -> Result<(), Failure> {
    let rows = stats.stages.iter().map(|s| {
        let name =
            if s.queue == s.stage { s.queue.clone() } else { format!("{}/{}", s.queue, s.stage) };
        vec![
            if s.paused { format!("{name} (paused)") } else { name },
            s.ready.to_string(),
            s.running.to_string(),
            s.parked.to_string(),
            s.delayed.to_string(),
            (s.held + s.blocked + s.starved).to_string(),
            s.failed.to_string(),
            s.oldest_at.map(|at| ago(now - at)).unwrap_or_default(),
            format!("{:.1}/s", s.succeeded_per_second),
            s.succeeded_last_hour.to_string(),
            s.errors_last_hour.to_string(),
        ]
    });
    let headers = [
        "queue",
        "ready",
        "running",
        "parked",
        "delayed",
        "stopped",
        "failed",
        "oldest",
        "rate",
        "ok 1h",
        "errors 1h",
    ];
    if output::terminal_width().is_some_and(|width| width < WIDE) {
        let narrow = |mut row: Vec<String>| {
            // Those that wait for something are one number, and what the last hour brought is left out.
            let waiting: i64 = row.drain(3..6).filter_map(|n| n.parse::<i64>().ok()).sum();
            row.insert(3, waiting.to_string());
            row.truncate(7);
            row
        };
        let headers = ["queue", "ready", "running", "waiting", "failed", "oldest", "rate"];
        output::list(&headers, rows.map(narrow), &["queue"])?;
    } else {
        output::list(&headers, rows, &["queue"])?;
    }
    if !stats.failures.is_empty() {
        output::line("")?;
        let rows = stats
            .failures
            .iter()
            .map(|f| vec![f.queue.clone(), f.code.clone(), f.count.to_string()]);
        output::table(&["queue", "error", "failed jobs"], rows)?;
    }
    for target in &stats.targets_down {
        output::line(&format!(
            "\n`{}` is down; jobs that need it wait",
            output::printable(target)
        ))?;
    }
    Ok(())
}

#[derive(clap::Args)]
pub struct Stuck {
    /// Only this queue
    name: Option<String>,
    /// Not moved for this long
    #[arg(long, default_value = "1h", value_parser = parse_duration)]
    over: Duration,
    #[arg(long, default_value_t = 50)]
    limit: i64,
}

/// Exit 1 if something is stuck, so that a monitor can ask.
pub fn stuck(args: Stuck, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let over = i64::try_from(args.over.as_micros()).unwrap_or(i64::MAX);
    let (stuck, now) = session.read(move |tx, now, catalog| {
        let pipeline = pipeline_id(catalog, args.name.as_deref())?;
        Ok((view::stuck(tx, now, catalog, pipeline, now.saturating_sub(over), args.limit)?, now))
    })?;
    if session.json {
        output::json_list("jobs", &stuck, None)?;
    } else if stuck.is_empty() {
        output::line("nothing is stuck")?;
    } else {
        let rows = stuck.iter().map(|s| {
            vec![
                s.job.to_string(),
                s.stage.clone(),
                ago(now - s.since),
                s.subject.clone(),
                output::in_one_line(&s.why),
            ]
        });
        output::list(&["job", "stage", "for", "subject", "why"], rows, &["subject", "why"])?;
        if next_page(&stuck, args.limit, |s| s.job).is_some() {
            anstream::eprintln!("there may be more: --limit {}", args.limit.saturating_mul(10));
        }
    }
    Ok(if stuck.is_empty() { Exit::Yes } else { Exit::No })
}

#[derive(clap::Args)]
pub struct Failed {
    /// Only this queue, or one stage of it: ingest/validating
    name: Option<String>,
    /// Only jobs with smaller numbers
    #[arg(long, value_name = "JOB")]
    before: Option<JobId>,
    #[arg(long, default_value_t = 50)]
    limit: i64,
}

pub fn failed(args: Failed, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let (jobs, now) = session.read(move |tx, now, catalog| {
        let place = place(catalog, args.name.as_deref())?;
        Ok((view::failed(tx, catalog, place, false, args.before, args.limit)?, now))
    })?;
    failures_table(&session, &jobs, args.limit, now)?;
    Ok(Exit::Yes)
}

/// The error comes last and is cut to the terminal; `show` has all of it.
fn failures_table(
    session: &Session,
    jobs: &[JobView],
    limit: i64,
    now: db::Micros,
) -> Result<(), Failure> {
    let next = next_page(jobs, limit, |job| job.id);
    if session.json {
        return Ok(output::json_list("jobs", &jobs, next)?);
    }
    let rows = jobs.iter().map(|j| {
        vec![
            j.id.to_string(),
            shown_place(j),
            format!("{} ago", ago(now - j.ended_at.unwrap_or(now))),
            j.error_code.clone().unwrap_or_default(),
            j.subject.clone(),
            j.error.as_deref().map(output::in_one_line).unwrap_or_default(),
        ]
    });
    let headers = ["job", "queue", "when", "code", "subject", "error"];
    output::list(&headers, rows, &["code", "subject", "error"])?;
    if let (Some(first), true) = (jobs.first(), output::terminal_width().is_some()) {
        anstream::eprintln!("`accession queue show {}` shows a job in full", first.id);
    }
    tell_next(next.as_ref());
    Ok(())
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  accession queue review\n  accession queue review --seen 12 --reason 'depositor told'"
)]
pub struct Review {
    /// Only this queue, or one stage of it: ingest/validating
    name: Option<String>,
    /// Mark this job as seen; it stays failed
    #[arg(value_parser = number::<JobId>, long, value_name = "JOB")]
    seen: Vec<JobId>,
    /// Only jobs with smaller numbers
    #[arg(long, value_name = "JOB")]
    before: Option<JobId>,
    #[arg(long, default_value_t = 50)]
    limit: i64,
    #[command(flatten)]
    act: Act,
}

pub fn review(args: Review, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    if !args.seen.is_empty() {
        let (jobs, act) = (args.seen.clone(), args.act.clone());
        session.write(move |tx, now, catalog| {
            jobs.iter().try_for_each(|job| {
                seen_rule::seen(
                    tx,
                    now,
                    catalog,
                    Actor { who: &act.who(), reason: &act.reason },
                    *job,
                )
            })
        })?;
        return told(
            &session,
            &serde_json::json!({"seen": args.seen}),
            &format!("{} marked as seen", output::count(args.seen.len(), "job")),
        );
    }
    let (jobs, now) = session.read(move |tx, now, catalog| {
        let place = place(catalog, args.name.as_deref())?;
        Ok((view::failed(tx, catalog, place, true, args.before, args.limit)?, now))
    })?;
    failures_table(&session, &jobs, args.limit, now)?;
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
pub struct Workers {
    /// Show those that ended in this time too
    #[arg(long, default_value = "1h", value_parser = parse_duration)]
    since: Duration,
}

pub fn workers(args: Workers, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let since = i64::try_from(args.since.as_micros()).unwrap_or(i64::MAX);
    let (workers, now) = session
        .read(move |tx, now, _| Ok((view::workers(tx, now, now.saturating_sub(since))?, now)))?;
    if session.json {
        output::json_list("workers", &workers, None)?;
        return Ok(Exit::Yes);
    }
    let rows = workers.iter().map(|w| {
        let doing = w.jobs.iter().filter(|j| j.started).map(|j| {
            let progress = j.progress.as_deref().map(|p| format!(" ({p})")).unwrap_or_default();
            format!("{} {}{progress}", j.job, j.subject)
        });
        let buffered = w.jobs.iter().filter(|j| !j.started).count();
        let mut doing: Vec<String> = doing.take(5).collect();
        if buffered > 0 {
            doing.push(format!("{buffered} claimed ahead"));
        }
        if doing.is_empty() {
            doing.extend(w.ended_why.clone().or(Some("nothing".to_string())));
        }
        vec![
            w.id.to_string(),
            w.name.clone(),
            w.pid.to_string(),
            w.host.clone(),
            w.state.to_string(),
            format!("{} ago", ago(now - w.ended_at.unwrap_or(w.seen_at))),
            grouped(&w.stages),
            doing.join("; "),
        ]
    });
    let headers = ["worker", "name", "process", "host", "state", "seen", "stages", "doing"];
    output::list(&headers, rows, &["name", "host", "stages", "doing"])?;
    Ok(Exit::Yes)
}

/// Stages by their pipelines: `batch (2), ingest (12), sweep`.
fn grouped(stages: &[String]) -> String {
    let mut pipelines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in stages {
        let (pipeline, stage) = name.split_once('/').unwrap_or((name, name));
        pipelines.entry(pipeline).or_default().push(stage);
    }
    let shown = pipelines.iter().map(|(pipeline, stages)| match stages.as_slice() {
        [one] if one == pipeline => (*pipeline).to_string(),
        [one] => format!("{pipeline}/{one}"),
        several => format!("{pipeline} ({})", several.len()),
    });
    shown.collect::<Vec<_>>().join(", ")
}
