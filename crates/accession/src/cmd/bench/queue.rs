//! `accession bench queue`: adds (one by one, several at once, bulk), drain and pick-up latency
//! across processes for both history settings, and claims in large queues, beside what the machine's
//! disk does: as fast as it can, and after a pause.

use super::load::{Load, Tally, peak_kib};
use super::pickup;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use db::{Address, Options};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(
    after_help = "With --database postgres://… an empty database is measured (it must be empty); without, SQLite files
in a temporary directory below --dir.

Examples:
  accession bench queue
  accession bench queue --jobs 200000 --reps 3 --large 5000000"
)]
pub struct Args {
    /// Jobs in the drain
    #[arg(long, default_value_t = 50_000)]
    jobs: u64,
    /// Jobs added one by one
    #[arg(long, default_value_t = 1000)]
    single: u64,
    /// Repetitions; medians are printed
    #[arg(long, default_value_t = 3)]
    reps: usize,
    /// Calls and runs at once
    #[arg(long, default_value_t = 16)]
    concurrency: u64,
    /// Where the files go; on the disk that is to be measured
    #[arg(long, default_value = ".")]
    dir: std::path::PathBuf,
    /// Also measure the drain by these numbers of worker processes, such as 1,2,4,8
    #[arg(long, value_delimiter = ',')]
    processes: Vec<usize>,
    /// Also measure a 500-job claim with this many jobs waiting, against 10,000
    #[arg(long)]
    large: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Round {
    history: &'static str,
    fsync_per_s: f64,
    add_one_per_s: f64,
    add_par_per_s: f64,
    add_bulk_per_s: f64,
    drain_per_s: f64,
    idle_fsync_p50_ms: f64,
    idle_fsync_p99_ms: f64,
    pickup_p50_ms: f64,
    pickup_p99_ms: f64,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let scratch = tempfile::Builder::new().prefix("accession-bench-").tempdir_in(&args.dir)?;
    let mut medians = Vec::new();
    for full in [false, true] {
        let mut rounds = Vec::new();
        for rep in 0..args.reps.max(1) {
            let path = scratch.path().join(format!("{full}-{rep}"));
            rounds.push(runtime.block_on(round(&args, global, &path, scratch.path(), full))?);
        }
        medians.push(median(&rounds));
    }
    let claims = match args.large {
        None => Vec::new(),
        Some(large) => runtime.block_on(claims(&args, scratch.path(), large))?,
    };
    let mut drains = Vec::new();
    for &processes in &args.processes {
        let mut rates = Vec::new();
        for rep in 0..args.reps.max(1) {
            let path = scratch.path().join(format!("{processes}-processes-{rep}"));
            rates.push(runtime.block_on(drain_by(processes, &args, global, &path))?);
        }
        rates.sort_by(f64::total_cmp);
        drains.push(Drain { processes, drain_per_s: rates[rates.len() / 2] });
    }
    let peak = peak_kib();
    if global.json {
        output::json(&serde_json::json!({
            "jobs": args.jobs, "rounds": medians, "claims": claims, "processes": drains, "peak_kib": peak,
        }))?;
        return Ok(Exit::Yes);
    }
    let rows = medians.iter().map(|m| {
        let n = |v: f64| format!("{v:.0}");
        vec![
            m.history.to_string(),
            n(m.fsync_per_s),
            n(m.add_one_per_s),
            n(m.add_par_per_s),
            format!("{:.1} ×", m.add_par_per_s / m.fsync_per_s),
            n(m.add_bulk_per_s),
            n(m.drain_per_s),
            format!("{:.2} / {:.2}", m.pickup_p50_ms, m.pickup_p99_ms),
            format!("{:.2} / {:.2}", m.idle_fsync_p50_ms, m.idle_fsync_p99_ms),
        ]
    });
    output::table(
        &[
            "history",
            "fsync/s",
            "one/s",
            "par/s",
            "par:fsync",
            "bulk/s",
            "drain/s",
            "pick-up p50 / p99 ms",
            "idle fsync",
        ],
        rows,
    )?;
    for claim in &claims {
        output::line(&format!("claim of 500, {}: p50 {:.2} ms", claim.what, claim.p50_ms))?;
    }
    for drain in &drains {
        let (n, rate) = (drain.processes, drain.drain_per_s);
        output::line(&format!("drain by {n} worker processes: {rate:.0}/s in total"))?;
    }
    output::line(&format!(
        "medians of {}, {} jobs; peak memory {}",
        args.reps,
        args.jobs,
        output::size(peak * 1024)
    ))?;
    Ok(Exit::Yes)
}

async fn round(
    args: &Args,
    global: &Global,
    path: &Path,
    scratch: &Path,
    full: bool,
) -> Result<Round, Failure> {
    let place = |name: &str| place(global, &path.join(name));
    let (address, _) = place("drain")?;
    let before = fsync_rate(scratch)?;
    let load = Load::open(&address, &Options::default(), args.concurrency)?.with_full_history(full);
    load.reset().await?;
    load.setup().await?;
    let rate = |n: u64, began: Instant| n as f64 / began.elapsed().as_secs_f64();
    let single = args.single;
    let began = Instant::now();
    load.add_singly(0, single, 1).await?;
    let add_one_per_s = rate(single, began);
    let began = Instant::now();
    load.add_singly(single, 3 * single, args.concurrency).await?;
    let add_par_per_s = rate(2 * single, began);
    let began = Instant::now();
    let jobs = args.jobs.max(4 * single);
    load.add_bulk(3 * single, jobs, 1000).await?;
    let add_bulk_per_s = rate(jobs - 3 * single, began);

    let tally = Tally::new(jobs);
    let began = Instant::now();
    let worker = load.start_worker(tally.clone()).await?;
    while tally.missing() > 0 || load.pending().await? {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let drain_per_s = rate(jobs, began);
    worker.stop().await?;

    let idle_fsync = pickup::idle_fsync(scratch)?;
    let (address, shown) = place("pick-up")?;
    let pickup = pickup::measure(&address, &shown, args.concurrency, full).await?;
    let after = fsync_rate(scratch)?;
    Ok(Round {
        history: if full { "full" } else { "outcomes" },
        fsync_per_s: (before + after) / 2.0,
        add_one_per_s,
        add_par_per_s,
        add_bulk_per_s,
        drain_per_s,
        idle_fsync_p50_ms: idle_fsync.p50_ms,
        idle_fsync_p99_ms: idle_fsync.p99_ms,
        pickup_p50_ms: pickup.p50_ms,
        pickup_p99_ms: pickup.p99_ms,
    })
}

/// The database that is measured, and how other processes are told of it: an SQLite file in a
/// directory of its own, unless it is PostgreSQL's.
fn place(global: &Global, dir: &Path) -> Result<(Address, String), Failure> {
    if let Some(url) = &global.database {
        return Ok((Address::parse(url)?, url.clone()));
    }
    std::fs::create_dir_all(dir)?;
    Ok((Address::sqlite(dir.join("queue.db")), dir.display().to_string()))
}

/// How fast several processes drain one queue together.
#[derive(Debug, Clone, Serialize)]
struct Drain {
    processes: usize,
    drain_per_s: f64,
}

async fn drain_by(
    processes: usize,
    args: &Args,
    global: &Global,
    path: &Path,
) -> Result<f64, Failure> {
    let (address, shown) = place(global, path)?;
    let load = Load::open(&address, &Options::default(), args.concurrency)?;
    load.reset().await?;
    load.setup().await?;
    load.add_bulk(0, args.jobs, 1000).await?;
    load.analyze().await?;
    let began = Instant::now();
    let children: Vec<_> = (0..processes)
        .map(|_| {
            tokio::process::Command::new(std::env::current_exe()?)
                .args(["bench", "driver", "drain"])
                .env("PEER_URL", &shown)
                .env("PEER_CONCURRENCY", args.concurrency.to_string())
                .stdout(std::process::Stdio::null())
                .kill_on_drop(true)
                .spawn()
        })
        .collect::<std::io::Result<_>>()?;
    for mut child in children {
        if !child.wait().await?.success() {
            return Err(Failure::unable(ErrorCode::Bench, "a worker process failed; see above"));
        }
    }
    let took = began.elapsed();
    if load.pending().await? {
        return Err(Failure::unable(ErrorCode::Bench, "jobs were left when all workers had ended"));
    }
    Ok(args.jobs as f64 / took.as_secs_f64())
}

/// Small appends that each wait for the disk, as a commit does.
pub fn fsync_rate(dir: &Path) -> Result<f64, Failure> {
    let mut file = tempfile::tempfile_in(dir)?;
    let began = Instant::now();
    let mut count = 0;
    while began.elapsed() < Duration::from_millis(500) {
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

fn median(rounds: &[Round]) -> Round {
    let middle = |pick: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Round {
        history: rounds.first().map_or("", |r| r.history),
        fsync_per_s: middle(|r| r.fsync_per_s),
        add_one_per_s: middle(|r| r.add_one_per_s),
        add_par_per_s: middle(|r| r.add_par_per_s),
        add_bulk_per_s: middle(|r| r.add_bulk_per_s),
        drain_per_s: middle(|r| r.drain_per_s),
        idle_fsync_p50_ms: middle(|r| r.idle_fsync_p50_ms),
        idle_fsync_p99_ms: middle(|r| r.idle_fsync_p99_ms),
        pickup_p50_ms: middle(|r| r.pickup_p50_ms),
        pickup_p99_ms: middle(|r| r.pickup_p99_ms),
    }
}

/// How long a claim of 500 takes in a queue of a certain kind.
#[derive(Debug, Clone, Serialize)]
struct ClaimTime {
    what: String,
    p50_ms: f64,
}

/// What a claim may meet: how many wait, how many stand before them that cannot be claimed, in
/// which state, and how many rows of history there are.
struct Scene {
    what: &'static str,
    waiting: u64,
    before: Option<(u64, queue::State)>,
    history: u64,
    /// Whether the subjects' names are in no order.
    shuffled: bool,
}

async fn claims(args: &Args, scratch: &Path, large: u64) -> Result<Vec<ClaimTime>, Failure> {
    let small = Scene {
        what: "10,000 waiting",
        waiting: 10_000,
        before: None,
        history: 0,
        shuffled: false,
    };
    let many = Scene { what: "as many waiting as --large says", waiting: large, ..small };
    let shuffled =
        Scene { what: "as many, with names in no order", waiting: large, shuffled: true, ..small };
    let aside = |what, state| Scene { what, before: Some((100_000, state)), ..small };
    let scenes = [
        many,
        shuffled,
        Scene { what: "10,000 waiting and 1,000,000 rows of history", history: 1_000_000, ..small },
        aside("100,000 parked before them", queue::State::Parked),
        aside("100,000 held before them", queue::State::Held),
        aside("100,000 backed off before them", queue::State::Delayed),
    ];
    let mut times = Vec::new();
    for (index, scene) in std::iter::once(small).chain(scenes).enumerate() {
        let path = scratch.join(format!("claims-{index}.db"));
        let load = Load::open(&Address::sqlite(path), &Options::default(), args.concurrency)?
            .shuffled(scene.shuffled);
        load.setup().await?;
        let before = scene.before.map_or(0, |(count, _)| count);
        load.add_bulk(0, before, 2000).await?;
        if let Some((_, state)) = scene.before {
            load.set_aside(state).await?;
        }
        load.add_history(scene.history).await?;
        load.add_bulk(before, before + scene.waiting, 2000).await?;
        // What was just loaded is on its way to the disk, and shall not be in the way of claims.
        std::process::Command::new("sync").status()?;
        let mut took = load.time_claims(500, 19).await?;
        took.sort_unstable();
        let p50_ms = took.get(took.len() / 2).map_or(0.0, |t| t.as_secs_f64() * 1000.0);
        times.push(ClaimTime { what: scene.what.to_string(), p50_ms });
    }
    Ok(times)
}
