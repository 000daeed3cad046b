//! The same for people, within the width of the terminal.

use super::Snapshot;
use super::finding::{Finding, Level};
use crate::exit::Failure;
use crate::output::{self, wrapped};
use queue::BatchState;
use queue::rules::batch::Batch;
use queue::view::{StageStats, ago, show_time};
use std::io::IsTerminal;

/// The width where there is no terminal, and the most that is used of a wide one.
const WIDTH: usize = 80;
const WIDTH_MAX: usize = 120;
/// What stands before a finding.
const INDENT: usize = 9;
/// Names in tables are cut after this.
const NAME_MAX: usize = 28;
const STAGES_MAX: usize = 10;
const WORKERS_MAX: usize = 3;

pub fn print(seen: &Snapshot, findings: &[Finding]) -> Result<(), Failure> {
    let width = width();
    output::line(&headline(seen, findings))?;
    if !findings.is_empty() {
        output::line("")?;
    }
    for finding in findings {
        print_finding(finding, width)?;
    }
    output::line("")?;
    for (name, fact) in facts(seen) {
        for (n, line) in wrapped(&fact, width - 12).iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            output::line(&format!("{name:<11} {line}"))?;
        }
    }
    batches(seen)?;
    stages(seen)
}

fn width() -> usize {
    let terminal =
        std::io::stdout().is_terminal().then(|| comfy_table::Table::new().width()).flatten();
    terminal.map_or(WIDTH, |columns| usize::from(columns).clamp(40, WIDTH_MAX))
}

fn headline(seen: &Snapshot, findings: &[Finding]) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let mut parts = Vec::new();
    parts.push(match count(Level::Wrong) {
        0 => "nothing is wrong".to_string(),
        1 => "1 thing is wrong".to_string(),
        n => format!("{n} things are wrong"),
    });
    match count(Level::Stopped) {
        0 => {}
        1 => parts.push("1 is stopped".to_string()),
        n => parts.push(format!("{n} are stopped")),
    }
    format!("{}  {}", show_time(seen.now), parts.join(", "))
}

fn print_finding(finding: &Finding, width: usize) -> Result<(), Failure> {
    let (word, colour) = match finding.level {
        Level::Wrong => ("wrong", anstyle::AnsiColor::Red),
        Level::Stopped => ("stopped", anstyle::AnsiColor::Yellow),
        Level::Note => ("note", anstyle::AnsiColor::Cyan),
    };
    let style = colour.on_default().bold();
    for (n, line) in wrapped(&finding.text, width - INDENT).iter().enumerate() {
        match n {
            0 => output::line(&format!("{style}{word:<8}{style:#} {line}"))?,
            _ => output::line(&format!("{:INDENT$}{line}", ""))?,
        }
    }
    if let Some(command) = &finding.command {
        // Not wrapped, so that it can be copied.
        output::line(&format!("{:INDENT$}$ {command}", ""))?;
    }
    Ok(())
}

fn facts(seen: &Snapshot) -> Vec<(&'static str, String)> {
    let space = match &seen.space {
        Ok(space) => {
            let percent = (space.used * 100).checked_div(space.total).unwrap_or(0);
            format!("{percent}% of {} used", output::size(space.total))
        }
        Err(_) => "not known".to_string(),
    };
    let sum = |count: fn(&StageStats) -> i64| -> i64 { seen.stats.stages.iter().map(count).sum() };
    let (running, held) = (sum(|s| s.running), sum(|s| s.held));
    let waiting = sum(|s| s.ready + s.parked + s.delayed + s.blocked + s.starved);
    let (good, bad) = (sum(|s| s.succeeded_last_hour), sum(|s| s.errors_last_hour));
    vec![
        (
            "registry",
            format!(
                "{}, {}, {}",
                output::count(seen.objects, "object"),
                output::count(seen.files, "file"),
                output::size(seen.bytes.unsigned_abs())
            ),
        ),
        ("work space", format!("{}: {space}", output::printable(&seen.work_space.name))),
        ("workers", workers(seen)),
        ("batches", batch_counts(seen)),
        (
            "jobs",
            format!(
                "{running} running, {waiting} waiting, {held} held, {} failed",
                seen.overview.failed_jobs
            ),
        ),
        ("last hour", format!("{} succeeded, {bad} ended in an error", output::count(good, "run"))),
    ]
}

