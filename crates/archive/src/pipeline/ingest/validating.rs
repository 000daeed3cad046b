//! Reads the package once — hashing and identifying every file — and checks everything that can be
//! wrong with it. All problems are reported, not only the first.

use super::checks;
use super::room::JobRoom;
use super::{Run, Step, downloading, failpoint, reads_packages};
use crate::ErrorCode;
use crate::blocking::blocking;
use crate::metadata::Metadata;
use crate::model::codes::Change;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::into_queue;
use crate::model::error::{Error, Result};
use crate::model::event::Event;
use crate::model::item::Source;
use crate::model::problem::Problems;
use crate::model::profile::PayloadKind;
use crate::model::text::plural;
use crate::package::bounds::Bounds;
use crate::package::kind::{check_kind, package_at};
use crate::package::pass::{How, Progress, Reading};
use crate::package::reading::{Checked, Done, Kept, ReadBefore, ReadOutcome, Reader};
use crate::package::survey::Survey;
use crate::package::unpack::{self, unpack};
use crate::package::validate;
use crate::package::{Form, Owner, Package};
use crate::premis::EventType;
use crate::registry::events;
use crate::registry::ingest::{self, JobFile};
use crate::transfer::fetch::Room;
use bagit::{Algorithm, Algorithms, Serialization};
use queue::rules::running;
use queue::{JobId, Outcome, StageSettings};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Files are written down in portions of this many, or after this long.
const PORTION: usize = 500;
const PORTION_TIME: Duration = Duration::from_secs(2);

pub struct Validating;

impl Step for Validating {
    const NAME: &'static str = "validating";

    fn defaults() -> StageSettings {
        reads_packages()
    }

    async fn run(run: Run<'_>) -> Result<Outcome> {
        let original = original(&run)?;
        check_kind(&run.profile, &run.ingest.collection, run.item.kind, original.fetched)?;
        if original.fetched {
            return fetched(run).await;
        }
        let package = plain(&run, &original).await?;
        let (checked, left) = read(&run, &package, &original).await?;
        finish(run, package, checked, left).await
    }
}

/// What was deposited or fetched, as it is now: it may have been corrected since an earlier run.
fn original(run: &Run<'_>) -> Result<Package> {
    let (kind, name) = (run.item.kind, &run.item.name);
    let not_fetched = || {
        Error::permanent(
            ErrorCode::NoPackage,
            format!(
                "the package was not fetched; fetch it with `accession jobs requeue {} --to downloading`",
                run.id()
            ),
        )
    };
    let depositor = Owner::Depositor;
    match &run.item.source {
        _ if kind == DepositKind::Manifest => run.ingest.package.clone().ok_or_else(not_fetched),
        Source::Path(_) => {
            package_at(depositor, &run.item.source.path().unwrap_or_default(), kind, name)
        }
        Source::Url(url) => match run.app.fetcher.local_file(url)? {
            Some(local) => {
                package_at(depositor, &local.path, kind, name)?.that_is(&local.fingerprint)
            }
            None => match downloading::place_of_package(run) {
                path if path.exists() => package_at(Owner::Archive, &path, kind, name),
                _ => Err(not_fetched()),
            },
        },
    }
}

/// The package in a form whose members can be read in any order: a compressed tar is unpacked to
/// a plain one first.
async fn plain(run: &Run<'_>, original: &Package) -> Result<Package> {
    if original.form != Form::Tar {
        return Ok(original.clone());
    }
    let serialization = match original.sniff()? {
        Some(Serialization::Tar) | None => return Ok(original.clone()),
        Some(serialization) => serialization,
    };
    let into = unpack::place_in(&run.make_directory()?, original)?;
    if !into.exists() {
        unpack_into(run, original, serialization, into.clone()).await?;
    }
    let plain = Package::at(Owner::Archive, Form::Tar, &into, &original.name)?;
    Ok(Package { deposited: original.fingerprint.clone(), ..plain })
}

