//! What `accession work` shows of what it does: a line for each object that ended, and on a
//! terminal one more that changes. The worker tells what happens; the database is asked only for
//! the names of what ended, and now and then for how much there is to do.

use crate::output;
use archive::app::App;
use archive::registry::brief::{Brief, brief};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use queue::rules::batch;
use queue::runtime::{Observer, RunEvent};
use queue::view::{ago, show_time};
use queue::{Catalog, JobError, JobId, StageId, Status};
use std::collections::{BTreeMap, VecDeque};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How often is looked at what happened.
const EVERY: Duration = Duration::from_millis(250);
/// How often is counted what there is to do.
const COUNT_EVERY: Duration = Duration::from_secs(3);
/// Lines that are written at once.
const LINES_MAX: usize = 50;
/// What happened is kept so far; when more happens than can be written, the rest is counted.
const HAPPENED_MAX: usize = 1000;
/// The part of a message that is on a line; all of it is in the job's history.
const MESSAGE_MAX: usize = 100;

/// A run that is under way.
struct Running {
    name: String,
    stage: String,
    progress: String,
    since: Instant,
}

/// What became of a job.
struct Happened {
    job: JobId,
    stage: StageId,
    status: Status,
    error: Option<JobError>,
    at: db::Micros,
}

#[derive(Default)]
struct Heard {
    running: BTreeMap<JobId, Running>,
    happened: VecDeque<Happened>,
    /// What happened and is only counted.
    beyond: u64,
}

#[derive(Clone)]
pub struct Console {
    heard: Arc<Mutex<Heard>>,
    /// The line that changes.
    status: ProgressBar,
    on_terminal: bool,
    began: db::Micros,
}

/// How this worker has done so far.
#[derive(Default)]
struct Totals {
    preserved: u64,
    failed: u64,
}