fn workers(seen: &Snapshot) -> String {
    let live: Vec<_> = seen.workers.iter().filter(|worker| worker.state == "live").collect();
    if live.is_empty() {
        return "none is running; `accession work` starts one".to_string();
    }
    let named = live.iter().take(WORKERS_MAX).map(|worker| {
        let jobs = match worker.jobs.iter().filter(|job| job.started).count() {
            0 => String::new(),
            n => format!(" ({})", output::count(n, "job")),
        };
        format!("{}{jobs}", output::printable(&worker.name))
    });
    let mut named: Vec<String> = named.collect();
    if live.len() > WORKERS_MAX {
        named.push(format!("{} more", live.len() - WORKERS_MAX));
    }
    format!("{} running: {}", live.len(), named.join(", "))
}

fn batch_counts(seen: &Snapshot) -> String {
    const ORDER: [BatchState; 5] = [
        BatchState::Pending,
        BatchState::Processing,
        BatchState::Reporting,
        BatchState::UpdateReporting,
        BatchState::Failed,
    ];
    let counts = &seen.overview.batch_counts;
    let found = ORDER.iter().filter_map(|state| counts.iter().find(|count| count.state == *state));
    let parts: Vec<String> = found
        .map(|count| {
            let held =
                if count.held > 0 { format!(" ({} held)", count.held) } else { String::new() };
            format!("{} {}{held}", count.batches, count.state)
        })
        .collect();
    if parts.is_empty() { "none under way, none failed".to_string() } else { parts.join(", ") }
}

/// A name that leaves room for the other columns.
fn cut(text: &str, most: usize) -> String {
    let shown = output::printable(text);
    match shown.chars().count() > most {
        true => shown.chars().take(most - 1).chain(['…']).collect(),
        false => shown,
    }
}

fn batches(seen: &Snapshot) -> Result<(), Failure> {
    let open = &seen.overview.open_batches;
    if open.shown.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let row = |b: &Batch| {
        vec![
            b.id.to_string(),
            cut(&b.label, NAME_MAX),
            if b.is_held() { format!("held ({})", b.state) } else { b.state.to_string() },
            format!("{}/{}", b.succeeded, b.total),
            b.failed.to_string(),
            ago(seen.now - b.created_at),
        ]
    };
    let headers = ["batch", "label", "state", "done", "failed", "since"];
    output::table(&headers, open.shown.iter().map(row))?;
    if open.total > open.shown.len() as i64 {
        let (shown, total) = (open.shown.len(), open.total);
        output::line(&format!(
            "the newest {shown} of {total} under way shown: accession batches list"
        ))?;
    }
    Ok(())
}

fn stages(seen: &Snapshot) -> Result<(), Failure> {
    let load = |s: &StageStats| {
        s.ready + s.running + s.parked + s.delayed + s.held + s.blocked + s.starved + s.failed
    };
    let busy: Vec<&StageStats> = seen.stats.stages.iter().filter(|s| load(s) > 0).collect();
    if busy.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let rows = busy.iter().take(STAGES_MAX).map(|s| {
        let name =
            if s.queue == s.stage { s.queue.clone() } else { format!("{}/{}", s.queue, s.stage) };
        let paused = if s.paused { " (paused)" } else { "" };
        vec![
            format!("{}{paused}", cut(&name, NAME_MAX)),
            s.ready.to_string(),
            s.running.to_string(),
            (s.parked + s.delayed).to_string(),
            (s.held + s.blocked + s.starved).to_string(),
            s.failed.to_string(),
            s.oldest_at.map(|at| ago(seen.now - at)).unwrap_or_default(),
        ]
    });
    let headers = ["stage", "ready", "running", "later", "stopped", "failed", "oldest"];
    output::table(&headers, rows)?;
    if busy.len() > STAGES_MAX {
        let total = busy.len();
        output::line(&format!("{STAGES_MAX} of {total} stages shown: accession queue stats"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        assert_eq!(cut("a name that is too long for a table", 12), "a name that…");
    }
}
