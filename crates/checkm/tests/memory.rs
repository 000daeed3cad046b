//! Memory stays bounded however long the manifest is. One test, alone in its process, because it
//! reads the high-water mark of that process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use checkm::{Format, Options, Profile};
use std::io::{BufReader, Read};

/// A manifest of so many rows that is never whole anywhere.
struct Endless {
    rows: u64,
    next: u64,
    line: Vec<u8>,
    at: usize,
    make: fn(u64, u64) -> String,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.line.len() {
            if self.next > self.rows + 1 {
                return Ok(0);
            }
            self.line = (self.make)(self.next, self.rows).into_bytes();
            self.at = 0;
            self.next += 1;
        }
        let count = buffer.len().min(self.line.len() - self.at);
        buffer[..count].copy_from_slice(&self.line[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn checkm(row: u64, rows: u64) -> String {
    match row {
        0 => format!("#%checkm_0.7\n#%profile | {}\n", Profile::Object.uri().unwrap()),
        row if row > rows => "#%eof\n".to_string(),
        // The last row has the name of the first.
        row => {
            let name = if row == rows { 1 } else { row };
            format!(
                "http://example.org/{row} | md5 | d41d8cd98f00b204e9800998ecf8427e | 1 | | some/where/{name}\n"
            )
        }
    }
}

fn json(row: u64, rows: u64) -> String {
    match row {
        0 => "{\"format\":\"checkm-json/1\",\"profile\":\"object\",\"rows\":[".to_string(),
        row if row > rows => "]}".to_string(),
        // All on one line, and every row is bad.
        row => format!(
            "{}{{\"source\":\"http:// {row}\",\"size\":\"many\",\"name\":\"{row}\"}}",
            if row == 1 { "" } else { "," }
        ),
    }
}

fn resident_kib_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn millions_of_rows_take_no_more_memory_than_allowed() {
    let before = resident_kib_max();
    let options = Options { memory_bytes_max: 4 << 20, ..Options::default() };
    let rows = 700_000;
    let endless = |make| BufReader::new(Endless { rows, next: 0, line: Vec::new(), at: 0, make });
    let report = checkm::check(endless(checkm as fn(u64, u64) -> String), &options).unwrap();
    let problems = report.problems();
    assert_eq!(report.rows(), rows);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(
        (problems[0].line, problems[0].message.as_str()),
        (rows + 2, "\"some/where/1\" is the same as in line 3, row 1")
    );
    assert_eq!(report.content_bytes(), rows);
    let options = Options { format: Some(Format::Json), ..options };
    let report = checkm::check(endless(json), &options).unwrap();
    assert_eq!((report.rows(), report.errors()), (rows, 2 * rows));
    assert_eq!(report.problems().len(), 200);
    // 4 MiB for duplicates, and the rest for buffers, the two reports and the allocator.
    let grown = resident_kib_max() - before;
    assert!(grown < 16 << 10, "grew by {grown} KiB");
}
