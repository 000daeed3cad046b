//! `accession bench bag`: how fast bags are validated, beside bagit.py and the speed of openssl.

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use bagit::source::{Members, directory::Directory};
use bagit::{Algorithm, Bag, Options, TarBag, WriteOptions};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bench bag
  accession bench bag --peer ~/venv/bin/bagit.py
  accession bench bag --small 2000 --large-mib 16 --runs 3")]
pub struct Args {
    /// Number of small files, of 4 KiB each
    #[arg(long, default_value_t = 20_000)]
    small: u64,
    /// Number of large files
    #[arg(long, default_value_t = 4)]
    large: u64,
    /// Size of a large file in MiB
    #[arg(long, default_value_t = 256)]
    large_mib: u64,
    /// How often each measurement is repeated; the median counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// The bagit.py to compare with
    #[arg(long, default_value = "bagit.py", value_name = "PROGRAM")]
    peer: PathBuf,
    /// Where the bags are made; they are removed afterwards
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

/// A line of the result.
struct Measured {
    what: String,
    time: Time,
    bytes: u64,
}

/// What a run took: by the clock, and of the processors. On a machine that also does other work
/// only the second is comparable.
#[derive(Clone, Copy)]
struct Time {
    seconds: f64,
    cpu_seconds: Option<f64>,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let place = match &args.work {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let floor = openssl_floor();
    let mut lines = Vec::new();
    let sets = [("small", args.small, 4096), ("large", args.large, args.large_mib << 20)];
    for (name, files, size) in sets {
        let directory = place.path().join(name);
        let tar = place.path().join(format!("{name}.tar"));
        make_bag(&directory, files, size)?;
        make_tar(&directory, &tar, name)?;
        let bytes = files * size;
        let mut push = |what: String, time: Time| lines.push(Measured { what, time, bytes });
        if let Some(bytes_per_second) = floor {
            let cpu_seconds = bytes as f64 / bytes_per_second;
            let seconds = cpu_seconds / workers as f64;
            let time = Time { seconds, cpu_seconds: Some(cpu_seconds) };
            push(format!("{name}: openssl speed, {workers} cores"), time);
        }
        push(format!("{name}: directory"), median(args.runs, || validate(&directory))?);
        push(format!("{name}: tar"), median(args.runs, || validate(&tar))?);
        match median(args.runs.min(3), || peer(&args.peer, &directory)) {
            Ok(time) => push(format!("{name}: bagit.py --processes 2"), time),
            Err(failure) => tracing::warn!("no comparison with bagit.py: {}", failure.message),
        }
        std::fs::remove_dir_all(&directory)?;
        std::fs::remove_file(&tar)?;
    }
    tell(&lines, global)?;
    Ok(Exit::Yes)
}

fn tell(lines: &[Measured], global: &Global) -> Result<(), Failure> {
    if global.json {
        for line in lines {
            let value = serde_json::json!({
                "what": line.what,
                "seconds": line.time.seconds,
                "cpu_seconds": line.time.cpu_seconds,
                "bytes": line.bytes,
            });
            output::json(&value)?;
        }
        return Ok(());
    }
    let rows = lines.iter().map(|line| {
        let rate = output::size((line.bytes as f64 / line.time.seconds.max(1e-9)) as u64);
        let cpu = line.time.cpu_seconds.map_or("-".to_owned(), |s| format!("{s:.2} s"));
        vec![line.what.clone(), format!("{:.3} s", line.time.seconds), cpu, format!("{rate}/s")]
    });
    Ok(output::table(&["validation, sha256 and sha512", "median", "processor", "rate"], rows)?)
}

/// Makes a bag of files that compress badly and differ from each other.
fn make_bag(directory: &Path, files: u64, size: u64) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = vec![0_u8; 4096];
    for file in 0..files {
        let folder = directory.join(format!("{:03}", file / 100));
        std::fs::create_dir_all(&folder)?;
        let mut out = BufWriter::new(File::create(folder.join(format!("file-{file:06}.bin")))?);
        let mut left = size as usize;
        while left > 0 {
            for word in block.chunks_exact_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes());
            }
            let part = left.min(block.len());
            out.write_all(&block[..part])?;
            left -= part;
        }
        out.flush()?;
    }
    bagit::create_in_place(directory, &write_options(), &()).map_err(unable)?;
    Ok(())
}

