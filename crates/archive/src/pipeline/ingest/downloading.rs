//! Fetches everything that is not here, in parallel, resuming what is there in part, and checks
//! the digests given for it. Bytes are hashed and identified while they arrive.

use super::estimating::{self, Wanted};
use super::meter::bytes;
use super::room::JobRoom;
use super::{Run, Step, failpoint, reads_packages};
use crate::ErrorCode;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::{Error, Result};
use crate::model::item::{ExpectedDigest, Source};
use crate::model::problem::Problems;
use crate::package::file_range::FileRange;
use crate::package::kind::package_at;
use crate::package::pass::{How, Seen};
use crate::package::validate::compare_claimed;
use crate::package::{Form, Owner, Package};
use crate::registry::ingest::{self, JobFile};
use crate::transfer::fetch::{Expect, Sink};
use bagit::{Algorithm, Algorithms, Hasher};
use futures_util::StreamExt;
use futures_util::stream;
use queue::{Outcome, StageSettings};
use std::path::{Path, PathBuf};

const PORTION: i64 = 200;
/// Files of one object that are fetched at once; the fetcher has limits of its own beside it.
const AT_ONCE: usize = 8;

pub struct Downloading;

impl Step for Downloading {
    const NAME: &'static str = "downloading";

    fn defaults() -> StageSettings {
        reads_packages()
    }

    async fn run(mut run: Run<'_>) -> Result<Outcome> {
        let fetched = match (run.item.kind, &run.item.source) {
            (DepositKind::Manifest, _) => Some(files(&run).await?),
            (kind, Source::Url(url)) => Some(match run.app.fetcher.local_file(url)? {
                Some(local) => {
                    let package = package_at(Owner::Depositor, &local.path, kind, &run.item.name)?;
                    package.that_is(&local.fingerprint)?
                }
                None => package(&run, url).await?,
            }),
            (_, Source::Path(_)) => None,
        };
        if let Some(package) = fetched {
            run.ingest.package = Some(package);
            run.save();
        }
        Ok(Outcome::success())
    }
}

/// Where a package by URL is put.
pub(super) fn place_of_package(run: &Run<'_>) -> PathBuf {
    run.directory().join("package")
}

/// A package by URL. The name it gets here is not the name it came with: that one is not to be
/// trusted with a file system.
async fn package(run: &Run<'_>, url: &str) -> Result<Package> {
    run.make_directory()?;
    let path = place_of_package(run);
    let digest = run.item.claimed.as_ref().map(ExpectedDigest::to_string);
    let room = JobRoom::open(run).await?;
    let expect = Expect { size: run.item.size, digest, room: Some(&room), bytes_max: None };
    let mut sink = Hashing { claimed: run.item.claimed.clone(), hasher: None };
    run.meter.begin("fetching", estimating::announced(&run.item, run.ingest.space_bytes));
    let follow = run.meter.follow();
    let fetched = run.app.fetcher.download(url, &path, &expect, &mut sink, &follow).await;
    fetched.map_err(|error| error.about(&run.item.name))?;
    if let Some(claimed) = &run.item.claimed {
        let mut problems = Problems::default();
        compare_claimed(&run.item.name, claimed, &sink.finish(claimed), &mut problems);
        if problems.has_errors() {
            remove(&path);
            return Err(Error::Invalid {
                what: run.item.name.clone(),
                problems: Box::new(problems),
            });
        }
    }
    failpoint("downloading.package");
    package_at(Owner::Archive, &path, run.item.kind, &run.item.name)
}

/// Hashes a package as a whole, where a digest was given for it.
struct Hashing {
    claimed: Option<ExpectedDigest>,
    hasher: Option<Hasher>,
}

impl Hashing {
    fn finish(self, claimed: &ExpectedDigest) -> String {
        let algorithm = claimed.algorithm.parse::<Algorithm>().ok();
        let digests = self.hasher.map(Hasher::finish);
        let found = algorithm.zip(digests).and_then(|(a, digests)| digests.get(a));
        found.map(|d| d.to_string()).unwrap_or_default()
    }
}

impl Sink for Hashing {
    fn begin(&mut self) {
        let algorithm = self.claimed.as_ref().and_then(|c| c.algorithm.parse::<Algorithm>().ok());
        self.hasher = algorithm.map(|a| Hasher::new([a].into_iter().collect()));
    }

    fn bytes(&mut self, chunk: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(chunk);
        }
    }
}

