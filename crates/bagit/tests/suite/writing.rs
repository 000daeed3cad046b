//! Bags that are made here are valid, the same every time, and made without harm.

use crate::common::codes;
use bagit::{Algorithm, Algorithms, Bag, Error, Options, TarBag, UpdateOptions, WriteOptions};
use std::collections::BTreeMap;
use std::path::Path;

/// A small generator of random numbers, so that failures can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn options() -> WriteOptions {
    let mut options = WriteOptions {
        algorithms: [Algorithm::Sha256, Algorithm::Sha512].into_iter().collect(),
        date: Some("2026-01-31".into()),
        agent: Some("test".into()),
        ..WriteOptions::default()
    };
    options.tags.push("Title", "A title\nof two lines");
    options
}

/// Files with odd names and sizes around the borders of blocks.
fn payload(seed: u64) -> BTreeMap<String, Vec<u8>> {
    let mut random = Random(seed * 7919 + 1);
    let pieces = ["a", "B", "%", "%25", "ü", "u\u{308}", " ", "名", "x\ny", ".", "~", "*"];
    let mut files = BTreeMap::new();
    for index in 0..random.next(12) {
        let mut path = String::new();
        for depth in 0..=random.next(3) {
            if depth > 0 {
                path.push('/');
            }
            path.push_str(&format!("{index}d{depth}"));
            for _ in 0..random.next(4) {
                path.push_str(pieces[random.next(pieces.len() as u64) as usize]);
            }
        }
        let size = [0, 1, 511, 512, 513, 4096, 200_000][random.next(7) as usize];
        files.insert(path, (0..size).map(|_| random.next(256) as u8).collect());
    }
    files
}

