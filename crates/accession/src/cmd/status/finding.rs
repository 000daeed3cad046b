//! What an operator has to know: a sentence for each thing that is wrong, or was stopped by a
//! person, and the command that helps.

use super::Snapshot;
use crate::output;
use archive::registry::view::BadCopies;
use db::Micros;
use queue::rules::breaker::Target;
use queue::rules::operator::pause::{Pause, Scope};
use queue::view::{Blocked, FailureGroup, Hold, ago, show_time};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not work, or needs a person.
    Wrong,
    /// A person stopped it.
    Stopped,
    /// It may be as it should be.
    Note,
}

/// Something that is worth a look.
#[derive(Debug, Clone)]
pub struct Finding {
    pub level: Level,
    pub code: &'static str,
    /// What it is, how much, since when.
    pub text: String,
    /// How many jobs, batches or workers it is about.
    pub count: i64,
    pub since: Option<Micros>,
    /// Who ordered it, and why.
    pub who: Option<String>,
    pub reason: Option<String>,
    /// What helps.
    pub command: Option<String>,
}

impl Finding {
    fn new(level: Level, code: &'static str, text: String) -> Finding {
        Finding { level, code, text, count: 1, since: None, who: None, reason: None, command: None }
    }

    fn wrong(code: &'static str, text: String) -> Finding {
        Finding::new(Level::Wrong, code, text)
    }

    fn count(self, count: i64) -> Finding {
        Finding { count, ..self }
    }

    fn since(self, since: Micros) -> Finding {
        Finding { since: Some(since), ..self }
    }

    fn by(self, who: &str, reason: &str) -> Finding {
        Finding { who: Some(who.to_string()), reason: Some(reason.to_string()), ..self }
    }

    fn helps(self, command: impl Into<String>) -> Finding {
        Finding { command: Some(command.into()), ..self }
    }
}

/// Everything worth a look, the worst first.
pub fn of(seen: &Snapshot) -> Vec<Finding> {
    let mut found = Vec::new();
    workers(seen, &mut found);
    found.extend(seen.overview.targets_down.iter().map(|target| down(seen, target)));
    work_space(seen, &mut found);
    starved(seen, &mut found);
    found.extend(seen.bad_copies.iter().map(|bad| bad_copies(seen, bad)));
    failures(seen, &mut found);
    failed_batches(seen, &mut found);
    idle(seen, &mut found);
    long_runs(seen, &mut found);
    found.extend(seen.overview.pauses.iter().map(|pause| paused(seen, pause)));
    holds(seen, &mut found);
    found.sort_by_key(|finding| finding.level);
    found
}

fn name(text: &str) -> String {
    output::printable(text)
}

/// `2026-11-18 10:02:03Z (25 min 3 s)`
fn time(seen: &Snapshot, at: Micros) -> String {
    format!("{} ({})", show_time(at), ago(seen.now - at))
}

/// `1 job waits`, `12 jobs wait`.
fn wait(count: i64) -> String {
    match count {
        1 => "1 job waits".to_string(),
        n => format!("{n} jobs wait"),
    }
}

/// Jobs that are ready to run.
fn to_do(seen: &Snapshot) -> i64 {
    seen.stats
        .stages
        .iter()
        .filter(|stage| !stage.paused)
        .map(|stage| stage.ready + stage.running)
        .sum()
}

fn workers(seen: &Snapshot, found: &mut Vec<Finding>) {
    let of_state =
        |state: &'static str| seen.workers.iter().filter(move |worker| worker.state == state);
    let (live, work) = (of_state("live").count(), to_do(seen));
    if live == 0 && work > 0 {
        let text = format!("no worker is running, and {}", wait(work));
        found.push(Finding::wrong("no_worker", text).count(work).helps("accession work"));
    }
    for late in of_state("late") {
        let text = format!(
            "worker {} (process {} on {}) has not been heard of since {}; others take its jobs",
            name(&late.name),
            late.pid,
            name(&late.host),
            time(seen, late.seen_at)
        );
        found.push(
            Finding::wrong("worker_late", text)
                .since(late.seen_at)
                .helps("accession queue workers"),
        );
    }
    let dead: Vec<Micros> = of_state("dead").filter_map(|worker| worker.ended_at).collect();
    if let Some(last) = dead.iter().max() {
        let workers = output::count(dead.len(), "worker");
        let text = format!(
            "{workers} ended without a goodbye in the last 24 hours, the last at {}; their jobs were queued again",
            time(seen, *last)
        );
        let note = Finding::new(Level::Note, "worker_dead", text);
        found.push(note.count(dead.len() as i64).since(*last).helps("accession queue workers"));
    }
}

