//! Names and identifiers that occur more than once, found in bounded memory.
//!
//! Each name becomes a record of hashes and its place. Records are gathered up to a limit, then
//! sorted and set down in a temporary file; at the end the sorted runs are merged, and equal
//! names meet. What messages show of the names is in a log beside the records. The hashes are keyed anew for every manifest, so that nobody can make a manifest
//! whose different names collide.

use crate::code::Code;
use crate::excerpts::{Excerpts, temporary};
use crate::name;
use crate::report::{Place, Report};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;

/// Beyond this many runs they are merged into one, so that open files stay few.
const RUNS_MAX: usize = 32;
const RECORD_BYTES: usize = 57;

/// What must not occur twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Name,
    PrimaryId,
    LocalId,
}

/// In sorting order: same fold, then same name, then same tag, then by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    fold: (u64, u64),
    name: u64,
    tag: u64,
    place: Place,
    kind: Kind,
    /// Where the name is in the log.
    text_at: u64,
}

pub(crate) struct Unique {
    keys: (RandomState, RandomState),
    records: Vec<Record>,
    records_max: usize,
    runs: Vec<File>,
    texts: Excerpts,
    directory: Option<PathBuf>,
}

impl Unique {
    pub fn new(memory_bytes_max: usize, directory: Option<PathBuf>) -> Unique {
        let records_max = (memory_bytes_max / size_of::<Record>()).max(16);
        let keys = (RandomState::new(), RandomState::new());
        let texts = Excerpts::new(directory.clone());
        Unique { keys, records: Vec::new(), records_max, runs: Vec::new(), texts, directory }
    }

    /// Notes a name. Rows with different tags may share it.
    pub fn note(&mut self, kind: Kind, name: &str, tag: &str, place: Place) -> io::Result<()> {
        if self.records.len() >= self.records_max {
            self.spill()?;
        }
        // Identifiers are compared as they are; only names meet file systems.
        let fold = if kind == Kind::Name { name::fold(name) } else { name.into() };
        let first = hash(&self.keys.0, kind, &fold);
        let record = Record {
            fold: (first, hash(&self.keys.1, kind, &fold)),
            // Most names are their own fold, and need no hash of their own.
            name: if *fold == *name { first } else { hash(&self.keys.0, kind, name) },
            tag: if tag.is_empty() { 0 } else { hash(&self.keys.0, kind, tag) },
            place,
            kind,
            text_at: self.texts.push(name)?,
        };
        if self.records.len() == self.records.capacity() {
            // Doubling is stopped at the limit, which would otherwise be passed by half.
            let more = self.records.len().clamp(1024, 1 << 20).min(self.records_max);
            self.records.reserve_exact(more);
        }
        self.records.push(record);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.records.sort_unstable();
        let mut writer = BufWriter::new(temporary(self.directory.as_ref())?);
        for record in self.records.drain(..) {
            writer.write_all(&record.to_bytes())?;
        }
        self.runs.push(writer.into_inner().map_err(|error| error.into_error())?);
        if self.runs.len() >= RUNS_MAX {
            let mut writer = BufWriter::new(temporary(self.directory.as_ref())?);
            let mut merge = Merge::new(std::mem::take(&mut self.runs), Vec::new())?;
            while let Some(record) = merge.next()? {
                writer.write_all(&record.to_bytes())?;
            }
            self.runs.push(writer.into_inner().map_err(|error| error.into_error())?);
        }
        Ok(())
    }

    /// Reports everything that occurs more than once.
    pub fn finish(mut self, report: &mut Report) -> io::Result<()> {
        self.records.sort_unstable();
        let records = std::mem::take(&mut self.records);
        let mut merge = Merge::new(std::mem::take(&mut self.runs), records)?;
        let Some(mut first) = merge.next()? else { return Ok(()) };
        // The first of those with the same fold, and the first of those that are wholly equal.
        let mut same = first;
        let mut previous = first;
        while let Some(record) = merge.next()? {
            if record.fold != first.fold {
                (first, same) = (record, record);
            } else if (record.name, record.tag) == (same.name, same.tag) {
                report_duplicate(report, &mut self.texts, record, same)?;
            } else {
                if record.name != previous.name {
                    // Each spelling but the earliest in the file is reported once.
                    let (early, late) =
                        if record.place < first.place { (record, first) } else { (first, record) };
                    report_collision(report, &mut self.texts, late, early)?;
                    first = early;
                }
                same = record;
            }
            previous = record;
        }
        Ok(())
    }
}

fn hash(keys: &RandomState, kind: Kind, text: &str) -> u64 {
    let mut hasher = keys.build_hasher();
    hasher.write_u8(kind as u8);
    hasher.write(text.as_bytes());
    hasher.finish()
}

fn report_duplicate(
    report: &mut Report,
    texts: &mut Excerpts,
    record: Record,
    same: Record,
) -> io::Result<()> {
    let (code, column) = match record.kind {
        Kind::Name => (Code::NameDuplicate, "name"),
        Kind::PrimaryId => (Code::IdentifierDuplicate, "primary_id"),
        Kind::LocalId => (Code::IdentifierDuplicate, "local_ids"),
    };
    let mut text = Ok(String::new());
    report.add(code, record.place, Some(column), || {
        text = texts.get(record.text_at);
        let shown = text.as_deref().unwrap_or_default();
        format!("{shown:?} is the same as in {}", at(same.place))
    });
    text.map(drop)
}

