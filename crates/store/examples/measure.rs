//! Measures what durability costs in a local directory: file by file, in batches, and the floor,
//! which is the same bytes written and flushed by hand into one file.
//!
//! `cargo run --release -p store --example measure -- DIRECTORY`

use std::io::Write;
use std::time::{Duration, Instant};
use store::{Body, LocalStore, PutOptions, SmallFile, Store};

const FILES: usize = 2000;
const FILE_BYTES: usize = 4096;
const LARGE_BYTES: usize = 256 * 1024 * 1024;
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args().nth(1).ok_or("usage: measure DIRECTORY")?;
    let root = std::path::Path::new(&root).join("store-measure");
    let store = LocalStore::create(&root)?;
    let small = |n: usize| SmallFile::new(format!("s/{}/{n}", n % 20), vec![7; FILE_BYTES]);
    let (mut one, mut batch, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    let (mut put, mut read, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    let large = bytes::Bytes::from(vec![7; LARGE_BYTES]);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for file in (0..FILES).map(small) {
            store.put(&file.key, Body::from_bytes(file.content), &PutOptions::default()).await?;
        }
        one.push(began.elapsed());
        store.delete_all("s").await?;

        let began = Instant::now();
        store.put_batch((0..FILES).map(small).collect()).await?;
        batch.push(began.elapsed());
        store.delete_all("s").await?;

        floor.push(write_by_hand(&root, &vec![7; FILES * FILE_BYTES])?);
        plain.push(write_by_hand(&root, &large)?);
        let began = Instant::now();
        store.put("large", Body::from_bytes(large.clone()), &PutOptions::default()).await?;
        put.push(began.elapsed());
        let began = Instant::now();
        store.get("large", None).await?.bytes(LARGE_BYTES).await?;
        read.push(began.elapsed());
    }
    let per = |times: Vec<Duration>, count: usize| count as f64 / median(times).as_secs_f64();
    println!(
        "{FILES} files of {FILE_BYTES} bytes: put {:.0}/s, batch {:.0}/s, floor (one file, one flush) {:.0}/s",
        per(one, FILES),
        per(batch, FILES),
        per(floor, FILES)
    );
    let mib = LARGE_BYTES / 1024 / 1024;
    println!(
        "{mib} MiB: put {:.0} MiB/s, floor {:.0} MiB/s, get (cached) {:.0} MiB/s",
        per(put, mib),
        per(plain, mib),
        per(read, mib)
    );
    std::fs::remove_dir_all(root)?;
    Ok(())
}

fn write_by_hand(root: &std::path::Path, content: &[u8]) -> std::io::Result<Duration> {
    let began = Instant::now();
    let path = root.join("floor");
    let mut file = std::fs::File::create(&path)?;
    file.write_all(content)?;
    file.sync_all()?;
    let took = began.elapsed();
    std::fs::remove_file(path)?;
    Ok(took)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
