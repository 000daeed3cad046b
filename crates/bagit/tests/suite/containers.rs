//! The same bag in every container gives the same answer.

use crate::common::{Files, bz2, codes, gz, validate_bytes, zst};
use bagit::source::read_at::{Range, Seekable};
use bagit::{Algorithm, Bag, Code, Mode, Options, Serialization};

fn archives(files: &Files) -> Vec<(Serialization, Vec<u8>)> {
    let tar = files.tar("bag/");
    vec![
        (Serialization::Tar, tar.clone()),
        (Serialization::TarGz, gz(&tar)),
        (Serialization::TarBz2, bz2(&tar)),
        (Serialization::TarZst, zst(&tar)),
        (Serialization::Zip, files.zip("bag/", true)),
        (Serialization::Zip, files.zip("bag/", false)),
    ]
}

#[test]
fn a_valid_bag_is_valid_in_every_container_and_by_every_way_of_reading() {
    let files = Files::valid(&[Algorithm::Md5, Algorithm::Sha512]);
    assert_eq!(codes(&files.validate()), []);
    for (serialization, bytes) in archives(&files) {
        let ways: [Bag; 3] = [
            Bag::from_read_at(bytes.clone(), "bag").unwrap(),
            Bag::from_reader(std::io::Cursor::new(bytes.clone()), "bag").unwrap(),
            Bag::from_read_at(Seekable::new(std::io::Cursor::new(bytes)).unwrap(), "bag").unwrap(),
        ];
        for bag in ways {
            assert_eq!(bag.serialization(), serialization);
            let report = bag.validate(&Options::default()).unwrap();
            assert_eq!(codes(&report), [], "{serialization}");
            assert_eq!((report.payload.octets, report.payload.files), (6006, 3));
        }
    }
}

#[test]
fn a_range_of_something_larger_is_enough() {
    let tar = Files::valid(&[Algorithm::Sha256]).tar("bag/");
    let mut object = vec![b'x'; 1000];
    object.extend_from_slice(&tar);
    object.extend_from_slice(b"something after it");
    let range = Range::new(object, 1000, tar.len() as u64).unwrap();
    let report = Bag::from_read_at(range, "bag").unwrap().validate(&Options::default()).unwrap();
    assert!(report.valid, "{:?}", report.problems);
}

#[test]
fn a_changed_byte_is_found_in_every_container() {
    let files =
        Files::valid(&[Algorithm::Sha1, Algorithm::Sha256]).with("data/hello.txt", "hellO\n");
    let expected = [Code::DigestMismatch, Code::DigestMismatch];
    assert_eq!(codes(&files.validate()), expected);
    for (serialization, bytes) in archives(&files) {
        let report = validate_bytes(bytes).unwrap();
        assert_eq!(codes(&report), expected, "{serialization}");
        let problem = &report.problems[0];
        assert_eq!(problem.path.as_deref(), Some("data/hello.txt"));
        assert_eq!(problem.file.as_deref(), Some("manifest-sha1.txt"));
        assert_eq!(problem.line, Some(1));
    }
}

