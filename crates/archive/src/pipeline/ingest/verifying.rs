//! Compares the content digest of each deposited file in each store, also where its content is one
//! of an earlier version: the store's own checksum where it vouches for the bytes, else by reading
//! it back. What the version carries over beside that is listed, or read too; see `earlier`. Then the
//! version's record and inventory are written; it still waits to be sealed.

use super::carried;
use super::earlier::{self, Counted, Repairs};
use super::mark::Mark;
use super::meter::{Meter, bytes};
use super::resolving::update_of;
use super::storing::{begin, begin_meter, digest, package, put, unreadable};
use super::under_way::UnderWay;
use super::{Run, Step, failpoint, waits_for_disks};
use crate::ErrorCode;
use crate::blocking::blocking;
use crate::model::error::{Error, Result};
use crate::model::event::{Event, ingested_at};
use crate::model::item::Update;
use crate::model::text::plural;
use crate::premis::{EventType, Role};
use crate::registry::events;
use crate::registry::ingest::{self, JobFile, UnsealedCopy};
use crate::stores::content::{ContentState, Method, Referred, look_at_all};
use crate::stores::{Place, store_error};
use bagit::Hasher;
use bagit::source::Members;
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream;
use ocfl::{Algorithm, Draft, Leftovers, Sealed, SingleHasher};
use queue::{JobId, Outcome, StageSettings};
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use store::{Sha256Digest, StorageClass};
use tokio::task::JoinSet;

const PAGE: i64 = 2000;
/// Files up to this size are read back together, so many at a time.
const SMALL_BYTES: u64 = 256 * 1024;
const PORTION: usize = 32;
/// Portions of one store that are read back at the same time.
const AT_ONCE: usize = 4;

pub struct Verifying;

impl Step for Verifying {
    const NAME: &'static str = "verifying";

    fn defaults() -> StageSettings {
        StageSettings { buffer: 8, ..waits_for_disks() }
    }

    async fn run(mut run: Run<'_>) -> Result<Outcome> {
        if run.ingest.unchanged {
            return Ok(Outcome::success());
        }
        let members = package(&run)?.open()?;
        let names = run.required_stores();
        begin_meter(&run, "verifying", names.len()).await?;
        let verified = try_join_all(names.iter().map(|name| async {
            let place = run.app.stores.get(name).await?;
            place.check_verifiable()?;
            let draft = begin(&run, &place, Leftovers::Adopt).await?;
            let mut looked = verify(&run, &place, &members, &draft).await?;
            if update_of(&run) == Update::Add && draft.base().is_some() {
                let repairs = Repairs::new(&members);
                let sealed = Sealed::Draft(&draft);
                let carried = earlier::carried_over(&run, &place, sealed, &repairs).await?;
                looked.counted.add(carried);
            }
            Ok::<_, Error>((place, draft, looked))
        }))
        .await?;
        failpoint("verifying.verified");
        let events = keep_events(&run, &verified).await?;
        // One moment for all that a version's record says of it, whoever reads it later.
        let at = ingested_at(&events);
        let known = run.ingest.clone();
        run.app.db.read(move |tx| ingest::check_complete(tx, &known)).await?;
        let carried = carried::write(&run, at, &events).await?;
        let mut waiting = std::collections::BTreeMap::new();
        for (place, draft, looked) in verified {
            let failed = |e| store_error(&place.name, e);
            let current_read_at = match looked.counted.listed {
                0 => None,
                _ => Some(earlier::recorded(&run, &place).await?.copy.current_read_at),
            };
            carried.put(&place, &draft).await?;
            failpoint("verifying.carried");
            let unsealed = draft.write().await.map_err(failed)?;
            let (path, digest) = (unsealed.path, unsealed.inventory_digest);
            waiting.insert(place.name.clone(), UnsealedCopy { path, digest, at, current_read_at });
            failpoint("verifying.inventory");
        }
        run.ingest.summary.stores = waiting.keys().cloned().collect();
        run.ingest.stores = waiting;
        run.save();
        Ok(Outcome::success())
    }
}

