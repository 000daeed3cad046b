//! `accession store`: what a place that keeps bytes can do, found out by trying.

mod trials;
mod verdict;

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use clap::Subcommand;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use store::{ErrorKind, PutOptions, S3Config, S3Store, Store, Support};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Try out what a store supports, and say so
    ///
    /// Does in small what ingest does: puts objects, lists them, reads them back and deletes them.
    /// Exits with 0 if that works, with 1 if the store can be reached but something fails, with 3
    /// if it cannot be reached.
    #[command(after_help = "Examples:
  accession store check /srv/objects
  accession store check main
  accession store check 's3://archive/copies?region=eu-central-1'
  accession store check 's3://archive?endpoint=https://minio.example.org&profile=archive'
  accession store check s3://archive/cold --storage-class DEEP_ARCHIVE
  accession store check --json s3://archive")]
    Check {
        /// A directory, `file:///…`, `s3://bucket/prefix`, or a store's name
        url: String,
        /// Try out a storage class, too (default: that of the store that is named)
        #[arg(long, value_name = "CLASS")]
        storage_class: Option<String>,
    },
}

/// What the check found out.
#[derive(Serialize)]
struct Report {
    store: String,
    writable: bool,
    /// Why it is not writable.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How long a durable put of a small object took, and reading it back.
    put_ms: Option<f64>,
    get_ms: Option<f64>,
    space_total_bytes: Option<u64>,
    space_available_bytes: Option<u64>,
    supports: Vec<Supported>,
    trials: Vec<trials::Trial>,
    verdicts: Vec<verdict::Verdict>,
}

#[derive(Serialize)]
struct Supported {
    what: &'static str,
    supported: String,
    means: &'static str,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let Command::Check { url, storage_class } = args.command;
    let runtime = tokio::runtime::Runtime::new()?;
    let section = super::ocfl::named::section(&url, global);
    let address = section.as_ref().map_or(url, |section| section.address());
    let class = storage_class.or_else(|| section?.storage_class);
    let report = runtime.block_on(check(&address, class.as_deref()))?;
    if global.json {
        output::json(&report)?;
    } else {
        print(&report)?;
    }
    let fails = !report.writable || report.trials.iter().any(trials::Trial::failed);
    Ok(if fails { Exit::No } else { Exit::Yes })
}

async fn check(url: &str, class: Option<&str>) -> Result<Report, Failure> {
    let (store, mut supports): (Arc<dyn Store>, _) = if url.starts_with("s3://") {
        let config = S3Config::from_url(url).map_err(wrong_url)?;
        let store = open_s3(config).await.map_err(unreachable)?;
        let supports = of_s3(&store);
        (Arc::new(store), supports)
    } else {
        if url.split_once("://").is_some_and(|(scheme, _)| scheme != "file") {
            return Err(wrong_url(store::open(url).await.err().unwrap_or_else(|| {
                store::Error::new(ErrorKind::Unsupported, "", "no such store")
            })));
        }
        (store::open(url).await.map_err(unreachable)?, Vec::new())
    };
    if supports.is_empty() {
        supports = of_capabilities(store.as_ref());
    }
    let tried = round_trip(store.as_ref()).await;
    let trials = match tried.is_ok() {
        true => trials::run(&store, &trial_key(), class).await,
        false => Vec::new(),
    };
    let verdicts = verdict::verdicts(tried.is_ok(), &store.capabilities(), &trials);
    let space = store.free_space().await.map_err(unreachable)?;
    Ok(Report {
        store: store.url().to_owned(),
        writable: tried.is_ok(),
        reason: tried.as_ref().err().map(ToString::to_string),
        put_ms: tried.as_ref().ok().map(|(put, _)| milliseconds(*put)),
        get_ms: tried.as_ref().ok().map(|(_, get)| milliseconds(*get)),
        space_total_bytes: space.map(|space| space.total),
        space_available_bytes: space.map(|space| space.available),
        supports,
        trials,
        verdicts,
    })
}

/// Opens a bucket and tries out what it supports; if it holds a storage root, that is remembered
/// there for workers.
async fn open_s3(config: S3Config) -> store::Result<S3Store> {
    let plain = S3Store::connect(config.clone(), None).await?;
    match plain.head("ocfl_layout.json").await {
        Ok(_) => S3Store::open_anew(config, ocfl::StorageRoot::SUPPORT).await,
        Err(_) => S3Store::open(config).await,
    }
}

