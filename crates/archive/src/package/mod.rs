//! How the bytes of a package are read, whatever it is: a directory, an archive, one file, or
//! files that were fetched one by one.

pub mod bounds;
pub mod empty;
pub mod file_range;
pub mod kind;
pub mod known;
pub mod manifest;
pub mod pass;
pub mod path;
pub mod payload;
pub mod program;
pub mod reading;
pub mod survey;
pub mod unpack;
pub mod validate;

use crate::ErrorCode;
use crate::model::error::{Error, Result};
use bagit::beneath::{self, EntryInfo, Opened, Refused};
use bagit::source::directory::Directory;
use bagit::source::tar::{self, TarFile};
use bagit::source::zip::ZipFile;
use bagit::source::{Kind, Member, Members, Serialization};
use file_range::FileRange;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The form in which a package's members can be read in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    File,
    Directory,
    Tar,
    Zip,
}

/// Who can write to the place where a package is, which decides which links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// It is in the work space: the directories above it are trusted.
    #[default]
    Archive,
    /// It is where a depositor put it. Its path was free of links when it was received, so no
    /// link is followed anywhere on it.
    Depositor,
}

impl Owner {
    /// Opens a file or directory. Links are refused, and so are pipes, sockets and devices, without
    /// waiting for any of them.
    pub fn open(self, path: &Path) -> Result<Opened> {
        match self {
            Owner::Archive => beneath::open_in_place(path),
            Owner::Depositor => beneath::open(path),
        }
        .map_err(|e| unreadable(path, &e))
    }

    pub fn open_file(self, path: &Path) -> Result<File> {
        self.open(path)?.file().map_err(|e| unreadable(path, &e))
    }
}

/// Where a package is, and how to tell that it is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    pub form: Form,
    /// A path, encoded as in [`crate::model::item::Source`].
    pub path: String,
    /// The deposited name, which bags are compared with.
    pub name: String,
    /// The files were listed by a manifest, and fetched one by one.
    #[serde(default)]
    pub fetched: bool,
    #[serde(default)]
    pub owner: Owner,
    /// Size, time and number of the file when it was first looked at; directories have none.
    pub fingerprint: Option<String>,
    /// The same of what was deposited, where this was made from it.
    #[serde(default)]
    pub deposited: Option<String>,
}

impl Package {
    pub fn at(owner: Owner, form: Form, path: &Path, name: &str) -> Result<Package> {
        let known = match owner.open(path)? {
            Opened::Folder(_) => None,
            Opened::File(file) => {
                Some(fingerprint(&file.metadata().map_err(|e| unreadable(path, &e))?))
            }
        };
        Ok(Package {
            form,
            path: crate::model::item::Source::from_path(path)?.to_string(),
            name: name.to_string(),
            fetched: false,
            owner,
            deposited: known.clone(),
            fingerprint: known,
        })
    }

    /// The same package, if it is the very file that was allowed.
    pub fn that_is(self, allowed: &str) -> Result<Package> {
        match self.fingerprint.as_deref() == Some(allowed) {
            true => Ok(self),
            false => Err(self.changed()),
        }
    }

    pub fn changed(&self) -> Error {
        let shown = self.path();
        Error::permanent(
            ErrorCode::PackageChanged,
            format!(
                "{} has changed since the ingest began; deposit it again when it is complete",
                shown.display()
            ),
        )
        .about(&self.name)
    }

    /// Opens the file of a package. The open file is compared with the fingerprint, so links and
    /// replacements never lead to other bytes.
    pub fn file(&self) -> Result<File> {
        let file = self.owner.open_file(&self.path())?;
        match self.is_same(&file) {
            true => Ok(file),
            false => Err(self.changed()),
        }
    }

    fn is_same(&self, file: &File) -> bool {
        let Some(known) = &self.fingerprint else { return true };
        file.metadata().is_ok_and(|meta| *known == fingerprint(&meta))
    }