fn blocked_on<'s>(seen: &'s Snapshot, on: &str) -> Option<&'s Blocked> {
    seen.overview.blocked.iter().find(|blocked| blocked.on == on)
}

fn down(seen: &Snapshot, target: &Target) -> Finding {
    let since = target.opened_at.unwrap_or(seen.now);
    let why = target.reason.as_deref().map(|r| format!(": {}", name(r))).unwrap_or_default();
    let jobs = blocked_on(seen, &target.name).map_or(0, |blocked| blocked.jobs);
    let probe = match target.next_probe {
        Some(at) if at > seen.now => format!("; it is tried again in {}", ago(at - seen.now)),
        _ => "; it is tried again by the next job".to_string(),
    };
    let waiting = match jobs {
        0 => String::new(),
        n => format!("; {} for it", wait(n)),
    };
    let text =
        format!("{} is down since {}{why}{waiting}{probe}", name(&target.name), time(seen, since));
    let finding = Finding::wrong("target_down", text).count(jobs).since(since);
    match target.name.strip_prefix("store ") {
        Some(store) => finding.helps(format!("accession store check {}", quoted(store))),
        None => finding.helps("accession doctor"),
    }
}

fn work_space(seen: &Snapshot, found: &mut Vec<Finding>) {
    let work = &seen.work_space;
    let space = match &seen.space {
        Ok(space) => space,
        Err(why) => {
            let text =
                format!("work space {} cannot be looked at: {}", name(&work.name), name(why));
            found.push(Finding::wrong("work_space", text).helps("accession doctor"));
            return;
        }
    };
    let percent = (space.used * 100).checked_div(space.total).unwrap_or(0);
    let (level, what) = match percent {
        p if p > work.stop_percent => (Level::Wrong, "nothing is downloaded or unpacked"),
        p if p > work.admit_percent => (Level::Wrong, "nothing that needs room there is begun"),
        _ => return,
    };
    let text = format!(
        "work space {} is {percent}% full ({} of {}): {what}; make room, or release what failed jobs keep there with `accession jobs discard`",
        name(&work.name),
        output::size(space.used),
        output::size(space.total)
    );
    let full = Finding::new(level, "work_space_full", text);
    found.push(full.helps("accession jobs list --status failed"));
}

/// Jobs that wait for a resource: what blocks them is neither a hold nor a target.
fn starved(seen: &Snapshot, found: &mut Vec<Finding>) {
    let is_target = |on: &str| seen.overview.targets_down.iter().any(|target| target.name == on);
    for blocked in &seen.overview.blocked {
        if matches!(blocked.on.as_str(), "job" | "batch" | "collection") || is_target(&blocked.on) {
            continue;
        }
        let text = format!(
            "{} for `{}`, the first since {}",
            wait(blocked.jobs),
            name(&blocked.on),
            time(seen, blocked.since)
        );
        let note = Finding::new(Level::Note, "resource_short", text);
        found.push(note.count(blocked.jobs).since(blocked.since).helps("accession jobs stuck"));
    }
}

