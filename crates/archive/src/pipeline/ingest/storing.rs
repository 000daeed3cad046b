//! Writes the new version's content to every required store. Unchanged content is referenced, not
//! stored again; nothing is visible yet. Nothing is hashed here: validating did that, and verifying
//! reads back what was stored.

use super::earlier;
use super::mark::Mark;
use super::meter::bytes;
use super::resolving::update_of;
use super::under_way::UnderWay;
use super::verifying::sha256_to_announce;
use super::{Run, Step, StopFlag, failpoint, waits_for_disks};
use crate::ErrorCode;
use crate::blocking::blocking;
use crate::model::error::{Error, Result};
use crate::model::item::Update;
use crate::package::Package;
use crate::registry::ingest::{self, JobFile};
use crate::stores::{Place, store_error};
use bagit::beneath::Refused;
use bagit::source::Members;
use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use ocfl::{About, Draft, DraftOptions, Leftovers, Start, User};
use queue::{Outcome, StageSettings};
use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;
use store::{Body, PutOptions};
use tokio::sync::mpsc;

/// Files that are looked at together.
const PAGE: i64 = 2000;
/// Files up to this size are read whole and made durable together.
const SMALL_BYTES: i64 = 256 * 1024;
/// How much of them is in memory at a time, for each store.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;
/// Large files that are put into a directory at once: one is written while the next is read.
const LARGE_AT_ONCE: usize = 2;
/// Chunks of a file that are read before they are written.
const CHUNKS_BETWEEN: usize = 4;
/// How much of a large file is read at a time.
const CHUNK_BYTES: usize = 1024 * 1024;

pub struct Storing;

impl Step for Storing {
    const NAME: &'static str = "storing";

    fn defaults() -> StageSettings {
        StageSettings { buffer: 8, ..waits_for_disks() }
    }

    async fn run(run: Run<'_>) -> Result<Outcome> {
        if run.ingest.unchanged {
            return Ok(Outcome::success());
        }
        let members = package(&run)?.open()?;
        let marks = run.context.checkpoints().await?;
        let names = run.required_stores();
        begin_meter(&run, "storing", names.len()).await?;
        try_join_all(names.iter().map(|name| async {
            let place = run.app.stores.get(name).await?;
            let done = marks.get(name).and_then(|mark| mark.parse::<i64>().ok());
            let mut large = Mark::of(&marks, [name, "large"].join(" "));
            let alone = names.len() == 1;
            store(&run, &place, &members, done, &mut large, alone).await
        }))
        .await?;
        failpoint("storing.end");
        Ok(Outcome::success())
    }
}

/// Counts all files of the job once for each of so many stores.
pub(super) async fn begin_meter(run: &Run<'_>, what: &'static str, stores: usize) -> Result<()> {
    let job = run.id();
    let (_, size): (i64, i64) = run.app.db.read(move |tx| ingest::count_files(tx, job)).await?;
    run.meter.begin(what, Some(bytes(Some(size)).saturating_mul(stores as u64)));
    Ok(())
}

pub(super) fn package(run: &Run<'_>) -> Result<Package> {
    run.ingest.package.clone().ok_or_else(|| {
        Error::permanent(ErrorCode::NoPackage, "the job has no package any more; deposit it again")
    })
}

/// Begins, or takes up, the version in one store. It builds on the copy that the registry has
/// recorded and on no other.
pub(super) async fn begin(run: &Run<'_>, place: &Place, leftovers: Leftovers) -> Result<Draft> {
    let summary = &run.ingest.summary;
    let about = About {
        created: ocfl::rfc3339(moment(run.ingest.began_at)),
        message: Some(format!("Deposit of {}", run.name())),
        user: Some(user(run)),
    };
    let start = match update_of(run) {
        Update::Replace => Start::Empty,
        Update::Add => Start::Head,
    };
    let options = DraftOptions { leftovers, start, ..DraftOptions::default() };
    let draft = place.root.begin(&summary.identifier, about, &options).await;
    let draft = draft.map_err(|e| store_error(&place.name, e))?;
    let version = i64::from(draft.version().number());
    if Some(version) != run.ingest.version {
        return Err(Error::permanent(
            ErrorCode::StoreOutOfStep,
            format!(
                "store {} would make version {version} of {}, and the registry version {}; run `accession check {}` to see what is missing, and `accession registry rebuild --from {}` if the database is newer than the store",
                place.name,
                summary.identifier,
                run.ingest.version.unwrap_or(0),
                summary.identifier,
                place.name
            ),
        ));
    }
    if version > 1 {
        earlier::check_base(run, place, draft.base()).await?;
    }
    Ok(draft)
}

pub(super) fn moment(micros: db::Micros) -> std::time::SystemTime {
    let since = std::time::Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    std::time::SystemTime::UNIX_EPOCH + since
}

/// OCFL wants an address that is a URI; a mail address is one.
fn user(run: &Run<'_>) -> User {
    let name = submitter(run);
    let address = name.contains('@').then(|| format!("mailto:{name}"));
    User { name, address }
}

