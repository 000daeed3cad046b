//! `accession bench s3`: whole ingests into a bucket, beside what rclone needs to copy the same files
//! there and to compare them by reading them back, both through a proxy that delays.

mod content;
mod proxy;
mod runs;

use super::ingest::floor;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use runs::Bucket;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bench s3 's3://bench?endpoint=http://127.0.0.1:8000'
  accession bench s3 's3://bench?endpoint=http://127.0.0.1:8000' --large-mib 64 --small 200 --runs 1
  accession bench s3 s3://bench/trials --delay-ms 0

Each figure is the median of --runs. Ours is `accession ingest` of a directory into an archive that
has an object already; it hashes, identifies, stores and reads everything back; rclone's is `rclone copy` and then `rclone check
--download`, with its defaults. Both take the same keys from the environment. What is put lies below
a prefix of its own and is removed.

Endpoints of https:// cannot be delayed by the proxy: they are measured as they are. The floor is
hashing the same bytes three times and copying them once on this machine, without any server; it
needs cp, sync and openssl.")]
pub struct Args {
    /// The bucket, and where in it: `s3://bucket/prefix?endpoint=…`
    url: String,
    /// Size of the large file in MiB
    #[arg(long, default_value_t = 1024)]
    large_mib: u64,
    /// Number of files of 1 MiB
    #[arg(long, default_value_t = 300)]
    medium: u64,
    /// Number of files of 4 KiB
    #[arg(long, default_value_t = 2000)]
    small: u64,
    /// Round trips that the proxy makes of it, in milliseconds
    #[arg(long, value_delimiter = ',', default_value = "0,40", value_name = "MS")]
    delay_ms: Vec<u64>,
    /// large, medium or small (may be given several times; default: all)
    #[arg(long, value_name = "FILES")]
    only: Vec<String>,
    /// How often each measurement is repeated; the median counts
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// The rclone to compare with
    #[arg(long, default_value = "rclone", value_name = "PROGRAM")]
    rclone: PathBuf,
    /// Where the files are made; they are removed afterwards
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

const SETS: [&str; 3] = ["large", "medium", "small"];

/// Of rclone's time, and of memory.
const RATIO_MAX: f64 = 1.0;
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// A line of the result.
struct Cell {
    what: String,
    delay: Option<u64>,
    seconds: f64,
    /// Of copying, and of comparing.
    rclone: Option<(f64, f64)>,
    floor: Option<f64>,
    memory_peak_bytes: u64,
}

impl Cell {
    fn ratio(&self) -> Option<f64> {
        self.rclone.map(|(copy, check)| self.seconds / (copy + check))
    }
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    if let Some(unknown) = args.only.iter().find(|set| !SETS.contains(&set.as_str())) {
        let message = format!("there are no files `{unknown}`; there are: {}", SETS.join(", "));
        return Err(Failure::refused(queue::ErrorCode::Unknown, message));
    }
    let place = match &args.work {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let bucket = Bucket::of(&args.url)?;
    let rclone = runs::version_of(&args.rclone);
    let sets = [
        ("large", format!("1 file of {} MiB", args.large_mib), 1, args.large_mib << 20),
        ("medium", format!("{} files of 1 MiB", args.medium), args.medium, 1 << 20),
        ("small", format!("{} files of 4 KiB", args.small), args.small, 4096),
    ];
    let mut cells = Vec::new();
    for (name, what, files, bytes) in sets {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == name) {
            continue;
        }
        let from = place.path().join(name);
        content::make(&from, files, bytes)?;
        let floor = floor_of(place.path(), &from);
        for delay in delays(&args, &bucket) {
            let what = what.clone();
            let cell = measure(&args, &bucket, place.path(), &from, delay, rclone.is_some())?;
            cells.push(Cell { what, floor, ..cell });
        }
        std::fs::remove_dir_all(&from)?;
    }
    tell(&cells, rclone.as_deref(), global)?;
    Ok(Exit::Yes)
}