/// Copies of a store that a check or a deposit has found to be bad, and no check has cleared since.
fn bad_copies(seen: &Snapshot, bad: &BadCopies) -> Finding {
    let (copies, which) = match bad.copies {
        1 => ("1 copy".to_string(), format!("that of {}", bad.example)),
        n => (format!("{n} copies"), format!("that of {} among them", bad.example)),
    };
    let since = bad.since.map(|at| format!(", found at {}", time(seen, at))).unwrap_or_default();
    let text = format!(
        "{copies} in store {} damaged or incomplete, {which}{since}; deposit the content again to repair it, then read all of it",
        name(&format!("{} {}", bad.store, if bad.copies == 1 { "is" } else { "are" }))
    );
    let finding = Finding::wrong("copies_bad", text).count(bad.copies);
    let finding = Finding { since: bad.since, ..finding };
    finding.helps(match bad.copies {
        1 => format!("accession check {} --content", quoted(&bad.example)),
        _ => "accession check --content".to_string(),
    })
}

fn failures(seen: &Snapshot, found: &mut Vec<Finding>) {
    let groups = &seen.overview.failures;
    found.extend(groups.shown.iter().map(|group| failure(seen, group)));
    let shown: i64 = groups.shown.iter().map(|group| group.jobs).sum();
    let rest = seen.overview.failed_jobs - shown;
    if rest > 0 {
        let text = format!(
            "{} more failed with other errors; {} of {} kinds of error are shown",
            output::count(rest, "job"),
            groups.shown.len(),
            groups.total
        );
        found
            .push(Finding::wrong("more_failures", text).count(rest).helps("accession jobs failed"));
    }
}

fn failure(seen: &Snapshot, group: &FailureGroup) -> Finding {
    let queue = name(&group.queue);
    let when = match group.jobs {
        1 => format!("at {}", time(seen, group.last_at)),
        _ => format!(
            "the first at {}, the last {} ago",
            show_time(group.first_at),
            ago(seen.now - group.last_at)
        ),
    };
    let unseen = match group.unseen {
        0 => "looked at".to_string(),
        n if n == group.jobs => "not looked at yet".to_string(),
        n => format!("{n} not looked at yet"),
    };
    let text = format!(
        "{} of {queue} failed with {}: {when}; {unseen}",
        output::count(group.jobs, "job"),
        name(&group.code)
    );
    let finding = Finding::wrong("jobs_failed", text).count(group.jobs).since(group.first_at);
    match group.jobs {
        1 => finding.helps(format!("accession jobs show {}", group.newest)),
        _ => finding.helps(format!("accession jobs failed {}", quoted(&group.queue))),
    }
}

fn failed_batches(seen: &Snapshot, found: &mut Vec<Finding>) {
    let failed = &seen.overview.failed_batches;
    let Some(newest) = failed.shown.first() else { return };
    let listed: Vec<String> =
        failed.shown.iter().map(|b| format!("{} ({} of {})", b.id, b.succeeded, b.total)).collect();
    let which = match failed.shown.len() as i64 {
        n if n == failed.total => "preserved of each".to_string(),
        n => format!("{n} of {} shown, with what is preserved of each", failed.total),
    };
    let text = format!(
        "{} not preserved in full; {which}: {}",
        match failed.total {
            1 => "1 batch is".to_string(),
            n => format!("{n} batches are"),
        },
        listed.join(", ")
    );
    let since = failed.shown.iter().map(|b| b.updated_at).min().unwrap_or(seen.now);
    let finding = Finding::wrong("batches_failed", text).count(failed.total).since(since);
    found.push(finding.helps(match failed.total > failed.shown.len() as i64 {
        true => "accession batches list --state failed".to_string(),
        false => format!("accession batches show {}", newest.id),
    }));
}

/// Ready jobs that no running worker takes.
fn idle(seen: &Snapshot, found: &mut Vec<Finding>) {
    if !seen.workers.iter().any(|worker| worker.state == "live") {
        return;
    }
    for (stage, job) in &seen.overview.idle {
        let served = seen
            .workers
            .iter()
            .any(|worker| worker.state == "live" && worker.stages.contains(stage));
        if served {
            // It is about to be taken, or `why` knows more.
            continue;
        }
        let text = format!("jobs of {} are ready, and no running worker works on it", name(stage));
        let help = format!("accession jobs why {job}");
        found.push(Finding::wrong("stage_idle", text).helps(help));
    }
}

