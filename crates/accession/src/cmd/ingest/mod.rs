//! `accession ingest PATH…`: deposits, works everything in this process, and says how it ended.

mod progress;

use super::app;
use super::deposit::{self, How};
use super::notify::{self, Timeout};
use super::same_name::{self, Asking};
use super::waiting;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::app::App;
use archive::worker::WATCHING;
use queue::BatchId;
use queue::rules::batch;
use queue::runtime::{Settings, Stop};
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
    let (app, _) = app::open(global, db::Options::default())?;
    let asking = Asking { command: "ingest", never: global.json };
    let receipts = deposit::accept(&app, &args.sources, &args.how, asking)?;
    let ids: Vec<BatchId> = receipts.iter().map(|r| r.batch).collect();
    let worked = work_on(&app, ids.clone(), args.notify.notify_timeout, global);
    let batches = app::block_on(worked)??;
    let exit = waiting::show_batches(&app, &batches, global)?;
    if !global.json && !global.quiet {
        same_name::tell(&app, &ids)?;
    }
    Ok(exit)
}

/// Works until these batches have ended, and their mail and callbacks are sent.
pub async fn work_on(
    app: &Arc<App>,
    ids: Vec<BatchId>,
    notify_timeout: Duration,
    global: &Global,
) -> Result<Vec<batch::Batch>, Failure> {
    let began = app.db.read(|tx| Ok::<_, archive::Error>(tx.now())).await?;
    let (stop, stopped) = watch::channel(Stop::No);
    let workspaces = vec![app.settings.work_space.name.clone()];
    let settings = Settings { workspaces, ..Settings::default() };
    super::queue::stop_on_signals(stop.clone(), settings.grace)?;
    let worker =
        tokio::spawn(archive::worker::work(app.clone(), settings, |p, _| p != WATCHING, stopped));
    let bars = (!global.quiet).then(|| match std::io::stderr().is_terminal() && !global.json {
        true => tokio::spawn(progress::show(app.clone(), ids.clone())),
        false => tokio::spawn(waiting::say_why_it_waits(app.clone(), ids.clone(), false)),
    });
    let waited = waiting::wait(app, ids.clone());
    tokio::pin!(waited);
    let mut interrupted = stop.subscribe();
    let batches = tokio::select! {
        batches = &mut waited => batches,
        _ = interrupted.wait_for(|s| *s != Stop::No) => {
            end(bars).await;
            let _ = worker.await;
            return Err(Failure { status: 130, code: ErrorCode::Interrupted.into(), message: "stopped before the end; what was received is kept, and `accession work --until-empty` goes on with it".to_string() });
        }
    };
    end(bars).await;
    if batches.is_ok() {
        // How the batches ended is known: what goes wrong from here changes nothing about that.
        let sent =
            notify::send(app, &ids, began, notify_timeout, &mut interrupted, global.quiet).await;
        if let Err(failure) = sent {
            tracing::warn!(code = failure.code.as_str(), "{}", failure.message);
        }
    }
    stop.send_replace(Stop::Shutdown);
    let batches = batches?;
    match worker.await {
        Ok(done) => done?,
        Err(error) => {
            return Err(Failure::unable(
                ErrorCode::Worker,
                format!("the worker ended early: {error}"),
            ));
        }
    };
    Ok(batches)
}

/// Ends what shows progress, and leaves nothing of it on the screen.
async fn end(bars: Option<tokio::task::JoinHandle<()>>) {
    if let Some(bars) = bars {
        bars.abort();
        // The lines are cleared after the task's last write.
        let _ = bars.await;
        let _ = output::bars().clear();
    }
}
