//! `accession bench driver`: answers the protocol of a harness that compares job queues, so that
//! ours can be measured beside others on the same work.
//!
//! `$PEER_URL` is an empty directory or the address of an empty PostgreSQL database.

use super::load::{Load, Tally, peak_kib};
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use clap::{Subcommand, ValueEnum};
use db::{Address, Options};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make an empty queue
    Setup,
    /// Add jobs FROM to TO - 1
    Enqueue { how: How, from: u64, to: u64 },
    /// Run N jobs and wait until all are settled
    Work { n: u64 },
    /// Run jobs until none is left, beside other processes
    Drain,
    /// Add N jobs, one every MS milliseconds
    Trickle { n: u64, ms: f64 },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    One,
    Par,
    Bulk,
}

fn setting<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn open() -> Result<Load, Failure> {
    let url: String = setting("PEER_URL", String::new());
    let address = match url.contains("://") {
        true => Address::parse(&url)?,
        false if url.is_empty() => {
            return Err(Failure::refused(
                queue::ErrorCode::BadInput,
                "PEER_URL is not set; it names the database or an empty directory",
            ));
        }
        false => Address::sqlite(Path::new(&url).join("queue.db")),
    };
    let load = Load::open(&address, &Options::default(), setting("PEER_CONCURRENCY", 16))?;
    Ok(load
        .with_payload(setting("PEER_PAYLOAD", 100))
        .with_full_history(setting("ACCESSION_BENCH_HISTORY", String::new()) == "full"))
}

pub fn run(args: Args) -> Result<Exit, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // As in a server, jobs are added from threads of the runtime.
    let done = runtime.block_on(async { tokio::spawn(call(args.command)).await });
    done.map_err(|e| Failure::unable(ErrorCode::Bench, e.to_string()))??;
    Ok(Exit::Yes)
}

async fn call(command: Command) -> Result<(), Failure> {
    let load = open()?;
    let began = Instant::now();
    match command {
        Command::Setup => return load.setup().await,
        Command::Enqueue { how: How::Bulk, from, to } => {
            load.add_bulk(from, to, setting("PEER_BATCH", 1000)).await?
        }
        Command::Enqueue { how: How::One, from, to } => load.add_singly(from, to, 1).await?,
        Command::Enqueue { how: How::Par, from, to } => {
            load.add_singly(from, to, load.concurrency).await?
        }
        Command::Trickle { n, ms } => trickle(&load, n, ms).await?,
        Command::Work { n } => return work(&load, n).await,
        Command::Drain => load.work_until_empty().await?,
    }
    say(&json!({"seconds": began.elapsed().as_secs_f64()}));
    Ok(())
}

fn say(value: &serde_json::Value) {
    // The harness reads a pipe: each line must leave at once. If it went away, so may we.
    let _ = crate::output::line(&value.to_string());
}

async fn trickle(load: &Load, n: u64, ms: f64) -> Result<(), Failure> {
    let pipeline = Arc::new(load.pipeline().await?);
    let began = Instant::now();
    for i in 0..n {
        tokio::time::sleep_until((began + Duration::from_secs_f64(i as f64 * ms / 1000.0)).into())
            .await;
        load.add_one(&pipeline, i).await?;
    }
    Ok(())
}

async fn work(load: &Load, n: u64) -> Result<(), Failure> {
    let stall = Duration::from_secs(setting("PEER_STALL_S", 30));
    let tally = Tally::new(n);
    let began = Instant::now();
    let worker = load.start_worker(tally.clone()).await?;
    say(&json!({"ready": true}));
    while tally.missing() > 0 && tally.idle() < stall {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let handlers = began.elapsed();
    let waiting = Instant::now();
    let mut acked = false;
    while !acked && waiting.elapsed() < stall {
        acked = !load.pending().await?;
        if !acked {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let drained = began.elapsed();
    // Late duplicates would show here.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let [p50, p95, p99] = tally.latencies_ms([0.5, 0.95, 0.99]);
    say(&json!({
        "drain_s": drained.as_secs_f64(), "handlers_s": handlers.as_secs_f64(), "missing": tally.missing(),
        "duplicates": tally.duplicates(), "acked": acked, "rss_kb": peak_kib(), "p50": p50, "p95": p95, "p99": p99,
    }));
    worker.stop().await
}