/// Who deposited it.
pub fn submitter(run: &Run<'_>) -> String {
    match run.item.submitter.as_str() {
        "" => run.ingest.collection.clone(),
        name => name.to_string(),
    }
}

/// Stores what is not stored yet. `done` is the last file that an earlier run of this job has
/// stored for certain; `None` if it never came so far, so that whatever lies there is not ours.
/// `large` says the same of large files alone, which may have come further. If the store is `alone`
/// the run is over with its last page, and needs no mark for that.
async fn store(
    run: &Run<'_>,
    place: &Place,
    members: &Arc<dyn Members>,
    done: Option<i64>,
    large: &mut Mark,
    alone: bool,
) -> Result<()> {
    let leftovers = if done.is_some() { Leftovers::Adopt } else { Leftovers::Discard };
    place.check_verifiable()?;
    let draft = begin(run, place, leftovers).await?;
    let (mut began, done) = (done.is_some(), done.unwrap_or(0));
    let (mut after, job) = (0, run.id());
    loop {
        let page = run.app.db.read(move |tx| ingest::files_after(tx, job, after, PAGE)).await?;
        let Some(last) = page.last().map(|f| f.number) else { break };
        let is_last = (page.len() as i64) < PAGE;
        let (put_before, others): (Vec<JobFile>, Vec<JobFile>) = page
            .into_iter()
            .partition(|file| file.number <= done || (is_large(file) && large.covers(file.number)));
        let mut fresh = adopt(run, place, &draft, put_before).await?;
        for file in others {
            if !refer(run, place, &draft, &file)? {
                fresh.push(file);
            }
        }
        fresh.sort_by_key(|file| file.number);
        let wrote = !fresh.is_empty();
        if !began && fresh.iter().any(is_large) {
            // Half of a large file is worth taking up.
            run.context.checkpoint(place.name.clone(), "0").await?;
            began = true;
        }
        put(run, place, members, &draft, fresh, Some(&mut *large)).await?;
        if wrote && last > done {
            if !(alone && is_last) {
                run.context.checkpoint(place.name.clone(), last.to_string()).await?;
                began = true;
            }
            failpoint("storing.portion");
        }
        if is_last {
            break;
        }
        after = last;
    }
    Ok(())
}

/// Refers to content that the object has already; false if it does not.
fn refer(run: &Run<'_>, place: &Place, draft: &Draft, file: &JobFile) -> Result<bool> {
    let referred = draft.reference(&file.path, digest(file)?);
    let is_there = referred.map_err(|e| store_error(&place.name, e))?.is_some();
    if is_there {
        run.meter.add(bytes(file.size));
    }
    Ok(is_there)
}

/// Takes over what an earlier run has put; returns the files that are not there after all.
async fn adopt(
    run: &Run<'_>,
    place: &Place,
    draft: &Draft,
    files: Vec<JobFile>,
) -> Result<Vec<JobFile>> {
    // One file of each content at a time: the others refer to it.
    let (mut first, mut same, mut digests) = (Vec::new(), Vec::new(), HashSet::new());
    for file in files {
        if refer(run, place, draft, &file)? {
            continue;
        }
        let is_first = digests.insert(digest(&file)?.to_string());
        if is_first { first.push(file) } else { same.push(file) }
    }
    let asked = stream::iter(first).map(|file| async move {
        let there = draft.adopt(&file.path, digest(&file)?, bytes(file.size)).await;
        match there.map_err(|e| store_error(&place.name, e))? {
            true => run.meter.add(bytes(file.size)),
            false => return Ok(Some(file)),
        }
        Ok::<_, Error>(None)
    });
    let missing: Vec<Option<JobFile>> =
        asked.buffered(place.root.store().at_once()).try_collect().await?;
    let mut missing: Vec<JobFile> = missing.into_iter().flatten().collect();
    for file in same {
        if !refer(run, place, draft, &file)? {
            missing.push(file);
        }
    }
    Ok(missing)
}

pub(super) fn digest(file: &JobFile) -> Result<&str> {
    file.sha512.as_deref().ok_or_else(|| {
        Error::permanent(
            ErrorCode::NotRead,
            format!("{} was never read; requeue the job from validating", file.path),
        )
        .about(&file.path)
    })
}

fn is_large(file: &JobFile) -> bool {
    file.size.unwrap_or(0) > SMALL_BYTES
}

