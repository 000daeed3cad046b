//! Turning a directory into a bag without copying its files.

use super::ledger::Ledger;
use super::tag_files::{hash_directory, refuse_unfit, sync_directory, write_file, write_manifests};
use super::{WriteOptions, Written};
use crate::Observer;
use crate::declaration::{Declaration, Version};
use crate::error::Error;
use crate::source::Members;
use crate::source::directory::Directory;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Makes a directory a bag: its content moves into `data/`, and the tag files are added. When
/// something is not fit for a bag, nothing is changed.
pub fn create_in_place(
    directory: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<Written, Error> {
    options.check()?;
    if directory.join("bagit.txt").exists() {
        let message =
            format!("{}: is a bag already; update its manifests instead", directory.display());
        return Err(Error::Refused(message));
    }
    Directory::new(directory).list(false, &mut |member| refuse_unfit(&member))?;
    move_into_data(directory)?;
    finish(directory, options, observer)
}

/// Hashes what is in `data/` and writes the tag files.
pub(super) fn finish(
    directory: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<Written, Error> {
    let ledger = Ledger::new(options.algorithms, Version::V1_0);
    let (algorithms, workers) = (options.algorithms, options.workers);
    let data = directory.join("data");
    let ledger = hash_directory(&data, "data/", &|_| true, ledger, algorithms, workers, observer)?;
    write_tag_files(directory, options, ledger)
}

/// Writes the tag files of a bag whose payload is in place; `bagit.txt` makes it one, so it is
/// the last but for what lists it.
pub(super) fn write_tag_files(
    directory: &Path,
    options: &WriteOptions,
    ledger: Ledger,
) -> Result<Written, Error> {
    let payload = ledger.oxum;
    let algorithms = options.algorithms;
    write_manifests(directory, "manifest", algorithms, ledger)?;
    write_file(directory, "bag-info.txt", options.info(payload).render().as_bytes())?;
    write_file(directory, "bagit.txt", Declaration::render(Version::V1_0).as_bytes())?;
    write_tag_manifests(directory, algorithms, options.workers)?;
    sync_directory(directory)?;
    Ok(Written { payload, algorithms: algorithms.iter().collect() })
}

pub(super) fn write_tag_manifests(
    directory: &Path,
    algorithms: digest::Algorithms,
    workers: usize,
) -> Result<(), Error> {
    let ledger = Ledger::new(algorithms, Version::V1_0);
    let wanted = |path: &str| {
        let is_tag_manifest = path.starts_with("tagmanifest-") && !path.contains('/');
        !path.starts_with("data/") && !is_tag_manifest
    };
    let ledger = hash_directory(directory, "", &wanted, ledger, algorithms, workers, &())?;
    write_manifests(directory, "tagmanifest", algorithms, ledger)
}

fn move_into_data(directory: &Path) -> Result<(), Error> {
    let failed = |e| Error::io(directory.display().to_string(), e);
    let names: Vec<OsString> = fs::read_dir(directory)
        .and_then(|entries| entries.map(|e| e.map(|e| e.file_name())).collect())
        .map_err(failed)?;
    let holder =
        tempfile::Builder::new().prefix(".bagit-").tempdir_in(directory).map_err(failed)?;
    let inside = holder.path().join("data");
    fs::create_dir(&inside).map_err(failed)?;
    for (index, name) in names.iter().enumerate() {
        if let Err(error) = fs::rename(directory.join(name), inside.join(name)) {
            // What was moved goes back; a file that cannot is named in the error that follows.
            for name in &names[..index] {
                fs::rename(inside.join(name), directory.join(name)).map_err(failed)?;
            }
            return Err(failed(error));
        }
    }
    fs::rename(&inside, directory.join("data")).map_err(failed)
}
