//! How soon a job is begun that comes while all is quiet: one process adds a job every 10 ms, another
//! works, and what counts is the time from before the addition to the start of the run.

use super::load::Load;
use crate::error_code::ErrorCode;
use crate::exit::Failure;
use db::{Address, Options};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

const JOBS: u64 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// The middle and the slowest hundredth of many times, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// A sync of the disk that comes after as long a pause: what the machine itself takes, twice in
/// every pick-up. It takes longer than one of many in a row.
pub fn idle_fsync(dir: &Path) -> Result<Spread, Failure> {
    let mut file = tempfile::tempfile_in(dir)?;
    let mut times = Vec::new();
    for _ in 0..JOBS {
        std::thread::sleep(PAUSE);
        let began = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    Ok(Spread { p50_ms: at(50), p99_ms: at(99) })
}

/// Measures it in an empty queue; `shown` is how the processes are told of the address.
pub async fn measure(
    address: &Address,
    shown: &str,
    concurrency: u64,
    full: bool,
) -> Result<Spread, Failure> {
    let load = Load::open(address, &Options::default(), concurrency)?.with_full_history(full);
    load.reset().await?;
    load.setup().await?;
    drop(load);
    let driver = |what: &[&str]| driver(shown, concurrency, what);
    let jobs = JOBS.to_string();
    let (mut worker, mut said) = driver(&["work", &jobs])?;
    said.next_line().await?;
    // It has said that it is ready; what it does as it begins shall be over too.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mut adder, _) = driver(&["trickle", &jobs, &PAUSE.as_millis().to_string()])?;
    let added = adder.wait().await?;
    let mut last = String::new();
    while let Some(line) = said.next_line().await? {
        last = line;
    }
    let failed = |why: &str| Failure::unable(ErrorCode::Bench, format!("a process failed: {why}"));
    if !added.success() || !worker.wait().await?.success() {
        return Err(failed("see above"));
    }
    let answer: serde_json::Value =
        serde_json::from_str(&last).map_err(|e| failed(&e.to_string()))?;
    match (answer["p50"].as_f64(), answer["p99"].as_f64(), answer["missing"].as_u64()) {
        (Some(p50_ms), Some(p99_ms), Some(0)) => Ok(Spread { p50_ms, p99_ms }),
        _ => Err(failed(&last)),
    }
}

fn driver(
    shown: &str,
    concurrency: u64,
    what: &[&str],
) -> Result<(Child, Lines<BufReader<ChildStdout>>), Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["bench", "driver"])
        .args(what)
        .env("PEER_URL", shown)
        .env("PEER_CONCURRENCY", concurrency.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let out = child.stdout.take().ok_or_else(|| Failure::unable(ErrorCode::Bench, "no output"))?;
    Ok((child, BufReader::new(out).lines()))
}
