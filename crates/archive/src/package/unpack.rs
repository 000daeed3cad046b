//! A compressed tar becomes a plain one in the work space: then its members are ranges of a file,
//! like those of any other tar, and nothing is unpacked one by one.

use super::Package;
use super::unreadable;
use crate::error::{Error, Result};
use bagit::Serialization;
use bagit::source::open::decompress;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What protects the work space from an archive that expands without end.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub bytes_max: u64,
    pub ratio_max: u64,
}

/// The ratio is not looked at before this many bytes: small archives of zeros harm no one.
const RATIO_FROM_BYTES: u64 = 64 * 1024 * 1024;

/// What an archive is, by its first bytes; `None` for what is no archive.
pub fn sniff(path: &Path) -> Result<Option<Serialization>> {
    let mut start = Vec::with_capacity(512);
    let file = File::open(path).map_err(|e| unreadable(path, &e))?;
    file.take(512).read_to_end(&mut start).map_err(|e| unreadable(path, &e))?;
    Ok(Serialization::sniff(&start))
}

/// Whether a name ends as those of archives do.
pub fn is_called_archive(name: &str) -> bool {
    const ENDS: [&str; 9] =
        [".tar", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.zst", ".tzst"];
    let lower = name.to_ascii_lowercase();
    ENDS.iter().any(|end| lower.ends_with(end))
}

/// Where the plain tar of a package is put: its name says what it was made from. Those that were
/// made from what the package was before are removed.
pub fn place_in(directory: &Path, package: &Package) -> Result<PathBuf> {
    const PREFIX: &str = "unpacked-";
    let from = package.fingerprint.as_deref().unwrap_or_default();
    let place = directory.join(format!("{PREFIX}{}.tar", from.replace([':', '.'], "-")));
    for entry in std::fs::read_dir(directory).map_err(|e| unwritable(directory, e))? {
        let path = entry.map_err(|e| unwritable(directory, e))?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(PREFIX.as_bytes()) && path != place {
            std::fs::remove_file(&path).map_err(|e| unwritable(&path, e))?;
        }
    }
    Ok(place)
}

/// Writes the plain tar to `to`, whole and durably or not at all; how many bytes it has.
pub fn unpack(
    package: &Package,
    serialization: Serialization,
    to: &Path,
    bounds: Bounds,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<u64> {
    let taken = Arc::new(AtomicU64::new(0));
    let (file, from) = (package.file()?, &package.path());
    let counted = Counted { inner: file, count: taken.clone() };
    let mut plain = decompress(counted, serialization).map_err(|e| unreadable(from, &e))?;
    let partial = to.with_extension("partial");
    let mut out = File::create(&partial).map_err(|e| unwritable(&partial, e))?;
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    loop {
        let read = match plain.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(Error::permanent(
                    "package_damaged",
                    format!(
                        "{} is damaged: after {total} bytes its {serialization} compression ends with `{error}`; deposit a good copy",
                        from.display()
                    ),
                ));
            }
        };
        total += read as u64;
        check(total, taken.load(Ordering::Relaxed), bounds, from)?;
        out.write_all(&buffer[..read]).map_err(|e| unwritable(&partial, e))?;
        if !go_on(read as u64) {
            return Err(Error::Stopped);
        }
    }
    // It may be used by another run, after a crash.
    out.sync_all().map_err(|e| unwritable(&partial, e))?;
    std::fs::rename(&partial, to).map_err(|e| unwritable(to, e))?;
    let directory = to.parent().unwrap_or(to);
    File::open(directory).and_then(|d| d.sync_all()).map_err(|e| unwritable(directory, e))?;
    Ok(total)
}

fn check(total: u64, taken: u64, bounds: Bounds, from: &Path) -> Result<()> {
    let shown = from.display();
    if total > bounds.bytes_max {
        let most = bounds.bytes_max;
        return Err(Error::permanent(
            "too_many_bytes",
            format!(
                "{shown} expands to more than {most} bytes, which is the collection's limit; raise bytes_max or divide the package"
            ),
        ));
    }
    if total > RATIO_FROM_BYTES && total / taken.max(1) > bounds.ratio_max {
        let most = bounds.ratio_max;
        return Err(Error::permanent(
            "decompression_bomb",
            format!(
                "{shown} expands more than {most} times, as only a decompression bomb does; raise expand_ratio_max if this is expected"
            ),
        ));
    }
    Ok(())
}

/// A work space that cannot be written to: a full one is its own error, because it can be mended.
pub fn unwritable(path: &Path, error: io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::transient(
            "no_space",
            format!(
                "the work space is full: {shown}: {error}; make room, the job goes on by itself"
            ),
        )
        .at("work space"),
        _ => Error::transient("work_space", format!("{shown} cannot be written: {error}"))
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
