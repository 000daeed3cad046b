//! Identifies standard input in the same pass as a checksum: each piece goes to both.
//!
//! `cargo run -p pronom --example while_hashing < FILE`

use pronom::{Identifier, SignatureSet};
use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let identifier = Identifier::new(SignatureSet::essential().clone());
    let mut stream = identifier.stream();
    let mut checksum = flate2::Crc::new();
    let mut piece = vec![0; 64 * 1024];
    let mut input = std::io::stdin().lock();
    loop {
        let count = input.read(&mut piece)?;
        if count == 0 {
            break;
        }
        checksum.update(&piece[..count]);
        stream.feed(&piece[..count]);
    }
    let found = stream.finish(None, None)?;
    println!(
        "crc32 {:08x}, {} bytes, {:?}",
        checksum.sum(),
        found.size,
        found.puids().collect::<Vec<_>>()
    );
    Ok(())
}
