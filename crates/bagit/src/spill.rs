//! Sorting more records than memory holds: sorted runs in a temporary file, merged when read.
//!
//! The sort is stable: records of equal keys come back in the order in which they were pushed.

use crate::source::read_at::ReadAt;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// What is kept in memory before a run is written.
pub(crate) const MEMORY_BYTES: usize = 16 * 1024 * 1024;
const RUN_BUFFER_BYTES: usize = 32 * 1024;
const HEADER_BYTES: usize = 8;

/// A key and what belongs to it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub key: Vec<u8>,
    pub body: Vec<u8>,
}

/// Takes records in any order.
pub(crate) struct Sorter {
    memory_bytes: usize,
    arena: Vec<u8>,
    starts: Vec<usize>,
    file: Option<File>,
    file_bytes: u64,
    runs: Vec<(u64, u64)>,
}

impl Sorter {
    pub fn new(memory_bytes: usize) -> Sorter {
        Sorter {
            memory_bytes,
            arena: Vec::new(),
            starts: Vec::new(),
            file: None,
            file_bytes: 0,
            runs: Vec::new(),
        }
    }

    pub fn push(&mut self, key: &[u8], body: &[u8]) -> io::Result<()> {
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "record too long to sort");
        let key_len = u32::try_from(key.len()).map_err(too_long)?;
        let body_len = u32::try_from(body.len()).map_err(too_long)?;
        let used = self.arena.len() + self.starts.len() * size_of::<usize>();
        if used + HEADER_BYTES + key.len() + body.len() > self.memory_bytes
            && !self.starts.is_empty()
        {
            self.write_run()?;
        }
        self.starts.push(self.arena.len());
        self.arena.extend_from_slice(&key_len.to_le_bytes());
        self.arena.extend_from_slice(&body_len.to_le_bytes());
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(body);
        Ok(())
    }

    fn sort_memory(&mut self) {
        let arena = &self.arena;
        // Members and manifests mostly come in order already, which this sort makes use of.
        self.starts.sort_by(|a, b| split(arena, *a).0.cmp(split(arena, *b).0));
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.sort_memory();
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        let start = self.file_bytes;
        let mut writer = BufWriter::with_capacity(RUN_BUFFER_BYTES, file);
        for at in &self.starts {
            let (key, body) = split(&self.arena, *at);
            let len = HEADER_BYTES + key.len() + body.len();
            writer.write_all(&self.arena[*at..*at + len])?;
            self.file_bytes += len as u64;
        }
        writer.flush()?;
        self.runs.push((start, self.file_bytes));
        self.arena.clear();
        self.starts.clear();
        Ok(())
    }

    /// Ends the pushing and gives the records in order.
    pub fn sorted(mut self) -> io::Result<Sorted> {
        if self.file.is_some() && !self.starts.is_empty() {
            self.write_run()?;
        }
        let Some(file) = self.file else {
            self.sort_memory();
            return Ok(Sorted::Memory { arena: self.arena, starts: self.starts, next: 0 });
        };
        let mut merge = Merge { file, runs: Vec::new(), heap: BinaryHeap::new() };
        for (at, end) in self.runs {
            merge.runs.push(Run { at, end, buffer: Vec::new(), next: 0 });
        }
        for index in 0..merge.runs.len() {
            merge.advance(index)?;
        }
        Ok(Sorted::Merged(merge))
    }
}

fn split(arena: &[u8], at: usize) -> (&[u8], &[u8]) {
    let (key_len, body_len) = lengths(&arena[at..]);
    let key = at + HEADER_BYTES;
    (&arena[key..key + key_len], &arena[key + key_len..key + key_len + body_len])
}

fn lengths(header: &[u8]) -> (usize, usize) {
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize
    };
    (word(0), word(4))
}

/// Records in the order of their keys.
pub(crate) enum Sorted {
    Memory { arena: Vec<u8>, starts: Vec<usize>, next: usize },
    Merged(Merge),
}

impl Sorted {
    /// Reads the next record; false at the end.
    pub fn next(&mut self, record: &mut Record) -> io::Result<bool> {
        match self {
            Sorted::Memory { arena, starts, next } => {
                let Some(at) = starts.get(*next) else { return Ok(false) };
                *next += 1;
                let (key, body) = split(arena, *at);
                record.key.clear();
                record.key.extend_from_slice(key);
                record.body.clear();
                record.body.extend_from_slice(body);
                Ok(true)
            }
            Sorted::Merged(merge) => merge.next(record),
        }
    }
}

struct Run {
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    next: usize,
}

/// The first record of a run that has not been given out: key, run, body.
type Head = (Vec<u8>, usize, Vec<u8>);

/// The heads of all runs; the smallest key goes first, and among equals the earliest run.
pub(crate) struct Merge {
    file: File,
    runs: Vec<Run>,
    heap: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    fn next(&mut self, record: &mut Record) -> io::Result<bool> {
        let Some(Reverse((key, index, body))) = self.heap.pop() else { return Ok(false) };
        record.key = key;
        record.body = body;
        self.advance(index)?;
        Ok(true)
    }

    fn advance(&mut self, index: usize) -> io::Result<()> {
        let Merge { file, runs, heap } = self;
        let run = &mut runs[index];
        if !run.need(file, HEADER_BYTES)? {
            return Ok(());
        }
        let (key_len, body_len) = lengths(&run.buffer[run.next..]);
        let len = HEADER_BYTES + key_len + body_len;
        if !run.need(file, len)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (key, body) = split(&run.buffer, run.next);
        heap.push(Reverse((key.to_vec(), index, body.to_vec())));
        run.next += len;
        Ok(())
    }
}

impl Run {
    /// Makes sure that so many bytes are in the buffer; false at the end of the run.
    fn need(&mut self, file: &File, bytes: usize) -> io::Result<bool> {
        if self.buffer.len() - self.next >= bytes {
            return Ok(true);
        }
        self.buffer.drain(..self.next);
        self.next = 0;
        let had = self.buffer.len();
        let left = (self.end - self.at) as usize;
        if had + left < bytes {
            return Ok(false);
        }
        let want = bytes.max(RUN_BUFFER_BYTES).saturating_sub(had).min(left);
        self.buffer.resize(had + want, 0);
        file.read_exact_at(&mut self.buffer[had..], self.at)?;
        self.at += want as u64;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(memory_bytes: usize) -> Vec<(String, u32)> {
        let mut sorter = Sorter::new(memory_bytes);
        for i in 0..5_000_u32 {
            let key = format!("k{:04}", i.wrapping_mul(2_654_435_761) % 500);
            sorter.push(key.as_bytes(), &i.to_le_bytes()).unwrap();
        }
        let mut sorted = sorter.sorted().unwrap();
        let (mut record, mut all) = (Record::default(), Vec::new());
        while sorted.next(&mut record).unwrap() {
            let body = u32::from_le_bytes(record.body.clone().try_into().unwrap());
            all.push((String::from_utf8(record.key.clone()).unwrap(), body));
        }
        all
    }

    #[test]
    fn spilled_and_unspilled_order_are_the_same_stable_order() {
        let in_memory = run(MEMORY_BYTES);
        assert_eq!(in_memory.len(), 5_000);
        assert!(in_memory.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(run(2_000), in_memory);
        assert_eq!(run(1), in_memory);
    }
}