/// A key that nothing else has.
fn trial_key() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!(".accession-check-{}-{}", std::process::id(), now.as_nanos())
}

/// Puts an object, reads it back and deletes it; how long the put and the get took.
pub async fn round_trip(store: &dyn Store) -> Result<(Duration, Duration), store::Error> {
    let key = trial_key();
    let began = Instant::now();
    store.put(&key, key.clone().into_bytes().into(), &PutOptions::default()).await?;
    let put = began.elapsed();
    let began = Instant::now();
    let read = store.get(&key, None).await?.bytes(key.len()).await;
    let get = began.elapsed();
    store.delete(&key).await?;
    match read? {
        content if content == key.as_bytes() => Ok((put, get)),
        _ => Err(store::Error::new(ErrorKind::Corrupt, key, "other bytes came back")),
    }
}

fn of_s3(store: &S3Store) -> Vec<Supported> {
    let support = store.support();
    let row = |what, supported: Support, means| Supported {
        what,
        supported: supported.to_string(),
        means,
    };
    vec![
        row("put-if-absent", support.put_if_absent, "two writers cannot both create an object"),
        row("put-if-match", support.put_if_match, "a writer cannot replace what it has not seen"),
        row("checksums-checked", support.checksums_checked, "a put with a wrong SHA-256 fails"),
        row("checksums-kept", support.checksums_kept, "the SHA-256 can be had without reading"),
        row(
            "part-checksums-kept",
            support.part_checksums_kept,
            "the same of objects that are sent in parts",
        ),
        row("uploads-listed", support.uploads_listed, "unfinished uploads are found"),
        row(
            "uploads-resumed",
            support.parts_recognised,
            "what was sent of an upload is recognised and not sent again",
        ),
        row("thaw", support.thaw, "cold objects can be made readable"),
    ]
}

fn of_capabilities(store: &dyn Store) -> Vec<Supported> {
    let can = store.capabilities();
    let row = |what, supported: bool, means| Supported {
        what,
        supported: if supported { "yes" } else { "no" }.to_owned(),
        means,
    };
    vec![
        row("rename", can.rename, "a file or directory is moved in one step"),
        row("exchange", can.exchange, "a whole directory is replaced in one step"),
        row("put-if-absent", can.put_if_absent, "two writers cannot both create an object"),
        row("put-if-match", can.put_if_match, "a writer cannot replace what it has not seen"),
        row("checksums-kept", can.digests, "the SHA-256 can be had without reading"),
        row("batch", can.batch, "many small files are made durable with one flush"),
        row("thaw", can.storage_classes, "cold objects can be made readable"),
    ]
}

fn print(report: &Report) -> Result<(), Failure> {
    output::line(&format!("store     {}", output::printable(&report.store)))?;
    match &report.reason {
        Some(reason) => output::line(&format!("writable  no: {}", output::printable(reason)))?,
        None => output::line("writable  yes")?,
    }
    if let (Some(put), Some(get)) = (report.put_ms, report.get_ms) {
        output::line(&format!("speed     put {put:.1} ms, get {get:.1} ms (one small object)"))?;
    }
    if let (Some(total), Some(left)) = (report.space_total_bytes, report.space_available_bytes) {
        let (left, total) = (output::size(left), output::size(total));
        output::line(&format!("space     {left} free of {total}"))?;
    }
    output::line("")?;
    let rows = report
        .supports
        .iter()
        .map(|row| vec![row.what.to_owned(), row.supported.clone(), row.means.to_owned()]);
    output::table(&["what", "supported", "means"], rows)?;
    if !report.trials.is_empty() {
        output::line("")?;
        let rows = report
            .trials
            .iter()
            .map(|trial| vec![trial.what.to_owned(), trial.works.to_owned(), trial.detail.clone()]);
        output::table(&["tried", "works", "detail"], rows)?;
    }
    output::line("")?;
    let rows = report.verdicts.iter().map(|verdict| {
        let serves = if verdict.serves { "yes" } else { "no" };
        vec![verdict.purpose.to_owned(), serves.to_owned(), verdict.why.clone()]
    });
    output::table(&["as", "serves", "why"], rows)?;
    Ok(())
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn wrong_url(error: store::Error) -> Failure {
    Failure::refused(ErrorCode::StoreUrl, error.to_string())
}

fn unreachable(error: store::Error) -> Failure {
    Failure::unable(ErrorCode::StoreUnreachable, error.to_string())
}
