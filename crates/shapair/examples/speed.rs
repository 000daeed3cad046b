//! How fast each way is on this machine, one core: `cargo run --release --example speed`.

use shapair::Pair;
use std::hint::black_box;
use std::time::Instant;

/// Megabytes a second, the best of 20 times.
fn speed(bytes: &[u8], mut update: impl FnMut(&[u8])) -> f64 {
    let seconds = (0..20).map(|_| {
        let start = Instant::now();
        bytes.chunks(128 * 1024).for_each(&mut update);
        start.elapsed().as_secs_f64()
    });
    bytes.len() as f64 / 1e6 / seconds.fold(f64::MAX, f64::min)
}

fn main() {
    let bytes: Vec<u8> = (0..8 << 20).map(|i: u32| ((i * 7) >> 3) as u8).collect();
    let mut sha256 = ring::digest::Context::new(&ring::digest::SHA256);
    let mut sha512 = ring::digest::Context::new(&ring::digest::SHA512);
    let mut pair = Pair::new();

    println!("chosen: {:?}", shapair::way());
    println!("ring sha256      {:7.0} MB/s", speed(&bytes, |part| sha256.update(part)));
    println!("ring sha512      {:7.0} MB/s", speed(&bytes, |part| sha512.update(part)));
    let both = speed(&bytes, |part| {
        sha256.update(part);
        sha512.update(part);
    });
    println!("ring, both       {both:7.0} MB/s");
    println!("shapair, both    {:7.0} MB/s", speed(&bytes, |part| pair.update(part)));
    black_box((sha256.finish(), sha512.finish(), pair.finish()));
}
