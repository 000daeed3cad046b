//! `accession work`: works on what was deposited, until it is told to stop.

mod console;

use super::app;
use super::notify;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::parse_duration;
use archive::app::App;
use archive::pipeline;
use archive::worker::WATCHING;
use queue::runtime::{Settings, Stop, host_name};
use std::time::Duration;
use tokio::sync::watch;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession work
  accession work --stages validating,identifying
  accession work --until-empty

As many processes as you like may work on one database. The first SIGTERM or SIGINT stops in good
order: what has not started is given back, running work stops at its next good place.

Exit status: 0 no job failed here for good; 1 some did (accession jobs failed).")]
pub struct Args {
    /// Only these stages of ingest (validating or ingest/validating), or whole pipelines: batch, report, callback, sweep,
    /// watching
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    stages: Vec<String>,
    /// Stop when nothing is left to do
    #[arg(long)]
    until_empty: bool,
    /// How the worker is named (default: this machine's name)
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,
    /// How long others wait before they take the jobs of a worker that is gone
    #[arg(long, value_parser = parse_duration, default_value = "60")]
    lease: Duration,
    /// How long running work has to reach a good place when the worker stops
    #[arg(long, value_parser = parse_duration, default_value = "30")]
    grace: Duration,
    /// With --until-empty: when only mail and callbacks are left, how long none of them may be sent
    /// before the worker ends all the same
    #[arg(long, value_parser = parse_duration, default_value = "60", value_name = "DURATION")]
    notify_timeout: Duration,
    /// Jobs at once in each stage (default: the stage's setting)
    #[arg(long)]
    workers: Option<i64>,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    check(&args.stages)?;
    if args.lease < Duration::from_secs(1) {
        return Err(Failure::refused(
            queue::ErrorCode::BadInput,
            "--lease must be at least 1 second",
        ));
    }
    let (app, _) = app::open(global, db::Options::default())?;
    check_watching(&args, app.settings.watches.len())?;
    let settings = Settings {
        name: args.worker_name.clone().unwrap_or_else(host_name),
        lease: args.lease,
        grace: args.grace,
        workspaces: vec![app.settings.work_space.name.clone()],
        workers: args.workers,
        until_empty: args.until_empty,
        ..Settings::default()
    };
    let console = (!global.quiet && !global.json).then(console::Console::new);
    let settings = Settings { observer: console.as_ref().map(|c| c.observer()), ..settings };
    let stages = args.stages.clone();
    let wanted = move |pipeline: &str, stage: &str| {
        let shown = format!("{pipeline}/{stage}");
        stages.is_empty() || stages.iter().any(|s| s == stage || s == pipeline || *s == shown)
    };
    let (until_empty, timeout, quiet) = (args.until_empty, args.notify_timeout, global.quiet);
    let summary = app::block_on(async {
        let (stop, stopped) = watch::channel(Stop::No);
        super::queue::stop_on_signals(stop.clone(), settings.grace)?;
        let stalled = notify::end_when_stalled(app.clone(), timeout, wanted.clone(), stop, quiet);
        let stalled = until_empty.then(|| tokio::spawn(stalled));
        let shown = console.as_ref().map(|console| {
            begin(console, &args, &app, &settings);
            tokio::spawn(console.clone().run(app.clone()))
        });
        let done = archive::worker::work(app.clone(), settings, wanted, stopped).await;
        if let Some(task) = stalled {
            task.abort();
        }
        if let (Some(console), Some(shown)) = (console, shown) {
            shown.abort();
            let _ = shown.await;
            console.finish(&app).await;
        }
        Ok::<_, Failure>(done?)
    })??;
    output::work_done(&summary, global.json, global.quiet)?;
    Ok(if summary.failed > 0 { Exit::No } else { Exit::Yes })
}

/// Says what the worker works on, where, and how it is stopped.
fn begin(console: &console::Console, args: &Args, app: &App, settings: &Settings) {
    let what = match args.stages.as_slice() {
        [] => "all stages".to_string(),
        stages => stages.join(", "),
    };
    let name = output::printable(&settings.name);
    console.line(&format!("worker {name} works on {what} of {}", app.db.address()));
    let stores: Vec<String> = app.stores.names().map(|name| output::printable(name)).collect();
    let work = &app.settings.work_space;
    let (stores, space) = (stores.join(", "), output::printable(&work.path.display().to_string()));
    console
        .line(&format!("stores: {stores}; work space {}: {space}", output::printable(&work.name)));
    if args.stages.is_empty() || args.stages.iter().any(|stage| stage == WATCHING) {
        for place in &app.settings.watches {
            let path = output::printable(&place.path);
            console.line(&format!("watches {path} every {} s", place.poll_seconds));
        }
    }
    let end = if args.until_empty {
        "it stops when nothing is left to do"
    } else {
        "it goes on until it is stopped"
    };
    console.line(&format!("{end}; Ctrl-C stops in good order"));
}

/// Refuses to watch where that would end at once, and says why.
fn check_watching(args: &Args, places: usize) -> Result<(), Failure> {
    let named = args.stages.iter().any(|s| s == WATCHING);
    let alone = named && args.stages.iter().all(|s| s == WATCHING);
    if named && places == 0 {
        return Err(Failure::refused(
            ErrorCode::NothingToWatch,
            "the configuration names no drop folder and no receiving bucket; add a `[[watch]]` section, or leave `watching` out of --stages",
        ));
    }
    if alone && args.until_empty {
        return Err(Failure::refused(
            queue::ErrorCode::BadInput,
            "watching has no end, so --until-empty cannot be used with `--stages watching`; leave it out, or name other stages too",
        ));
    }
    Ok(())
}

fn check(stages: &[String]) -> Result<(), Failure> {
    let staged = [&pipeline::ingest::PIPELINE, &pipeline::batch::PIPELINE];
    let mut known: Vec<&str> = staged.iter().flat_map(|p| p.stage_names()).collect();
    known.extend(pipeline::ALL.map(|p| p.name));
    known.push(WATCHING);
    let in_full = |p: &&'static pipeline::Pipeline| {
        let name = p.name;
        p.stages.iter().map(move |stage| format!("{name}/{}", stage.name))
    };
    let shown: Vec<String> = pipeline::ALL.iter().flat_map(in_full).collect();
    match stages.iter().find(|s| !known.contains(&s.as_str()) && !shown.contains(s)) {
        None => Ok(()),
        Some(unknown) => Err(Failure::refused(
            queue::ErrorCode::Unknown,
            format!("there is no stage `{unknown}`; there are: {}", known.join(", ")),
        )),
    }
}
