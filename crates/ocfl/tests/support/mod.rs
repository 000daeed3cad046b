//! What the tests of this crate share.
#![allow(dead_code)] // Each test uses a part of it.

pub mod s3;

use bytes::Bytes;
use futures_util::TryStreamExt;
use ocfl::StorageRoot;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use store::{LocalOptions, LocalStore, Store};

/// A directory that goes away: in memory where the system has such a place, because the tests
/// make thousands of files durable and none of them pulls the plug.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.or_else(|_| tempfile::tempdir()).expect("a temporary directory")
}

/// The OCFL fixtures, unpacked into a temporary directory; `None` where they are not there.
pub fn fixtures() -> Option<tempfile::TempDir> {
    let archive = testing::corpus("ocfl-fixtures.tar.gz")?;
    let directory = scratch();
    let status =
        Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(directory.path()).status();
    assert!(status.expect("tar runs").success(), "the fixtures do not unpack");
    Some(directory)
}

/// A local store such as a storage root uses.
pub fn local(path: &Path) -> Arc<dyn Store> {
    let temporaries = ocfl::StorageRoot::TEMPORARIES.to_owned();
    let options = LocalOptions { temporaries, create: true, ..LocalOptions::default() };
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

/// What people put into a version's description.
pub fn about(message: &str) -> ocfl::About {
    let address = Some("mailto:a.person@example.org".to_owned());
    let user = ocfl::User { name: "A Person".to_owned(), address };
    let created = "2026-01-02T03:04:05Z".to_owned();
    ocfl::About { created, message: Some(message.to_owned()), user: Some(user) }
}

/// The files of a version with their contents.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Every version of an object with all files and contents, as a reader sees it.
pub async fn seen(root: &StorageRoot, id: &str) -> Option<Vec<Files>> {
    let object = match root.object(id).await {
        Ok(object) => object,
        Err(ocfl::Error::NoSuchObject(_)) => return None,
        Err(error) => panic!("{id}: {error}"),
    };
    let mut versions = Vec::new();
    for version in object.inventory().versions() {
        let mut files = Files::new();
        for file in object.inventory().files(version) {
            let content = object.content(&file).await.expect("the content is there");
            let content: Vec<Bytes> = content.try_collect().await.expect("the content is right");
            files.insert(file.path.to_owned(), content.concat());
        }
        versions.push(files);
    }
    Some(versions)
}

/// The findings about one object.
pub async fn findings(root: &StorageRoot, id: &str) -> ocfl::Findings {
    let path = root.object_path(id).expect("a path");
    let validation = ocfl::Validation::default();
    ocfl::validate_object(root.store().clone(), &path, &validation).await.expect("a validation")
}

/// A small generator of numbers that need not be good, only the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