/// What was looked at in one store.
struct Looked {
    /// How content was looked at: new, and of earlier versions.
    counted: Counted,
    /// How many of the deposited files refer to content that could only be listed.
    listed: u64,
    /// The last file, if there is no mark of that yet.
    mark: Option<i64>,
}

/// Takes up every file of the version in one store and looks at its content.
async fn verify(
    run: &Run<'_>,
    place: &Place,
    members: &Arc<dyn Members>,
    draft: &Draft,
) -> Result<Looked> {
    let failed = |e| store_error(&place.name, e);
    let marks = run.context.checkpoints().await?;
    let done = marks.get(&place.name).and_then(|m| m.parse::<i64>().ok()).unwrap_or(0);
    let mut one_by_one = Mark::of(&marks, format!("{} one by one", place.name));
    let listed_key = listed_key(&place.name);
    let (mut after, mut files, job) = (0, 0, run.id());
    // What an earlier run could only list is not looked at again, and was not read.
    let mut listed = marks.get(&listed_key).and_then(|m| m.parse::<u64>().ok()).unwrap_or(0);
    let repairs = Repairs::new(members);
    let by_reading = !place.root.store().capabilities().digests;
    loop {
        let page = run.app.db.read(move |tx| ingest::files_after(tx, job, after, PAGE)).await?;
        let Some(last) = page.last().map(|f| f.number) else {
            return Ok(Looked { counted: Counted::of(place, files, listed), listed, mark: None });
        };
        let is_last = (page.len() as i64) < PAGE;
        let (mut small, mut taken, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        let mut referred = HashMap::new();
        for file in page {
            let sha512 = digest(&file)?;
            let size = bytes(file.size);
            match draft.reference(&file.path, sha512).map_err(failed)? {
                Some(content) if content.sealed => {
                    files += 1;
                    run.meter.add(size);
                    if file.number > done {
                        referred.entry(content.key).or_insert(file);
                    }
                    continue;
                }
                // Content of this version is compared for the file that brought it.
                Some(_) => {
                    run.meter.add(size);
                    continue;
                }
                None => {}
            }
            files += 1;
            if by_reading && size <= SMALL_BYTES {
                let put = draft.presume(&file.path, sha512, size).await.map_err(failed)?;
                match file.number > done {
                    true => small.push((file, draft.key(&put))),
                    false => run.meter.add(size),
                }
                continue;
            }
            let put = draft.presume(&file.path, sha512, size).await.map_err(failed)?;
            if file.number > done && !one_by_one.covers(file.number) {
                taken.push((file, draft.key(&put)));
            } else {
                run.meter.add(size);
            }
        }
        missing.extend(compare_small(run, place, members, small).await?);
        missing.extend(compare(run, place, members, taken, &mut one_by_one).await?);
        // What a store has lost since it was stored is put again, and looked at by the next run.
        if !missing.is_empty() {
            let lost = missing.len();
            run.context.checkpoint(place.name.clone(), "0").await?;
            run.context.checkpoint(listed_key, "0").await?;
            one_by_one.forget(run).await?;
            // Another draft: this one takes it that they are there.
            let again = begin(run, place, Leftovers::Adopt).await?;
            put(run, place, members, &again, missing, None).await?;
            return Err(Error::transient(
                ErrorCode::StoreLostFiles,
                format!(
                    "store {}: {lost} files that were stored were not there any more; they are stored again, and looked at once more",
                    place.name
                ),
            ));
        }
        let more = compare_earlier(run, place, draft, &repairs, referred).await?;
        listed += more;
        if is_last {
            let counted = Counted::of(place, files, listed);
            return Ok(Looked { counted, listed, mark: (last > done).then_some(last) });
        }
        if last > done {
            if more > 0 {
                run.context.checkpoint(listed_key.clone(), listed.to_string()).await?;
            }
            run.context.checkpoint(place.name.clone(), last.to_string()).await?;
            failpoint("verifying.portion");
        }
        after = last;
    }
}

/// The checkpoint of how much could only be listed in a store.
fn listed_key(store: &str) -> String {
    format!("{store} listed")
}

/// Looks at content of earlier versions that deposited files refer to, and repairs it with them.
/// Returns how many could only be listed.
async fn compare_earlier(
    run: &Run<'_>,
    place: &Place,
    draft: &Draft,
    repairs: &Repairs<'_>,
    mut files: HashMap<String, JobFile>,
) -> Result<u64> {
    let referred = files.iter().map(|(key, file)| Referred::of_file(file, key.clone()));
    let (mut listed, mut damaged) = (0, Vec::new());
    for (referred, state) in look_at_all(place, referred.collect(), Method::Checksum).await? {
        match state {
            ContentState::Good => {}
            ContentState::Listed => listed += 1,
            ContentState::Damaged(fault) => {
                damaged.extend(files.remove(&referred.key).map(|file| (file, referred, fault)));
            }
        }
    }
    repairs.make(run, place, Sealed::Draft(draft), damaged).await?;
    Ok(listed)
}

/// Reads many small files back together; those that are not there.
async fn compare_small(
    run: &Run<'_>,
    place: &Place,
    members: &Arc<dyn Members>,
    files: Vec<(JobFile, String)>,
) -> Result<Vec<JobFile>> {
    let portions: Vec<Vec<(JobFile, String)>> = {
        let mut files = files.into_iter().peekable();
        std::iter::from_fn(|| {
            files.peek().is_some().then(|| files.by_ref().take(PORTION).collect())
        })
        .collect()
    };
    let mut looks = stream::iter(portions)
        .map(|portion| async move {
            let size = portion.iter().map(|(file, _)| bytes(file.size)).sum();
            let found = look_at_portion(place, members, portion).await;
            run.meter.add(size);
            found
        })
        .buffer_unordered(AT_ONCE);
    let mut missing = Vec::new();
    while let Some(found) = looks.next().await {
        missing.extend(found?);
    }
    Ok(missing)
}

async fn look_at_portion(
    place: &Place,
    members: &Arc<dyn Members>,
    files: Vec<(JobFile, String)>,
) -> Result<Vec<JobFile>> {
    let keys = files.iter().map(|(_, key)| key.clone()).collect();
    let most = usize::try_from(SMALL_BYTES).unwrap_or(usize::MAX);
    let contents = place.root.store().get_batch(keys, most).await;
    let contents = contents.map_err(|e| store_error(&place.name, e.into()))?;
    let (place, members) = (place.clone(), members.clone());
    blocking(move || {
        let mut missing = Vec::new();
        for ((file, _), content) in files.into_iter().zip(contents) {
            match content {
                None => missing.push(file),
                Some(content) => {
                    if file.sha512.as_deref() != Some(Algorithm::Sha512.hex(&content).as_str()) {
                        return Err(differs(&place, &members, &file));
                    }
                }
            }
        }
        Ok(missing)
    })
    .await
}

/// Looks at files one by one, in their order; several at a time, each on a thread of its own as long
/// as there are some: hashing is most of it. Returns those that are not there.
async fn compare(
    run: &Run<'_>,
    place: &Place,
    members: &Arc<dyn Members>,
    files: Vec<(JobFile, String)>,
    mark: &mut Mark,
) -> Result<Vec<JobFile>> {
    let mut looks = UnderWay::new(place.root.store().at_once());
    let mut files = files.into_iter().peekable();
    let mut missing = Vec::new();
    loop {
        while let Some((file, key)) = files.next_if(|(file, _)| looks.has_room(file)) {
            let weighed = file.clone();
            looks.push(&weighed, async move {
                let number = file.number;
                // A set, because what is left of it ends with this run.
                let mut task = JoinSet::new();
                task.spawn(look(place.clone(), members.clone(), file, key, run.meter.clone()));
                let looked = task.join_next().await.transpose();
                let looked =
                    looked.map_err(|e| Error::transient(ErrorCode::LookEnded, e.to_string()))?;
                Ok::<_, Error>((number, looked.unwrap_or(Ok(None))?))
            });
        }
        let Some(looked) = looks.next().await else { return Ok(missing) };
        let (number, lost) = looked?;
        missing.extend(lost);
        if missing.is_empty() {
            mark.pass(run, number).await?;
        }
    }
}

/// Looks at one file; gives it back if it is not there.
async fn look(
    place: Place,
    members: Arc<dyn Members>,
    file: JobFile,
    key: String,
    meter: Meter,
) -> Result<Option<JobFile>> {
    match same(&place, &members, &file, &key, &meter).await? {
        Compared::Same => Ok(None),
        Compared::Missing => Ok(Some(file)),
        Compared::Other => blocking(move || Err(differs(&place, &members, &file))).await,
    }
}

/// What a store has of a file.
enum Compared {
    Same,
    Other,
    Missing,
}

impl Compared {
    fn of(same: bool) -> Compared {
        if same { Compared::Same } else { Compared::Other }
    }
}

/// Compares a file with what the store has: by the SHA-256 that the store vouches for, or by reading
/// it back where it does not.
async fn same(
    place: &Place,
    members: &Arc<dyn Members>,
    file: &JobFile,
    key: &str,
    meter: &Meter,
) -> Result<Compared> {
    let store = place.root.store();
    let failed = |e: store::Error| store_error(&place.name, e.into());
    let is_cold = place.class.as_ref().is_some_and(StorageClass::is_cold);
    if store.capabilities().digests || is_cold {
        let meta = match store.head(key).await {
            Err(error) if error.is_not_found() => return Ok(Compared::Missing),
            meta => meta.map_err(failed)?,
        };
        let known = match sha256(file) {
            None if is_cold => Some(sha256_of_package(members, file).await?),
            known => known,
        };
        if let (Some(vouched), Some(known)) = (meta.vouched_sha256(), known) {
            let size = file.size.and_then(|size| u64::try_from(size).ok());
            meter.add(bytes(file.size));
            return Ok(Compared::of(vouched.to_string() == known && size == Some(meta.size)));
        }
        if !meta.availability.is_readable() {
            return Err(Error::permanent(
                ErrorCode::ColdStoreUnverifiable,
                format!(
                    "store {} keeps {} where it cannot be read back at once, and keeps no SHA-256 of it; make it a later store of the collection, or choose a class that can be read",
                    place.name, file.path
                ),
            )
            .about(&file.path));
        }
    }
    let mut body = match store.get(key, None).await {
        Err(error) if error.is_not_found() => return Ok(Compared::Missing),
        object => object.map_err(failed)?.body,
    };
    let mut hasher = SingleHasher::new(Algorithm::Sha512);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(failed)?;
        hasher.update(&chunk);
        meter.add(chunk.len() as u64);
    }
    Ok(Compared::of(file.sha512.as_deref() == Some(hasher.finish().to_string().as_str())))
}

