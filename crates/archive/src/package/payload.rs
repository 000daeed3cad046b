//! The submitted payload of a batch: a manifest is kept as it came, byte for byte.

use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::model::item::ExpectedDigest;
use crate::model::problem::Problems;
use crate::package::unpack::unwritable;
use crate::package::validate::check_claimed;
use crate::package::{Form, Owner, Package, unreadable};
use queue::BatchId;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    match error.own_code() {
        Some(ErrorCode::FileTooLarge) => Error::permanent(
            ErrorCode::ManifestTooLarge,
            format!("{name} has more bytes than a manifest may have, {BYTES_MAX}; divide it"),
        ),
        _ => error,
    }
}

/// Refuses a manifest that is larger than one may be.
pub fn check_size(name: &str, size: u64) -> Result<()> {
    if size <= BYTES_MAX {
        return Ok(());
    }
    Err(Error::permanent(
        ErrorCode::ManifestTooLarge,
        format!("{name} has {size} bytes, and a manifest may have {BYTES_MAX}; divide it"),
    ))
}

/// Compares a manifest with the digest that was given for it.
pub fn check_digest(
    owner: Owner,
    path: &Path,
    name: &str,
    claimed: Option<&ExpectedDigest>,
) -> Result<()> {
    let Some(claimed) = claimed else { return Ok(()) };
    let package = Package::at(owner, Form::File, path, name)?;
    let mut problems = Problems::default();
    check_claimed(&package, claimed, &(Arc::new(|_| true) as _), &mut problems)?;
    if problems.has_errors() {
        let what = format!("the manifest {name}");
        return Err(Error::Invalid { what, problems: Box::new(problems) });
    }
    Ok(())
}

/// Copies a manifest durably.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut source = Owner::Depositor.open_file(from)?;
    let size = source.metadata().map_err(|e| unreadable(from, &e))?.len();
    check_size(&from.display().to_string(), size)?;
    let mut file = File::create(to).map_err(|e| unwritable(to, e))?;
    // One that grows while it is copied is bounded as well, and not cut short.
    let copied = io::copy(&mut io::Read::take(&mut source, BYTES_MAX + 1), &mut file)
        .map_err(|e| unwritable(to, e))?;
    check_size(&from.display().to_string(), copied)?;
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
