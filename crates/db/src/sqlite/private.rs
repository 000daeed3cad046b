//! Permissions: the files of a database are for its owner alone, because they hold secrets.

use crate::sqlite::beside;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The suffixes of the files beside a database. SQLite gives its files the database's mode.
const BESIDE: [&str; 7] = ["-wal", "-shm", "-turn", "-pen", "-bell", "-programs", "-move"];

/// Makes the file of a database if it is missing, and removes the permissions of other users from its
/// files.
pub(super) fn make(path: &Path) {
    // SQLite opens the file next, and reports its errors better.
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    tighten(path);
    BESIDE.iter().for_each(|suffix| tighten(&beside(path, suffix)));
}

/// Opens a small file beside the database, or makes it for those who may use the database.
pub fn open_beside(database: &Path, suffix: &str) -> io::Result<File> {
    let path = beside(database, suffix);
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.clone().create_new(true).mode(0o600).open(&path) {
        Ok(file) => {
            let mode = std::fs::metadata(database).map_or(0o600, |m| m.permissions().mode());
            file.set_permissions(Permissions::from_mode(0o600 | mode & 0o060))?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(&path),
        Err(error) => Err(error),
    }
}

/// Keeps the permission of a group to write, which was given on purpose.
fn tighten(path: &Path) {
    let Ok(found) = std::fs::metadata(path) else { return };
    let mode = found.permissions().mode() & 0o777;
    let keep = if mode & 0o020 == 0 { 0o700 } else { 0o770 };
    if !found.is_file() || mode & keep == mode {
        return;
    }
    match std::fs::set_permissions(path, Permissions::from_mode(mode & keep)) {
        Ok(()) => tracing::warn!(
            file = %path.display(),
            "other users could read this file of the database; they no longer can"
        ),
        Err(error) => tracing::warn!(
            file = %path.display(), %error,
            "other users can read this file of the database; its owner should run `chmod 600` on it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_for_their_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let open = || crate::Db::open(&crate::Address::sqlite(&path), &[], &Default::default());
        let files = || std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.path());
        drop(open().unwrap());
        assert!(files().count() >= 4);
        files().for_each(|file| assert_eq!(mode(&file), 0o600, "{file:?}"));
        // Made by an earlier version, or by hand.
        files().for_each(|f| std::fs::set_permissions(f, Permissions::from_mode(0o644)).unwrap());
        let db = open().unwrap();
        files().for_each(|file| assert_eq!(mode(&file), 0o600, "{file:?}"));
        drop(db);
        std::fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        std::fs::remove_file(beside(&path, "-pen")).unwrap();
        let _db = open().unwrap();
        assert_eq!((mode(&path), mode(&beside(&path, "-pen"))), (0o660, 0o660), "a group's");
    }
}