fn report_collision(
    report: &mut Report,
    texts: &mut Excerpts,
    late: Record,
    early: Record,
) -> io::Result<()> {
    let mut both = Ok((String::new(), String::new()));
    report.add(Code::NameCollision, late.place, Some("name"), || {
        both = texts.get(late.text_at).and_then(|late| Ok((late, texts.get(early.text_at)?)));
        let (late, earlier) = both.as_ref().map_or(("", ""), |(a, b)| (a, b));
        format!(
            "{late:?} differs only in case or Unicode normalisation from {earlier:?} in {}",
            at(early.place)
        )
    });
    both.map(drop)
}

fn at(place: Place) -> String {
    format!("line {}, row {}", place.line, place.row)
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let Place { line, row } = self.place;
        let numbers = [self.fold.0, self.fold.1, self.name, self.tag, line, row, self.text_at];
        for (slot, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        bytes[RECORD_BYTES - 1] = self.kind as u8;
        bytes
    }

    fn from_bytes(bytes: [u8; RECORD_BYTES]) -> Record {
        let mut numbers = [0; 7];
        for (number, slot) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(slot);
            *number = u64::from_le_bytes(eight);
        }
        let [fold_0, fold_1, name, tag, line, row, text_at] = numbers;
        let kind = match bytes[RECORD_BYTES - 1] {
            0 => Kind::Name,
            1 => Kind::PrimaryId,
            _ => Kind::LocalId,
        };
        Record { fold: (fold_0, fold_1), name, tag, place: Place { line, row }, kind, text_at }
    }
}

/// Sorted runs, as one.
struct Merge {
    runs: Vec<BufReader<File>>,
    memory: std::vec::IntoIter<Record>,
    heads: BinaryHeap<Reverse<(Record, usize)>>,
}

impl Merge {
    fn new(files: Vec<File>, memory: Vec<Record>) -> io::Result<Merge> {
        let mut runs = Vec::with_capacity(files.len());
        for mut file in files {
            file.rewind()?;
            runs.push(BufReader::with_capacity(64 << 10, file));
        }
        let mut merge = Merge { runs, memory: memory.into_iter(), heads: BinaryHeap::new() };
        for run in 0..=merge.runs.len() {
            merge.refill(run)?;
        }
        Ok(merge)
    }

    /// The run after the last file is the one still in memory.
    fn refill(&mut self, run: usize) -> io::Result<()> {
        let head = match self.runs.get_mut(run) {
            Some(reader) => read_record(reader)?,
            None => self.memory.next(),
        };
        if let Some(record) = head {
            self.heads.push(Reverse((record, run)));
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<Record>> {
        let Some(Reverse((record, run))) = self.heads.pop() else { return Ok(None) };
        self.refill(run)?;
        Ok(Some(record))
    }
}

fn read_record(reader: &mut impl Read) -> io::Result<Option<Record>> {
    let mut bytes = [0; RECORD_BYTES];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(Record::from_bytes(bytes))),
        // Runs hold whole records, so an end can only be between two.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(memory: usize, names: impl Iterator<Item = String>) -> (u64, u64, Vec<(u64, String)>) {
        let mut unique = Unique::new(memory, None);
        for (name, line) in names.zip(1..) {
            unique.note(Kind::Name, &name, "", Place { line, row: line }).unwrap();
        }
        let mut report = Report::new(5);
        unique.finish(&mut report).unwrap();
        let problems = report.problems();
        let shown = problems.iter().map(|p| (p.line, p.message.clone())).collect();
        (report.count(Code::NameDuplicate), report.count(Code::NameCollision), shown)
    }

    #[test]
    fn spilling_changes_nothing() {
        let names = || (0..5000).map(|n| format!("name-{}", if n == 4321 { 17 } else { n }));
        let in_memory = found(1 << 20, names());
        assert_eq!(in_memory, found(0, names()), "16 records a run, more than {RUNS_MAX} runs");
        assert_eq!(in_memory.0, 1);
        assert_eq!(
            in_memory.2,
            [(4322, "\"name-17\" is the same as in line 18, row 18".to_string())]
        );
    }

    #[test]
    fn a_thousand_equal_names_and_a_thousand_spellings() {
        let (duplicates, collisions, shown) = found(0, (0..1000).map(|_| "same".to_string()));
        assert_eq!((duplicates, collisions), (999, 0));
        assert_eq!(shown.iter().map(|s| s.0).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
        let spelled = |n: u32| {
            (0..10).map(|bit| if n >> bit & 1 == 1 { 'A' } else { 'a' }).collect::<String>()
        };
        let (duplicates, collisions, shown) = found(0, (0..1000).map(spelled));
        assert_eq!((duplicates, collisions), (0, 999));
        assert_eq!(shown.iter().map(|s| s.0).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    }
}