fn long_runs(seen: &Snapshot, found: &mut Vec<Finding>) {
    let long = &seen.overview.long_runs;
    for run in &long.shown {
        let progress =
            run.progress.as_deref().map(|p| format!(": {}", name(p))).unwrap_or_default();
        let text = format!(
            "job {} ({}) is in {} for {} on {}{progress}",
            run.job,
            name(&run.subject),
            run.stage,
            ago(seen.now - run.since),
            name(&run.worker)
        );
        let note = Finding::new(Level::Note, "long_run", text).since(run.since);
        found.push(note.helps(format!("accession jobs why {}", run.job)));
    }
    let rest = long.total - long.shown.len() as i64;
    if rest > 0 {
        let text = format!(
            "{} more run for over an hour; {} of {} are shown",
            output::count(rest, "job"),
            long.shown.len(),
            long.total
        );
        let note = Finding::new(Level::Note, "long_runs", text).count(rest);
        found.push(note.helps("accession jobs stuck"));
    }
}

fn paused(seen: &Snapshot, pause: &Pause) -> Finding {
    let (what, which) = match (pause.scope, seen.place(pause)) {
        (Scope::Everything, _) => ("everything".to_string(), "--all".to_string()),
        (_, Some((queue, Some(stage)))) => (
            format!("{}/{}", name(&queue), name(&stage)),
            format!("{} --stage {}", quoted(&queue), quoted(&stage)),
        ),
        (_, Some((queue, None))) => (name(&queue), quoted(&queue)),
        // Of a queue that was deleted.
        (Scope::Pipeline(id), None) => (format!("pipeline {id}"), "--all".to_string()),
        (Scope::Stage(id), None) => (format!("stage {id}"), "--all".to_string()),
    };
    let text = format!(
        "{what} is paused by {} since {}: {}",
        name(&pause.who),
        time(seen, pause.at),
        name(&pause.reason)
    );
    let finding = Finding::new(Level::Stopped, "paused", text).since(pause.at);
    finding.by(&pause.who, &pause.reason).helps(format!("accession jobs unpause {which}"))
}

fn holds(seen: &Snapshot, found: &mut Vec<Finding>) {
    let holds = &seen.overview.holds;
    found.extend(holds.shown.iter().map(|hold| held(seen, hold)));
    let rest = holds.total - holds.shown.len() as i64;
    if rest > 0 {
        let text = format!(
            "{rest} more batches, collections or jobs are held; the newest {} of {} are shown",
            holds.shown.len(),
            holds.total
        );
        let finding = Finding::new(Level::Stopped, "more_held", text).count(rest);
        found.push(finding.helps("accession batches list"));
    }
    if let Some(alone) = blocked_on(seen, "job") {
        let text = format!(
            "{} held on {} own, the first since {}",
            match alone.jobs {
                1 => "1 job is".to_string(),
                n => format!("{n} jobs are"),
            },
            if alone.jobs == 1 { "its" } else { "their" },
            time(seen, alone.since)
        );
        let finding = Finding::new(Level::Stopped, "jobs_held", text);
        found.push(
            finding.count(alone.jobs).since(alone.since).helps("accession jobs list --status held"),
        );
    }
}

fn held(seen: &Snapshot, hold: &Hold) -> Finding {
    let (code, what, command) = match hold.kind.as_str() {
        "batch" => (
            "batch_held",
            format!("batch {} is held", name(&hold.name)),
            format!("accession batches release {}", hold.name),
        ),
        "job" => (
            "job_held",
            format!("job {} finishes its stage and is held then,", name(&hold.name)),
            format!("accession jobs release {}", hold.name),
        ),
        _ => (
            "collection_held",
            format!("collection {} is held", name(&hold.name)),
            format!("accession collection release {}", quoted(&hold.name)),
        ),
    };
    let text = format!(
        "{what} by {} since {}: {}",
        name(&hold.who),
        time(seen, hold.at),
        name(&hold.reason)
    );
    let finding = Finding::new(Level::Stopped, code, text).since(hold.at);
    finding.by(&hold.who, &hold.reason).helps(command)
}

/// A name as a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_string(),
        false => format!("'{}'", name(text).replace('\'', r"'\''")),
    }
}
