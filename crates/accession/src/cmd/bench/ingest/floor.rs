//! What the machine itself needs for the bytes of a package, by programs that are not ours.

use super::load::Place;
use crate::error_code::ErrorCode;
use crate::exit::Failure;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Copying once and flushing, and hashing: SHA-256 and SHA-512 on the way in, SHA-512 of what was
/// written. The files of the package are spread over the processors.
pub fn seconds(place: &Place, tar: &Path) -> Result<f64, Failure> {
    let unpacked = tempfile::tempdir_in(&place.directory)?;
    run(Command::new("tar").arg("xf").arg(tar).arg("-C").arg(unpacked.path()))?;
    of_files(&place.directory, unpacked.path())
}

/// The same of files in a directory; the copy is made in `place`.
pub fn of_files(place: &Path, from: &Path) -> Result<f64, Failure> {
    let to = tempfile::tempdir_in(place)?;
    let (from, to) = (from.display().to_string(), to.path().display().to_string());
    let began = Instant::now();
    hash(&from, "sha256")?;
    hash(&from, "sha512")?;
    run(Command::new("cp").args(["-r", &from, &to]))?;
    run(Command::new("sync").args(["-f", &to]))?;
    hash(&to, "sha512")?;
    Ok(began.elapsed().as_secs_f64())
}

/// Every file below a directory, a process for each processor.
fn hash(directory: &str, algorithm: &str) -> Result<(), Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let script = format!(
        "find '{directory}' -type f -print0 | xargs -0 -P {processors} -n \"$1\" openssl dgst -{algorithm} >/dev/null"
    );
    // Few large files go one by one, many small ones in portions: a process each would be unfair.
    let count = walk(Path::new(directory))?;
    let portion = (count / processors / 4).clamp(1, 2000).to_string();
    run(Command::new("sh").args(["-c", &script, "sh", &portion]))
}

fn walk(directory: &Path) -> Result<usize, Failure> {
    let mut count = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { walk(&entry.path())? } else { 1 };
    }
    Ok(count)
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::unable(
            ErrorCode::Floor,
            format!("`{name}` ended with {status}; the floor cannot be measured"),
        )),
        Err(error) => Err(Failure::unable(
            ErrorCode::Floor,
            format!("`{name}` cannot be run: {error}; install it to measure the floor"),
        )),
    }
}