/// Puts files: small ones together, large ones as streams.
pub(super) async fn put(
    run: &Run<'_>,
    place: &Place,
    members: &Arc<dyn Members>,
    draft: &Draft,
    files: Vec<JobFile>,
    mut mark: Option<&mut Mark>,
) -> Result<()> {
    let (large, small): (Vec<JobFile>, Vec<JobFile>) = files.into_iter().partition(is_large);
    let mut small = small.into_iter().peekable();
    while small.peek().is_some() {
        let mut batch = Vec::new();
        let mut together = 0;
        while let Some(file) = small.next_if(|_| together < BATCH_BYTES) {
            together += bytes(file.size);
            batch.push(file);
        }
        put_batch(place, members, draft, batch).await?;
        run.meter.add(together);
        stop_if_told(run)?;
    }
    let local = place.root.store().capabilities().rename;
    let at_once = if local { LARGE_AT_ONCE } else { place.root.store().at_once() };
    let mut large = large.into_iter().peekable();
    let mut puts = UnderWay::new(at_once);
    loop {
        while let Some(file) = large.next_if(|file| puts.has_room(file)) {
            let number = file.number;
            let weighed = file.clone();
            puts.push(&weighed, async move {
                put_stream(run, place, members, draft, &file).await.map(|()| number)
            });
        }
        let Some(done) = puts.next().await else { break };
        let number = done?;
        failpoint("storing.file");
        if let Some(mark) = &mut mark {
            mark.pass(run, number).await?;
        }
    }
    Ok(())
}

pub(super) fn stop_if_told(run: &Run<'_>) -> Result<()> {
    match run.context.stop() {
        queue::runtime::Stop::No => Ok(()),
        _ => Err(Error::Stopped),
    }
}

async fn put_batch(
    place: &Place,
    members: &Arc<dyn Members>,
    draft: &Draft,
    files: Vec<JobFile>,
) -> Result<()> {
    let members = members.clone();
    let contents = blocking(move || {
        let mut contents = Vec::with_capacity(files.len());
        for file in &files {
            let mut content =
                Vec::with_capacity(usize::try_from(file.size.unwrap_or(0)).unwrap_or(0));
            let most = SMALL_BYTES.unsigned_abs() + 1;
            let read =
                members.open(&file.locator).and_then(|r| r.take(most).read_to_end(&mut content));
            read.map_err(|e| unreadable(&file.path, &e))?;
            contents.push((file.path.clone(), Bytes::from(content), digest(file)?.to_string()));
        }
        Ok(contents)
    })
    .await?;
    draft.put_batch_believing(contents).await.map_err(|e| store_error(&place.name, e))?;
    Ok(())
}

async fn put_stream(
    run: &Run<'_>,
    place: &Place,
    members: &Arc<dyn Members>,
    draft: &Draft,
    file: &JobFile,
) -> Result<()> {
    let sha256 = sha256_to_announce(place, members, file).await?;
    let Content { body, reading, stop } = content(run, members, file);
    let options = PutOptions {
        storage_class: place.class.clone(),
        resume: true,
        sha256,
        ..PutOptions::default()
    };
    let put = draft.put_believing(&file.path, body, digest(file)?, &options).await;
    let _ = reading.await;
    if stop.is_raised() {
        return Err(Error::Stopped);
    }
    put.map_err(|e| store_error(&place.name, e))?;
    Ok(())
}

/// A deposited file as a stream, and the thread that reads it.
pub(super) struct Content {
    pub body: Body,
    pub reading: tokio::task::JoinHandle<()>,
    /// Raised when the reading ended because the run should stop.
    pub stop: StopFlag,
}

/// Reads a deposited file out of its package.
pub(super) fn content(run: &Run<'_>, members: &Arc<dyn Members>, file: &JobFile) -> Content {
    // One reader, one writer, and a little between them.
    let (sender, receiver) = mpsc::channel::<std::io::Result<Bytes>>(CHUNKS_BETWEEN);
    let (members, locator) = (members.clone(), file.locator.clone());
    let (stop, meter) = (run.stop_flag(), run.meter.clone());
    let flag = stop.flag.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let mut reader = match members.open(&locator) {
            Ok(reader) => reader,
            Err(error) => {
                let _ = sender.blocking_send(Err(error));
                return;
            }
        };
        // In turn: by then the chunk before was written and dropped, and its memory is used again.
        let mut buffers: [BytesMut; CHUNKS_BETWEEN + 3] = Default::default();
        for turn in (0..buffers.len()).cycle() {
            if flag.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            let buffer = &mut buffers[turn];
            buffer.resize(CHUNK_BYTES, 0);
            let (chunk, over) = match fill(&mut *reader, buffer) {
                Ok(0) => return,
                Ok(read) => {
                    meter.add(read as u64);
                    (Ok(buffer.split_to(read).freeze()), false)
                }
                Err(error) => (Err(error), true),
            };
            if sender.blocking_send(chunk).is_err() || over {
                return;
            }
        }
        let _ = sender.blocking_send(Err(std::io::Error::other("told to stop")));
    });
    let chunks = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    });
    let length = file.size.and_then(|size| u64::try_from(size).ok());
    Content { body: Body::from_stream(chunks, length), reading, stop }
}

fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

pub(super) fn unreadable(path: &str, error: &std::io::Error) -> Error {
    if let Some(refused) = Refused::of(error) {
        return crate::package::not_opened(path, refused).about(path);
    }
    Error::transient(
        ErrorCode::PackageUnreadable,
        format!("{path} cannot be read from the package any more: {error}"),
    )
    .about(path)
}