fn sha256(file: &JobFile) -> Option<String> {
    let digests: serde_json::Value = serde_json::from_str(file.digests.as_deref()?).ok()?;
    digests.get("sha256")?.as_str().map(str::to_string)
}

/// The SHA-256 that is kept with the content of a file, and compared with what is sent before that is
/// complete: what is known, and in a cold class always, since nothing else vouches for it there.
pub(super) async fn sha256_to_announce(
    place: &Place,
    members: &Arc<dyn Members>,
    file: &JobFile,
) -> Result<Option<Sha256Digest>> {
    let sha256 = match sha256(file) {
        None if place.class.as_ref().is_some_and(StorageClass::is_cold) => {
            Some(sha256_of_package(members, file).await?)
        }
        known => known,
    };
    Ok(sha256.as_deref().and_then(Sha256Digest::from_hex))
}

/// The SHA-256 of a deposited file that was validated without one, read again from its package; it
/// must still be the file that was validated.
async fn sha256_of_package(members: &Arc<dyn Members>, file: &JobFile) -> Result<String> {
    let (members, file) = (members.clone(), file.clone());
    blocking(move || {
        let algorithms = [Algorithm::Sha256, Algorithm::Sha512];
        let mut hasher = Hasher::new(algorithms.into_iter().collect());
        let read = members.open(&file.locator).and_then(|mut reader| {
            let mut buffer = vec![0; 256 * 1024];
            loop {
                let count = match reader.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    count => count?,
                };
                hasher.update(&buffer[..count]);
            }
        });
        read.map_err(|error| unreadable(&file.path, &error))?;
        let digests = hasher.finish();
        if file.sha512 != digests.hex(Algorithm::Sha512) {
            return Err(package_changed(&file));
        }
        Ok(digests.hex(Algorithm::Sha256).unwrap_or_default())
    })
    .await
}

