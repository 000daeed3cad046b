//! What `accession ingest` shows while it works: a bar for all objects, and one for each that is
//! worked on, with its bytes, their rate and the time left.

use crate::output::{self, bars};
use archive::app::App;
use archive::registry::waits;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use queue::rules::batch;
use queue::view::{self, JobView, ListFilter};
use queue::{BatchId, JobId, Status};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often the bars are drawn anew.
const EVERY: Duration = Duration::from_millis(200);
/// Objects that have a line of their own.
const LINES_MAX: usize = 8;

/// Before it is known how many objects there are.
const LOOKING: &str = "{spinner} looking at what was deposited {elapsed} {msg}";
const ALL: &str = "{bar:24} {pos}/{len} objects {elapsed} {msg}";
const COUNTED: &str = "  {prefix:14!} {msg:11} {bar:7} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} left";
const UNBOUNDED: &str = "  {prefix:14!} {msg:11} {spinner} {binary_bytes} {binary_bytes_per_sec}";
const WORDS: &str = "  {prefix:14!} {msg}";

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=>-")
}

fn bar(template: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_finish(ProgressFinish::AndClear);
    bar.set_style(style(template));
    bars().add(bar)
}

/// The line of one object.
struct Line {
    bar: ProgressBar,
    stage: String,
    template: &'static str,
}

impl Line {
    fn new(job: &JobView) -> Line {
        let bar = bar(WORDS);
        let name = job.subject.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        bar.set_prefix(output::printable(name));
        Line { bar, stage: String::new(), template: WORDS }
    }

    fn show(&mut self, job: &JobView) {
        let template = match (job.done_bytes, job.total_bytes) {
            (Some(_), Some(total)) if total > 0 => COUNTED,
            (Some(_), _) => UNBOUNDED,
            (None, _) => WORDS,
        };
        if self.stage != job.stage || self.template != template {
            // Another stage counts from the beginning, at a rate of its own.
            self.bar.reset();
            self.bar.set_style(style(template));
            (self.stage, self.template) = (job.stage.clone(), template);
        }
        let words = match (&job.progress, job.done_bytes) {
            (Some(progress), None) => format!("{} {}", job.stage, output::printable(progress)),
            _ => job.stage.clone(),
        };
        self.bar.set_message(words);
        if let Some(done) = job.done_bytes {
            let total = job.total_bytes.unwrap_or(0);
            self.bar.set_length(total.max(done));
            self.bar.set_position(done);
        }
        self.bar.tick();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        bars().remove(&self.bar);
    }
}

/// Shows how far these batches have come, until it is dropped.
pub async fn show(app: Arc<App>, ids: Vec<BatchId>) {
    let all = bar(LOOKING);
    let mut known = 0;
    let mut lines: BTreeMap<JobId, Line> = BTreeMap::new();
    loop {
        let wanted = ids.clone();
        let seen = app.db.read(move |tx| look(tx, &wanted)).await;
        if let Ok(Seen { total, done, failed, jobs, waiting }) = seen {
            if known == 0 && total > 0 {
                all.set_style(style(ALL));
            }
            known = total;
            all.set_length(total);
            all.set_position(done);
            let failed = if failed > 0 { format!("{failed} failed") } else { String::new() };
            all.set_message(waiting.map_or(failed, |why| output::printable(&why)));
            all.tick();
            lines.retain(|id, _| jobs.iter().any(|job| job.id == *id));
            for job in &jobs {
                lines.entry(job.id).or_insert_with(|| Line::new(job)).show(job);
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// What the bars show.
#[derive(Default)]
struct Seen {
    total: u64,
    done: u64,
    failed: u64,
    jobs: Vec<JobView>,
    /// Why nothing is running.
    waiting: Option<String>,
}

fn look(tx: &mut db::Tx<'_>, ids: &[BatchId]) -> archive::Result<Seen> {
    let catalog = queue::Catalog::load(tx)?;
    let stopped = waits::anything_stopped(tx)?;
    let Seen { mut total, mut done, mut failed, mut jobs, mut waiting } = Seen::default();
    let mut open = None;
    for id in ids {
        let batch = batch::load(tx, *id)?;
        if stopped && waiting.is_none() {
            waiting = waits::stopped(tx, &catalog, &batch)?;
        }
        total += u64::try_from(batch.total).unwrap_or(0);
        done += u64::try_from(batch.succeeded + batch.failed + batch.cancelled).unwrap_or(0);
        failed += u64::try_from(batch.failed).unwrap_or(0);
        if jobs.len() < LINES_MAX && batch.open > 0 {
            let filter = ListFilter {
                status: Some(Status::Running),
                batch: Some(*id),
                limit: (LINES_MAX - jobs.len()) as i64,
                ..ListFilter::default()
            };
            jobs.extend(view::list(tx, &catalog, &filter)?);
            open = Some(batch);
        }
    }
    if let (None, true, Some(batch)) = (&waiting, jobs.is_empty(), open) {
        waiting = waits::idle(tx, &catalog, &batch)?;
    }
    Ok(Seen { total, done, failed, jobs, waiting })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_drawn() {
        for template in [LOOKING, ALL, COUNTED, UNBOUNDED, WORDS] {
            ProgressStyle::with_template(template).unwrap();
        }
    }
}