    pub fn path(&self) -> PathBuf {
        crate::model::item::Source::Path(self.path.clone()).path().unwrap_or_default()
    }

    /// Opens the package, if it is still the one that was looked at first.
    pub fn open(&self) -> Result<Arc<dyn Members>> {
        let path = self.path();
        if self.form == Form::Directory {
            let folder = self.owner.open(&path)?.folder().map_err(|e| unreadable(&path, &e))?;
            return Ok(Arc::new(Directory::opened(folder, path)));
        }
        let file = self.file()?;
        Ok(match self.form {
            Form::Tar => Arc::new(TarFile::new(file, &self.name)),
            Form::Zip => Arc::new(ZipFile::new(file, &self.name)),
            Form::File | Form::Directory => {
                let meta = file.metadata().map_err(|e| unreadable(&path, &e))?;
                let (name, utf8) = self.file_name();
                // What was fetched has the date of its download.
                let modified = match self.owner {
                    Owner::Depositor => bagit::source::directory::modified(&meta),
                    Owner::Archive => None,
                };
                Arc::new(SingleFile { file, name, utf8, size: meta.len(), modified })
            }
        })
    }
}

impl Package {
    /// What the one file of a package is called in the object: as it is called where it is, with
    /// the bytes that are not UTF-8 as in directories, and whether there are none of those. One
    /// that was fetched has the name it was deposited under.
    fn file_name(&self) -> (String, bool) {
        let path = self.path();
        let here = path.file_name().unwrap_or_default().as_bytes();
        match queue::subject::decode(&self.name) == here {
            true => (bagit::path::from_bytes(here), std::str::from_utf8(here).is_ok()),
            false => (self.name.clone(), true),
        }
    }

    /// The bytes of a member as a stretch of a file, where they are just that: not for what is
    /// compressed or sparse.
    pub fn file_range(&self, locator: &[u8]) -> Option<FileRange> {
        match self.form {
            Form::Tar => {
                let (at, size) = tar::plain_range(locator)?;
                Some(FileRange { file: self.file().ok()?, at, size })
            }
            Form::File => FileRange::of(self.file().ok()?),
            Form::Directory => {
                let path = self.path().join(std::ffi::OsStr::from_bytes(locator));
                FileRange::of(self.owner.open_file(&path).ok()?)
            }
            Form::Zip => None,
        }
    }

    /// How many bytes the container has as it was deposited; `None` for what is not one.
    pub fn stored_bytes(&self) -> Result<Option<u64>> {
        if matches!(self.form, Form::Directory | Form::File) {
            return Ok(None);
        }
        let meta = self.file()?.metadata().map_err(|e| unreadable(&self.path(), &e))?;
        Ok(Some(meta.len()))
    }

    /// What the archive is, by its first bytes; `None` for what is not one.
    pub fn sniff(&self) -> Result<Option<Serialization>> {
        unpack::sniff(&self.file()?, &self.path())
    }
}

/// What changes when a file is written to or replaced.
pub fn fingerprint(meta: &std::fs::Metadata) -> String {
    format!("{}:{}.{}:{}", meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino())
}

/// The same, of a name that was not opened.
pub fn fingerprint_of(info: &EntryInfo) -> String {
    let (seconds, nanos) = info.modified;
    format!("{}:{seconds}.{nanos}:{}", info.bytes, info.inode)
}

/// A file that cannot be read: gone or forbidden is for a person to fix, the rest may pass.
pub fn unreadable(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    if let Some(refused) = Refused::of(error) {
        return not_opened(&shown.to_string(), refused);
    }
    match error.kind() {
        io::ErrorKind::NotFound => Error::permanent(
            ErrorCode::PackageMissing,
            format!("{shown} is not there; put it back and requeue the job, or deposit it again"),
        ),
        io::ErrorKind::PermissionDenied => Error::permanent(
            ErrorCode::PackageForbidden,
            format!("{shown} may not be read by this worker; let it, and requeue the job"),
        ),
        _ => Error::transient(
            ErrorCode::PackageUnreadable,
            format!("{shown} cannot be read: {error}"),
        ),
    }
}

