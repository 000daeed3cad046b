//! How much space will it take? Looks at everything that has to be fetched, and finds what is
//! broken before anything is fetched: every bad row of a manifest is listed at once.

use super::room::DiskRoom;
use super::{Run, Step};
use crate::ErrorCode;
use crate::model::codes::Change;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::{Error, Result};
use crate::model::item::{ExpectedDigest, Item, Source};
use crate::model::problem::Problems;
use crate::package::kind::package_at;
use crate::package::manifest::take_report;
use crate::package::payload;
use crate::package::unpack::sniff;
use crate::package::{Owner, unreadable};
use crate::pipeline::batch::expanding;
use crate::registry::ingest::{self, JobFile};
use crate::transfer::fetch::Expect;
use crate::transfer::share;
use bagit::Serialization;
use bagit::beneath::Opened;
use futures_util::StreamExt;
use futures_util::stream;
use queue::{Handover, Outcome};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;

/// Rows that are looked at together, and how many of them are asked for at once.
const PORTION: usize = 500;
const AT_ONCE: usize = 16;
/// What a compressed package is expected to grow by, until it is known.
pub(crate) const GROWTH: i64 = 4;

/// Where a file of an object is fetched from, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<ExpectedDigest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    pub line: u64,
}

pub struct Estimating;

impl Step for Estimating {
    const NAME: &'static str = ingest::FIRST_STAGE;

    async fn run(mut run: Run<'_>) -> Result<Outcome> {
        let _inside = match run.item.is_downloaded() {
            true => match run.app.shares.estimating.enter(run.context.places()).await {
                None => return share::put_off(&run.app.db).await,
                inside => inside,
            },
            false => None,
        };
        run.ingest.validated = None;
        let needed = match (run.item.kind, &run.item.source) {
            (DepositKind::Manifest, _) => {
                let (needed, files) = manifest(&run).await?;
                // Validating knows by it that no row is missing.
                run.ingest.validated = Some((files, 0));
                needed
            }
            (_, Source::Url(url)) => match run.app.fetcher.local_file(url)? {
                Some(local) => {
                    let (kind, name) = (run.item.kind, &run.item.name);
                    let needed = in_place(&run.item, local.path.clone())?;
                    let package = package_at(Owner::Depositor, &local.path, kind, name)?;
                    run.ingest.package = Some(package.that_is(&local.fingerprint)?);
                    needed
                }
                None => {
                    let deadline = Instant::now() + run.app.fetcher.heads_time_max();
                    let head = run.app.fetcher.head_before(url, deadline).await;
                    let head = head.map_err(|error| error.about(&run.item.name))?;
                    let size = head.and_then(|head| head.size);
                    grown(&run.item, size.and_then(|size| i64::try_from(size).ok()))
                }
            },
            (_, source) => in_place(&run.item, source.path().unwrap_or_default())?,
        };
        run.ingest.space_bytes = needed;
        run.save();
        let mut handover = match (run.item.is_downloaded(), needed) {
            // Nothing is to be fetched and no space is needed: the next that has something to do is
            // validating.
            (false, Some(0)) => Handover::to("validating"),
            _ => Handover::default(),
        };
        if needed.is_none() {
            // Jobs of known size go first.
            handover.priority = Some((run.job.priority + 10).min(99));
            handover.note = Some("its size is not known".to_string());
        }
        Ok(Outcome::Success(handover))
    }
}

/// What is read where it is takes no space, but for what has to be unpacked.
fn in_place(item: &Item, path: PathBuf) -> Result<Option<i64>> {
    let opened = Owner::Depositor.open(&path).map_err(|error| error.about(&item.name))?;
    let file = match (item.kind, opened) {
        (DepositKind::Directory, Opened::Folder(_)) => return Ok(Some(0)),
        (
            DepositKind::File | DepositKind::Container | DepositKind::Manifest,
            Opened::File(file),
        ) => file,
        _ => {
            return Err(Error::permanent(
                ErrorCode::NotAsAnnounced,
                format!(
                    "{} is not the {:?} that was announced; deposit it again",
                    path.display(),
                    item.kind
                ),
            )
            .about(&item.name));
        }
    };
    if item.kind != DepositKind::Container {
        return Ok(Some(0));
    }
    Ok(match sniff(&file, &path)? {
        Some(Serialization::Tar | Serialization::Zip) | None => Some(0),
        Some(_) => {
            let size = file.metadata().map_err(|e| unreadable(&path, &e))?.len();
            Some(i64::try_from(size).unwrap_or(i64::MAX / GROWTH).saturating_mul(GROWTH))
        }
    })
}

/// What a package takes that is fetched, and perhaps unpacked.
fn grown(item: &Item, size: Option<i64>) -> Option<i64> {
    let lower = item.name.to_ascii_lowercase();
    let compressed = [".gz", ".tgz", ".bz2", ".tbz", ".tbz2", ".zst", ".tzst"];
    let unpacked =
        item.kind == DepositKind::Container && compressed.iter().any(|e| lower.ends_with(e));
    size.map(|size| if unpacked { size.saturating_mul(1 + GROWTH) } else { size })
}

/// How long a package is that is fetched, by the space that [`grown`] found it needs.
pub(super) fn announced(item: &Item, space: Option<i64>) -> Option<u64> {
    let told = item.size.or_else(|| {
        let space = u64::try_from(space?).ok()?;
        Some(space / u64::try_from(grown(item, Some(1))?).ok()?)
    });
    told.filter(|size| *size > 0)
}

