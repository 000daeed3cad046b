//! Half a million files in one inventory, within the limits that are the default.

use ocfl::{Algorithm, Inventory, Limits};
use std::io::{self, Read, Write};

const FILES: u32 = 500_000;

/// An inventory that is made up while it is read: the test holds no more of it than the reader.
struct Generated {
    next: u32,
    part: u8,
    line: Vec<u8>,
    at: usize,
}

fn digest(n: u32) -> String {
    // Distinct and of the right form is all that matters here.
    format!("{n:08x}").repeat(16)
}

impl Generated {
    fn line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.at = 0;
        let (n, comma) = (self.next, if self.next == 0 { "" } else { "," });
        match self.part {
            0 => self.line.write_all(
                br#"{"id":"urn:x","type":"https://ocfl.io/1.1/spec/#inventory",
"digestAlgorithm":"sha512","head":"v1","manifest":{"#,
            )?,
            1 => write!(
                self.line,
                "{comma}\n\"{}\":[\"v1/content/d{}/f{n}.tiff\"]",
                digest(n),
                n % 1000
            )?,
            2 => self.line.write_all(
                br#"},"versions":{"v1":{"created":"2026-01-01T00:00:00Z","message":"m",
"user":{"name":"n","address":"mailto:n@example.org"},"state":{"#,
            )?,
            3 => write!(self.line, "{comma}\n\"{}\":[\"d{}/f{n}.tiff\"]", digest(n), n % 1000)?,
            4 => self.line.write_all(b"}}}}")?,
            _ => {}
        }
        self.next += 1;
        if matches!(self.part, 0 | 2 | 4) || self.next == FILES {
            self.part += 1;
            self.next = 0;
        }
        Ok(())
    }
}

impl Read for Generated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            self.line()?;
        }
        let count = buffer.len().min(self.line.len() - self.at);
        buffer[..count].copy_from_slice(&self.line[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Keeps the length and the digest of what is written, not the bytes.
struct Digesting(u64, ocfl::SingleHasher);

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        self.1.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn half_a_million_files() {
    let source = Generated { next: 0, part: 0, line: Vec::new(), at: 0 };
    let source = io::BufReader::new(source);
    let inventory = Inventory::read(source, &Limits::default()).expect("it is within the limits");
    assert_eq!(inventory.content_count(), FILES as usize);
    let version = inventory.version(1).expect("a version");
    let file = inventory.find(version, "d7/f123007.tiff").expect("a file");
    assert_eq!(file.content_path, "v1/content/d7/f123007.tiff");
    let mut out = io::BufWriter::new(Digesting(0, ocfl::SingleHasher::new(Algorithm::Sha256)));
    inventory.write(&mut out).expect("it is written");
    let Digesting(length, _) = out.into_inner().unwrap_or_else(|_| panic!("it is flushed"));
    // Each digest twice, each path twice, and little else.
    assert!(length > u64::from(FILES) * 300 && length < u64::from(FILES) * 400, "{length}");
    let tight = Limits { inventory_memory_bytes_max: 5 << 20, ..Limits::default() };
    let source = Generated { next: 0, part: 0, line: Vec::new(), at: 0 };
    let refused = Inventory::read(io::BufReader::new(source), &tight);
    assert!(matches!(refused, Err(ocfl::Error::Limit { .. })));
}
