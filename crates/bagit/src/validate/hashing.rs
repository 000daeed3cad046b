//! Reading and hashing files in parallel, and comparing them with their manifests.

use super::Options;
use super::tags::TagFiles;
use super::totals::Totals;
use crate::Observer;
use crate::algorithm::{Algorithm, Algorithms};
use crate::digest::{CHUNK_BYTES, Digest, Digests, hash_reader};
use crate::error::Error;
use crate::problem::{Code, Problem, Problems};
use crate::source::Members;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Files that may wait for a worker.
const WAITING_MAX: usize = 2048;
/// Files that a worker takes at once when there are many.
const TAKEN_MAX: usize = 32;

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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked has not left a problem list half written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            Ok((size, digests)) => {
                self.compare(&task.path, &digests, &task.checks);
                self.compare_length(&task.path, size, task.fetch);
                if task.is_payload() {
                    let mut totals = lock(&self.totals);
                    totals.payload.octets += size;
                    totals.payload.files += 1;
                }
            }
            Err(error) => self.add(super::tags::unreadable(&task.path, &error)),
        }
        self.observer.files(1);
        Ok(())
    }
}

#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Task>,
    closed: bool,
    failure: Option<Error>,
}

/// Files that wait for workers. Workers take many small helpings while there is much, and one
/// file at a time towards the end, so that none is left with a long rest.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    emptied: Condvar,
}

impl Queue {
    /// Adds a task; false when a worker has failed and no more are wanted.
    fn put(&self, task: Task) -> bool {
        let full = |w: &mut Waiting| w.tasks.len() >= WAITING_MAX && w.failure.is_none();
        let guard = lock(&self.waiting);
        let mut waiting =
            self.emptied.wait_while(guard, full).unwrap_or_else(PoisonError::into_inner);
        waiting.tasks.push_back(task);
        self.filled.notify_one();
        waiting.failure.is_none()
    }

    fn take(&self, workers: usize, into: &mut Vec<Task>) {
        let idle = |w: &mut Waiting| w.tasks.is_empty() && !w.closed && w.failure.is_none();
        let guard = lock(&self.waiting);
        let mut waiting =
            self.filled.wait_while(guard, idle).unwrap_or_else(PoisonError::into_inner);
        if waiting.failure.is_some() {
            return;
        }
        let many = (waiting.tasks.len() / (2 * workers)).clamp(1, TAKEN_MAX);
        let many = many.min(waiting.tasks.len());
        into.extend(waiting.tasks.drain(..many));
        self.emptied.notify_one();
    }

    fn close(&self) {
        lock(&self.waiting).closed = true;
        self.filled.notify_all();
    }

    fn fail(&self, error: Error) {
        lock(&self.waiting).failure.get_or_insert(error);
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}

/// Runs `produce`, which puts tasks, while workers read and compare the files.
pub(crate) fn run(
    members: &dyn Members,
    shared: &Shared<'_>,
    produce: impl FnOnce(&mut dyn FnMut(Task) -> bool) -> Result<(), Error>,
) -> Result<(), Error> {
    let workers = shared.options.workers.clamp(1, 256);
    let queue = Queue::default();
    let produced = std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(members, shared, &queue, workers));
        }
        let produced = produce(&mut |task| queue.put(task));
        queue.close();
        produced
    });
    let failure = lock(&queue.waiting).failure.take();
    failure.map_or(produced, Err)
}

fn work(members: &dyn Members, shared: &Shared<'_>, queue: &Queue, workers: usize) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut tasks = Vec::new();
    loop {
        queue.take(workers, &mut tasks);
        if tasks.is_empty() {
            return;
        }
        for task in tasks.drain(..) {
            if let Err(error) = shared.hash(members, &task, &mut buffer) {
                queue.fail(error);
                return;
            }
        }
    }
}