/// Unpacks a package within the job's room.
async fn unpack_into(
    run: &Run<'_>,
    original: &Package,
    serialization: Serialization,
    into: PathBuf,
) -> Result<()> {
    let room = JobRoom::open(run).await?;
    let stop = run.stop_flag();
    let bounds = bounds(run);
    // How much it grows by is not known before.
    run.meter.begin("unpacking", None);
    let (flag, original, meter) = (stop.flag.clone(), original.clone(), run.meter.clone());
    let runtime = tokio::runtime::Handle::current();
    blocking(move || {
        let may_write = |bytes| {
            meter.add(bytes);
            match flag.load(Ordering::Relaxed) {
                true => Err(Error::Stopped),
                false => runtime.block_on(room.take(bytes)),
            }
        };
        unpack(&original, serialization, &into, bounds, may_write).map(drop)
    })
    .await
}

fn bounds(run: &Run<'_>) -> Bounds {
    Bounds::of(&run.app.settings, &run.profile)
}

async fn read(
    run: &Run<'_>,
    package: &Package,
    original: &Package,
) -> Result<(Checked, Vec<JobFile>)> {
    let mut before = read_so_far(run).await?;
    loop {
        if let Some(read) = read_once(run, package, original, before).await? {
            return Ok(read);
        }
        let id = run.id();
        run.context.write(move |tx| ingest::forget_files(tx, id)).await?;
        before = ReadBefore::default();
    }
}

/// Reads what was not read before; `None` if what was is not of this package as it is now.
async fn read_once(
    run: &Run<'_>,
    package: &Package,
    original: &Package,
    before: ReadBefore,
) -> Result<Option<(Checked, Vec<JobFile>)>> {
    let id = run.id();
    let algorithms = algorithms_for_stores(run).await;
    let stop = run.stop_flag();
    run.meter.begin("reading", None);
    let progress: Progress = {
        let (flag, meter) = (stop.flag.clone(), run.meter.clone());
        Arc::new(move |read| {
            meter.add(read);
            !flag.load(Ordering::Relaxed)
        })
    };
    let expect = run.meter.clone();
    let source = Arc::new(OnceLock::new());
    let reader = Reader {
        package: package.clone(),
        serialization: sniffed(original)?,
        how: How {
            algorithms,
            identifier: run.app.identifier.clone(),
            threads: run.app.settings.threads,
        },
        bounds: bounds(run),
        claimed: run.item.claimed.clone(),
        original: original.clone(),
        profile: validate::bag_profile(&run.profile)?,
        progress,
        expect: Arc::new(move |bytes| expect.expect(bytes)),
        source: source.clone(),
    };
    let (sender, mut readings) = mpsc::channel::<Reading>(PORTION);
    let work = tokio::task::spawn_blocking(move || {
        reader.run(before, &mut |reading| sender.blocking_send(reading).is_ok())
    });
    let mut left: Vec<JobFile> = Vec::new();
    let mut last = Instant::now();
    while let Some(reading) = readings.recv().await {
        left.push(job_file(&reading));
        if left.len() >= PORTION || last.elapsed() > PORTION_TIME {
            let portion = std::mem::take(&mut left);
            let context = run.context.clone();
            let source = source.get().cloned().unwrap_or_default();
            let keep = move |tx: &mut db::Tx<'_>| {
                ingest::put_files(tx, id, &portion)?;
                context.checkpoint_in(tx, SOURCE, &source)
            };
            run.context.write(keep).await?;
            last = Instant::now();
            failpoint("validating.portion");
        }
    }
    let read = match work.await {
        Ok(read) => read?,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => return Err(Error::Stopped),
    };
    match read {
        ReadOutcome::Checked(checked) => Ok(Some((*checked, left))),
        ReadOutcome::Stale => Ok(None),
    }
}

fn sniffed(original: &Package) -> Result<Option<Serialization>> {
    match original.form {
        Form::Tar | Form::Zip => original.sniff(),
        Form::File | Form::Directory => Ok(None),
    }
}

/// The mark of what an earlier run has read from.
const SOURCE: &str = "source";

