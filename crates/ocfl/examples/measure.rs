//! Measures what writing costs in a local directory, and the machine's own floor beside it.
//!
//! - `measure DIRECTORY files` writes versions of 20,000 files of 4 KiB, beside `cp -r` and a sync.
//! - `measure DIRECTORY objects [PARALLEL]` writes 500 objects of five small files.
//! - `measure DIRECTORY seal FILES` seals a second version of an object of so many files.
//!
//! `cargo run --release -p ocfl --example measure -- DIRECTORY files`

use bytes::Bytes;
use ocfl::{About, DraftOptions, Layout, Spec, StorageRoot};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{LocalOptions, LocalStore, Store};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: measure DIRECTORY files|objects|seal [NUMBER]";
    let directory = arguments.next().ok_or(usage)?;
    let what = arguments.next().ok_or(usage)?;
    let number = arguments.next().map(|number| number.parse()).transpose()?;
    let directory = Path::new(&directory).join("ocfl-measure");
    std::fs::remove_dir_all(&directory).ok();
    std::fs::create_dir_all(&directory)?;
    match what.as_str() {
        "files" => files(&directory).await?,
        "objects" => objects(&directory, number.unwrap_or(1)).await?,
        "seal" => seal(&directory, number.unwrap_or(10_000)).await?,
        _ => return Err(usage.into()),
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

async fn root(path: &Path) -> Result<StorageRoot, Failure> {
    let temporaries = StorageRoot::TEMPORARIES.to_owned();
    let store = LocalStore::open_with(
        path,
        &LocalOptions { temporaries, create: true, ..LocalOptions::default() },
    )?;
    let store: Arc<dyn Store> = Arc::new(store);
    Ok(StorageRoot::init(store, Spec::V1_1, Layout::default()).await?)
}

/// Files of 4 KiB that are all different.
fn batch(seed: usize, count: usize) -> Vec<(String, Bytes)> {
    let name = |n: usize| format!("d{:03}/f{n:06}.bin", n % 200);
    let content = |n: usize| format!("{:016x}", seed * 1_000_003 + n).repeat(256);
    (0..count).map(|n| (name(n), content(n).into())).collect()
}

async fn files(directory: &Path) -> Result<(), Failure> {
    const FILES: usize = 20_000;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    let source = directory.join("source");
    for (path, content) in batch(0, FILES) {
        let path = source.join(path);
        std::fs::create_dir_all(path.parent().ok_or("a parent")?)?;
        std::fs::write(path, content)?;
    }
    Command::new("sync").arg("-f").arg(directory).status()?;
    for round in 0..ROUNDS {
        let root = root(&directory.join(format!("root{round}"))).await?;
        let files = batch(round, FILES);
        let began = Instant::now();
        let draft = root.begin("urn:x", About::default(), &DraftOptions::default()).await?;
        for files in files.chunks(2000) {
            draft.put_batch(files.to_vec()).await?;
        }
        root.seal(&draft.write().await?).await?;
        ours.push(began.elapsed());
        let began = Instant::now();
        let copy = directory.join(format!("copy{round}"));
        Command::new("cp").arg("-r").arg(&source).arg(&copy).status()?;
        Command::new("sync").arg("-f").arg(&copy).status()?;
        floor.push(began.elapsed());
    }
    let (ours, floor) = (median(ours), median(floor));
    println!(
        "{FILES} files of 4 KiB, hashed and kept: {ours:.2?}, {:.0} files/s",
        rate(FILES, ours)
    );
    println!(
        "the same by cp -r and sync -f:        {floor:.2?}, {:.0} files/s",
        rate(FILES, floor)
    );
    Ok(())
}

async fn objects(directory: &Path, parallel: usize) -> Result<(), Failure> {
    const OBJECTS: usize = 500;
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let root = root(&directory.join(format!("root{round}"))).await?;
        let began = Instant::now();
        let mut writers = tokio::task::JoinSet::new();
        for first in 0..parallel {
            let root = root.clone();
            writers.spawn(async move {
                for n in (first..OBJECTS).step_by(parallel) {
                    let id = format!("urn:example:{n}");
                    let draft = root.begin(&id, About::default(), &DraftOptions::default()).await?;
                    draft.put_batch(batch(n, 5)).await?;
                    root.seal(&draft.write().await?).await?;
                }
                Ok::<_, ocfl::Error>(())
            });
        }
        while let Some(done) = writers.join_next().await {
            done??;
        }
        rounds.push(began.elapsed());
    }
    let time = median(rounds);
    println!(
        "{OBJECTS} objects of five files, {parallel} at a time: {time:.2?}, {:.0} objects/s",
        rate(OBJECTS, time)
    );
    Ok(())
}

async fn seal(directory: &Path, count: usize) -> Result<(), Failure> {
    let root = root(&directory.join("root")).await?;
    let draft = root.begin("urn:x", About::default(), &DraftOptions::default()).await?;
    for files in batch(0, count).chunks(2000) {
        draft.put_batch(files.to_vec()).await?;
    }
    root.seal(&draft.write().await?).await?;
    let (mut writes, mut seals) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        let draft = root.begin("urn:x", About::default(), &DraftOptions::default()).await?;
        draft.put("new", Bytes::from(format!("round {round}")).into()).await?;
        let unsealed = draft.write().await?;
        writes.push(began.elapsed());
        let began = Instant::now();
        root.seal(&unsealed).await?;
        seals.push(began.elapsed());
    }
    println!(
        "an object of {count} files: begin to write {:.2?}, seal {:.2?}",
        median(writes),
        median(seals)
    );
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}