/// The error for a path that exists and is not opened.
pub fn not_opened(shown: &str, refused: Refused) -> Error {
    let code = match refused {
        Refused::Link => ErrorCode::PackageLink,
        Refused::Special => ErrorCode::NotAFile,
        Refused::Directory | Refused::NotDirectory => ErrorCode::NotAsAnnounced,
        Refused::Path => ErrorCode::BadPath,
    };
    Error::permanent(code, format!("{shown} is not read: {refused}"))
}

/// A package of one file.
struct SingleFile {
    file: File,
    name: String,
    utf8: bool,
    size: u64,
    modified: Option<i64>,
}

impl Members for SingleFile {
    fn serialization(&self) -> Serialization {
        Serialization::Directory
    }

    fn list(
        &self,
        _sizes: bool,
        visit: &mut dyn FnMut(Member) -> Result<(), bagit::Error>,
    ) -> Result<(), bagit::Error> {
        visit(Member {
            path: self.name.clone(),
            kind: Kind::File,
            size: Some(self.size),
            utf8: self.utf8,
            locator: Vec::new(),
            modified: self.modified,
        })
    }

    fn open<'a>(&'a self, _locator: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
        Ok(Box::new(FromStart { file: &self.file, at: 0 }))
    }

    fn size(&self, _locator: &[u8]) -> io::Result<u64> {
        Ok(self.size)
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(self.size)
    }
}

/// Reads a file that others read at the same time.
struct FromStart<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// An error of reading an archive. What its bytes say is for the depositor to fix; what the
/// disk says may pass.
pub fn reading_failed(error: bagit::Error) -> Error {
    match error {
        bagit::Error::Stopped => Error::Stopped,
        bagit::Error::Io { what, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            Error::permanent(
                ErrorCode::PackageForbidden,
                format!("{what} may not be read by this worker; let it, and requeue the job"),
            )
        }
        bagit::Error::Io { what, source } if let Some(refused) = Refused::of(&source) => {
            not_opened(&what, refused)
        }
        bagit::Error::Io { .. } => {
            Error::transient(ErrorCode::PackageUnreadable, error.to_string())
        }
        bagit::Error::Limit { .. } => Error::permanent(ErrorCode::PackageLimit, error.to_string()),
        other => Error::permanent(ErrorCode::PackageDamaged, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_fingerprint_whether_it_is_open_or_not() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "abc").unwrap();
        let folder = beneath::Folder::open(dir.path()).unwrap();
        let meta = folder.file(Path::new("a")).unwrap().metadata().unwrap();
        assert_eq!(fingerprint_of(&folder.info(Path::new("a")).unwrap()), fingerprint(&meta));
    }

    #[test]
    fn one_file_keeps_its_name_and_a_fetched_one_the_name_it_was_deposited_under() {
        let dir = tempfile::tempdir().unwrap();
        for (on_disk, deposited, kept) in [
            (b"a%FF".as_slice(), None, ("a%FF", true)),
            (b"a\xff", None, ("a%FF", false)),
            (b"a\nb", None, ("a\nb", true)),
            (b"payload", Some("a%20b.txt"), ("a%20b.txt", true)),
        ] {
            let path = dir.path().join(std::ffi::OsStr::from_bytes(on_disk));
            std::fs::write(&path, "x").unwrap();
            let named = crate::model::item::Source::from_path(&path).unwrap().file_name();
            let package =
                Package::at(Owner::Archive, Form::File, &path, deposited.unwrap_or(&named))
                    .unwrap();
            let mut found = Vec::new();
            let listed = package.open().unwrap().list(false, &mut |member| {
                found.push((member.path, member.utf8));
                Ok(())
            });
            listed.unwrap();
            assert_eq!(found, [(kept.0.to_string(), kept.1)]);
        }
    }
}
