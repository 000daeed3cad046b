//! Hashing the members of a stream while it goes by, each algorithm group in its own thread.

use crate::error::Error;
use crate::hashing::CHUNK_BYTES;
use crate::source::open::TarStream;
use digest::{Algorithms, Digests, Hasher};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// How many chunks may wait for a hashing thread.
const WAITING_MAX: usize = 8;

enum Message {
    Chunk(Arc<Vec<u8>>),
    End,
}

struct Lane {
    messages: Option<SyncSender<Message>>,
    digests: Receiver<Digests>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    fn start(algorithms: Algorithms) -> Lane {
        let (messages, inbox) = sync_channel(WAITING_MAX);
        let (outbox, digests) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            let mut hasher = Hasher::new(algorithms);
            for message in inbox {
                match message {
                    Message::Chunk(bytes) => hasher.update(&bytes),
                    Message::End => {
                        let done = std::mem::replace(&mut hasher, Hasher::new(algorithms));
                        if outbox.send(done.finish()).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Lane { messages: Some(messages), digests, thread: Some(thread) }
    }

    fn send(&self, message: Message) -> io::Result<()> {
        let gone = || io::Error::other("a hashing thread ended early");
        self.messages.as_ref().ok_or_else(gone)?.send(message).map_err(|_| gone())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // The thread only hashes; if it panicked, the lost channel has told already.
            let _ = thread.join();
        }
    }
}

/// The threads that hash one stream.
pub(crate) struct Pipeline {
    algorithms: Algorithms,
    lanes: Vec<Lane>,
}

impl Pipeline {
    pub fn new(algorithms: Algorithms, workers: usize) -> Pipeline {
        let lanes = workers.min(algorithms.iter().count());
        let mut shares = vec![Algorithms::NONE; lanes];
        // The expensive ones come last in the list; dealing them out from the end spreads them.
        let mut all: Vec<_> = algorithms.iter().collect();
        all.reverse();
        for (index, algorithm) in all.into_iter().enumerate() {
            shares[index % lanes].insert(algorithm);
        }
        let lanes =
            if lanes > 1 { shares.into_iter().map(Lane::start).collect() } else { Vec::new() };
        Pipeline { algorithms, lanes }
    }
}

/// Reads the current member to its end. Its bytes are also copied to `spool`.
pub(crate) fn hash_member(
    tar: &mut TarStream,
    pipeline: &mut Pipeline,
    mut spool: Option<&mut File>,
    check: &mut dyn FnMut(u64) -> Result<(), Error>,
) -> Result<Digests, Error> {
    let failed = |e| Error::io("", e);
    let mut hasher = Hasher::new(pipeline.algorithms);
    let mut handed_over = false;
    let mut total = 0;
    loop {
        let room = usize::try_from(tar.left()).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let mut chunk = vec![0; room];
        let read = fill(tar, &mut chunk).map_err(failed)?;
        chunk.truncate(read);
        if read == 0 {
            break;
        }
        total += read as u64;
        check(read as u64)?;
        if let Some(file) = &mut spool {
            file.write_all(&chunk).map_err(|e| Error::io("temporary file", e))?;
        }
        let last = read < CHUNK_BYTES;
        handed_over |= !pipeline.lanes.is_empty() && total == read as u64 && !last;
        if handed_over {
            let chunk = Arc::new(chunk);
            for lane in &pipeline.lanes {
                lane.send(Message::Chunk(Arc::clone(&chunk))).map_err(failed)?;
            }
        } else {
            hasher.update(&chunk);
        }
        if last {
            break;
        }
    }
    if !handed_over {
        return Ok(hasher.finish());
    }
    for lane in &pipeline.lanes {
        lane.send(Message::End).map_err(failed)?;
    }
    let mut digests = Vec::new();
    for lane in &pipeline.lanes {
        let part = lane
            .digests
            .recv()
            .map_err(|_| failed(io::Error::other("a hashing thread ended early")))?;
        digests.extend(part.iter());
    }
    Ok(digests.into_iter().collect())
}

/// Reads the current member to its end for nothing but its size.
pub(crate) fn pass_over(
    tar: &mut TarStream,
    check: &mut dyn FnMut(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut chunk = vec![0; usize::try_from(tar.left()).unwrap_or(usize::MAX).min(CHUNK_BYTES)];
    while tar.left() > 0 {
        let read = fill(tar, &mut chunk).map_err(|e| Error::io("archive", e))?;
        check(read as u64)?;
    }
    Ok(())
}

fn fill(tar: &mut TarStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match tar.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
