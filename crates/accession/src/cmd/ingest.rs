//! `accession ingest PATH…`: deposits, works everything in this process, and says how it ended.

use super::deposit::{self, How};
use super::notify::{self, Timeout};
use super::same_name::{self, Asking};
use super::site;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use archive::registry::waits;
use archive::site::Site;
use archive::worker::WATCHING;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use queue::Status;
use queue::rules::batch;
use queue::runtime::{Settings, Stop};
use queue::view::{self, JobView, ListFilter};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession ingest letters/
  accession ingest box-17.tar.gz box-18.zip --collection maps
  accession ingest batch.checkm --collection maps

No server is needed: this process does all the work, and ends with 0 only if every object was
preserved. What it could not finish is kept; `accession jobs failed` shows what failed, and
`accession work --until-empty` goes on with the rest. Mail and callbacks are sent before it ends, for
at most --notify-timeout after the last object; what is left then is said and kept.")]
pub struct Args {
    /// What to take in
    #[arg(required = true, value_name = "PATH|URL")]
    sources: Vec<OsString>,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    notify: Timeout,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (site, _) = site::open(global, db::Options::default())?;
    let asking = Asking { command: "ingest", never: global.json };
    let receipts = deposit::accept(&site, &args.sources, &args.how, asking)?;
    let ids: Vec<i64> = receipts.iter().map(|r| r.batch).collect();
    let worked = work_on(&site, ids.clone(), args.notify.notify_timeout, global);
    let batches = site::block_on(worked)??;
    let exit = deposit::show_batches(&site, &batches, global)?;
    if !global.json && !global.quiet {
        same_name::tell(&site, &ids)?;
    }
    Ok(exit)
}

/// Works until these batches have ended, and their mail and callbacks are sent.
pub async fn work_on(
    site: &Arc<Site>,
    ids: Vec<i64>,
    notify_timeout: Duration,
    global: &Global,
) -> Result<Vec<batch::Batch>, Failure> {
    let began = site.db.read(|tx| Ok::<_, archive::Error>(tx.now())).await?;
    let (stop, stopped) = watch::channel(Stop::No);
    let workspaces = vec![site.settings.work_space.name.clone()];
    let settings = Settings { workspaces, ..Settings::default() };
    super::queue::stop_on_signals(stop.clone(), settings.grace)?;
    let worker =
        tokio::spawn(archive::worker::work(site.clone(), settings, |p, _| p != WATCHING, stopped));
    let bars = (!global.quiet).then(|| match std::io::stderr().is_terminal() && !global.json {
        true => tokio::spawn(show_progress(site.clone(), ids.clone())),
        false => tokio::spawn(deposit::say_why_it_waits(site.clone(), ids.clone())),
    });
    let waited = deposit::wait(site, ids.clone());
    tokio::pin!(waited);
    let mut interrupted = stop.subscribe();
    let batches = tokio::select! {
        batches = &mut waited => batches?,
        _ = interrupted.wait_for(|s| *s != Stop::No) => {
            let _ = worker.await;
            return Err(Failure { status: 130, code: "interrupted", message: "stopped before the end; what was received is kept, and `accession work --until-empty` goes on with it".to_string() });
        }
    };
    if let Some(bars) = bars {
        bars.abort();
    }
    // How the batches ended is known: what goes wrong from here changes nothing about that.
    let sent =
        notify::send(site, &ids, began, notify_timeout, &mut interrupted, global.quiet).await;
    if let Err(failure) = sent {
        tracing::warn!(code = failure.code, "{}", failure.message);
    }
    stop.send_replace(Stop::Shutdown);
    match worker.await {
        Ok(done) => done?,
        Err(error) => {
            return Err(Failure::unable("worker", format!("the worker ended early: {error}")));
        }
    };
    Ok(batches)
}

/// How often the bars are drawn anew.
const EVERY: Duration = Duration::from_millis(200);
/// Objects that have a line of their own.
const LINES_MAX: i64 = 8;

/// One bar for all objects, and a line for each that is worked on.
async fn show_progress(site: Arc<Site>, ids: Vec<i64>) {
    let bars = MultiProgress::new();
    let style = |template: &str| {
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
    };
    let all = bars.add(ProgressBar::new(0));
    all.set_style(style("{bar:30} {pos}/{len} objects {elapsed} {msg}"));
    let mut lines: BTreeMap<i64, ProgressBar> = BTreeMap::new();
    loop {
        let wanted = ids.clone();
        let seen = site.db.read(move |tx| look(tx, &wanted)).await;
        if let Ok(Seen { total, done, failed, jobs, waiting }) = seen {
            all.set_length(total);
            all.set_position(done);
            let failed = if failed > 0 { format!("{failed} failed") } else { String::new() };
            all.set_message(waiting.map_or(failed, |why| crate::output::printable(&why)));
            lines.retain(|id, bar| {
                let still = jobs.iter().any(|j| j.id == *id);
                if !still {
                    bars.remove(bar);
                }
                still
            });
            for job in jobs {
                let bar = lines.entry(job.id).or_insert_with(|| {
                    let bar = bars.add(ProgressBar::new_spinner());
                    bar.set_style(style("  {spinner} {msg}"));
                    bar
                });
                bar.set_message(line(&job));
                bar.tick();
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn line(job: &JobView) -> String {
    let name = crate::output::printable(&job.subject);
    let progress = job.progress.as_deref().map(crate::output::printable).unwrap_or_default();
    format!("{name:40} {:12} {progress}", job.stage)
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

fn look(tx: &mut db::Tx<'_>, ids: &[i64]) -> archive::Result<Seen> {
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
        if jobs.len() < LINES_MAX as usize && batch.open > 0 {
            let filter = ListFilter {
                status: Some(Status::Running),
                batch: Some(*id),
                limit: LINES_MAX,
                ..ListFilter::default()
            };
            jobs.extend(view::list(tx, &catalog, &filter)?);
            open = Some(*id);
        }
    }
    if let (None, true, Some(batch)) = (&waiting, jobs.is_empty(), open) {
        let filter = ListFilter {
            status: Some(Status::Queued),
            batch: Some(batch),
            limit: 1,
            ..ListFilter::default()
        };
        if let Some(job) = view::list(tx, &catalog, &filter)?.first() {
            waiting = Some(view::why(tx, tx.now(), &catalog, job.id)?);
        }
    }
    Ok(Seen { total, done, failed, jobs, waiting })
}