fn write(files: &BTreeMap<String, Vec<u8>>, directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    for (path, bytes) in files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn assert_valid(bag: &Bag, files: &BTreeMap<String, Vec<u8>>) {
    let report = bag.validate(&Options::default()).unwrap();
    assert_eq!(codes(&report), [], "{:?}", report.problems);
    assert_eq!(report.payload.files, files.len() as u64);
    assert_eq!(report.payload.octets, files.values().map(|b| b.len() as u64).sum::<u64>());
    assert_eq!(report.tags.values("title").collect::<Vec<_>>(), ["A title of two lines"]);
}

/// Everything in a directory, to compare two of them.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
                all.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn whatever_is_bagged_is_valid_in_each_of_the_three_ways() {
    for seed in 0..30 {
        let files = payload(seed);
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        write(&files, &source);
        let target = place.path().join("bag");
        bagit::create(&source, &target, &options(), &()).unwrap();
        assert_valid(&Bag::open(&target).unwrap(), &files);
        assert_eq!(content(&source), files, "the source stays as it was");

        let mut tar = TarBag::new(Vec::new(), "bag", options()).unwrap();
        for (path, bytes) in &files {
            tar.add_payload(path, bytes.len() as u64, &mut bytes.as_slice()).unwrap();
        }
        let (tar, _) = tar.finish().unwrap();
        let (again, _) = bagit::create_tar(&source, Vec::new(), "bag", options(), &()).unwrap();
        assert_eq!(again, tar, "a directory is written in the order of its paths");
        assert_valid(&Bag::from_read_at(tar, "bag.tar").unwrap(), &files);

        bagit::create_in_place(&source, &options(), &()).unwrap();
        assert_valid(&Bag::open(&source).unwrap(), &files);
        assert_eq!(content(&source), content(&target), "both ways give the same bytes");
    }
}

#[test]
fn a_tar_bag_is_readable_by_others_and_the_same_every_time() {
    let files = payload(5);
    let make = || {
        let mut bag = TarBag::new(Vec::new(), "bag", options()).unwrap();
        for (path, bytes) in &files {
            bag.add_payload(path, bytes.len() as u64, &mut bytes.as_slice()).unwrap();
        }
        bag.add_tag_file("aptrust-info.txt", b"Title: x\n").unwrap();
        bag.finish().unwrap().0
    };
    let tar = make();
    assert_eq!(tar, make());
    let place = tempfile::tempdir().unwrap();
    tar::Archive::new(tar.as_slice()).unpack(place.path()).unwrap();
    let unpacked = content(&place.path().join("bag/data"));
    assert_eq!(unpacked, files);
    assert_valid(&Bag::open(place.path().join("bag")).unwrap(), &files);
}

#[test]
fn a_source_of_another_size_than_announced_is_refused() {
    for size in [0, 2, 4] {
        let mut bag = TarBag::new(Vec::new(), "bag", options()).unwrap();
        let result = bag.add_payload("x", size, &mut &b"abc"[..]);
        assert!(matches!(result, Err(Error::Refused(_))), "{size}");
    }
    let mut bag = TarBag::new(Vec::new(), "bag", options()).unwrap();
    for path in ["../x", "a//b", "a/", "."] {
        assert!(bag.add_payload(path, 0, &mut &b""[..]).is_err(), "{path}");
    }
    assert!(TarBag::new(Vec::new(), "a/b", options()).is_err());
}

#[test]
fn a_path_goes_into_a_bag_once() {
    let mut bag = TarBag::new(Vec::new(), "bag", options()).unwrap();
    bag.add_payload("a/b", 1, &mut &b"x"[..]).unwrap();
    bag.add_payload("a/c", 1, &mut &b"x"[..]).unwrap();
    bag.add_payload("a/b", 1, &mut &b"y"[..]).unwrap();
    match bag.finish() {
        Err(Error::Refused(message)) => assert!(message.starts_with("data/a/b"), "{message}"),
        other => panic!("{:?}", other.map(|(_, written)| written)),
    }
    let mut bag = TarBag::new(Vec::new(), "bag", options()).unwrap();
    for own in ["bagit.txt", "bag-info.txt", "manifest-md5.txt", "tagmanifest-md5.txt", "data/x"] {
        assert!(matches!(bag.add_tag_file(own, b""), Err(Error::Refused(_))), "{own}");
    }
    bag.add_tag_file("more/tags.txt", b"Tag: value\n").unwrap();
}

#[test]
fn checksums_of_files_to_be_fetched_are_not_lost() {
    let place = tempfile::tempdir().unwrap();
    write(&payload(8), place.path());
    bagit::create_in_place(place.path(), &options(), &()).unwrap();
    let line = "http://example.org/far 3 data/far\n";
    std::fs::write(place.path().join("fetch.txt"), line).unwrap();
    let manifest = || std::fs::read(place.path().join("manifest-sha256.txt")).unwrap();
    let before = manifest();
    match bagit::update(place.path(), &UpdateOptions::default(), &()) {
        Err(Error::Refused(message)) => assert!(message.contains("data/far"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(manifest(), before);
    let tags_only = UpdateOptions { tags_only: true, ..UpdateOptions::default() };
    bagit::update(place.path(), &tags_only, &()).unwrap();
    std::fs::write(place.path().join("data/far"), "far").unwrap();
    bagit::update(place.path(), &UpdateOptions::default(), &()).unwrap();
    assert!(Bag::open(place.path()).unwrap().validate(&Options::default()).unwrap().valid);
}

#[test]
#[cfg(unix)]
fn what_cannot_be_in_a_bag_is_refused_and_nothing_changes() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    write(&payload(3), &source);
    std::os::unix::fs::symlink("/etc/passwd", source.join("link")).unwrap();
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&source).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    assert!(matches!(bagit::create_in_place(&source, &options(), &()), Err(Error::Refused(_))));
    assert_eq!(names(), before);
    let target = place.path().join("bag");
    assert!(matches!(bagit::create(&source, &target, &options(), &()), Err(Error::Refused(_))));
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left behind: {left:?}");
}

#[test]
fn bags_are_not_made_over_what_is_there() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    write(&payload(4), &source);
    let inside = source.join("bag");
    assert!(matches!(bagit::create(&source, &inside, &options(), &()), Err(Error::Refused(_))));
    let target = place.path().join("target");
    std::fs::create_dir(&target).unwrap();
    assert!(matches!(bagit::create(&source, &target, &options(), &()), Err(Error::Refused(_))));
    bagit::create_in_place(&source, &options(), &()).unwrap();
    assert!(matches!(bagit::create_in_place(&source, &options(), &()), Err(Error::Refused(_))));
    let none = WriteOptions { algorithms: Algorithms::NONE, ..options() };
    assert!(matches!(TarBag::new(Vec::new(), "x", none), Err(Error::Refused(_))));
}

#[test]
fn manifests_are_brought_up_to_date() {
    let place = tempfile::tempdir().unwrap();
    let bag = place.path();
    write(&payload(6), bag);
    bagit::create_in_place(bag, &options(), &()).unwrap();
    std::fs::write(bag.join("data/new"), "new").unwrap();
    let valid = || Bag::open(bag).unwrap().validate(&Options::default()).unwrap().valid;
    assert!(!valid());
    bagit::update(bag, &UpdateOptions::default(), &()).unwrap();
    assert!(valid());

    std::fs::write(bag.join("bag-info.txt"), "Title: other\n").unwrap();
    assert!(!valid());
    let before = std::fs::read(bag.join("manifest-sha256.txt")).unwrap();
    let tags_only = UpdateOptions { tags_only: true, ..UpdateOptions::default() };
    bagit::update(bag, &tags_only, &()).unwrap();
    assert!(valid());
    assert_eq!(std::fs::read(bag.join("manifest-sha256.txt")).unwrap(), before);

    let algorithms = Some([Algorithm::Md5].into_iter().collect());
    bagit::update(bag, &UpdateOptions { algorithms, ..UpdateOptions::default() }, &()).unwrap();
    assert!(valid());
    assert!(!bag.join("manifest-sha256.txt").exists());
    assert!(!bag.join("tagmanifest-sha512.txt").exists());
    assert!(bag.join("tagmanifest-md5.txt").exists());
}