/// Writes down every row of the manifest, and asks for the size of each. Returns the size of all, if
/// it is known, and how many there are.
async fn manifest(run: &Run<'_>) -> Result<(Option<i64>, i64)> {
    let path = manifest_file(run).await?;
    let (id, name) = (run.id(), run.item.name.clone());
    run.context.write(move |tx| ingest::forget_files(tx, id)).await?;
    let (sender, mut portions) = tokio::sync::mpsc::channel::<Vec<(i64, String, Wanted)>>(2);
    let shown = name.clone();
    let reading = tokio::task::spawn_blocking(move || read_rows(&path, &shown, &sender));
    let mut problems = Problems::default();
    let (mut total, mut count) = (Some(0_i64), 0);
    let deadline = Instant::now() + run.app.fetcher.heads_time_max();
    while let Some(portion) = portions.recv().await {
        let heads: Vec<_> = stream::iter(portion)
            .map(|(number, path, wanted)| async move {
                let head = run.app.fetcher.head_before(&wanted.url, deadline).await;
                (number, path, wanted, head)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut files = Vec::with_capacity(heads.len());
        for (number, path, wanted, head) in heads {
            match head {
                Ok(head) => {
                    let found = head.and_then(|head| head.size);
                    let size = found.or(wanted.size).and_then(|s| i64::try_from(s).ok());
                    total = total.zip(size).map(|(total, size)| total.saturating_add(size));
                    compare_size(&name, &path, &wanted, found, &mut problems);
                    files.push(job_file(number, path, size, &wanted));
                }
                Err(error) if error.is_transient() => return Err(error.about(path)),
                Err(error) => {
                    let place = format!("{name} line {}", wanted.line);
                    problems.error(
                        ErrorCode::UrlNotThere,
                        &place,
                        format!("line {} of {name}: {error}", wanted.line),
                    );
                }
            }
        }
        count += i64::try_from(files.len()).unwrap_or(i64::MAX);
        run.context.write(move |tx| ingest::put_files(tx, id, &files)).await?;
    }
    match reading.await {
        Ok(found) => {
            let found = found?;
            problems.errors += found.errors;
            problems.listed.extend(found.listed);
        }
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => return Err(Error::Stopped),
    }
    if problems.has_errors() {
        return Err(Error::Invalid {
            what: format!("the manifest {name}"),
            problems: Box::new(problems),
        });
    }
    Ok((total, count))
}

/// The manifest itself, fetched if need be.
async fn manifest_file(run: &Run<'_>) -> Result<PathBuf> {
    let Source::Url(url) = &run.item.source else {
        return Ok(run.item.source.path().unwrap_or_default());
    };
    let path = run.make_directory()?.join("manifest");
    // A job that fails here may have no row yet, by which a reservation would be given back.
    let room = DiskRoom::new(run.app, &run.app.settings.work_space.path);
    let digest = run.item.claimed.as_ref().map(ExpectedDigest::to_string);
    let expect = Expect {
        size: run.item.size,
        digest,
        bytes_max: Some(payload::BYTES_MAX),
        room: Some(&room),
    };
    let fetched = run.app.fetcher.download(url, &path, &expect, &mut (), &|_| ()).await;
    fetched.map_err(|error| payload::too_large_or(error, &run.item.name))?;
    Ok(path)
}

fn read_rows(
    path: &std::path::Path,
    name: &str,
    sender: &tokio::sync::mpsc::Sender<Vec<(i64, String, Wanted)>>,
) -> Result<Problems> {
    let mut reader = expanding::open(path, name)?;
    let mut portion = Vec::with_capacity(PORTION);
    let mut number = 0;
    while let Some(row) = reader.next_row().map_err(|e| expanding::broken(name, &e))? {
        let (Some(url), Some(file)) = (row.source.as_deref(), row.file_name()) else { continue };
        if row.is_directory() {
            continue;
        }
        number += 1;
        let claimed = match (&row.algorithm, &row.digest) {
            (Some(algorithm), Some(digest)) => Some(ExpectedDigest {
                algorithm: algorithm.to_string(),
                digest: digest.to_string(),
            }),
            _ => None,
        };
        let wanted = Wanted { url: url.to_string(), claimed, size: row.size, line: row.place.line };
        portion.push((number, format!("data/{file}"), wanted));
        if portion.len() == PORTION && sender.blocking_send(std::mem::take(&mut portion)).is_err() {
            return Err(Error::Stopped);
        }
    }
    let _ = sender.blocking_send(portion);
    let report = reader.finish().map_err(|e| expanding::broken(name, &e))?;
    let mut problems = Problems::default();
    take_report(name, &report, &mut problems);
    if number == 0 && !problems.has_errors() {
        names_nothing(name, &mut problems);
    }
    Ok(problems)
}

/// Adds the problem of a manifest that names no files.
pub(crate) fn names_nothing(name: &str, problems: &mut Problems) {
    let message = format!("{name} names no files; submit one that does");
    problems.error(ErrorCode::ManifestNamesNoFiles, name, message);
}

/// Adds a problem where a file has another size at its source than its manifest says.
pub(crate) fn compare_size(
    name: &str,
    path: &str,
    wanted: &Wanted,
    found: Option<u64>,
    problems: &mut Problems,
) {
    if let (Some(said), Some(found)) = (wanted.size, found)
        && said != found
    {
        let line = wanted.line;
        problems.error(
            ErrorCode::SizeMismatch,
            &format!("{name} line {line}"),
            format!("line {line} of {name}: {path} has {found} bytes at its source, and the manifest says {said}; correct the manifest or the file"),
        );
    }
}

fn job_file(number: i64, path: String, size: Option<i64>, wanted: &Wanted) -> JobFile {
    JobFile {
        number,
        path,
        size,
        locator: number.to_string().into_bytes(),
        source: Some(serde_json::json!(wanted).to_string()),
        sha512: None,
        digests: None,
        puid: None,
        format: None,
        change: Change::Unknown,
        modified: None,
    }
}
