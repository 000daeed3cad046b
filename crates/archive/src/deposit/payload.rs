//! The submitted payload of a batch: a manifest is kept as it came, byte for byte.

use crate::error::{Error, Result};
use crate::package::unpack::unwritable;
use crate::package::unreadable;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A manifest is at most this large.
pub const BYTES_MAX: u64 = 2 << 30;

/// Copies a manifest to where payloads are kept, durably; its place below that directory.
pub fn keep(payloads: &Path, from: &Path) -> Result<String> {
    let mut source = File::open(from).map_err(|e| unreadable(from, &e))?;
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
    let (name, to) = place(payloads)?;
    let mut file = File::create(&to).map_err(|e| unwritable(&to, e))?;
    io::copy(&mut source, &mut file).map_err(|e| unwritable(&to, e))?;
    settle(&file, &to)?;
    Ok(name)
}

/// A new place for a payload.
pub fn place(payloads: &Path) -> Result<(String, PathBuf)> {
    std::fs::create_dir_all(payloads).map_err(|e| unwritable(payloads, e))?;
    let temporary = tempfile::Builder::new().prefix("payload-").tempfile_in(payloads);
    let temporary = temporary.map_err(|e| unwritable(payloads, e))?;
    let (_, path) = temporary.keep().map_err(|e| unwritable(payloads, e.error))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((name, path))
}

/// Makes a payload and its name durable.
pub fn settle(file: &File, path: &Path) -> Result<()> {
    file.sync_all().map_err(|e| unwritable(path, e))?;
    let directory = path.parent().unwrap_or(path);
    File::open(directory).and_then(|d| d.sync_all()).map_err(|e| unwritable(directory, e))
}