#[test]
fn algorithms_that_a_stream_was_not_hashed_with_are_read_for_again_or_reported() {
    let files = Files::valid(&[Algorithm::Sha224, Algorithm::Blake2b512]);
    let bytes = gz(&files.tar("bag/"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bag.tar.gz");
    std::fs::write(&path, &bytes).unwrap();
    let report = Bag::open(&path).unwrap().validate(&Options::default()).unwrap();
    assert_eq!(codes(&report), []);
    let stream = Bag::from_reader(std::io::Cursor::new(bytes), "bag").unwrap();
    let report = stream.validate(&Options::default()).unwrap();
    assert!(!report.valid);
    assert!(codes(&report).iter().all(|c| *c == Code::DigestUnchecked));
    assert!(matches!(stream.validate(&Options::default()), Err(bagit::Error::StreamSpent(_))));
}

#[test]
fn sorting_on_disk_changes_nothing() {
    let mut files = Files::new("1.0");
    for index in 0..300 {
        files = files.with(&format!("data/dir{}/file{index}", index % 7), format!("{index}"));
    }
    let files = files
        .manifest(Algorithm::Md5)
        .with("data/dir0/file7", "changed")
        .without("data/dir1/file1");
    let small = Options { memory_bytes: 1000, ..Options::default() };
    let (spilled, plain) = (files.validate_with(&small), files.validate());
    assert_eq!(spilled.problems, plain.problems);
    assert_eq!(codes(&plain), [Code::PayloadFileMissing, Code::DigestMismatch]);
}

#[test]
fn the_three_modes_look_at_what_they_say() {
    let files = Files::valid(&[Algorithm::Sha512]);
    let options = |mode| Options { mode, ..Options::default() };
    let same_size = files.clone().with("data/hello.txt", "HELLO\n");
    assert!(same_size.validate_with(&options(Mode::Fast)).valid);
    assert!(same_size.validate_with(&options(Mode::Completeness)).valid);
    assert!(!same_size.validate_with(&options(Mode::Full)).valid);
    let extra = files.clone().with("data/extra", "");
    assert_eq!(codes(&extra.validate_with(&options(Mode::Fast))), [Code::OxumMismatch]);
    let report = extra.validate_with(&options(Mode::Completeness));
    assert_eq!(codes(&report), [Code::PayloadFileUnlisted, Code::OxumMismatch]);
    let without = files.without("bag-info.txt");
    assert_eq!(codes(&without.validate_with(&options(Mode::Fast))), [Code::OxumMissing]);
}

#[test]
fn names_longer_than_a_tar_header_holds_are_read() {
    let long = format!("data/{}/{}.txt", "d".repeat(150), "ü".repeat(100));
    let files = Files::new("1.0").with(&long, "x").manifest(Algorithm::Sha256);
    for (serialization, bytes) in archives(&files) {
        assert_eq!(codes(&validate_bytes(bytes).unwrap()), [], "{serialization}");
    }
}

#[test]
fn a_bag_at_the_top_of_an_archive_is_read_with_a_warning() {
    let files = Files::valid(&[Algorithm::Sha256]);
    for bytes in [files.tar(""), files.tar("./"), files.zip("", true)] {
        let report = validate_bytes(bytes).unwrap();
        assert!(report.valid, "{:?}", report.problems);
        assert_eq!(codes(&report), [Code::BaseDirectoryMissing]);
    }
    let mut both = files.clone();
    both.0 = both.0.into_iter().map(|(path, bytes)| (format!("bag/{path}"), bytes)).collect();
    both.0.push(("elsewhere/x".into(), Vec::new()));
    assert_eq!(codes(&validate_bytes(both.tar("")).unwrap()), [Code::MemberOutsideBag]);
}

#[test]
fn stopping_is_heard() {
    struct Stop;
    impl bagit::Observer for Stop {
        fn stopped(&self) -> bool {
            true
        }
    }
    let bytes = Files::valid(&[Algorithm::Sha256]).tar("bag/");
    for bytes in [bytes.clone(), gz(&bytes)] {
        let bag = Bag::from_read_at(bytes, "bag").unwrap();
        let result = bag.validate_observed(&Options::default(), &Stop);
        assert!(matches!(result, Err(bagit::Error::Stopped)));
    }
}

#[test]
fn a_tar_without_its_end_or_with_data_after_it_is_warned_of() {
    let tar = Files::valid(&[Algorithm::Md5]).tar("bag/");
    let end = tar.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let body = &tar[..end.next_multiple_of(512)];
    let lone = [body, &[0; 512]].concat();
    let followed = [tar.as_slice(), &tar].concat();
    for (tar, code) in [
        (body.to_vec(), Code::ArchiveUnmarked),
        (lone, Code::ArchiveUnmarked),
        (followed, Code::ArchiveDataAfterEnd),
    ] {
        for bytes in [tar.clone(), gz(&tar)] {
            assert_eq!(codes(&validate_bytes(bytes).unwrap()), [code]);
        }
    }
    let padded = [tar.as_slice(), &[0; 10_000]].concat();
    assert_eq!(codes(&validate_bytes(padded).unwrap()), []);
}
