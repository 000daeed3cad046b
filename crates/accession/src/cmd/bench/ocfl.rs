//! `accession bench ocfl`: inventories of many files.

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use ::ocfl::{Algorithm, Inventory, Limits, SingleHasher};
use serde_json::json;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "Example:\n  accession bench ocfl --files 10000")]
pub struct Args {
    /// Files in each version
    #[arg(long, default_value_t = 500_000)]
    files: u64,
    /// Versions, of which each has all files
    #[arg(long, default_value_t = 2)]
    versions: u64,
    /// How often each measurement is made; the median counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let name = format!("accession-bench-ocfl-{}.json", std::process::id());
    let path = std::env::temp_dir().join(name);
    let measured = generate(&path, &args).and_then(|()| measure(&path, &args));
    // A file that cannot be removed is in the place for files that nobody needs.
    let _ = std::fs::remove_file(&path);
    let (bytes, rows) = measured?;
    if global.json {
        for (what, time) in &rows {
            let seconds = time.as_secs_f64();
            output::json(&json!({"what": what, "seconds": seconds, "bytes": bytes}))?;
        }
        output::json(&json!({"memory_peak_bytes": memory_peak()}))?;
        return Ok(Exit::Yes);
    }
    let rows = rows.iter().map(|(what, time)| {
        let rate = bytes as f64 / time.as_secs_f64().max(1e-9);
        let rate = format!("{}/s", output::size(rate as u64));
        vec![what.to_string(), format!("{:.2} s", time.as_secs_f64()), rate]
    });
    let (files, versions) = (args.files, args.versions);
    output::line(&format!("{files} files, {versions} versions, {}", output::size(bytes)))?;
    output::table(&["what", "median", "rate"], rows)?;
    if let Some(peak) = memory_peak() {
        output::line(&format!("peak memory of this process: {}", output::size(peak)))?;
    }
    Ok(Exit::Yes)
}

/// Writes an inventory of so many files and versions, without holding it.
fn generate(path: &Path, args: &Args) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let digest = |n: u64| Algorithm::Sha512.hex(&n.to_le_bytes());
    let file = |n: u64| format!("folder-{:04}/subfolder-{:02}/image-{n:08}.tiff", n / 500, n % 7);
    write!(
        out,
        "{{\"id\":\"urn:bench\",\"type\":\"https://ocfl.io/1.1/spec/#inventory\",\
         \"digestAlgorithm\":\"sha512\",\"head\":\"v{}\",\"manifest\":{{",
        args.versions
    )?;
    for n in 0..args.files {
        let comma = if n == 0 { "" } else { "," };
        write!(out, "{comma}\n\"{}\":[\"v1/content/{}\"]", digest(n), file(n))?;
    }
    write!(out, "}},\"versions\":{{")?;
    for version in 1..=args.versions {
        let comma = if version == 1 { "" } else { "," };
        write!(
            out,
            "{comma}\"v{version}\":{{\"created\":\"2026-01-01T00:00:00Z\",\"message\":\"m\",\
             \"user\":{{\"name\":\"n\",\"address\":\"mailto:n@example.org\"}},\"state\":{{"
        )?;
        for n in 0..args.files {
            let comma = if n == 0 { "" } else { "," };
            write!(out, "{comma}\n\"{}\":[\"{}\"]", digest(n), file(n))?;
        }
        write!(out, "}}}}")?;
    }
    writeln!(out, "}}}}")?;
    out.flush()
}

type Measured = (u64, Vec<(&'static str, Duration)>);

fn measure(path: &Path, args: &Args) -> std::io::Result<Measured> {
    let bytes = std::fs::metadata(path)?.len();
    let limits = Limits { inventory_memory_bytes_max: 4 << 30, ..Limits::default() };
    let read = || {
        let file = BufReader::new(File::open(path)?);
        Inventory::read(file, &limits).map_err(std::io::Error::other)
    };
    let floor = median(args.runs, || {
        let mut file = File::open(path)?;
        let mut hasher = SingleHasher::new(Algorithm::Sha512);
        let mut buffer = vec![0; 1 << 16];
        while let count @ 1.. = file.read(&mut buffer)? {
            hasher.update(&buffer[..count]);
        }
        std::hint::black_box(hasher.finish());
        Ok(())
    })?;
    let reading = median(args.runs, || read().map(drop))?;
    let inventory = read()?;
    let writing = median(args.runs, || inventory.write(&mut BufWriter::new(std::io::sink())))?;
    let floor = ("floor: read and hash the file", floor);
    Ok((bytes, vec![floor, ("read and check", reading), ("write", writing)]))
}

fn median(runs: usize, mut work: impl FnMut() -> std::io::Result<()>) -> std::io::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// The most memory this process ever had, where the system tells.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
