//! Putting one fetched file in its place, and nowhere else.

use super::{Fetcher, Wanted};
use crate::hashing::hash_reader;
use crate::problem::Code;
use digest::Algorithms;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

type Failure = (Code, String);

/// Fetches a file unless it is there. `step` hears of bytes and gives the largest size allowed;
/// none to stop. Gives the number of bytes, or none if the file was there.
pub(super) fn fetch_one(
    directory: &Path,
    fetcher: &dyn Fetcher,
    wanted: &Wanted,
    buffer: &mut [u8],
    step: &dyn Fn(u64) -> Option<u64>,
) -> Result<Option<u64>, Failure> {
    let pending = |message: String| (Code::FetchPending, message);
    let line = &wanted.line;
    let target = directory.join(&line.path);
    if fs::symlink_metadata(&target).is_ok() {
        return Ok(None);
    }
    if wanted.checks.is_empty() {
        return Err((
            Code::FetchUnlisted,
            "no payload manifest lists it, so it is not fetched".into(),
        ));
    }
    make_parents(directory, &line.path)
        .map_err(|e| pending(format!("{}: {e}", target.display())))?;
    let mut fetched = fetcher.get(&line.url).map_err(|e| pending(e.to_string()))?;
    if let (Some(announced), Some(length)) = (line.length, fetched.length)
        && announced != length
    {
        let message = format!("fetch.txt announces {announced} bytes, and the server {length}");
        return Err((Code::FetchLengthDiffers, message));
    }
    let temporary = tempfile::Builder::new().prefix(".bagit-").tempfile_in(directory);
    let mut file = temporary.map_err(|e| pending(e.to_string()))?;
    let algorithms: Algorithms = wanted.checks.iter().map(|(a, _)| *a).collect();
    let mut total = 0;
    let (size, digests) = hash_reader(&mut *fetched.body, algorithms, buffer, &mut |bytes| {
        total += bytes.len() as u64;
        let limit =
            step(bytes.len() as u64).ok_or_else(|| io::Error::other("stopped, as asked"))?;
        if total > line.length.unwrap_or(u64::MAX).min(limit) {
            return Err(io::Error::other("more bytes arrive than are announced or allowed"));
        }
        file.write_all(bytes)
    })
    .map_err(|e| pending(format!("{}: {e}", line.url)))?;
    if line.length.is_some_and(|length| length != size) {
        let message = format!("{} gave {size} bytes, not those announced", line.url);
        return Err((Code::FetchLengthDiffers, message));
    }
    for (algorithm, expected) in &wanted.checks {
        if digests.get(*algorithm) != Some(*expected) {
            let message =
                format!("what {} gives does not have the {algorithm} of the manifest", line.url);
            return Err((Code::DigestMismatch, message));
        }
    }
    let placed = file.as_file().sync_all().and_then(|()| {
        set_mode(file.as_file())?;
        file.persist_noclobber(&target).map_err(|e| e.error)
    });
    placed.map_err(|e| pending(format!("{}: {e}", target.display())))?;
    Ok(Some(size))
}

/// Makes the directories above a path; none of them may be a link that leads elsewhere.
fn make_parents(directory: &Path, path: &str) -> io::Result<()> {
    let mut at = directory.to_owned();
    let Some((parents, _)) = path.rsplit_once('/') else { return Ok(()) };
    for part in parents.split('/') {
        at.push(part);
        // Another thread may make the same directory.
        match fs::create_dir(&at) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !fs::symlink_metadata(&at)?.is_dir() {
            return Err(io::Error::other("a part of the path is a link or a file"));
        }
    }
    Ok(())
}

/// Temporary files are private; the files of a bag are as any other.
#[cfg(unix)]
fn set_mode(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_mode(_file: &fs::File) -> io::Result<()> {
    Ok(())
}
