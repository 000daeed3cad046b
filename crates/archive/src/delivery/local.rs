//! Places of this machine that packages are delivered to.
//!
//! A package is written in a directory of its own beside its place, whose name begins with a dot, and
//! renamed when it is complete and was read again. So what has the name that was asked for is whole,
//! whenever the process dies.

use crate::ErrorCode;
use crate::model::error::{Error, Result};
use queue::JobId;
use rustix::fs::{CWD, RenameFlags};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A place on its way to be filled.
#[derive(Debug, Clone)]
pub struct LocalPlace {
    /// Where the package will be.
    pub path: PathBuf,
    holder: PathBuf,
}

impl LocalPlace {
    /// The place of one job, which it alone owns.
    pub fn new(path: PathBuf, installation: &str, job: JobId) -> LocalPlace {
        let installation = &installation[..installation.len().min(8)];
        let name = format!(".accession-restore-{installation}-{job}");
        let holder = parent(&path).join(name);
        LocalPlace { path, holder }
    }

    /// Where the package is while it is written.
    pub fn unfinished(&self) -> PathBuf {
        self.holder.join("package")
    }

    /// Whether something is where the package will be.
    pub fn is_taken(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Whether this job has put its package there, and ended before it could say so.
    pub fn is_published(&self) -> bool {
        self.is_taken()
            && self.holder.symlink_metadata().is_ok()
            && self.unfinished().symlink_metadata().is_err()
    }

    /// Makes the directories above the package.
    pub fn prepare(&self) -> Result<()> {
        fs::create_dir_all(parent(&self.path)).map_err(|e| unwritable(&self.path, e))?;
        match DirBuilder::new().mode(0o700).create(&self.holder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(unwritable(&self.path, error))
            }
            _ => Ok(()),
        }
    }

    /// Gives the package its name; never over something that is there.
    pub fn publish(&self) -> Result<()> {
        let from = self.unfinished();
        make_durable(&from).map_err(|e| unwritable(&self.path, e))?;
        let renamed =
            rustix::fs::renameat_with(CWD, &from, CWD, &self.path, RenameFlags::NOREPLACE);
        match renamed.map_err(io::Error::from) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(taken(&self.path));
            }
            // Some network file systems know no such rename.
            Err(error) if matches!(error.raw_os_error(), Some(22 | 95)) => {
                if self.is_taken() {
                    return Err(taken(&self.path));
                }
                fs::rename(&from, &self.path).map_err(|e| unwritable(&self.path, e))?;
            }
            Err(error) => return Err(unwritable(&self.path, error)),
        }
        let directory = File::open(parent(&self.path)).and_then(|directory| directory.sync_all());
        directory.map_err(|e| unwritable(&self.path, e))
    }

    /// Removes what the job has written and did not deliver. No error if there is nothing.
    pub fn clean(&self) -> Result<()> {
        match fs::remove_dir_all(&self.holder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(unwritable(&self.holder, error))
            }
            _ => Ok(()),
        }
    }
}

/// Of a directory, all files of its file system at once instead of each by itself.
fn make_durable(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Ok(rustix::fs::syncfs(&file)?),
        false => file.sync_all(),
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The refusal to write over something.
pub fn taken(path: &Path) -> Error {
    Error::permanent(
        ErrorCode::DestinationExists,
        format!(
            "{} is there already, and nothing is ever overwritten; name another place with --to, or move it away and requeue the job",
            path.display()
        ),
    )
}

/// What cannot be written to a destination.
pub fn unwritable(path: &Path, error: io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::transient(
            ErrorCode::DestinationFull,
            format!("there is no room left for {shown}: {error}; free some, the restore goes on where it stopped"),
        )
        .at(format!("destination {shown}")),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::permanent(
            ErrorCode::DestinationDenied,
            format!("{shown} cannot be written: {error}; name another place with --to, or change its permissions and requeue the job"),
        ),
        io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => Error::permanent(
            ErrorCode::DestinationRefusesName,
            format!("{shown}: {error}; its file system does not take the name of a file, restore as tar instead"),
        ),
        _ => Error::transient(
            ErrorCode::DestinationUnwritable,
            format!("{shown} cannot be written: {error}; remove the cause, the restore goes on where it stopped"),
        )
        .at(format!("destination {shown}")),
    }
}
