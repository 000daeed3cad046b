//! `accession identify PATH…`: what format files are in.

mod report;
mod siegfried;
mod walk;

use crate::cli::Global;
use crate::cmd::formats;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use pronom::{Identification, Identifier, Scope};
use report::{Report, Style};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files that are identified before their results are printed, in order.
const BATCH: usize = 1024;
const PIECE_BYTES: usize = 256 * 1024;

#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 every file was identified, 1 some were not or could not be read.\n\n\
Examples:\n  accession identify report.pdf\n  accession identify --recursive deposit/\n  \
accession identify --recursive --csv deposit/ > formats.csv\n  \
accession identify -r --format siegfried deposit/ > siegfried.json\n  \
accession identify --whole --json huge.tif\n  curl -s https://example.org/x | accession identify -"
)]
pub struct Args {
    /// Files, or directories with --recursive; `-` is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Go into directories, and whatever is in them
    #[arg(short, long)]
    recursive: bool,
    /// Comma-separated values, one row for each format of each file
    #[arg(long, conflicts_with = "format")]
    csv: bool,
    /// How results are written (--json is one JSON object a line)
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Style>,
    /// The set of signatures to use instead of the one in use (see `accession formats list`)
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Scan this many bytes from each end, and nothing else (default: 65535, and up to 16 MiB where
    /// the ends leave open whether a file is of a more precise format)
    #[arg(long, value_name = "BYTES", conflicts_with = "whole")]
    scan: Option<u32>,
    /// Scan whole files
    #[arg(long)]
    whole: bool,
    /// Files identified at the same time (default: one for each processor)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// What came of one file.
struct Outcome {
    path: PathBuf,
    size: Option<u64>,
    modified: Option<std::time::SystemTime>,
    result: Result<Identification, String>,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    check(&args)?;
    let (scope, further) = match (args.whole, args.scan) {
        (true, _) => (Scope::Whole, 0),
        (false, Some(bytes)) => (Scope::Ends(bytes), 0),
        (false, None) => (Scope::default(), Identifier::FURTHER_BYTES),
    };
    let set = formats::library(global)?.load(args.set.as_deref()).map_err(formats::failure)?;
    let identifier = Identifier::new(set).with_scope(scope).with_further_bytes(further);
    let style = match (args.format, args.csv, global.json) {
        (Some(style), ..) => style,
        (None, true, _) => Style::Csv,
        (None, false, true) => Style::Json,
        (None, false, false) => Style::Table,
    };
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
    let bar = if global.quiet {
        indicatif::ProgressBar::hidden()
    } else {
        output::count_bar(None, "identifying")
    };
    let mut report = Report::begin(style, identifier.set())?;
    let mut batch = Vec::new();
    for path in walk::Walk::new(args.paths) {
        batch.push(path);
        if batch.len() == BATCH {
            report.write(&identify(&identifier, std::mem::take(&mut batch), jobs.unwrap_or(1)))?;
            bar.inc(BATCH as u64);
        }
    }
    report.write(&identify(&identifier, batch, jobs.unwrap_or(1)))?;
    bar.finish_and_clear();
    let counts = report.finish()?;
    if style == Style::Table && !global.quiet {
        eprintln!("{counts}; signatures: {}", identifier.set().origin().name);
    }
    Ok(if counts.unknown + counts.failed == 0 { Exit::Yes } else { Exit::No })
}

/// Refuses requests that cannot be meant, before anything is read.
fn check(args: &Args) -> Result<(), Failure> {
    for path in args.paths.iter().filter(|path| path.as_os_str() != "-") {
        let refused =
            |why: String| Failure::refused(ErrorCode::Path, format!("{}: {why}", path.display()));
        let about = std::fs::metadata(path).map_err(|e| refused(format!("{e}; name a file")))?;
        if about.is_dir() && !args.recursive {
            return Err(refused("it is a directory; add --recursive to look into it".to_owned()));
        }
        if !about.is_dir() && !about.is_file() {
            return Err(refused(
                "it is neither a file nor a directory; give `-` a pipe".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Identifies files side by side; results come in the order of the files.
fn identify(identifier: &Identifier, files: Vec<walk::Found>, jobs: usize) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(number) else { return done };
            done.push((number, one(identifier, file)));
        }
    };
    let jobs = jobs.clamp(1, files.len().max(1));
    let mut outcomes = std::thread::scope(|scope| {
        // This thread does its share; with one job there is no other.
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            // A panic in a worker is a defect; passing it on shows it.
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn one(identifier: &Identifier, file: &walk::Found) -> Outcome {
    let path = match file {
        Ok(path) => path.clone(),
        Err((path, why)) => {
            let result = Err(why.clone());
            return Outcome { path: path.clone(), size: None, modified: None, result };
        }
    };
    if path.as_os_str() == "-" {
        let result = standard_input(identifier);
        return Outcome { path, size: None, modified: None, result };
    }
    let about = std::fs::metadata(&path).ok();
    let size = about.as_ref().map(std::fs::Metadata::len);
    let modified = about.and_then(|about| about.modified().ok());
    let result = identifier.identify_path(&path).map_err(|e| e.to_string());
    Outcome { path, size, modified, result }
}

/// Standard input goes by once; what lies between its ends cannot be read again.
fn standard_input(identifier: &Identifier) -> Result<Identification, String> {
    let mut stream = identifier.stream();
    let mut piece = vec![0; PIECE_BYTES];
    let mut input = std::io::stdin().lock();
    loop {
        match input.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => stream.feed(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("cannot read standard input: {error}")),
        }
    }
    stream.finish(None, None).map_err(|error| error.to_string())
}

/// The path as results show it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
