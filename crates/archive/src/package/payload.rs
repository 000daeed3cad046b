//! The submitted payload of a batch: a manifest is kept as it came, byte for byte.

use crate::model::error::{Error, Result};
use crate::package::unpack::unwritable;
use crate::package::{Owner, unreadable};
use queue::BatchId;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A manifest is at most this large.
pub const BYTES_MAX: u64 = 2 << 30;

/// Copies a manifest to where payloads are kept, durably, under a name of its own; its name there.
pub fn keep(payloads: &Path, from: &Path) -> Result<String> {
    let (name, to) = place(payloads)?;
    match copy(from, &to) {
        Ok(()) => Ok(name),
        Err(error) => {
            forget(payloads, &name);
            Err(error)
        }
    }
}

/// The name of a batch's payload where the batch is known before its payload is: each run has the
/// same one, so that none leaves files behind that no batch names.
pub fn name_of(batch: BatchId) -> String {
    format!("batch-{batch}")
}

/// Removes a payload that no batch has.
pub fn forget(payloads: &Path, name: &str) {
    let _ = std::fs::remove_file(payloads.join(name));
}

/// An error of the download of a manifest, which may not be as large as other files.
pub fn too_large_or(error: Error, name: &str) -> Error {
    match error.code() {
        "file_too_large" => Error::permanent(
            "manifest_too_large",
            format!("{name} has more bytes than a manifest may have, {BYTES_MAX}; divide it"),
        ),
        _ => error,
    }
}

/// Copies a manifest durably.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut source = Owner::Depositor.open_file(from)?;
    let size = source.metadata().map_err(|e| unreadable(from, &e))?.len();
    if size > BYTES_MAX {
        return Err(Error::permanent(
            "manifest_too_large",
            format!(
                "{} has {size} bytes, and a manifest may have {BYTES_MAX}; divide it",
                from.display()
            ),
        ));
    }
    let mut file = File::create(to).map_err(|e| unwritable(to, e))?;
    // One that grows while it is copied is bounded as well.
    io::copy(&mut io::Read::take(&mut source, BYTES_MAX), &mut file)
        .map_err(|e| unwritable(to, e))?;
    settle(&file, to)
}

/// A new place for a payload.
fn place(payloads: &Path) -> Result<(String, PathBuf)> {
    std::fs::create_dir_all(payloads).map_err(|e| unwritable(payloads, e))?;
    let temporary = tempfile::Builder::new().prefix("payload-").tempfile_in(payloads);
    let temporary = temporary.map_err(|e| unwritable(payloads, e))?;
    let (_, path) = temporary.keep().map_err(|e| unwritable(payloads, e.error))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((name, path))
}

/// Makes a payload and its name durable.
fn settle(file: &File, path: &Path) -> Result<()> {
    file.sync_all().map_err(|e| unwritable(path, e))?;
    let directory = path.parent().unwrap_or(path);
    File::open(directory).and_then(|d| d.sync_all()).map_err(|e| unwritable(directory, e))
}
