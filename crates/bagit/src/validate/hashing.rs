//! Reading and hashing files in parallel, and comparing them with their manifests.

use super::Options;
use super::tags::TagFiles;
use super::totals::Totals;
use crate::Observer;
use crate::error::Error;
use crate::hashing::{CHUNK_BYTES, hash_reader};
use crate::pool::{self, lock};
use crate::problem::{Code, Problem, Problems};
use crate::source::Members;
use digest::{Algorithm, Algorithms, Digest, Digests};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A digest that a file must have, and where that is said.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub algorithm: Algorithm,
    pub digest: Digest,
    pub manifest: u16,
    pub line: u64,
}

/// A file to be read.
#[derive(Debug)]
pub(crate) struct Task {
    pub path: String,
    pub locator: Vec<u8>,
    pub checks: Vec<Check>,
    pub fetch: Option<(u64, u64)>,
}

impl Task {
    fn is_payload(&self) -> bool {
        self.path.starts_with("data/")
    }
}

/// What all threads share.
pub(crate) struct Shared<'a> {
    pub tags: &'a TagFiles,
    pub options: &'a Options,
    pub observer: &'a dyn Observer,
    pub problems: Mutex<Problems>,
    pub totals: Mutex<Totals>,
    taken: AtomicU64,
}

impl<'a> Shared<'a> {
    pub fn new(
        tags: &'a TagFiles,
        options: &'a Options,
        observer: &'a dyn Observer,
        problems: Problems,
    ) -> Shared<'a> {
        Shared {
            tags,
            options,
            observer,
            problems: Mutex::new(problems),
            totals: Mutex::default(),
            taken: AtomicU64::new(0),
        }
    }

    pub fn add(&self, problem: Problem) {
        lock(&self.problems).add(problem);
    }

    /// Compares what a file has with what the manifests say.
    pub fn compare(&self, path: &str, digests: &Digests, checks: &[Check]) {
        for check in checks {
            let name = &self.tags.manifests[usize::from(check.manifest)].name;
            let at = |problem: Problem| problem.file(name).line(check.line).path(path);
            match digests.get(check.algorithm) {
                Some(digest) if digest == check.digest => {}
                Some(digest) => {
                    let message = format!(
                        "{path}: the {} is {digest}, and the manifest says {}",
                        check.algorithm, check.digest
                    );
                    self.add(at(Problem::error(Code::DigestMismatch, message)));
                }
                None => {
                    let message = format!(
                        "{path}: the {} was not computed, because the manifest came after the file in the stream",
                        check.algorithm
                    );
                    self.add(at(Problem::error(Code::DigestUnchecked, message)));
                }
            }
        }
    }

    /// Compares the size of a file with what `fetch.txt` announced.
    pub fn compare_length(&self, path: &str, size: u64, fetch: Option<(u64, u64)>) {
        if let Some((line, length)) = fetch.filter(|(_, length)| *length != size) {
            let message =
                format!("{path}: fetch.txt announces {length} bytes, and the file has {size}");
            let problem = Problem::warning(Code::FetchLengthDiffers, message);
            self.add(problem.file("fetch.txt").line(line).path(path));
        }
    }

    fn hash(&self, members: &dyn Members, task: &Task, buffer: &mut [u8]) -> Result<(), Error> {
        let algorithms: Algorithms = task.checks.iter().map(|c| c.algorithm).collect();
        let known = self.observer.known(&task.path);
        if let Some((size, digests)) =
            known.filter(|(_, digests)| algorithms.iter().all(|a| digests.get(a).is_some()))
        {
            self.accept(task, size, &digests);
            return Ok(());
        }
        let stored = members.stored_bytes();
        let mut stop = None;
        let read = members.open(&task.locator).and_then(|mut reader| {
            hash_reader(&mut *reader, algorithms, buffer, &mut |bytes| {
                let bytes = bytes.len() as u64;
                self.observer.bytes(bytes);
                let taken = self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
                let checked = match self.observer.stopped() {
                    true => Err(Error::Stopped),
                    false => self.options.limits.check(taken, stored),
                };
                checked.map_err(|error| {
                    stop = Some(error);
                    io::Error::other("stopped")
                })
            })
        });
        if let Some(error) = stop {
            return Err(error);
        }
        match read {
            Ok((size, digests)) => self.accept(task, size, &digests),
            Err(error) => {
                self.add(super::tags::unreadable(&task.path, &error));
                if task.is_payload() {
                    let mut totals = lock(&self.totals);
                    totals.payload.files += 1;
                    totals.unread += 1;
                }
                self.observer.files(1);
            }
        }
        Ok(())
    }

    /// Takes in what a file turned out to be.
    fn accept(&self, task: &Task, size: u64, digests: &Digests) {
        self.compare(&task.path, digests, &task.checks);
        self.compare_length(&task.path, size, task.fetch);
        if task.is_payload() {
            let mut totals = lock(&self.totals);
            totals.payload.octets += size;
            totals.payload.files += 1;
        }
        self.observer.files(1);
    }
}

/// Runs `produce`, which puts tasks, while workers read and compare the files.
pub(crate) fn run(
    members: &dyn Members,
    shared: &Shared<'_>,
    produce: impl FnOnce(&mut dyn FnMut(Task) -> bool) -> Result<(), Error>,
) -> Result<(), Error> {
    let work = |task: Task, buffer: &mut [u8]| shared.hash(members, &task, buffer);
    pool::run(shared.options.workers, CHUNK_BYTES, work, produce)
}
