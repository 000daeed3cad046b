//! `accession bench manifest`: how fast manifests are checked, beside reading the file and `wc -l`.

use super::load::peak_kib;
use super::timing::{Time, median};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use checkm::{Format, Header, Options, Profile, Row, Writer};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bench manifest
  accession bench manifest --rows 5000000 --runs 3")]
pub struct Args {
    /// Number of rows
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How often each measurement is repeated; the median counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Where the manifests are made; they are removed afterwards
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

/// A line of the result.
struct Measured {
    what: &'static str,
    time: Time,
    bytes: u64,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let place = match &args.work {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let mut lines = Vec::new();
    let formats = [
        (Format::Checkm, ["Checkm: reading", "Checkm: wc -l", "Checkm: check"]),
        (Format::Json, ["JSON: reading", "JSON: wc -l", "JSON: check"]),
    ];
    for (format, [reading, counting, checking]) in formats {
        let path = place.path().join("manifest");
        make(&path, format, args.rows)?;
        let bytes = std::fs::metadata(&path)?.len();
        let mut push = |what, time| lines.push(Measured { what, time, bytes });
        push(reading, median(args.runs, || read(&path))?);
        match median(args.runs, || count_lines(&path)) {
            Ok(time) => push(counting, time),
            Err(failure) => tracing::warn!("no comparison with wc: {}", failure.message),
        }
        push(checking, median(args.runs, || check(&path, args.rows))?);
        std::fs::remove_file(&path)?;
    }
    tell(&lines, args.rows, global)?;
    Ok(Exit::Yes)
}

fn tell(lines: &[Measured], rows: u64, global: &Global) -> Result<(), Failure> {
    if global.json {
        for line in lines {
            let value = serde_json::json!({
                "what": line.what, "seconds": line.time.seconds, "cpu_seconds": line.time.cpu_seconds,
                "bytes": line.bytes, "rows": rows, "peak_kib": peak_kib(),
            });
            output::json(&value)?;
        }
        return Ok(());
    }
    let table = lines.iter().map(|line| {
        let per_second = |count: u64| (count as f64 / line.time.seconds.max(1e-9)) as u64;
        vec![
            line.what.to_owned(),
            format!("{:.3} s", line.time.seconds),
            line.time.cpu_text(),
            format!("{}", per_second(rows)),
            format!("{}/s", output::size(per_second(line.bytes))),
        ]
    });
    output::table(&["manifest", "median", "processor", "rows/s", "rate"], table)?;
    output::line(&format!("{rows} rows; {} of memory at most", output::size(peak_kib() << 10)))?;
    Ok(())
}

/// Makes an object manifest whose rows have every column.
fn make(path: &Path, format: Format, rows: u64) -> Result<(), Failure> {
    let unable = |e: checkm::WriteError| Failure::unable(ErrorCode::Bench, e.to_string());
    let out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut writer = Writer::new(out, format, Header::new(Profile::Object)).map_err(unable)?;
    for row in 0..rows {
        let digest = u128::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let name = format!("reel-{:03}/frame-{row:07}.tif", row / 1000);
        writer
            .write(&Row {
                source: Some(format!("https://example.org/deposit/{name}").into()),
                algorithm: Some("md5".into()),
                digest: Some(format!("{digest:032x}").into()),
                size: Some(row),
                modified: Some("2024-02-29T12:00:00Z".into()),
                name: Some(name.into()),
                mime_type: Some("image/tiff".into()),
                ..Row::default()
            })
            .map_err(unable)?;
    }
    writer.finish().map_err(unable)?;
    Ok(())
}

fn read(path: &Path) -> Result<(), Failure> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 256 << 10];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

fn count_lines(path: &Path) -> Result<(), Failure> {
    let status = Command::new("wc").arg("-l").arg(path).stdout(Stdio::null()).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::unable(ErrorCode::Bench, format!("wc ended with {status}"))),
    }
}

fn check(path: &Path, rows: u64) -> Result<(), Failure> {
    let source = BufReader::with_capacity(256 << 10, File::open(path)?);
    let report = checkm::check(source, &Options::default())
        .map_err(|e| Failure::unable(ErrorCode::Bench, e.to_string()))?;
    match report.problems().first() {
        None if report.rows() == rows => Ok(()),
        None => Err(Failure::unable(ErrorCode::Bench, format!("{} rows were read", report.rows()))),
        Some(problem) => Err(Failure::unable(ErrorCode::Bench, problem.to_string())),
    }
}