/// What an earlier run has read, and from what.
async fn read_so_far(run: &Run<'_>) -> Result<ReadBefore> {
    const DONE: db::Statement = db::statement!(stages::files_read);
    let (id, stage) = (run.id(), run.job.stage);
    let read = move |tx: &mut db::Tx<'_>| {
        let files: Vec<Done> = tx.query(&DONE, &db::params![id])?;
        let marks = running::checkpoints(tx, id, stage)?;
        let source = marks.into_iter().find(|(key, _)| key == SOURCE).map(|(_, from)| from);
        Ok::<_, Error>(ReadBefore { source, files })
    };
    run.app.db.read(read).await
}

/// SHA-512, by which the stores keep content, and SHA-256 where a store vouches for it.
async fn algorithms_for_stores(run: &Run<'_>) -> Algorithms {
    let mut algorithms: Algorithms = [Algorithm::Sha512].into_iter().collect();
    for name in run.required_stores() {
        // A store that is down is the storing stage's matter.
        let vouches = match run.app.stores.get(&name).await {
            Ok(place) => place.root.store().capabilities().digests,
            Err(_) => false,
        };
        // What cannot be read back is verified by nothing else.
        if vouches || run.app.stores.is_cold(&name) {
            algorithms.insert(Algorithm::Sha256);
        }
    }
    algorithms
}

fn job_file(reading: &Reading) -> JobFile {
    let others: serde_json::Map<String, serde_json::Value> = reading
        .digests
        .iter()
        .filter(|(algorithm, _)| *algorithm != Algorithm::Sha512)
        .map(|(algorithm, digest)| (algorithm.name().to_string(), digest.to_string().into()))
        .collect();
    JobFile {
        number: reading.task.number,
        path: reading.task.path.clone(),
        size: i64::try_from(reading.size).ok(),
        locator: reading.task.locator.clone(),
        source: None,
        sha512: reading.digests.get(Algorithm::Sha512).map(|d| d.to_string()),
        digests: (!others.is_empty()).then(|| serde_json::Value::Object(others).to_string()),
        puid: reading.format.puid.clone(),
        format: Some(serde_json::json!(reading.format).to_string()),
        change: Change::Unknown,
        modified: reading.task.modified,
    }
}

/// Files that a manifest listed were hashed while they were fetched, and compared then.
async fn fetched(run: Run<'_>) -> Result<Outcome> {
    let (id, most) = (run.id(), bounds(&run));
    let (files, bytes): (i64, i64) = run.app.db.read(move |tx| ingest::count_files(tx, id)).await?;
    // What the manifest lists was counted when it was read.
    if let Some((listed, _)) = run.ingest.validated
        && listed != files
    {
        return Err(Error::permanent(
            ErrorCode::Incomplete,
            format!(
                "{} lists {listed} files, and {files} are known now; read it again with `accession jobs requeue {id} --to {}`",
                run.name(),
                ingest::FIRST_STAGE
            ),
        ));
    }
    let survey = Survey {
        is_bag: false,
        root: String::new(),
        algorithms: Algorithms::NONE,
        goes_on: false,
        listing: String::new(),
        files: u64::try_from(files).unwrap_or(0),
        bytes: u64::try_from(bytes).unwrap_or(0),
    };
    let mut problems = Problems::default();
    most.check_listed(run.name(), survey.files, survey.bytes, &mut problems);
    let Some(package) = run.ingest.package.clone() else {
        return Err(Error::permanent(
            ErrorCode::NoPackage,
            "the files were not fetched; requeue the job from downloading",
        ));
    };
    let checked = Checked {
        metadata: Metadata::default(),
        local_ids: Vec::new(),
        empty: Vec::new(),
        files: survey.files,
        bytes: survey.bytes,
        kept: Kept { files: survey.files, bytes: survey.bytes },
        survey,
        problems,
    };
    finish(run, package, checked, Vec::new()).await
}

