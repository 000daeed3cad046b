//! Sparse members of GNU tar, in the four forms in which it writes them.

use crate::common::{Files, codes, gz, member, octal, validate_bytes};
use bagit::{Algorithm, Bag, Code, Error, Options};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

const HOLE: usize = 64 * 1024;

/// Files with holes at their start, middle and end, one of nothing else, and one with more
/// stretches than a header block of old GNU tar holds.
fn holey() -> Files {
    let stretches = |count: usize| {
        let mut bytes = Vec::new();
        for index in 0..count {
            bytes.extend_from_slice(&[0; HOLE]);
            bytes.extend_from_slice(format!("stretch {index} ").repeat(700).as_bytes());
            bytes.resize(bytes.len().next_multiple_of(HOLE), 0);
        }
        bytes
    };
    Files::new("1.0")
        .with("data/plain", "no hole")
        .with("data/all-hole", vec![0; 3 * HOLE])
        .with("data/some", stretches(2))
        .with("data/many", stretches(60))
        .with(&format!("data/{}", "long-".repeat(30)), stretches(3))
        .manifest(Algorithm::Sha256)
}

/// Writes the files again with holes on disk where they have zeros: GNU tar looks for these.
fn write_with_holes(files: &Files, directory: &Path) {
    for (path, bytes) in &files.0 {
        let mut file = std::fs::File::create(directory.join(path)).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        for (index, block) in bytes.chunks(4096).enumerate() {
            if block.iter().any(|b| *b != 0) {
                file.seek(SeekFrom::Start(index as u64 * 4096)).unwrap();
                file.write_all(block).unwrap();
            }
        }
    }
}

/// What GNU tar makes of a directory; none where there is no GNU tar.
fn gnu_tar(directory: &Path, options: &[&str]) -> Option<Vec<u8>> {
    let version = Command::new("tar").arg("--version").output().ok()?;
    String::from_utf8_lossy(&version.stdout).contains("GNU tar").then_some(())?;
    let made = Command::new("tar")
        .args(["--create", "--sparse", "--hole-detection=raw", "--file=-"])
        .args(options)
        .arg("--directory")
        .arg(directory)
        .arg("bag")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(made.stdout)
}

#[test]
fn what_gnu_tar_writes_is_read_with_its_holes() {
    let directory = tempfile::tempdir().unwrap();
    let files = holey();
    files.write(&directory.path().join("bag"));
    write_with_holes(&files, &directory.path().join("bag"));
    let whole: usize = files.0.iter().map(|(_, bytes)| bytes.len()).sum();
    for options in [
        &["--format=gnu"][..],
        &["--format=posix", "--sparse-version=0.0"],
        &["--format=posix", "--sparse-version=0.1"],
        &["--format=posix", "--sparse-version=1.0"],
    ] {
        let Some(tar) = gnu_tar(directory.path(), options) else {
            testing::skip("there is no GNU tar");
            return;
        };
        if tar.len() > whole / 2 {
            testing::skip("the file system of the temporary directory keeps no holes");
            return;
        }
        for bytes in [tar.clone(), gz(&tar)] {
            let report = Bag::from_read_at(bytes, "x").unwrap().validate(&Options::default());
            let report = report.unwrap();
            assert_eq!(codes(&report), [], "{options:?}: {:?}", report.problems);
            assert_eq!(report.payload.files, 5);
        }
        // A byte that is stored is a byte that is checked.
        let mut changed = tar;
        let at = changed.windows(9).rposition(|w| w == b"stretch 1").unwrap();
        changed[at] ^= 1;
        for bytes in [changed.clone(), gz(&changed)] {
            assert_eq!(codes(&validate_bytes(bytes).unwrap()), [Code::DigestMismatch]);
        }
    }
}

/// A member with extended records before it, after a bag.
fn with_records(records: &str, body: &[u8]) -> Vec<u8> {
    let records: String = records
        .split('\n')
        .map(|record| {
            let len = |digits: usize| digits + 1 + record.len() + 1;
            let digits = if len(2) < 100 { 2 } else { 3 };
            format!("{} {record}\n", len(digits))
        })
        .collect();
    let mut tar = Files::valid(&[Algorithm::Sha256]).tar("bag/");
    tar.truncate(tar.len() - 1024);
    tar.extend(member(b"pax", b'x', &octal(records.len()), records.as_bytes()));
    tar.extend(member(b"bag/data/x", b'0', &octal(body.len()), body));
    tar.extend([0; 1024]);
    tar
}

#[test]
fn maps_that_lie_are_damage() {
    for (records, body) in [
        ("GNU.sparse.map=0,5,3,5\nGNU.sparse.size=100", &b"0123456789"[..]),
        ("GNU.sparse.map=0,5\nGNU.sparse.size=100", b"0123456789"),
        ("GNU.sparse.map=0,10", b"0123456789"),
        ("GNU.sparse.map=0,10\nGNU.sparse.size=5", b"0123456789"),
        ("GNU.sparse.map=0,x\nGNU.sparse.size=100", b"0123456789"),
        ("GNU.sparse.map=0\nGNU.sparse.size=100", b"0123456789"),
        ("GNU.sparse.numbytes=10\nGNU.sparse.size=100", b"0123456789"),
        ("GNU.sparse.major=7\nGNU.sparse.size=100", b"0123456789"),
        ("GNU.sparse.major=1\nGNU.sparse.realsize=100", b"1\n0\n10\n"),
        ("GNU.sparse.major=1\nGNU.sparse.realsize=100", &[b'7'; 600]),
        ("GNU.sparse.size=99999999999999999999", b""),
    ] {
        let tar = with_records(records, body);
        for bytes in [tar.clone(), gz(&tar)] {
            match validate_bytes(bytes) {
                Err(Error::Archive { .. }) => {}
                other => panic!("{records}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_name_in_the_records_cannot_leave_the_archive() {
    let tar = with_records("GNU.sparse.name=../../x\nGNU.sparse.size=0", b"");
    for bytes in [tar.clone(), gz(&tar)] {
        assert_eq!(codes(&validate_bytes(bytes).unwrap()), [Code::MemberPathUnsafe]);
    }
}
