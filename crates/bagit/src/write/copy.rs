//! Making a new bag from files that stay where they are.

use super::in_place::write_tag_files;
use super::ledger::Ledger;
use super::tag_files::refuse_unfit;
use super::{WriteOptions, Written};
use crate::Observer;
use crate::declaration::Version;
use crate::error::Error;
use crate::hashing::{CHUNK_BYTES, hash_reader};
use crate::pool::{self, lock};
use crate::source::directory::Directory;
use crate::source::{Kind, Member, Members};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Copies a directory into a new bag. Every byte is read once: it is hashed while it is copied.
/// The bag appears under its name when it is complete; after a failure nothing is left.
pub fn create(
    source: &Path,
    target: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<Written, Error> {
    options.check()?;
    if target.exists() {
        return Err(Error::Refused(format!("{}: is there already", target.display())));
    }
    let about_target = |e| Error::io(target.display().to_string(), e);
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let inside = fs::canonicalize(parent)
        .and_then(|parent| Ok(parent.starts_with(fs::canonicalize(source)?)))
        .map_err(about_target)?;
    if inside {
        let message = format!("{}: lies inside {}", target.display(), source.display());
        return Err(Error::Refused(message));
    }
    let holder =
        tempfile::Builder::new().prefix(".bagit-").tempdir_in(parent).map_err(about_target)?;
    let bag = holder.path().join("bag");
    let data = bag.join("data");
    fs::create_dir_all(&data).map_err(about_target)?;
    let ledger = copy_all(source, &data, options, observer)?;
    let written = write_tag_files(&bag, options, ledger)?;
    fs::rename(&bag, target).map_err(about_target)?;
    Ok(written)
}

fn copy_all(
    source: &Path,
    data: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<Ledger, Error> {
    let members = Directory::new(source);
    let ledger = Mutex::new(Ledger::new(options.algorithms, Version::V1_0));
    let work = |member: Member, buffer: &mut [u8]| {
        let (size, digests) = copy_one(&members, &member, data, options, buffer, observer)
            .map_err(|e| Error::io(format!("{}/{}", source.display(), member.path), e))?;
        let path = format!("data/{}", member.path);
        lock(&ledger).add(&path, size, &digests).map_err(|e| Error::io("temporary file", e))
    };
    pool::run(options.workers, CHUNK_BYTES, work, |put| {
        members.list(false, &mut |member| {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            refuse_unfit(&member)?;
            if member.kind == Kind::Directory {
                let path = data.join(&member.path);
                return fs::create_dir(&path).map_err(|e| Error::io(path.display().to_string(), e));
            }
            if put(member) { Ok(()) } else { Err(Error::Stopped) }
        })
    })?;
    Ok(ledger.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn copy_one(
    members: &Directory,
    member: &Member,
    data: &Path,
    options: &WriteOptions,
    buffer: &mut [u8],
    observer: &dyn Observer,
) -> std::io::Result<(u64, crate::Digests)> {
    let mut reader = members.open(&member.locator)?;
    let mut file = File::create_new(data.join(&member.path))?;
    let hashed = hash_reader(&mut *reader, options.algorithms, buffer, &mut |bytes| {
        observer.bytes(bytes.len() as u64);
        file.write_all(bytes)
    })?;
    observer.files(1);
    Ok(hashed)
}
