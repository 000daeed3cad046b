//! `file:` URLs: only regular files below configured directories. The directories themselves may
//! be links; below them no link is followed.

use super::error::shown;
use crate::ErrorCode;
use crate::{Error, Result};
use bagit::beneath::{Folder, Opened, Refused};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use url::Url;

/// An open file, its size, and a text that changes when it does.
#[derive(Debug)]
pub(super) struct Local {
    pub file: File,
    /// Its path without links.
    pub path: PathBuf,
    pub size: u64,
    pub version: String,
}

/// Opens what a `file:` URL names, if it is below one of the roots.
pub(super) fn open(url: &Url, roots: &[PathBuf]) -> Result<Local> {
    let outside = || {
        Error::permanent(
            ErrorCode::FileOutsideRoots,
            format!(
                "{} is not in a directory that file: URLs may name; ask for it to be added to fetch.file_roots, or deposit the file itself",
                shown(url)
            ),
        )
    };
    let path = url
        .to_file_path()
        .map_err(|()| super::target::wrong(url.as_str(), "it names no file of this machine"))?;
    for root in roots {
        let Ok(below) = path.strip_prefix(root) else { continue };
        let opened = Folder::open(root).and_then(|folder| folder.at(below));
        let error = match opened {
            Ok(Opened::File(file)) => return of_file(url, file, root, below),
            Ok(Opened::Folder(_)) => return Err(not_a_file(url)),
            Err(error) => error,
        };
        return Err(match (Refused::of(&error), error.kind()) {
            (Some(Refused::Special | Refused::Directory), _) => not_a_file(url),
            (Some(Refused::Link), _) => Error::permanent(
                ErrorCode::UrlLink,
                format!(
                    "a symbolic link lies on the way to {}, and below fetch.file_roots none is followed; name the file by its own path",
                    shown(url)
                ),
            ),
            (Some(Refused::Path), _) => outside(),
            (Some(Refused::NotDirectory), _) | (None, io::ErrorKind::NotFound) => Error::permanent(
                ErrorCode::UrlNotFound,
                format!(
                    "there is nothing at {}; correct the URL or put the file there, then deposit again",
                    shown(url)
                ),
            ),
            (None, io::ErrorKind::PermissionDenied) => Error::permanent(
                ErrorCode::UrlForbidden,
                format!("{} may not be read; make it readable for the archive", shown(url)),
            ),
            _ => unreadable(url, &error),
        });
    }
    Err(outside())
}

pub(super) fn unreadable(url: &Url, error: &std::io::Error) -> Error {
    Error::transient(ErrorCode::FileUnreadable, format!("{} cannot be read: {error}", shown(url)))
        .at("local files")
}

fn not_a_file(url: &Url) -> Error {
    Error::permanent(
        ErrorCode::UrlNotAFile,
        format!("{} is not a regular file; name a file, or deposit the directory", shown(url)),
    )
}

fn of_file(url: &Url, file: File, root: &Path, below: &Path) -> Result<Local> {
    let meta = file.metadata().map_err(|e| unreadable(url, &e))?;
    let version =
        format!("{}-{}-{}.{:09}", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
    // The root may contain links; what is opened by this path later must not.
    let path = root.canonicalize().map_err(|e| unreadable(url, &e))?.join(below);
    Ok(Local { file, path, size: meta.len(), version })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn try_open(path: &str, root: &Path) -> Result<Local> {
        open(&Url::parse(&format!("file://{path}")).unwrap(), &[root.to_path_buf()])
    }

    #[test]
    fn only_plain_files_below_the_roots_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (root, out) = (dir.path().join("in"), dir.path().join("out"));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::write(root.join("sub/a b"), "abc").unwrap();
        std::fs::write(out.join("secret"), "hush").unwrap();
        symlink("sub/a b", root.join("inner")).unwrap();
        symlink("../out/secret", root.join("leak")).unwrap();
        symlink(out.join("secret"), root.join("leak2")).unwrap();
        symlink("../out", root.join("way")).unwrap();
        let code = |name: &str| {
            let path = format!("{}/{name}", root.display());
            try_open(&path, &root).map(|l| l.size).map_err(|e| e.code())
        };
        assert_eq!(code("sub/a%20b"), Ok(3));
        assert_eq!(code("inner"), Err("url_link"));
        assert_eq!(code("leak"), Err("url_link"));
        assert_eq!(code("leak2"), Err("url_link"));
        assert_eq!(code("way/secret"), Err("url_link"));
        assert_eq!(code("../out/secret"), Err("file_outside_roots"));
        assert_eq!(code("%2e%2e/out/secret"), Err("file_outside_roots"));
        assert_eq!(code("none"), Err("url_not_found"));
        assert_eq!(code("sub"), Err("url_not_a_file"));
        assert_eq!(code(""), Err("url_not_a_file"));
        let elsewhere = try_open("/etc/passwd", &root).map_err(|e| e.code());
        assert_eq!(elsewhere.err(), Some("file_outside_roots"));
        let none = open(&Url::parse("file:///etc/passwd").unwrap(), &[]);
        assert_eq!(none.map_err(|e| e.code()).err(), Some("file_outside_roots"));
        let other = try_open("//server/share", &root).map_err(|e| e.code());
        assert!(other.is_err());
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = try_open(pipe.to_str().unwrap(), dir.path()).unwrap_err();
        assert_eq!(error.code(), "url_not_a_file");
    }
}