fn write_options() -> WriteOptions {
    let algorithms = [Algorithm::Sha256, Algorithm::Sha512].into_iter().collect();
    WriteOptions { algorithms, ..WriteOptions::default() }
}

fn make_tar(directory: &Path, target: &Path, base: &str) -> Result<(), Failure> {
    let writer = BufWriter::with_capacity(1 << 20, File::create(target)?);
    let mut bag = TarBag::new(writer, base, write_options()).map_err(unable)?;
    let members = Directory::new(directory.join("data"));
    members
        .list(true, &mut |member| {
            if member.kind != bagit::source::Kind::File {
                return Ok(());
            }
            let mut reader =
                members.open(&member.locator).map_err(|e| bagit::Error::io(&member.path, e))?;
            bag.add_payload(&member.path, member.size.unwrap_or_default(), &mut reader).map(drop)
        })
        .map_err(unable)?;
    bag.finish().map_err(unable)?;
    Ok(())
}

fn unable(error: bagit::Error) -> Failure {
    Failure::unable("bench", error.to_string())
}

fn validate(path: &Path) -> Result<(), Failure> {
    let report =
        Bag::open(path).and_then(|bag| bag.validate(&Options::default())).map_err(unable)?;
    match report.problems.iter().find(|_| !report.valid) {
        Some(problem) => Err(Failure::unable("bench", format!("the bag is not valid: {problem}"))),
        None => Ok(()),
    }
}

fn peer(program: &Path, bag: &Path) -> Result<(), Failure> {
    let status = Command::new(program)
        .args(["--validate", "--processes", "2", "--quiet"])
        .arg(bag)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| Failure::unable("peer", format!("{}: {e}", program.display())))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::unable("peer", format!("{} ended with {status}", program.display())))
}

/// Runs once to warm the cache, then takes the medians.
fn median(runs: usize, mut work: impl FnMut() -> Result<(), Failure>) -> Result<Time, Failure> {
    work()?;
    let (mut times, mut cpu_times) = (Vec::new(), Vec::new());
    for _ in 0..runs.max(1) {
        let (start, cpu_start) = (Instant::now(), cpu_seconds());
        work()?;
        times.push(start.elapsed().as_secs_f64());
        if let (Some(before), Some(after)) = (cpu_start, cpu_seconds()) {
            cpu_times.push(after - before);
        }
    }
    let middle = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    };
    let cpu_seconds = middle(&mut cpu_times);
    Ok(Time { seconds: middle(&mut times).unwrap_or_default(), cpu_seconds })
}

/// What this process and the programs it ran have used of the processors; only Linux tells it in
/// a file. Counted in hundredths of a second.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything; what follows are numbers.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Option<Vec<f64>> =
        fields.split_whitespace().skip(11).take(4).map(|field| field.parse().ok()).collect();
    Some(ticks?.iter().sum::<f64>() / 100.0)
}

/// Bytes a second of one core that computes both digests, as `openssl speed` says.
fn openssl_floor() -> Option<f64> {
    let rate = |algorithm: &str| -> Option<f64> {
        let output = Command::new("openssl")
            .args(["speed", "-seconds", "1", "-bytes", "131072", "-evp", algorithm])
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = text.lines().rev().find(|line| line.trim_end().ends_with('k'))?;
        let number = last.split_whitespace().last()?.trim_end_matches('k');
        number.parse::<f64>().ok().map(|thousands| thousands * 1000.0)
    };
    Some(1.0 / (1.0 / rate("sha256")? + 1.0 / rate("sha512")?))
}