impl Console {
    pub fn new() -> Console {
        let on_terminal = std::io::stderr().is_terminal();
        let status = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            status.set_style(style);
        }
        let status = if on_terminal { output::bars().add(status) } else { status };
        Console { heard: Arc::default(), status, on_terminal, began: db::system_now() }
    }

    /// What the worker tells.
    pub fn observer(&self) -> Observer {
        let heard = self.heard.clone();
        Observer::new(move |told| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).hear(told);
        })
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line: above the one that changes, or to standard output.
    pub fn line(&self, text: &str) {
        // A reader that went away does not end a worker.
        let _ = match self.on_terminal {
            true => output::bars().suspend(|| {
                anstream::eprintln!("{text}");
                Ok(())
            }),
            false => output::line(text),
        };
    }

    /// Shows what happens, until it is dropped.
    pub async fn run(self, app: Arc<App>) {
        let mut totals = Totals::default();
        let mut open = None;
        let mut counted: Option<Instant> = None;
        loop {
            self.tell(&app, &mut totals).await;
            if self.on_terminal {
                let away = app.db.unavailable_since();
                if away.is_none() && counted.is_none_or(|at| at.elapsed() > COUNT_EVERY) {
                    counted = Some(Instant::now());
                    open = app.db.read(batch::count_open).await.ok();
                }
                let text = self.status(away, open, &totals);
                self.status.set_message(text);
                self.status.tick();
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Writes the lines of what happened last, once the worker has stopped.
    pub async fn finish(&self, app: &Arc<App>) {
        self.status.finish_and_clear();
        if self.on_terminal {
            output::bars().remove(&self.status);
        }
        let mut totals = Totals::default();
        while app.db.unavailable_since().is_none() && self.tell(app, &mut totals).await {}
    }

    /// Writes a line for each of some jobs; true if there may be more.
    async fn tell(&self, app: &Arc<App>, totals: &mut Totals) -> bool {
        let (some, beyond) = {
            let mut heard = self.heard();
            let count = heard.happened.len().min(LINES_MAX);
            (heard.happened.drain(..count).collect::<Vec<_>>(), std::mem::take(&mut heard.beyond))
        };
        if some.is_empty() && beyond == 0 {
            return false;
        }
        let jobs: Vec<JobId> = some.iter().map(|one| one.job).collect();
        let found = app.db.read(move |tx| {
            let catalog = Catalog::load(tx)?;
            let briefs = jobs.iter().map(|job| brief(tx, &catalog, *job));
            let briefs = briefs.collect::<archive::Result<Vec<_>>>()?;
            Ok::<_, archive::Error>((briefs, catalog))
        });
        match found.await {
            Ok((briefs, catalog)) => {
                for (one, brief) in some.iter().zip(briefs) {
                    let Some(brief) = brief else { continue };
                    totals.count(one, &brief);
                    if let Some(text) = words(one, &brief, &catalog) {
                        self.line(&format!("{} {text}", self.time(one.at)));
                    }
                }
            }
            // It is told when the database is back.
            Err(_) => {
                let mut heard = self.heard();
                some.into_iter().rev().for_each(|one| heard.happened.push_front(one));
                heard.beyond += beyond;
                return false;
            }
        }
        if beyond > 0 {
            let time = self.time(db::system_now());
            self.line(&format!("{time} and {beyond} more; `accession status` shows the whole"));
        }
        true
    }

    /// The time of day on a terminal; the whole of it in what is kept.
    fn time(&self, at: db::Micros) -> String {
        let time = show_time(at);
        match self.on_terminal {
            true => time.split(' ').next_back().unwrap_or_default().to_string(),
            false => time,
        }
    }

    fn status(
        &self,
        away: Option<SystemTime>,
        open: Option<(i64, i64)>,
        totals: &Totals,
    ) -> String {
        if let Some(since) = away {
            let seconds = since.elapsed().unwrap_or_default().as_micros();
            let seconds = db::Micros::try_from(seconds).unwrap_or(0);
            return format!("waiting for the database for {}", ago(seconds));
        }
        let heard = self.heard();
        let mut parts = Vec::new();
        // The one that has taken longest.
        match heard.running.values().min_by_key(|running| running.since) {
            None if open.is_none_or(|(_, objects)| objects == 0) => {
                parts.push("waiting for deposits".to_string());
            }
            None => parts.push("nothing can be done now; `accession status` says why".to_string()),
            Some(first) => {
                let others = heard.running.len() - 1;
                let beside = if others > 0 { format!(", {others} more") } else { String::new() };
                let what = match first.progress.as_str() {
                    "" => first.stage.clone(),
                    progress => progress.to_string(),
                };
                parts.push(format!("{}: {what}{beside}", first.name));
            }
        }
        if let Some((batches, objects)) = open.filter(|(_, objects)| *objects > 0) {
            let batches = match batches {
                1 => "1 batch".to_string(),
                n => format!("{n} batches"),
            };
            parts.push(format!("{} to go in {batches}", output::count(objects, "object")));
        }
        if totals.preserved + totals.failed > 0 {
            let failed = match totals.failed {
                0 => String::new(),
                n => format!(", {n} failed"),
            };
            let since = self.time(self.began);
            parts.push(format!("{} preserved{failed} since {since}", totals.preserved));
        }
        parts.join(" · ")
    }
}

impl Totals {
    fn count(&mut self, one: &Happened, brief: &Brief) {
        if brief.pipeline == archive::model::pipelines::INGEST {
            match one.status {
                Status::Succeeded => self.preserved += 1,
                Status::Failed => self.failed += 1,
                _ => {}
            }
        }
    }
}

impl Heard {
    fn hear(&mut self, told: RunEvent<'_>) {
        match told {
            RunEvent::Began { job, stage, subject } => {
                let name = subject.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                let running = Running {
                    name: output::printable(name),
                    stage: stage.to_string(),
                    progress: String::new(),
                    since: Instant::now(),
                };
                self.running.insert(job, running);
            }
            RunEvent::Came { job, progress } => {
                if let Some(running) = self.running.get_mut(&job) {
                    running.progress = output::printable(&progress.to_string());
                }
            }
            RunEvent::Over { job } => drop(self.running.remove(&job)),
            // It goes on in its next stage.
            RunEvent::Settled { status: Status::Queued, error: None, .. } => {}
            RunEvent::Settled { .. } if self.happened.len() >= HAPPENED_MAX => self.beyond += 1,
            RunEvent::Settled { job, stage, status, error } => {
                let (error, at) = (error.cloned(), db::system_now());
                self.happened.push_back(Happened { job, stage, status, error, at });
            }
        }
    }
}

/// What is said of a job that ended, or is tried again.
fn words(one: &Happened, brief: &Brief, catalog: &Catalog) -> Option<String> {
    let name = output::printable(&brief.subject);
    let ingest = brief.pipeline == archive::model::pipelines::INGEST;
    match (one.status, &one.error) {
        (Status::Failed, error) => {
            let red = anstyle::AnsiColor::Red.on_default().bold();
            let why = error.as_ref().map(why).unwrap_or_default();
            let stage = catalog.stage_name(one.stage);
            let job = one.job;
            Some(format!(
                "{red}FAILED{red:#}     {name} in {stage}{why}; `accession jobs show {job}`"
            ))
        }
        (Status::Queued, Some(error)) => {
            let stage = catalog.stage_name(one.stage);
            Some(format!("try again  {name} in {stage}{}", why(error)))
        }
        (Status::Cancelled, _) => Some(format!("cancelled  {name}")),
        (Status::Succeeded, _) if ingest && brief.unchanged => {
            Some(format!("unchanged  {name}: {} has it", brief.identifier))
        }
        (Status::Succeeded, _) if ingest => {
            let version = brief.version.map(|v| format!(" version {v}")).unwrap_or_default();
            let (files, size) = (output::count(brief.files, "file"), output::size(brief.bytes));
            Some(format!("preserved  {name} as {}{version}: {files}, {size}", brief.identifier))
        }
        (Status::Succeeded, _) => match brief.pipeline.as_str() {
            archive::model::pipelines::BATCH => Some(format!("taken in   {name}")),
            archive::model::pipelines::REPORT | archive::model::pipelines::CALLBACK => {
                Some(format!("sent       {name}"))
            }
            archive::model::pipelines::RESTORE_OBJECT | archive::model::pipelines::RESTORE_FILE => {
                Some(format!("delivered  {name}"))
            }
            _ => Some(format!("done       {name}")),
        },
        _ => None,
    }
}

fn why(error: &JobError) -> String {
    let whole = output::printable(&output::in_one_line(&error.message));
    let mut short: String = whole.chars().take(MESSAGE_MAX).collect();
    if short.len() < whole.len() {
        short.push('…');
    }
    format!(": {short} [{}]", error.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(job: JobId, status: Status, error: Option<&JobError>) -> RunEvent<'_> {
        RunEvent::Settled { job, stage: StageId::new(1), status, error }
    }

    #[test]
    fn only_what_ended_or_went_wrong_gets_a_line() {
        let error = JobError::new("disk", "the disk\nis full");
        let mut heard = Heard::default();
        heard.hear(settled(JobId::new(1), Status::Queued, None));
        heard.hear(settled(JobId::new(2), Status::Queued, Some(&error)));
        heard.hear(settled(JobId::new(3), Status::Succeeded, None));
        heard.hear(settled(JobId::new(4), Status::Failed, Some(&error)));
        let jobs: Vec<JobId> = heard.happened.iter().map(|one| one.job).collect();
        assert_eq!(jobs, [2, 3, 4].map(JobId::new));
        assert_eq!(why(&error), ": the disk; is full [disk]");
    }

    #[test]
    fn what_cannot_be_written_in_time_is_counted() {
        let mut heard = Heard::default();
        (0..HAPPENED_MAX as i64 + 7)
            .map(JobId::new)
            .for_each(|job| heard.hear(settled(job, Status::Succeeded, None)));
        assert_eq!((heard.happened.len(), heard.beyond), (HAPPENED_MAX, 7));
    }

    #[test]
    fn the_line_that_changes_says_what_takes_longest() {
        let console = Console::new();
        let text = |console: &Console| console.status(None, Some((0, 0)), &Totals::default());
        assert_eq!(text(&console), "waiting for deposits");
        for (job, subject) in [(7, "boxes/box-17/"), (8, "box-18")] {
            let job = JobId::new(job);
            console.heard().hear(RunEvent::Began { job, stage: "storing", subject });
        }
        let progress = queue::Progress::bytes("storing", 1 << 20, Some(4 << 20));
        console.heard().hear(RunEvent::Came { job: JobId::new(7), progress: &progress });
        assert_eq!(text(&console), "box-17: storing 1.0 MiB of 4.0 MiB (25%), 1 more");
        console.heard().hear(RunEvent::Over { job: JobId::new(7) });
        assert_eq!(text(&console), "box-18: storing");
        let totals = Totals { preserved: 3, failed: 1 };
        let busy = console.status(None, Some((2, 14)), &totals);
        assert!(
            busy.starts_with(
                "box-18: storing · 14 objects to go in 2 batches · 3 preserved, 1 failed since "
            ),
            "{busy}"
        );
        let away = console.status(Some(SystemTime::now()), None, &totals);
        assert!(away.starts_with("waiting for the database for "), "{away}");
    }
}