async fn finish(
    mut run: Run<'_>,
    package: Package,
    mut checked: Checked,
    left: Vec<JobFile>,
) -> Result<Outcome> {
    let id = run.id();
    let invalid = |problems: Problems, what: &str| Error::Invalid {
        what: format!("{what} is not valid"),
        problems: Box::new(problems),
    };
    if checked.survey.is_bag && !run.profile.payload_kinds.contains(&PayloadKind::Bag) {
        return Err(Error::permanent(
            ErrorCode::PayloadKind,
            format!(
                "{} is a bag, and collection `{}` takes none",
                run.name(),
                run.ingest.collection
            ),
        ));
    }
    if run.profile.bag_profile.is_some() && !checked.survey.is_bag && !package.fetched {
        checked.problems.error(
            ErrorCode::NotABag,
            run.name(),
            format!("{} is no bag, and the collection's bag profile asks for one", run.name()),
        );
    }
    if checked.problems.has_errors() {
        let failure = invalid(checked.problems, run.name());
        let text = failure.to_string();
        let here = run.app.installation.clone();
        let context = run.context.clone();
        let fetched = package.fetched;
        let record = move |tx: &mut db::Tx<'_>| {
            record_failure(tx, &here, id, &text).map_err(into_queue)?;
            // It is for the depositor to fix, and everything is read again then.
            if fetched { Ok(()) } else { context.checkpoint_in(tx, SOURCE, "invalid") }
        };
        run.context.write(record).await?;
        return Err(failure);
    }
    let verdicts = checks::run(&run, &package, &left).await?;
    run.ingest.package = Some(package);
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    run.ingest.validated = Some((count(checked.kept.files), count(checked.kept.bytes)));
    run.ingest.said = run.item.metadata.clone().or(std::mem::take(&mut checked.metadata));
    let summary = &mut run.ingest.summary;
    summary.is_bag = checked.survey.is_bag;
    summary.goes_on = checked.survey.goes_on;
    summary.of_package = checked.local_ids.clone();
    summary.warnings = checked.problems.warnings_told();
    // What the object needs, and what its manifests are made with.
    let mut algorithms: Vec<&str> = checked.survey.algorithms.iter().map(|a| a.name()).collect();
    if !algorithms.contains(&"sha512") {
        algorithms.push("sha512");
    }
    let counts = format!("{} of {} bytes", plural(checked.files, "file"), checked.bytes);
    let found = match renamed(&checked.problems) {
        Some(renamed) => format!("{counts}; names that are not UTF-8 are kept as {renamed}"),
        None => counts.clone(),
    };
    let what = match checked.survey.is_bag {
        true => "BagIt: structure, manifests, tag manifests, Payload-Oxum, paths",
        false => "structure, paths, digests given",
    };
    let warnings = checked.problems.warnings;
    let empty = checked.empty;
    let ingest = run.to_save();
    let methods = algorithms.join(", ");
    let here = run.app.installation.clone();
    run.context.record(move |tx| {
        let now = tx.now();
        ingest::put_files(tx, id, &left)?;
        ingest::put_directories(tx, id, &empty)?;
        ingest::save(tx, &ingest)?;
        let mut validation =
            Event::of(&here, id, EventType::Validation, "", now).detail(what).note(found.clone());
        if warnings > 0 {
            validation = validation.outcome("warning");
        }
        let digests = Event::of(&here, id, EventType::MessageDigestCalculation, "", now)
            .detail(methods.clone());
        events::keep(tx, id, &[validation, digests.note(counts.clone())])?;
        events::keep(tx, id, &verdicts)
    });
    failpoint("validating.end");
    Ok(Outcome::success())
}

/// Some of the names that files are kept under because their own are not UTF-8.
fn renamed(problems: &Problems) -> Option<String> {
    const SHOWN: usize = 10;
    let all: Vec<&str> = problems
        .listed
        .iter()
        .filter(|p| p.is(ErrorCode::PathNotUtf8) || p.is(bagit::Code::PathNotUtf8))
        .map(|p| p.place.as_str())
        .collect();
    let more =
        if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    (!all.is_empty()).then(|| format!("{}{more}", all[..SHOWN.min(all.len())].join(", ")))
}

/// A failure is an event too, whether or not there ever is an object.
fn record_failure(tx: &mut db::Tx<'_>, here: &str, job: JobId, text: &str) -> Result<()> {
    let first = text.lines().next().unwrap_or(text);
    let event = Event::of(here, job, EventType::Validation, "failure", tx.now())
        .outcome("failure")
        .note(first.to_string());
    crate::registry::events::insert(tx, None, None, Some(job), &[event])
}