/// What is wrong with what was fetched must not be taken up by the next run.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// The files of a manifest, each fetched once.
async fn files(run: &Run<'_>) -> Result<Package> {
    let directory = run.make_directory()?.join("files");
    std::fs::create_dir_all(&directory)
        .map_err(|e| crate::package::unpack::unwritable(&directory, e))?;
    let room = JobRoom::open(run).await?;
    let (id, mut after) = (run.id(), 0);
    // Estimating has asked for their sizes, where it was told.
    run.meter.begin("fetching", run.ingest.space_bytes.map(|size| bytes(Some(size))));
    let mut problems = Problems::default();
    loop {
        let page = run.app.db.read(move |tx| ingest::files_after(tx, id, after, PORTION)).await?;
        let Some(last) = page.last().map(|f| f.number) else { break };
        let (here, missing): (Vec<_>, Vec<_>) =
            page.into_iter().partition(|file| is_here(&directory, file));
        run.meter.add(here.iter().map(|file| bytes(file.size)).sum());
        let mut fetches = stream::iter(missing)
            .map(|file| fetch(run, &directory, &room, file))
            .buffer_unordered(AT_ONCE);
        let mut done = Vec::new();
        let mut failure = None;
        while let Some(fetched) = fetches.next().await {
            match fetched {
                Ok(Ok(file)) => done.push(file),
                Ok(Err(wrong)) => {
                    problems.errors += wrong.errors;
                    problems.listed.extend(wrong.listed);
                }
                // The others go on: what they fetch need not be fetched again.
                Err(error) => failure = Some(error),
            }
        }
        let count = done.len();
        run.context.write(move |tx| ingest::put_files(tx, id, &done)).await?;
        if let Some(error) = failure {
            return Err(error);
        }
        if count > 0 {
            failpoint("downloading.portion");
        }
        after = last;
    }
    if problems.has_errors() {
        let what = format!("what {} names", run.item.name);
        return Err(Error::Invalid { what, problems: Box::new(problems) });
    }
    let package = Package::at(Owner::Archive, Form::Directory, &directory, &run.item.name)?;
    Ok(Package { fetched: true, ..package })
}

fn place(directory: &Path, file: &JobFile) -> PathBuf {
    directory.join(file.number.to_string())
}

/// Fetched before, and still as long.
fn is_here(directory: &Path, file: &JobFile) -> bool {
    file.sha512.is_some()
        && std::fs::metadata(place(directory, file))
            .is_ok_and(|m| i64::try_from(m.len()).ok() == file.size)
}

async fn fetch(
    run: &Run<'_>,
    directory: &Path,
    room: &JobRoom,
    mut file: JobFile,
) -> Result<std::result::Result<JobFile, Problems>> {
    let wanted: Wanted =
        file.source.as_deref().and_then(|source| serde_json::from_str(source).ok()).ok_or_else(
            || {
                Error::permanent(
                    ErrorCode::BadPayload,
                    format!(
                        "{} does not say where it is fetched from; requeue the job from estimating",
                        file.path
                    ),
                )
            },
        )?;
    let mut algorithms: Algorithms = [Algorithm::Sha512].into_iter().collect();
    if let Some(algorithm) = wanted.claimed.as_ref().and_then(|c| c.algorithm.parse().ok()) {
        algorithms.insert(algorithm);
    }
    let how = How { algorithms, identifier: run.app.identifier.clone(), threads: 1 };
    let mut sink = Reading { seen: Seen::new(&how), how: &how };
    let path = place(directory, &file);
    let digest = wanted.claimed.as_ref().map(ExpectedDigest::to_string);
    let expect = Expect { size: wanted.size, digest, room: Some(room), bytes_max: None };
    let follow = run.meter.follow();
    let fetched = run.app.fetcher.download(&wanted.url, &path, &expect, &mut sink, &follow).await;
    fetched.map_err(|error| error.about(&file.path))?;
    let mut object = Owner::Archive.open_file(&path).ok().and_then(FileRange::of);
    let object = object.as_mut().map(|o| o as &mut dyn pronom::Source);
    let (size, digests, format) = sink.seen.finish(&file.path, object);
    if let Some(claimed) = &wanted.claimed {
        let mut problems = Problems::default();
        let found = claimed.algorithm.parse().ok().and_then(|a: Algorithm| digests.get(a));
        let name = format!("line {}: {}", wanted.line, file.path);
        let found = found.map(|d| d.to_string()).unwrap_or_default();
        compare_claimed(&name, claimed, &found, &mut problems);
        if problems.has_errors() {
            remove(&path);
            return Ok(Err(problems));
        }
    }
    let others: serde_json::Map<String, serde_json::Value> = digests
        .iter()
        .filter(|(algorithm, _)| *algorithm != Algorithm::Sha512)
        .map(|(algorithm, digest)| (algorithm.name().to_string(), digest.to_string().into()))
        .collect();
    file.size = i64::try_from(size).ok();
    file.sha512 = digests.get(Algorithm::Sha512).map(|d| d.to_string());
    file.digests = (!others.is_empty()).then(|| serde_json::Value::Object(others).to_string());
    file.puid = format.puid.clone();
    file.format = Some(serde_json::json!(format).to_string());
    Ok(Ok(file))
}

/// Hashes and identifies a file while it arrives.
struct Reading<'h> {
    seen: Seen<'h>,
    how: &'h How,
}

impl Sink for Reading<'_> {
    fn begin(&mut self) {
        self.seen = Seen::new(self.how);
    }

    fn bytes(&mut self, chunk: &[u8]) {
        self.seen.feed(chunk);
    }
}
