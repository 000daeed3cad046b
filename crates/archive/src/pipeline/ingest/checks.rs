//! Programs of a collection that look at what is deposited: a virus scanner, a format checker.
//! A verdict is an event; a refusal fails the job with what the program said.

use crate::ErrorCode;
use crate::blocking::blocking;
use crate::model::error::{Error, Result};
use crate::model::event::Event;
use crate::model::problem::Problems;
use crate::model::profile::{Check, Fails, Per, Profile};
use crate::package::program::{self, Verdict};
use crate::package::unpack::{temporary, unwritable};
use crate::package::{Form, Package, fingerprint, unreadable};
use crate::pipeline::ingest::Run;
use crate::pipeline::ingest::room::JobRoom;
use crate::premis::EventType;
use crate::registry::ingest::{self, JobFile};
use crate::transfer::fetch::Room;
use bagit::beneath::Opened;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PAGE: i64 = 200;

/// Runs every check of the collection; what they said as events.
pub async fn run(run: &Run<'_>, package: &Package, left: &[JobFile]) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for check in &run.profile.checks {
        let mut problems = Problems::default();
        let looked = match check.per {
            Per::Package => {
                whole(check, package, &mut problems).await?;
                1
            }
            Per::File => every_file(run, check, package, left, &mut problems).await?,
        };
        let now = run.app.db.read(|tx| Ok::<_, Error>(tx.now())).await?;
        let event =
            Event::of(&run.app.installation, run.id(), EventType::VirusCheck, &check.name, now)
                .detail(format!(
                    "{} ({})",
                    check.name,
                    check.program.first().cloned().unwrap_or_default()
                ));
        if !problems.has_errors() {
            events.push(event.note(format!("{looked} looked at, nothing found")));
            continue;
        }
        if check.fails == Fails::Job {
            let what = format!("{} was refused by {}", run.name(), check.name);
            return Err(Error::Invalid { what, problems: Box::new(problems) });
        }
        events.push(event.outcome("warning").note(problems.text(&check.name)));
    }
    Ok(events)
}

/// A file of a package.
#[derive(Clone)]
pub struct Listed {
    pub path: String,
    pub locator: Vec<u8>,
}

/// Runs every check of a collection on a package that is not deposited. `directory` is for copies of
/// files that are in an archive.
pub async fn before_deposit(
    profile: &Profile,
    package: &Package,
    files: &[Listed],
    directory: &Path,
    problems: &mut Problems,
) -> Result<()> {
    for check in &profile.checks {
        let mut found = Problems::default();
        match check.per {
            Per::Package => whole(check, package, &mut found).await?,
            Per::File => {
                let members = package.open()?;
                for file in files {
                    one_file(check, package, &members, directory, file, &mut found).await?;
                }
            }
        }
        if check.fails == Fails::Job {
            problems.take(found);
        } else {
            problems.take_as_warnings(found);
        }
    }
    Ok(())
}

/// Looks at a package as a whole.
async fn whole(check: &Check, package: &Package, problems: &mut Problems) -> Result<()> {
    let path = package.path();
    let before = identity(package, &path)?;
    one(check, &path, &package.name, problems).await?;
    same(package, &path, before)
}

/// Looks at a file of a package.
async fn one_file(
    check: &Check,
    package: &Package,
    members: &Arc<dyn bagit::source::Members>,
    directory: &Path,
    file: &Listed,
    problems: &mut Problems,
) -> Result<()> {
    match place_of(package, file) {
        Some(path) => {
            let before = identity(package, &path)?;
            one(check, &path, &file.path, problems).await?;
            same(package, &path, before)
        }
        None => {
            let copied = copy(members, directory, file).await?;
            one(check, copied.path(), &file.path, problems).await
        }
    }
}

/// The fingerprint of the file that a program is to look at; `None` of a directory. A link in its
/// place is refused: the program opens the path by itself, and would follow it.
fn identity(package: &Package, path: &Path) -> Result<Option<String>> {
    match package.owner.open(path)? {
        Opened::Folder(_) => Ok(None),
        Opened::File(file) => {
            let meta = file.metadata().map_err(|e| unreadable(path, &e))?;
            Ok(Some(fingerprint(&meta)))
        }
    }
}

