//! Packages as directories.

use super::Member;
use super::writer::{PackageWriter, WriteError};
use crate::package::path::fault;
use std::fs::{self, File, FileTimes};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Writes files below a directory that no one else writes to.
pub struct DirectoryWriter {
    root: PathBuf,
    /// The directory that the last file went to.
    last: Option<PathBuf>,
    open: Option<File>,
}

impl DirectoryWriter {
    pub fn new(root: &Path) -> io::Result<DirectoryWriter> {
        fs::create_dir_all(root)?;
        Ok(DirectoryWriter { root: root.to_owned(), last: None, open: None })
    }

    fn file(&mut self) -> io::Result<&mut File> {
        self.open.as_mut().ok_or_else(|| io::Error::other("no file is open"))
    }
}

/// Where a member goes. A path that leads elsewhere is refused.
pub fn place(root: &Path, path: &str) -> io::Result<PathBuf> {
    match fault(path) {
        None => Ok(root.join(path)),
        Some(why) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path}: {why}"))),
    }
}

/// A time as the file system has it.
fn system_time(micros: i64) -> Option<SystemTime> {
    let amount = Duration::from_micros(micros.unsigned_abs());
    match micros < 0 {
        true => UNIX_EPOCH.checked_sub(amount),
        false => UNIX_EPOCH.checked_add(amount),
    }
}

fn set_modified(file: &File, member: &Member) -> io::Result<()> {
    match member.modified.and_then(system_time) {
        Some(time) => file.set_times(FileTimes::new().set_modified(time)),
        None => Ok(()),
    }
}

impl PackageWriter for DirectoryWriter {
    fn begin(&mut self, member: &Member) -> Result<(), WriteError> {
        let path = place(&self.root, &member.path)?;
        if member.is_directory() {
            fs::create_dir_all(&path)?;
            return Ok(set_modified(&File::open(&path)?, member)?);
        }
        let parent = path.parent().unwrap_or(&self.root);
        if self.last.as_deref() != Some(parent) {
            fs::create_dir_all(parent)?;
            self.last = Some(parent.to_owned());
        }
        let mut options = File::options();
        self.open = Some(options.write(true).create(true).truncate(true).open(&path)?);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        Ok(self.file()?.write_all(bytes)?)
    }

    fn restart(&mut self, _: &Member) -> Result<(), WriteError> {
        let file = self.file()?;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(())
    }

    fn abandon(&mut self, member: &Member) -> Result<(), WriteError> {
        self.open = None;
        Ok(fs::remove_file(place(&self.root, &member.path)?)?)
    }

    fn end(&mut self, member: &Member) -> Result<(), WriteError> {
        match self.open.take() {
            Some(file) => Ok(set_modified(&file, member)?),
            None => Ok(()),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        Ok(())
    }
}
