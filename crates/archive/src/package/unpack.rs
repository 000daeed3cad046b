//! A compressed tar becomes a plain one in the work space: then its members are ranges of a file,
//! like those of any other tar, and nothing is unpacked one by one.

use super::bounds::Bounds;
use super::{Package, unreadable};
use crate::ErrorCode;
use crate::model::error::{Error, Result};
use bagit::Serialization;
use bagit::source::open::decompress;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an archive is, by its first bytes; `None` for what is no archive.
pub fn sniff(file: &File, path: &Path) -> Result<Option<Serialization>> {
    Ok(Serialization::sniff(&start(file, 512).map_err(|e| unreadable(path, &e))?))
}

/// The first bytes of a file, wherever it is read by now.
pub fn start(file: &File, length: usize) -> io::Result<Vec<u8>> {
    let mut start = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut start[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    start.truncate(filled);
    Ok(start)
}

/// Whether a name ends as those of archives do.
pub fn is_called_archive(name: &str) -> bool {
    const ENDS: [&str; 9] =
        [".tar", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.zst", ".tzst"];
    let lower = name.to_ascii_lowercase();
    ENDS.iter().any(|end| lower.ends_with(end))
}

/// Whether a name ends as those of archives do that are not unpacked.
pub fn is_called_foreign_archive(name: &str) -> bool {
    const ENDS: [&str; 12] = [
        ".tar.xz",
        ".txz",
        ".tar.lz",
        ".tlz",
        ".tar.lzma",
        ".tar.z",
        ".tar.lz4",
        ".tar.br",
        ".7z",
        ".rar",
        ".cpio",
        ".zipx",
    ];
    let lower = name.to_ascii_lowercase();
    ENDS.iter().any(|end| lower.ends_with(end))
}

/// What the names of unpacked files begin with.
const UNPACKED: &str = "unpacked-";

/// Where the plain tar of a package is put: its name says what it was made from. Those that were
/// made from what the package was before are removed, and those that did not become whole.
pub fn place_in(directory: &Path, package: &Package) -> Result<PathBuf> {
    let from = package.fingerprint.as_deref().unwrap_or_default();
    let place = directory.join(format!("{UNPACKED}{}.tar", from.replace([':', '.'], "-")));
    for entry in std::fs::read_dir(directory).map_err(|e| unwritable(directory, e))? {
        let path = entry.map_err(|e| unwritable(directory, e))?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(UNPACKED.as_bytes()) && path != place {
            std::fs::remove_file(&path).map_err(|e| unwritable(&path, e))?;
        }
    }
    Ok(place)
}

/// Writes the plain tar to `to`, whole and durably or not at all; how many bytes it has. Before some
/// bytes are written, `may_write` is asked.
pub fn unpack(
    package: &Package,
    serialization: Serialization,
    to: &Path,
    bounds: Bounds,
    may_write: impl FnMut(u64) -> Result<()>,
) -> Result<u64> {
    let directory = to.parent().unwrap_or(to);
    // A file of this run alone: a run that has lost its lease must not give the name to what its
    // successor has written half of. It is removed if it does not become whole.
    let mut partial = temporary(directory, ".partial")?;
    let path = partial.path().to_path_buf();
    let total = write(package, serialization, partial.as_file_mut(), &path, bounds, may_write)?;
    partial.persist(to).map_err(|e| unwritable(to, e.error))?;
    File::open(directory).and_then(|d| d.sync_all()).map_err(|e| unwritable(directory, e))?;
    Ok(total)
}

/// A new file in a job's directory, which is removed when it is dropped. Programs of another user may
/// have to read it.
pub fn temporary(directory: &Path, suffix: &str) -> Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(UNPACKED)
        .suffix(suffix)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(|e| unwritable(directory, e))
}

/// Writes the plain tar, and makes it durable: it may be used by another run, after a crash.
fn write(
    package: &Package,
    serialization: Serialization,
    out: &mut File,
    partial: &Path,
    bounds: Bounds,
    mut may_write: impl FnMut(u64) -> Result<()>,
) -> Result<u64> {
    let taken = Arc::new(AtomicU64::new(0));
    let (file, from) = (package.file()?, &package.path());
    let counted = Counted { inner: file, count: taken.clone() };
    let mut plain = decompress(counted, serialization).map_err(|e| unreadable(from, &e))?;
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    loop {
        let read = match plain.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(Error::permanent(
                    ErrorCode::PackageDamaged,
                    format!(
                        "{} is damaged: after {total} bytes its {serialization} compression ends with `{error}`; deposit a good copy",
                        from.display()
                    ),
                ));
            }
        };
        total += read as u64;
        let taken = taken.load(Ordering::Relaxed);
        bounds.check(&from.display().to_string(), 0, total, Some(taken))?;
        may_write(read as u64)?;
        out.write_all(&buffer[..read]).map_err(|e| unwritable(partial, e))?;
    }
    out.sync_all().map_err(|e| unwritable(partial, e))?;
    Ok(total)
}

/// A work space that cannot be written to: a full one is its own error, because it can be fixed.
pub fn unwritable(path: &Path, error: io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::transient(
            ErrorCode::NoSpace,
            format!(
                "the work space is full: {shown}: {error}; make room, the job goes on by itself"
            ),
        )
        .at("work space"),
        _ => Error::transient(ErrorCode::WorkSpace, format!("{shown} cannot be written: {error}"))
            .at("work space"),
    }
}

struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::package::{Form, Owner};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A run that was stopped goes on after its lease was lost, and ends while its successor has written
    /// little; then the successor is killed.
    #[test]
    fn a_run_never_gives_the_name_to_what_another_has_half_written() {
        let dir = tempfile::tempdir().unwrap();
        let plain: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(dir.path().join("a.tar"), &plain).unwrap();
        let gzip = std::process::Command::new("gzip").arg(dir.path().join("a.tar")).status();
        assert!(gzip.unwrap().success());
        let from = dir.path().join("a.tar.gz");
        let package = Package::at(Owner::Archive, Form::Tar, &from, "a").unwrap();
        let bounds = Bounds { files_max: 10, bytes_max: 1 << 30, ratio_max: 250 };
        let to = dir.path().join("unpacked-a.tar");
        let kind = Serialization::TarGz;
        let (mut written, mut succeeded) = (0, false);
        let done = unpack(&package, kind, &to, bounds, |bytes| {
            written += bytes;
            if written > 1_000_000 && !succeeded {
                succeeded = true;
                let mut chunks = 0;
                let killed = catch_unwind(AssertUnwindSafe(|| {
                    unpack(&package, kind, &to, bounds, |_| {
                        chunks += 1;
                        if chunks > 1 { panic!("killed") } else { Ok(()) }
                    })
                }));
                assert!(killed.is_err());
            }
            Ok(())
        });
        assert_eq!(done.unwrap(), plain.len() as u64);
        assert!(std::fs::read(&to).unwrap() == plain);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
    }
}
