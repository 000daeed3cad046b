#![allow(clippy::unwrap_used)]

use super::*;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

fn why<T>(result: io::Result<T>) -> Option<Refused> {
    Refused::of(&result.err()?)
}

/// `in/deep/file` and links to `out`, by every way in.
fn laid_out() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("in/deep")).unwrap();
    std::fs::create_dir(dir.path().join("out")).unwrap();
    std::fs::write(dir.path().join("in/deep/file"), "inside").unwrap();
    std::fs::write(dir.path().join("out/file"), "outside").unwrap();
    symlink("../out", dir.path().join("in/way")).unwrap();
    symlink("deep/file", dir.path().join("in/link")).unwrap();
    dir
}

#[test]
fn links_are_followed_on_no_step() {
    let dir = laid_out();
    let folder = Folder::open(dir.path().join("in")).unwrap();
    assert!(folder.file(Path::new("deep/file")).is_ok());
    assert_eq!(why(folder.file(Path::new("way/file"))), Some(Refused::Link));
    assert_eq!(why(folder.file(Path::new("link"))), Some(Refused::Link));
    assert_eq!(why(folder.folder(Path::new("way"))), Some(Refused::Link));
    assert_eq!(why(folder.file(Path::new("../out/file"))), Some(Refused::Path));
    assert_eq!(why(folder.file(Path::new("deep"))), Some(Refused::Directory));
    assert_eq!(why(folder.folder(Path::new("deep/file"))), Some(Refused::NotDirectory));
    let entries = Folder::open(dir.path().join("in")).unwrap().entries().unwrap();
    assert_eq!(why(entries.folder("way".as_ref())), Some(Refused::Link));
    assert!(entries.folder("deep".as_ref()).is_ok());
}

#[test]
fn systems_without_openat2_follow_none_either() {
    let dir = laid_out();
    let folder = Folder::open(dir.path().join("in")).unwrap();
    let step = |path| folder.step_by_step(Path::new(path), system::reading());
    assert!(step("deep/file").is_ok());
    for path in ["way/file", "link", "way"] {
        assert_eq!(why(step(path)), Some(Refused::Link), "{path}");
    }
    assert_eq!(why(step("deep/file/x")), Some(Refused::NotDirectory));
}

#[test]
fn a_whole_path_is_opened_without_links_and_a_trusted_one_with() {
    let dir = laid_out();
    let real = dir.path().canonicalize().unwrap();
    symlink("in", real.join("also")).unwrap();
    assert!(open(&real.join("in/deep/file")).is_ok());
    assert_eq!(why(open(&real.join("also/deep/file"))), Some(Refused::Link));
    assert!(open_in_place(&real.join("also/deep/file")).is_ok());
    assert_eq!(why(open_in_place(&real.join("in/link"))), Some(Refused::Link));
    assert_eq!(why(open_parent(&real.join("also/deep/file"))), Some(Refused::Link));
    let path = real.join("in/deep/file");
    let (folder, name) = open_parent(&path).unwrap();
    assert_eq!(folder.info(name).unwrap().bytes, 6);
    assert_eq!(why(open(Path::new("in/deep/file"))), Some(Refused::Path));
}

#[test]
fn a_directory_that_may_be_entered_and_not_listed_is_passed_through() {
    use std::os::unix::fs::PermissionsExt;
    let dir = laid_out();
    let closed = dir.path().join("in");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o311)).unwrap();
    let folder = Folder::open(&closed).unwrap();
    assert!(folder.file(Path::new("deep/file")).is_ok());
    folder.replace("new".as_ref(), b"new", 0o644).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn pipes_and_sockets_are_refused_and_not_waited_for() {
    let dir = laid_out();
    let folder = Folder::open(dir.path()).unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(why(folder.file(Path::new("pipe"))), Some(Refused::Special));
    let _socket = UnixListener::bind(dir.path().join("socket")).unwrap();
    assert_eq!(why(folder.file(Path::new("socket"))), Some(Refused::Special));
    assert_eq!(why(open(Path::new("/dev/null"))), Some(Refused::Special));
}

#[test]
fn a_file_is_replaced_in_its_folder_and_a_link_is_not_written_through() {
    let dir = laid_out();
    let folder = Folder::open(dir.path().join("in")).unwrap();
    symlink("../out/file", dir.path().join("in/result")).unwrap();
    folder.replace("result".as_ref(), b"new", 0o644).unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("out/file")).unwrap(), "outside");
    let result = dir.path().join("in/result");
    assert!(result.symlink_metadata().unwrap().is_file());
    assert_eq!(std::fs::read_to_string(result).unwrap(), "new");
}