/// What is measured: each delay, or the store as it is where nothing can be put between.
fn delays(args: &Args, bucket: &Bucket) -> Vec<Option<u64>> {
    match bucket.target() {
        Some(_) => args.delay_ms.iter().copied().map(Some).collect(),
        None => vec![None],
    }
}

fn floor_of(place: &Path, from: &Path) -> Option<f64> {
    match floor::of_files(place, from) {
        Ok(seconds) => Some(seconds),
        Err(failure) => {
            tracing::warn!("no floor: {}", failure.message);
            None
        }
    }
}

/// The medians of one set of files with one delay; ours and rclone's take turns.
fn measure(
    args: &Args,
    bucket: &Bucket,
    place: &Path,
    from: &Path,
    delay: Option<u64>,
    with_rclone: bool,
) -> Result<Cell, Failure> {
    let proxy = match (delay, bucket.target()) {
        (Some(delay), Some(target)) => {
            Some(proxy::Proxy::start(target, Duration::from_millis(delay))?)
        }
        _ => None,
    };
    let endpoint = proxy.as_ref().map(|proxy| proxy.endpoint.as_str());
    let (mut ours, mut copies, mut checks, mut memory) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..args.runs.max(1) {
        let run = bucket.run(endpoint);
        let measured = run.ingest(place, from);
        let compared = match with_rclone && measured.is_ok() {
            true => Some(run.rclone(&args.rclone, from)),
            false => None,
        };
        run.remove()?;
        let (seconds, peak) = measured?;
        ours.push(seconds);
        memory = memory.max(peak);
        if let Some((copy, check)) = compared.transpose()? {
            copies.push(copy);
            checks.push(check);
        }
    }
    let rclone = (!copies.is_empty()).then(|| (middle(copies), middle(checks)));
    let seconds = middle(ours);
    let what = String::new();
    Ok(Cell { what, delay, seconds, rclone, floor: None, memory_peak_bytes: memory })
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn tell(cells: &[Cell], rclone: Option<&str>, global: &Global) -> Result<(), Failure> {
    if global.json {
        let lines: Vec<_> = cells
            .iter()
            .map(|cell| {
                json!({
                    "files": cell.what,
                    "delay_ms": cell.delay,
                    "seconds": cell.seconds,
                    "rclone_copy_seconds": cell.rclone.map(|(copy, _)| copy),
                    "rclone_check_seconds": cell.rclone.map(|(_, check)| check),
                    "ratio": cell.ratio(),
                    "ratio_max": RATIO_MAX,
                    "floor_seconds": cell.floor,
                    "memory_peak_bytes": cell.memory_peak_bytes,
                    "memory_bytes_max": MEMORY_BYTES_MAX,
                })
            })
            .collect();
        return Ok(output::json_list("measured", &lines, None)?);
    }
    let seconds = |value: f64| format!("{value:.2} s");
    let rows = cells.iter().map(|cell| {
        vec![
            cell.what.clone(),
            cell.delay.map_or("as it is".to_owned(), |delay| format!("{delay} ms")),
            seconds(cell.seconds),
            cell.rclone.map_or("-".to_owned(), |(copy, check)| {
                format!("{} ({copy:.2} + {check:.2})", seconds(copy + check))
            }),
            cell.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            cell.floor.map_or("-".to_owned(), seconds),
            output::size(cell.memory_peak_bytes),
        ]
    });
    let header =
        ["files", "round trip", "ingest", "rclone (copy + check)", "ratio", "floor", "memory"];
    output::table(&header, rows)?;
    match rclone {
        Some(version) => output::line(&format!("compared with {version}"))?,
        None => output::line(
            "not compared: rclone is not installed, or is not where --rclone says; install it to \
             compare",
        )?,
    }
    let memory = output::size(MEMORY_BYTES_MAX);
    output::line(&format!(
        "aim: a ratio of at most {RATIO_MAX:.1} in every line, and at most {memory} of memory"
    ))?;
    Ok(())
}
