//! What the tests of this crate share.
#![allow(dead_code)] // Each test uses a part of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use store::{LocalOptions, LocalStore, Store};

/// The test data made by others, if it is there.
pub fn corpora() -> Option<PathBuf> {
    let given = std::env::var_os("ACCESSION_CORPORA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    given.into_iter().chain([beside]).find(|path| path.is_dir())
}

/// The OCFL fixtures, unpacked into a temporary directory; `None` where they are not there.
pub fn fixtures() -> Option<tempfile::TempDir> {
    let archive = corpora()?.join("ocfl-fixtures.tar.gz");
    if !archive.is_file() {
        return None;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let status =
        Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(directory.path()).status();
    assert!(status.expect("tar runs").success(), "the fixtures do not unpack");
    Some(directory)
}

/// A local store such as a storage root uses.
pub fn local(path: &Path) -> Arc<dyn Store> {
    let temporaries = ocfl::StorageRoot::TEMPORARIES.to_owned();
    let options = LocalOptions { temporaries, create: true };
    Arc::new(LocalStore::open_with(path, &options).expect("a local store"))
}

/// The object cases of the fixtures: the directory relative to the fixtures, and its name.
pub fn cases(fixtures: &Path) -> Vec<(String, String)> {
    let mut cases = Vec::new();
    for spec in ["1.0", "1.1"] {
        for kind in ["good", "warn", "bad"] {
            let parent = format!("ocfl-fixtures/{spec}/{kind}-objects");
            for entry in std::fs::read_dir(fixtures.join(&parent)).expect("the fixtures") {
                let name = entry.expect("an entry").file_name().into_string().expect("a name");
                cases.push((format!("{parent}/{name}"), name));
            }
        }
    }
    cases.sort();
    cases
}

/// The codes that a case's name starts with.
pub fn named_codes(name: &str) -> Vec<&str> {
    let is_code = |part: &&str| {
        part.len() == 4
            && part.starts_with(['E', 'W'])
            && part[1..].bytes().all(|b| b.is_ascii_digit())
    };
    name.split('_').take_while(is_code).collect()
}
