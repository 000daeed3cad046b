//! Putting, copying and renaming files, durably.

use super::root::{os_error, split};
use super::temporary::{self, Temporary, in_the_way, rename_new};
use super::{CHUNK_BYTES, Shared, meta_of, run};
use crate::body::Body;
use crate::checksum::Sha256Hasher;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::Meta;
use crate::store::{Condition, PutOptions};
use futures_util::TryStreamExt;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::fs::File;
use std::sync::Arc;

/// A directory may be pruned just before something is renamed into it, again and again; this
/// often is beyond chance.
const RENAME_TRIES: usize = 100;

/// Writes the body to a temporary file, makes it durable, and gives it its key.
pub(super) async fn put(
    shared: &Arc<Shared>,
    key: &str,
    body: Body,
    options: &PutOptions,
) -> Result<Meta> {
    if options.storage_class.is_some() {
        let detail = "a local directory has no storage classes";
        return Err(Error::new(ErrorKind::Unsupported, key, detail));
    }
    let replace = match &options.condition {
        Condition::Always => true,
        Condition::IfAbsent => false,
        Condition::IfMatch(_) => {
            let detail = "a local directory cannot compare and replace in one step";
            return Err(Error::new(ErrorKind::Unsupported, key, detail));
        }
    };
    let (length, made_for, name) = (body.length(), shared.clone(), key.to_owned());
    let (temporary, mut file) = run(move || begin(&made_for, &name, replace, length)).await?;
    let mut hasher = options.sha256.map(|_| Sha256Hasher::new());
    let mut body = body.into_stream();
    let mut chunks = Vec::new();
    let mut chunks_bytes = 0;
    loop {
        let chunk = body.try_next().await?;
        let ended = chunk.is_none();
        chunks_bytes += chunk.as_ref().map_or(0, bytes::Bytes::len);
        chunks.extend(chunk);
        if chunks_bytes < CHUNK_BYTES && !ended {
            continue;
        }
        let (ready, name) = (std::mem::take(&mut chunks), key.to_owned());
        chunks_bytes = 0;
        (file, hasher) = run(move || {
            let written = temporary::write(&mut file, &mut hasher, &ready);
            written.map_err(|error| Error::from_io(name, error))?;
            Ok((file, hasher))
        })
        .await?;
        if ended {
            break;
        }
    }
    let found = hasher.map(Sha256Hasher::finish);
    if let (Some(expected), Some(found)) = (options.sha256, found)
        && expected != found
    {
        // Dropping a temporary file removes it, which may take a while for a large one.
        let removed = run(move || {
            drop((temporary, file));
            Ok(())
        });
        removed.await?;
        let detail = format!("the content has the SHA-256 {found}, not {expected}");
        return Err(Error::new(ErrorKind::Corrupt, key, detail));
    }
    let key = key.to_owned();
    run(move || finish(temporary, file, &key, replace)).await
}

fn begin(
    shared: &Shared,
    key: &str,
    replace: bool,
    length: Option<u64>,
) -> Result<(Temporary, File)> {
    // Known before the body is read; the rename at the end is what decides.
    if !replace && shared.open_file(key).is_ok() {
        return Err(Error::new(ErrorKind::PreconditionFailed, key, "there is an object"));
    }
    let failed = |errno| in_the_way(key, errno);
    let created = Temporary::create(&shared.root, &shared.temporaries).map_err(failed)?;
    temporary::reserve(&created.1, length.unwrap_or(0)).map_err(failed)?;
    Ok(created)
}

fn finish(temporary: Temporary, file: File, key: &str, replace: bool) -> Result<Meta> {
    rustix::fs::fsync(&file).map_err(|errno| os_error(key, errno))?;
    temporary.publish(key, replace, true)?;
    meta_of(key, &file)
}

/// Copies a file; file systems that can share the blocks do so.
pub(super) fn copy(shared: &Shared, from: &str, to: &str) -> Result<Meta> {
    let (mut source, meta) = shared.open_file(from)?;
    let created = Temporary::create(&shared.root, &shared.temporaries);
    let (temporary, mut file) = created.map_err(|errno| in_the_way(to, errno))?;
    let copied = std::io::copy(&mut source, &mut file);
    let copied = copied.map_err(|error| Error::from_io(to, error))?;
    if copied != meta.size {
        return Err(Error::new(ErrorKind::Corrupt, from, "the file changed while it was copied"));
    }
    finish(temporary, file, to, true)
}

/// Moves a file or a whole directory in one step, if there is nothing at the new place.
pub(super) fn rename(shared: &Shared, from: &str, to: &str) -> Result<()> {
    let (from_parent, from_name) = split(from);
    let (to_parent, to_name) = split(to);
    let root = &shared.root;
    for _ in 0..RENAME_TRIES {
        let source = root.open_directory(from_parent).map_err(|errno| os_error(from, errno))?;
        rustix::fs::statat(&source, from_name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| os_error(from, errno))?;
        let add = |at: &_| rename_new(&source, from_name, at, to_name);
        match root.add_name(to_parent, Some(&source), add) {
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(in_the_way(to, errno)),
            Ok(()) => {
                root.prune(from_parent);
                return Ok(());
            }
        }
    }
    Err(Error::new(ErrorKind::Transient, to, "its directory was removed again and again"))
}
