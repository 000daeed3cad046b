//! `accession bench ingest`: whole ingests, beside what copying and hashing the same bytes costs
//! with programs that are not ours, measured in the same run.

pub(super) mod floor;
mod load;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use load::Place;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bench ingest
  accession bench ingest --only large --large-mib 64
  accession bench ingest --only bags --bags 500
  accession bench ingest --database postgres://localhost/bench --only bags

The floor is `cp` of the same bytes, `sync -f`, `openssl dgst` once for each digest that the object
needs and once more for reading back, over all processors. It needs cp, sync and openssl.")]
pub struct Args {
    /// large, small, bags, latency or batch (may be given several times; default: all)
    #[arg(long, value_name = "WORK")]
    only: Vec<String>,
    /// Large files in the bag of few
    #[arg(long, default_value_t = 8)]
    large: u64,
    /// Their size in MiB
    #[arg(long, default_value_t = 512)]
    large_mib: u64,
    /// Files of 4 KiB in the bag of many
    #[arg(long, default_value_t = 20_000)]
    small: u64,
    /// Bags of five small files
    #[arg(long, default_value_t = 2_000)]
    bags: u64,
    /// Deposits one after the other, on an idle system
    #[arg(long, default_value_t = 30)]
    singles: u64,
    /// Rows of the manifest whose expansion is measured
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Repetitions; medians are shown
    #[arg(long, default_value_t = 3)]
    reps: usize,
    /// Where the data is made; it is removed afterwards
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

const WORKS: [&str; 5] = ["large", "small", "bags", "latency", "batch"];

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    if let Some(unknown) = args.only.iter().find(|w| !WORKS.contains(&w.as_str())) {
        let all = WORKS.join(", ");
        return Err(Failure::refused(
            queue::ErrorCode::Unknown,
            format!("there is no work `{unknown}`; there are: {all}"),
        ));
    }
    let directory = match &args.work {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    let place = Place { directory: directory.path().to_path_buf(), global: global.clone() };
    let wanted = |work: &str| args.only.is_empty() || args.only.iter().any(|w| w == work);
    let mut lines = Vec::new();
    if wanted("large") {
        let size = args.large_mib << 20;
        lines.push(one_bag(
            &place,
            "one bag of large files, tar",
            args.large,
            size,
            args.reps,
            0.7,
        )?);
    }
    if wanted("small") {
        lines.push(one_bag(
            &place,
            "one bag of small files, tar",
            args.small,
            4096,
            args.reps,
            0.5,
        )?);
    }
    if wanted("bags") {
        lines.push(bags(&place, args.bags, args.reps)?);
    }
    if wanted("latency") {
        lines.push(latency(&place, args.singles)?);
    }
    if wanted("batch") {
        lines.push(batch(&place, args.rows)?);
    }
    if global.json {
        output::json_list("measured", &lines, None)?;
        return Ok(Exit::Yes);
    }
    output::table(
        &["work", "measured", "floor", "ratio", "aim"],
        lines.iter().map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_string();
            vec![text("work"), text("measured"), text("floor"), text("ratio"), text("aim")]
        }),
    )?;
    Ok(Exit::Yes)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn one_bag(
    place: &Place,
    work: &str,
    files: u64,
    size: u64,
    reps: usize,
    aim: f64,
) -> Result<serde_json::Value, Failure> {
    let tar = place.bag_as_tar(files, size)?;
    let bytes = std::fs::metadata(&tar)?.len();
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..reps {
        floors.push(floor::seconds(place, &tar)?);
        let data = place.fresh_data()?;
        let began = Instant::now();
        place.ingest(&data, std::slice::from_ref(&tar))?;
        ours.push(began.elapsed().as_secs_f64());
        data.remove();
    }
    std::fs::remove_file(&tar)?;
    let (ours, floor) = (median(ours), median(floors));
    let rate = |seconds: f64| {
        format!("{}/s ({seconds:.2} s)", output::size((bytes as f64 / seconds) as u64))
    };
    Ok(serde_json::json!({
        "work": format!("{work}: {files} x {}", output::size(size)),
        "measured": rate(ours), "floor": rate(floor),
        "ratio": format!("{:.2}", floor / ours), "aim": format!("at least {aim}"),
        "seconds": ours, "floor_seconds": floor, "bytes": bytes,
    }))
}

fn bags(place: &Place, count: u64, reps: usize) -> Result<serde_json::Value, Failure> {
    let mut rates = Vec::new();
    let sources = place.small_bags(count)?;
    for _ in 0..reps {
        let data = place.fresh_data()?;
        let began = Instant::now();
        place.ingest(&data, &sources)?;
        rates.push(count as f64 / began.elapsed().as_secs_f64());
        data.remove();
    }
    let rate = median(rates);
    let fsyncs = super::queue::fsync_rate(&place.directory)?;
    let aim = if place.is_postgres() { 60 } else { 100 };
    Ok(serde_json::json!({
        "work": format!("{count} bags of 5 small files"),
        "measured": format!("{rate:.0} objects/s"), "floor": format!("{fsyncs:.0} fsyncs/s"),
        "ratio": format!("{:.1} fsyncs an object", fsyncs / rate), "aim": format!("at least {aim} objects/s"),
        "objects_per_second": rate, "fsyncs_per_second": fsyncs,
    }))
}

fn latency(place: &Place, count: u64) -> Result<serde_json::Value, Failure> {
    let sources = place.small_bags(count)?;
    let data = place.fresh_data()?;
    let times = place.ingest_one_by_one(&data, &sources)?;
    data.remove();
    let millis = median(times.iter().map(|t: &Duration| t.as_secs_f64() * 1e3).collect());
    let fsync = 1e3 / super::queue::fsync_rate(&place.directory)?;
    Ok(serde_json::json!({
        "work": "one small bag, idle system, deposit to completed",
        "measured": format!("p50 {millis:.1} ms"), "floor": format!("{fsync:.2} ms an fsync"),
        "ratio": format!("{:.1} fsyncs", millis / fsync),
        "aim": format!("at most {:.0} ms (24 fsyncs + 100 ms)", 24.0 * fsync + 100.0),
        "p50_ms": millis, "fsync_ms": fsync,
    }))
}

fn batch(place: &Place, rows: u64) -> Result<serde_json::Value, Failure> {
    let data = place.fresh_data()?;
    let (seconds, claims) = place.expand(&data, rows)?;
    data.remove();
    let rate = rows as f64 / seconds;
    Ok(serde_json::json!({
        "work": format!("a manifest of {rows} one-file objects, expanded into jobs"),
        "measured": format!("{rate:.0} jobs/s ({seconds:.1} s)"),
        "floor": format!("claims of 10: {:.1} ms when empty", claims.0),
        "ratio": format!("{:.1} ms after", claims.1), "aim": "at least 50000 jobs/s; claims no slower",
        "jobs_per_second": rate, "claim_ms_before": claims.0, "claim_ms_after": claims.1,
    }))
}
