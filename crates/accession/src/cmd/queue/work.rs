//! `accession queue work NAME --exec 'command {subject}'`

use super::exec::Exec;
use super::template;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Session, data_directory, make_private, parse_duration};
use queue::runtime::{Settings, Stop, Worker, host_name};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(clap::Args)]
#[command(
    after_help = "The program gets the payload on its standard input, and ACCESSION_SUBJECT, ACCESSION_JOB,
ACCESSION_QUEUE, ACCESSION_STAGE, ACCESSION_ATTEMPT, ACCESSION_TOKEN and ACCESSION_BATCH in its
environment. Where there are several stages, ACCESSION_STATE has what the stages before left, as a
JSON object, and what the program writes to the file that ACCESSION_STATE_OUT names is what the
stages after it get.
Its end decides: 0 success; 75 try again later; 69 something outside is down, named by the last
line of its standard output; a signal counts as an interruption; 126 and 127 (no such program)
stop the worker and fail no job; anything else fails the job. The last lines of its standard
error are kept as the job's error.

`{subject}` stands for one word, quoted for the shell; it is refused within quotes, backquotes, `$(…)`,
here-documents and comments, where a subject could be run. Write \"$ACCESSION_SUBJECT\" there, with
the double quotes. Write -- before a subject that may begin with a dash.

Exit status: 0 all that ran here ended well; 1 a job failed here for good, or --once found none.

Examples:
  accession queue work files --exec './store \"$ACCESSION_SUBJECT\"' --workers 8 --timeout 10m
  accession queue work files --exec 'true' --until-empty"
)]
pub struct WorkArgs {
    /// The queue's name, or one stage of it: intake/fetch
    name: String,
    /// The stage, where there are several
    #[arg(long)]
    stage: Option<String>,
    /// What the shell runs; `{subject}` becomes the subject, quoted as a word of its own
    #[arg(long, value_name = "COMMAND")]
    exec: OsString,
    /// How long one run may take
    #[arg(long, value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Stop when nothing is left but held jobs
    #[arg(long)]
    until_empty: bool,
    /// Run one job and stop; stop at once if none can be claimed now
    #[arg(long)]
    once: bool,
    /// Jobs at once (default: the queue's setting)
    #[arg(long)]
    workers: Option<i64>,
    /// Jobs claimed ahead (default: the queue's setting)
    #[arg(long)]
    buffer: Option<i64>,
    /// How the worker is named (default: this machine's name)
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,
    /// How long others wait before they take the jobs of a worker that is gone
    #[arg(long, value_parser = parse_duration, default_value = "60")]
    lease: Duration,
    /// How long a program has to end when the worker stops
    #[arg(long, value_parser = parse_duration, default_value = "30")]
    grace: Duration,
    /// What there is of a resource here: memory_bytes=8000000000
    #[arg(long, value_name = "RESOURCE=AMOUNT")]
    capacity: Vec<String>,
    /// A work space this machine reaches
    #[arg(long, value_name = "NAME")]
    workspace: Vec<String>,
    /// Do not pass on what the program prints
    #[arg(long)]
    no_output: bool,
}