/// Refuses the verdict on a file that is another one by now.
fn same(package: &Package, path: &Path, before: Option<String>) -> Result<()> {
    match identity(package, path)? == before {
        true => Ok(()),
        false => Err(package.changed()),
    }
}

/// Looks at one path. A check that does not work says nothing about the package.
async fn one(check: &Check, path: &Path, shown: &str, problems: &mut Problems) -> Result<()> {
    match program::run(check, path).await {
        Verdict::Clean { .. } => Ok(()),
        Verdict::Refused { output } => {
            let message = format!("{shown} was refused by the check {}: {output}", check.name);
            problems.error(ErrorCode::CheckRefused, shown, message);
            Ok(())
        }
        failed @ Verdict::Failed { .. } => failed.into_result(check, shown).map(|_| ()),
    }
}

async fn every_file(
    run: &Run<'_>,
    check: &Check,
    package: &Package,
    left: &[JobFile],
    problems: &mut Problems,
) -> Result<u64> {
    let members = package.open()?;
    let directory = run.make_directory()?.join("checked");
    std::fs::create_dir_all(&directory).map_err(|e| unwritable(&directory, e))?;
    let (mut after, mut count, job) = (0, 0, run.id());
    // For copies of members; most packages need none.
    let mut room: Option<JobRoom> = None;
    let mut rest: Option<Vec<JobFile>> = Some(left.to_vec());
    loop {
        let written = run.app.db.read(move |tx| ingest::files_after(tx, job, after, PAGE)).await?;
        // Those that were not written down yet come last.
        let page = match written.last() {
            Some(last) => {
                after = last.number;
                written
            }
            None => match rest.take() {
                Some(rest) if !rest.is_empty() => rest,
                _ => return Ok(count),
            },
        };
        for file in page {
            let listed = Listed { path: file.path, locator: file.locator };
            if place_of(package, &listed).is_some() {
                one_file(check, package, &members, &directory, &listed, problems).await?;
            } else {
                let room = match &room {
                    Some(room) => room,
                    None => room.insert(JobRoom::open(run).await?),
                };
                let bytes = u64::try_from(file.size.unwrap_or(0)).unwrap_or(0);
                room.take(bytes).await?;
                one_file(check, package, &members, &directory, &listed, problems).await?;
                room.give(bytes);
            }
            count += 1;
        }
        if run.context.stop() != queue::runtime::Stop::No {
            return Err(Error::Stopped);
        }
    }
}

/// Where the program finds a file as it is; `None` for a member of an archive.
fn place_of(package: &Package, file: &Listed) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    match package.form {
        Form::File => Some(package.path()),
        Form::Directory => Some(package.path().join(std::ffi::OsStr::from_bytes(&file.locator))),
        Form::Tar | Form::Zip => None,
    }
}

/// A copy of a member of an archive, for the program; it is removed when it is dropped. Each run has
/// a file of its own, so that a run that has lost its lease changes nothing of what its successor's
/// program reads.
async fn copy(
    members: &Arc<dyn bagit::source::Members>,
    directory: &Path,
    file: &Listed,
) -> Result<tempfile::NamedTempFile> {
    // The extension may tell a scanner something; the rest of the name is not to be trusted.
    let extension = file
        .path
        .rsplit_once('.')
        .map(|(_, e)| e)
        .filter(|e| (1..=8).contains(&e.len()) && e.bytes().all(|b| b.is_ascii_alphanumeric()));
    let suffix = format!(".{}", extension.unwrap_or("bin"));
    let (members, directory, file) = (members.clone(), directory.to_path_buf(), file.clone());
    blocking(move || {
        let mut out = temporary(&directory, &suffix)?;
        let unread = |e: std::io::Error| super::storing::unreadable(&file.path, &e);
        let mut reader = members.open(&file.locator).map_err(unread)?;
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => return Ok(out),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                count => count.map_err(unread)?,
            };
            out.write_all(&buffer[..count]).map_err(|e| unwritable(&directory, e))?;
        }
    })
    .await
}
