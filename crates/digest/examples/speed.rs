//! Prints the throughput of every algorithm, and of SHA-256 and SHA-512 together.

use digest::{Algorithm, Algorithms, Hasher};
use std::time::{Duration, Instant};

fn main() {
    let bytes = vec![0x5a; 128 << 10];
    for algorithm in Algorithm::ALL {
        println!("{:16} {:6.0} MB/s", algorithm.name(), speed(algorithm.into(), &bytes));
    }
    let both = [Algorithm::Sha256, Algorithm::Sha512].into_iter().collect();
    println!("{:16} {:6.0} MB/s", "sha256, sha512", speed(both, &bytes));
    println!("{:16} {:6.0} MB/s", "four likely ones", speed(Algorithms::LIKELY, &bytes));
}

/// The best of five runs of a fifth of a second.
fn speed(algorithms: Algorithms, bytes: &[u8]) -> f64 {
    let run = || {
        let mut hasher = Hasher::new(algorithms);
        let (start, mut total) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_millis(200) {
            hasher.update(bytes);
            total += bytes.len();
        }
        let elapsed = start.elapsed();
        assert!(hasher.finish().iter().count() > 0);
        total as f64 / elapsed.as_secs_f64() / 1e6
    };
    (0..5).map(|_| run()).fold(0.0, f64::max)
}