pub fn run(args: WorkArgs, global: &Global) -> Result<Exit, Failure> {
    if args.lease < Duration::from_secs(1) {
        return Err(Failure::refused(
            queue::ErrorCode::BadInput,
            "--lease must be at least 1 second",
        ));
    }
    template::check(&args.exec).map_err(|place| {
        Failure::refused(
            ErrorCode::UnsafeTemplate,
            format!(
                "--exec has {{subject}} {place}, where the shell would run what a subject contains; write it as a word of its own, or write \"$ACCESSION_SUBJECT\" there, with the double quotes"
            ),
        )
    })?;
    let capacity = capacity(&args.capacity)?;
    let session = Session::open_with(global, db::Options::default())?;
    let (name, stage) = (args.name.clone(), args.stage.clone());
    let (queue, stage, has_state) = session.read(move |_, _, catalog| {
        let (pipeline, named) = catalog.place(&name)?;
        let found = |stage: &queue::Stage| {
            Ok((pipeline.name.clone(), stage.name.clone(), pipeline.stages.len() > 1))
        };
        match (&stage, named, pipeline.stages.as_slice()) {
            (Some(stage), ..) => found(pipeline.stage_named(stage)?),
            (None, Some(stage), _) => found(stage),
            (None, None, [only]) => found(only),
            (None, None, stages) => {
                let names: Vec<&str> = stages.iter().map(|s| s.name.as_str()).collect();
                Err(queue::Error::BadInput(format!(
                    "`{name}` has several stages; choose one with --stage: {}",
                    names.join(", ")
                )))
            }
        }
    })?;
    let settings = Settings {
        name: args.worker_name.clone().unwrap_or_else(host_name),
        lease: args.lease,
        // The runtime waits a little longer than the programs are given.
        grace: args.grace + Duration::from_secs(2),
        capacity,
        workspaces: args.workspace.clone(),
        workers: args.workers,
        buffer: if args.once { Some(0) } else { args.buffer },
        until_empty: args.until_empty,
        runs_max: args.once.then_some(1),
        housekeeping: true,
        observer: None,
    };
    let (stop, stopped) = watch::channel(Stop::No);
    let missing: Arc<Mutex<Option<String>>> = Arc::default();
    let exec = Exec {
        queue: queue.clone(),
        stage: stage.clone(),
        has_state,
        command: args.exec.clone(),
        timeout: args.timeout,
        grace: args.grace,
        locks: program_locks(global)?,
        database: crate::session::address(global)?.to_string(),
        stop: stop.clone(),
        missing: missing.clone(),
        pass_output: !args.no_output && !session.json,
    };
    let settings_grace = settings.grace;
    let worker = Worker::new(session.db.clone(), settings).stage(&queue, &stage, exec);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let summary = runtime.block_on(async {
        stop_on_signals(stop, settings_grace)?;
        Ok::<_, Failure>(worker.run(stopped).await?)
    })?;
    // Threads that still run are not waited for: what they do no longer counts.
    runtime.shutdown_background();
    if let Some(why) = missing.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(Failure::refused(
            ErrorCode::NoSuchProgram,
            format!("the program cannot be run: {why}; no job was failed, correct --exec"),
        ));
    }
    output::work_done(&summary, session.json, session.quiet)?;
    let none = args.once && summary.runs == 0;
    if none && !session.json && !session.quiet {
        anstream::eprintln!("no job of {} can be claimed now", output::printable(&args.name));
    }
    Ok(if none || summary.failed > 0 { Exit::No } else { Exit::Yes })
}

/// The file whose bytes the programs of this machine lock: beside an SQLite database, else in the
/// data directory.
fn program_locks(global: &Global) -> Result<PathBuf, Failure> {
    if let db::Address::Sqlite(path) = crate::session::address(global)? {
        db::open_beside(&path, "-programs")?;
        let mut name = path.into_os_string();
        name.push("-programs");
        return Ok(name.into());
    }
    let dir = data_directory(global)?;
    make_private(&dir)?;
    Ok(dir.join("programs.lock"))
}

fn capacity(pairs: &[String]) -> Result<BTreeMap<String, i64>, Failure> {
    pairs
        .iter()
        .map(|pair| {
            let parsed = pair
                .split_once('=')
                .and_then(|(name, amount)| Some((name.to_string(), amount.parse().ok()?)));
            parsed.ok_or_else(|| {
                Failure::refused(
                    queue::ErrorCode::BadInput,
                    format!("`{pair}` is not RESOURCE=AMOUNT, as in memory_bytes=8000000000"),
                )
            })
        })
        .collect()
}

/// What settling and saying goodbye may take after the grace period.
const GOODBYE: Duration = Duration::from_secs(5);

/// Listens for SIGTERM and SIGINT: the first stops in good order within the grace period, a second
/// one at once. The process ends soon after the grace period whatever happens: signals are listened
/// to on a thread and a runtime of their own, so threads that hang in the system do not delay it.
pub fn stop_on_signals(stop: watch::Sender<Stop>, grace: Duration) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listen = move || runtime.block_on(listen(stop, grace));
    std::thread::Builder::new().name("signals".to_string()).spawn(listen).map(drop)
}

async fn listen(stop: watch::Sender<Stop>, grace: Duration) {
    let (Ok(mut term), Ok(mut int)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!(
            "signals cannot be listened to; stop the worker with SIGKILL, and its lease runs out"
        );
        return;
    };
    tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
    tracing::info!("stopping: what has not started is given back, running work may finish");
    stop.send_replace(Stop::Shutdown);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        () = tokio::time::sleep(grace + GOODBYE) => tracing::error!(
            "work did not stop within the grace period of {} s; the process ends, and others take its jobs when its lease runs out",
            grace.as_secs()
        ),
    }
    archive::package::program::end_all();
    std::process::exit(130);
}
