//! `accession bench bag`: how fast bags are validated, beside bagit.py and the speed of openssl.

use super::timing::{Time, median};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use bagit::source::{Members, directory::Directory};
use bagit::{Algorithm, Bag, Options, TarBag, WriteOptions};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let place = match &args.work {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut lines = Vec::new();
    let sets = [("small", args.small, 4096), ("large", args.large, args.large_mib << 20)];
    for (name, files, size) in sets {
        let directory = place.path().join(name);
        let tar = place.path().join(format!("{name}.tar"));
        make_bag(&directory, files, size)?;
        make_tar(&directory, &tar, name)?;
        let bytes = files * size;
        let mut push = |what: String, time: Time| lines.push(Measured { what, time, bytes });
        match Floor::measure(workers) {
            Some(floor) => {
                push(format!("{name}: openssl speed, {workers} cores"), floor.time(bytes))
            }
            None => tracing::warn!("no comparison with openssl: it could not be run"),
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
        let median = format!("{:.3} s", line.time.seconds);
        vec![line.what.clone(), median, line.time.cpu_text(), format!("{rate}/s")]
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
    Failure::unable(ErrorCode::Bench, error.to_string())
}

fn validate(path: &Path) -> Result<(), Failure> {
    let report =
        Bag::open(path).and_then(|bag| bag.validate(&Options::default())).map_err(unable)?;
    match report.problems.iter().find(|_| !report.valid) {
        Some(problem) => {
            Err(Failure::unable(ErrorCode::Bench, format!("the bag is not valid: {problem}")))
        }
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
        .map_err(|e| Failure::unable(ErrorCode::Peer, format!("{}: {e}", program.display())))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::unable(ErrorCode::Peer, format!("{} ended with {status}", program.display())))
}

/// What `openssl speed` says of both digests together.
struct Floor {
    /// Bytes a second of one core.
    one_core: f64,
    /// Bytes a second of all cores at once, which is less than their sum where they share parts.
    all_cores: f64,
}

impl Floor {
    fn measure(cores: usize) -> Option<Floor> {
        let both = |cores: usize| {
            let time = |algorithm| openssl_speed(algorithm, cores).map(|rate| 1.0 / rate);
            Some(1.0 / (time("sha256")? + time("sha512")?))
        };
        Some(Floor { one_core: both(1)?, all_cores: both(cores)? })
    }

    fn time(&self, bytes: u64) -> Time {
        let cpu_seconds = Some(bytes as f64 / self.one_core);
        Time { seconds: bytes as f64 / self.all_cores, cpu_seconds }
    }
}

fn openssl_speed(algorithm: &str, cores: usize) -> Option<f64> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-seconds", "1", "-bytes", "131072"]);
    if cores > 1 {
        // One core is measured by its processor time, all of them by the clock.
        command.args(["-elapsed", "-multi", &cores.to_string()]);
    }
    let output = command.args(["-evp", algorithm]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().rev().find(|line| line.trim_end().ends_with('k'))?;
    let number = last.split_whitespace().last()?.trim_end_matches('k');
    number.parse::<f64>().ok().map(|thousands| thousands * 1000.0)
}
