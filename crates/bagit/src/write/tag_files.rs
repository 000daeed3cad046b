//! Writing the tag files of a bag that is a directory. Every file appears whole or not at all.

use super::ledger::Ledger;
use crate::Observer;
use crate::error::Error;
use crate::hashing::{CHUNK_BYTES, hash_reader};
use crate::pool::{self, lock};
use crate::source::directory::Directory;
use crate::source::{Kind, Member, Members};
use digest::Algorithms;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use tempfile::NamedTempFile;

/// Writes a file under a temporary name and then gives it its own.
pub(super) fn write_file(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let failed = |e| Error::io(directory.join(name).display().to_string(), e);
    let mut file = temporary(directory).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    place(file, &directory.join(name)).map_err(failed)
}

fn temporary(directory: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".bagit-");
    #[cfg(unix)]
    {
        // Temporary files are private; the files of a bag are as any other.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

fn place(file: NamedTempFile, path: &Path) -> std::io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Writes `<prefix>-<algorithm>.txt` for every algorithm.
pub(super) fn write_manifests(
    directory: &Path,
    prefix: &str,
    algorithms: Algorithms,
    ledger: Ledger,
) -> Result<(), Error> {
    let failed = |e| Error::io(format!("{}/{prefix}-*.txt", directory.display()), e);
    let mut files = Vec::new();
    for _ in algorithms.iter() {
        files.push(temporary(directory).map_err(failed)?);
    }
    let writer = |f: &'_ NamedTempFile| -> std::io::Result<Box<dyn Write>> {
        Ok(Box::new(BufWriter::new(f.as_file().try_clone()?)))
    };
    let mut outputs: Vec<Box<dyn Write>> =
        files.iter().map(writer).collect::<Result<_, _>>().map_err(failed)?;
    ledger.write(&mut outputs).map_err(failed)??;
    drop(outputs);
    for (algorithm, file) in algorithms.iter().zip(files) {
        place(file, &directory.join(format!("{prefix}-{algorithm}.txt"))).map_err(failed)?;
    }
    Ok(())
}

/// Refuses what cannot be in a bag.
pub(super) fn refuse_unfit(member: &Member) -> Result<(), Error> {
    let why = match member.kind {
        Kind::File | Kind::Directory if member.utf8 => return Ok(()),
        Kind::File | Kind::Directory => "its name is not UTF-8; rename it",
        Kind::Symlink => "it is a symbolic link; replace it by what it points to, or remove it",
        Kind::HardLink | Kind::Special => "it is not a regular file; remove it",
        Kind::Unsupported(why) => why,
    };
    Err(Error::Refused(format!("{}: {why}", member.path)))
}

/// Hashes the files of a directory that `wanted` accepts, under their paths after `prefix`.
pub(super) fn hash_directory(
    directory: &Path,
    prefix: &str,
    wanted: &dyn Fn(&str) -> bool,
    ledger: Ledger,
    algorithms: Algorithms,
    workers: usize,
    observer: &dyn Observer,
) -> Result<Ledger, Error> {
    let source = Directory::new(directory);
    let ledger = Mutex::new(ledger);
    let work = |member: Member, buffer: &mut [u8]| {
        let about = || format!("{}/{}", directory.display(), member.path);
        let mut reader = source.open(&member.locator).map_err(|e| Error::io(about(), e))?;
        let (size, digests) = hash_reader(&mut *reader, algorithms, buffer, &mut |bytes| {
            observer.bytes(bytes.len() as u64);
            Ok(())
        })
        .map_err(|e| Error::io(about(), e))?;
        observer.files(1);
        let path = format!("{prefix}{}", member.path);
        lock(&ledger).add(&path, size, &digests).map_err(|e| Error::io("temporary file", e))
    };
    pool::run(workers, CHUNK_BYTES, work, |put| {
        source.list(false, &mut |member| {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            if member.kind == Kind::Directory || !wanted(&member.path) {
                return Ok(());
            }
            refuse_unfit(&member)?;
            if put(member) { Ok(()) } else { Err(Error::Stopped) }
        })
    })?;
    Ok(ledger.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Makes sure that the names in a directory are on disk.
pub(super) fn sync_directory(directory: &Path) -> Result<(), Error> {
    let failed = |e| Error::io(directory.display().to_string(), e);
    if cfg!(unix) {
        File::open(directory).and_then(|d| d.sync_all()).map_err(failed)?;
    }
    Ok(())
}
