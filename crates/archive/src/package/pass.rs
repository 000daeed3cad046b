//! The one pass over a package's bytes: every file is read once, and hashed and identified while
//! it goes by, by as many threads as there are processors.

use super::Package;
use crate::model::error::Result;
use crate::model::format::Format;
use bagit::source::Members;
use bagit::{Algorithms, Digests, Hasher};
use pronom::Identifier;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How much is read at a time: small enough to stay in the cache for every algorithm.
const CHUNK_BYTES: usize = 128 * 1024;
/// Files that may wait for a thread.
const TASKS_MAX: usize = 64;

/// A file to be read.
#[derive(Debug, Clone)]
pub struct Task {
    pub number: i64,
    /// In the object.
    pub path: String,
    /// As manifests have it.
    pub inside: String,
    pub locator: Vec<u8>,
    /// When the container says it was last written to; microseconds.
    pub modified: Option<i64>,
}

/// What a file turned out to be.
#[derive(Debug, Clone)]
pub struct Reading {
    pub task: Task,
    pub size: u64,
    pub digests: Digests,
    pub format: Format,
}

/// How to read.
#[derive(Clone)]
pub struct How {
    pub algorithms: Algorithms,
    pub identifier: Arc<Identifier>,
    pub threads: usize,
}

/// Hears of progress, and stops the pass by answering false.
pub type Progress = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// Reads one file.
pub fn read_file(
    package: &Package,
    members: &dyn Members,
    task: Task,
    how: &How,
    buffer: &mut [u8],
    progress: &Progress,
) -> io::Result<Option<Reading>> {
    let (mut reader, modified) = members.open_dated(&task.locator)?;
    let mut seen = Seen::new(how);
    loop {
        let read = match reader.read(buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        seen.feed(&buffer[..read]);
        if !progress(read as u64) {
            return Ok(None);
        }
    }
    let mut stretch = package.file_range(&task.locator);
    let object = stretch.as_mut().map(|s| s as &mut dyn pronom::Source);
    let (size, digests, format) = seen.finish(&task.path, object);
    let task = Task { modified: task.modified.or(modified), ..task };
    Ok(Some(Reading { task, size, digests, format }))
}

/// Digests and format of bytes that go by.
pub struct Seen<'i> {
    hasher: Hasher,
    stream: pronom::Stream<'i>,
    signatures: &'i str,
    size: u64,
}

impl<'i> Seen<'i> {
    pub fn new(how: &'i How) -> Seen<'i> {
        let identifier = &*how.identifier;
        Seen {
            hasher: Hasher::new(how.algorithms),
            stream: identifier.stream(),
            signatures: &identifier.set().origin().name,
            size: 0,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.stream.feed(bytes);
        self.size += bytes.len() as u64;
    }

    /// A format that cannot be told never fails anything: it is unknown, and says why.
    /// Where the object can still be read by ranges, containers are looked into.
    pub fn finish(
        self,
        name: &str,
        object: Option<&mut dyn pronom::Source>,
    ) -> (u64, Digests, Format) {
        let name = name.rsplit('/').next().unwrap_or(name);
        let format = match self.stream.finish(Some(name), object) {
            Ok(found) => Format::of(&found),
            Err(error) => Format::unknown(self.signatures, &error.to_string()),
        };
        (self.size, self.hasher.finish(), format)
    }
}

/// What the pass tells its caller, file by file.
pub type Answer = Result<Reading, (Task, io::Error)>;

/// Reads every file that `produce` names. Blocks; `answer` is called from this thread only, in
/// the order in which files are done, and stops the pass by answering false.
pub fn run(
    package: &Package,
    members: &dyn Members,
    how: &How,
    progress: &Progress,
    produce: impl FnOnce(&mut dyn FnMut(Task) -> bool) -> Result<()> + Send,
    mut answer: impl FnMut(Answer) -> bool,
) -> Result<()> {
    let (tasks, inbox) = sync_channel::<Task>(TASKS_MAX);
    let (outbox, answers) = sync_channel::<Answer>(TASKS_MAX);
    let inbox = Mutex::new(inbox);
    std::thread::scope(|scope| {
        for _ in 0..how.threads.max(1) {
            let outbox = outbox.clone();
            let inbox = &inbox;
            scope.spawn(move || {
                let mut buffer = vec![0; CHUNK_BYTES];
                while let Some(task) = take(inbox) {
                    let done =
                        match read_file(package, members, task.clone(), how, &mut buffer, progress)
                        {
                            Ok(Some(reading)) => Ok(reading),
                            Ok(None) => return,
                            Err(error) => Err((task, error)),
                        };
                    if outbox.send(done).is_err() {
                        return;
                    }
                }
            });
        }
        drop(outbox);
        let producer = scope.spawn(move || produce(&mut |task| tasks.send(task).is_ok()));
        let mut answers = Some(answers);
        while let Some(done) = answers.as_ref().and_then(|a| a.recv().ok()) {
            if !answer(done) {
                // The threads see that the receiver is gone, and the producer sees that the threads are.
                answers = None;
            }
        }
        drop(answers);
        // Left locked by no one: the threads have ended, so a waiting producer is let go.
        drop_receiver(&inbox);
        match producer.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn take(inbox: &Mutex<Receiver<Task>>) -> Option<Task> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Takes what is still waiting, until the producer is done.
fn drop_receiver(inbox: &Mutex<Receiver<Task>>) {
    while take(inbox).is_some() {}
}