fn package_changed(file: &JobFile) -> Error {
    Error::permanent(
        ErrorCode::PackageChanged,
        format!(
            "{} is not what it was when it was validated; deposit the package again when it is complete",
            file.path
        ),
    )
    .about(&file.path)
}

/// Why a store does not have the bytes that were validated: the package is read again to tell.
pub(super) fn differs(place: &Place, members: &Arc<dyn Members>, file: &JobFile) -> Error {
    let mut hasher = SingleHasher::new(Algorithm::Sha512);
    match members.open(&file.locator).and_then(|mut reader| hash(&mut *reader, &mut hasher)) {
        Err(error) => unreadable(&file.path, &error),
        Ok(()) if file.sha512.as_deref() == Some(hasher.finish().to_string().as_str()) => Error::transient(
            ErrorCode::StoreCorrupt,
            format!(
                "store {} does not have the bytes of {} that were sent to it; send them again with `accession jobs requeue JOB --to storing`, and check the store if it happens again",
                place.name, file.path
            ),
        )
        .at(place.target())
        .about(&file.path),
        Ok(()) => package_changed(file),
    }
}

fn hash(reader: &mut dyn Read, hasher: &mut SingleHasher) -> std::io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// What happened so far becomes part of the version's record; with it goes the mark that all was
/// looked at, so that what fails from here on need not do it again.
async fn keep_events(run: &Run<'_>, verified: &[(Place, Draft, Looked)]) -> Result<Vec<Event>> {
    const REQUEUED_BY: db::Statement = db::statement!(stages::requeued_by);
    let id = run.id();
    let stores: Vec<(String, Counted, u64, Option<i64>)> = verified
        .iter()
        .map(|(place, _, l)| (place.name.clone(), l.counted, l.listed, l.mark))
        .collect();
    let (name, submitter) = (run.item.name.clone(), super::storing::submitter(run));
    let here = run.app.installation.clone();
    let context = run.context.clone();
    let kept = run
        .context
        .write(move |tx| {
            let now = tx.now();
            let mut events = Vec::new();
            for (index, (store, counted, listed, mark)) in stores.iter().enumerate() {
                if let Some(mark) = mark {
                    context.checkpoint_in(tx, store, &mark.to_string())?;
                    context.checkpoint_in(tx, &listed_key(store), &listed.to_string())?;
                }
                events.extend(fixity_check(&here, id, store, *counted, now));
                if index > 0 {
                    let files = counted.read + counted.vouched + counted.listed;
                    let note = format!("{} in store {store}", plural(files, "file"));
                    events
                        .push(Event::of(&here, id, EventType::Replication, store, now).note(note));
                }
            }
            let ingestion = Event::of(&here, id, EventType::Ingestion, "", now);
            let ingestion = ingestion.detail(name.clone()).person(&submitter, Role::Submitter);
            let requeued: Vec<(String,)> = tx.query(&REQUEUED_BY, &db::params![id])?;
            let operators = requeued.into_iter();
            events
                .push(operators.fold(ingestion, |event, (who,)| event.person(who, Role::Operator)));
            events::keep(tx, id, &events)?;
            events::kept(tx, id)
        })
        .await?;
    failpoint("verifying.portion");
    Ok(kept)
}

/// The event of a fixity check of what a deposit refers to in one store; none if nothing was
/// compared.
pub(super) fn fixity_check(
    here: &str,
    job: JobId,
    store: &str,
    counted: Counted,
    now: db::Micros,
) -> Option<Event> {
    let Counted { read, vouched, listed } = counted;
    let mut did = Vec::new();
    if read > 0 {
        did.push(format!("{} read and compared", plural(read, "file")));
    }
    if vouched > 0 {
        did.push(format!("{} compared by the store's own checksum", plural(vouched, "file")));
    }
    if did.is_empty() {
        return None;
    }
    if listed > 0 {
        did.push(format!("{} referenced, listed with the size", plural(listed, "file")));
    }
    let note = format!("{} in store {store}", plural(read + vouched + listed, "file"));
    let check = Event::of(here, job, EventType::FixityCheck, store, now);
    Some(check.detail(did.join("; ")).note(note))
}
