//! Archives and tag files made to harm their reader: none panics, each gets a clear answer.

use crate::common::{Files, codes, gz, member, octal, plain, validate_bytes};
use bagit::{Algorithm, Bag, Code, Error, Options};

/// A valid bag followed by something else.
fn tar_with(extra: &[u8]) -> Vec<u8> {
    let mut tar = Files::valid(&[Algorithm::Sha256]).tar("bag/");
    tar.truncate(tar.len() - 1024);
    tar.extend_from_slice(extra);
    tar.extend_from_slice(&[0; 1024]);
    tar
}

fn both_ways(tar: Vec<u8>) -> [Result<bagit::Report, Error>; 2] {
    [validate_bytes(tar.clone()), validate_bytes(gz(&tar))]
}

#[test]
fn links_and_devices_in_tar_are_errors() {
    for flag in *b"12346" {
        for result in both_ways(tar_with(&member(b"bag/data/x", flag, &octal(0), b""))) {
            assert_eq!(codes(&result.unwrap()), [Code::SpecialFile], "{}", flag as char);
        }
    }
    let unknown = member(b"bag/data/x", b'Q', &octal(0), b"");
    for result in both_ways(tar_with(&unknown)) {
        assert_eq!(codes(&result.unwrap()), [Code::MemberUnsupported]);
    }
}

#[test]
fn paths_that_leave_the_archive_are_errors() {
    for name in ["../x", "bag/../../x", "/etc/x", "bag/data/..\\..\\x"] {
        for result in both_ways(tar_with(&plain(name, b"x"))) {
            assert_eq!(codes(&result.unwrap()), [Code::MemberPathUnsafe], "{name}");
        }
    }
    let mut zip = Files::valid(&[Algorithm::Sha256]);
    zip.0 = zip.0.into_iter().map(|(path, bytes)| (format!("bag/{path}"), bytes)).collect();
    zip.0.push(("bag/../../x".into(), Vec::new()));
    assert_eq!(codes(&validate_bytes(zip.zip("", true)).unwrap()), [Code::MemberPathUnsafe]);
}

#[test]
fn extended_headers_can_rename_and_resize_but_not_escape() {
    let pax = |records: &str| member(b"pax", b'x', &octal(records.len()), records.as_bytes());
    let renamed = [pax("22 path=bag/../../etc\n"), plain("bag/data/ok", b"")].concat();
    for result in both_ways(tar_with(&renamed)) {
        assert_eq!(codes(&result.unwrap()), [Code::MemberPathUnsafe]);
    }
    let nul = [pax("19 path=bag/data/a\0b\n"), plain("x", b"")].concat();
    for result in both_ways(tar_with(&nul)) {
        assert!(result.is_err() || codes(&result.unwrap()) == [Code::MemberPathUnsafe]);
    }
    for records in ["30 size=99999999999999999999\n", "12 size=-10\n", "99 path=x\n"] {
        let bad = [pax(records), plain("bag/data/x", b"")].concat();
        for result in both_ways(tar_with(&bad)) {
            assert!(matches!(result, Err(Error::Archive { .. })), "{records}");
        }
    }
}

#[test]
fn sizes_beyond_the_archive_are_damage() {
    let huge = *b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff";
    let beyond = *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    let large = *b"\x80\0\0\0\0\0\x10\0\0\0\0\0";
    for size in [huge, beyond, large, octal(5000)] {
        let mut tar = tar_with(b"");
        tar.truncate(tar.len() - 1024);
        tar.extend_from_slice(&member(b"bag/data/x", b'0', &size, b"short"));
        for result in both_ways(tar) {
            match result {
                Err(Error::Archive { .. } | Error::Io { .. }) => {}
                other => panic!("{size:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn long_names_and_extended_headers_have_a_limit() {
    let body = vec![b'n'; 2 << 20];
    let long =
        [member(b"././@LongLink", b'L', &octal(body.len()), &body), plain("x", b"")].concat();
    for result in both_ways(tar_with(&long)) {
        assert!(matches!(result, Err(Error::Archive { .. })));
    }
    let name = "n".repeat(300);
    let body = format!("bag/data/{name}\0");
    let fine =
        [member(b"././@LongLink", b'L', &octal(body.len()), body.as_bytes()), plain("x", b"abc")]
            .concat();
    for result in both_ways(tar_with(&fine)) {
        let report = result.unwrap();
        assert!(codes(&report).contains(&Code::PayloadFileUnlisted));
        let path = report.problems.iter().find_map(|p| p.path.clone()).unwrap();
        assert_eq!(path, format!("data/{name}"));
    }
}

#[test]
fn names_with_line_ends_and_foreign_bytes_are_shown() {
    let odd =
        [plain("bag/data/a\nb", b""), member(b"bag/data/\xff\xfe", b'0', &octal(0), b"")].concat();
    for result in both_ways(tar_with(&odd)) {
        let report = result.unwrap();
        assert!(codes(&report).contains(&Code::PathNotUtf8));
        let paths: Vec<_> = report.problems.iter().filter_map(|p| p.path.as_deref()).collect();
        assert!(paths.contains(&"data/a\nb") && paths.contains(&"data/%FF%FE"), "{paths:?}");
    }
}

#[test]
fn two_members_of_one_path_are_an_error() {
    let twice = plain("bag/data/hello.txt", b"other");
    for result in both_ways(tar_with(&twice)) {
        assert!(codes(&result.unwrap()).contains(&Code::MemberDuplicate));
    }
}

#[test]
fn thousands_of_spellings_of_one_name_take_no_time_and_are_not_passed_over() {
    let mut files = Files::new("1.0");
    for bits in 0..2048_u32 {
        let letter = |at: u32| if (bits >> at) & 1 == 0 { 'a' } else { 'A' };
        files.0.push((format!("data/{}", (0..11).map(letter).collect::<String>()), Vec::new()));
    }
    let report = validate_bytes(files.manifest(Algorithm::Md5).tar("bag/")).unwrap();
    assert!(report.errors >= 2048 - 512);
}

#[test]
fn a_zip_that_states_another_number_of_members_is_damage() {
    let mut zip = Files::valid(&[Algorithm::Sha256]).zip("bag/", true);
    let end = zip.windows(4).rposition(|w| w == b"PK\x05\x06").unwrap();
    zip[end + 10] -= 1;
    assert!(matches!(validate_bytes(zip), Err(Error::Archive { .. })));
}

#[test]
fn archives_that_are_cut_off_are_damage() {
    let files = Files::valid(&[Algorithm::Sha256]);
    let (tar, zip) = (files.tar("bag/"), files.zip("bag/", true));
    for len in [513, 700, 1025, 3000] {
        let cut = tar[..len].to_vec();
        assert!(matches!(validate_bytes(cut.clone()), Err(Error::Archive { .. })), "{len}");
        assert!(validate_bytes(gz(&cut)).is_err(), "{len}");
    }
    let whole = gz(&tar);
    assert!(validate_bytes(whole[..whole.len() / 2].to_vec()).is_err());
    assert!(matches!(validate_bytes(zip[..zip.len() - 30].to_vec()), Err(Error::Archive { .. })));
}

#[test]
fn zip_members_that_overlap_are_refused() {
    let files = Files::valid(&[Algorithm::Sha256]);
    let mut zip = files.zip("bag/", false);
    // Every entry of the central directory is made to point at the first local header.
    let mut at = 0;
    let mut entries = 0;
    while let Some(found) = zip[at..].windows(4).position(|w| w == b"PK\x01\x02") {
        at += found;
        zip[at + 42..at + 46].copy_from_slice(&[0; 4]);
        at += 4;
        entries += 1;
    }
    assert!(entries > 2);
    match validate_bytes(zip) {
        Err(Error::Archive { reason, .. }) => assert!(reason.contains("overlap"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn encrypted_zip_members_are_reported() {
    let mut zip = Files::valid(&[Algorithm::Sha256]).zip("bag/", true);
    let name = zip.windows(18).rposition(|w| w == b"bag/data/hello.txt").unwrap();
    zip[name - 46 + 8] |= 1;
    let found = codes(&validate_bytes(zip).unwrap());
    assert!(found.contains(&Code::MemberUnsupported), "{found:?}");
}

#[test]
fn a_zip_member_that_is_larger_than_announced_is_unreadable() {
    let files = Files::new("1.0").with("data/zeros", vec![0; 100_000]).manifest(Algorithm::Md5);
    let mut zip = files.zip("bag/", true);
    let name = zip.windows(14).rposition(|w| w == b"bag/data/zeros").unwrap();
    zip[name - 46 + 24..name - 46 + 28].copy_from_slice(&10_u32.to_le_bytes());
    assert_eq!(codes(&validate_bytes(zip).unwrap()), [Code::FileUnreadable]);
}

#[test]
fn a_zip_member_whose_bytes_changed_is_named() {
    let files = Files::valid(&[Algorithm::Sha256]);
    let zip = files.zip("bag/", false);
    let text = zip.windows(6).position(|w| w == b"hello\n").unwrap();
    let mut changed = zip.clone();
    changed[text] ^= 1;
    let report = validate_bytes(changed).unwrap();
    assert_eq!(codes(&report), [Code::MemberCrcMismatch]);
    assert_eq!(report.problems[0].path.as_deref(), Some("data/hello.txt"));
    // A checksum that was changed instead is noticed too.
    let mut changed = zip;
    let name = changed.windows(18).rposition(|w| w == b"bag/data/hello.txt").unwrap();
    changed[name - 46 + 16] ^= 1;
    assert_eq!(codes(&validate_bytes(changed).unwrap()), [Code::MemberCrcMismatch]);
}

#[test]
fn a_manifest_of_a_million_bad_rows_is_counted_in_little_memory() {
    let text = "bad\n".repeat(1_000_000);
    let files = Files::new("1.0").with("data/a", "x").with("manifest-md5.txt", text);
    let report = files.validate();
    assert_eq!(report.errors, 1_000_001);
    assert_eq!(report.problems.len(), 1000);
}

#[test]
#[cfg(unix)]
fn links_in_directories_are_errors_and_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    Files::valid(&[Algorithm::Sha256]).write(directory.path());
    std::os::unix::fs::symlink("/etc/passwd", directory.path().join("data/link")).unwrap();
    std::os::unix::fs::symlink("/", directory.path().join("data/root")).unwrap();
    let report = Bag::open(directory.path()).unwrap().validate(&Options::default()).unwrap();
    let links = codes(&report).iter().filter(|c| **c == Code::SpecialFile).count();
    assert_eq!(links, 2);
}

#[test]
fn deep_directories_end_in_a_report() {
    let directory = tempfile::tempdir().unwrap();
    Files::valid(&[Algorithm::Sha256]).write(directory.path());
    let deep = (0..300).fold(directory.path().join("data"), |path, _| path.join("d"));
    std::fs::create_dir_all(&deep).unwrap();
    let report = Bag::open(directory.path()).unwrap().validate(&Options::default()).unwrap();
    assert!(codes(&report).contains(&Code::MemberUnsupported));
}

#[test]
fn what_is_no_archive_is_said_to_be_none() {
    for bytes in [vec![], vec![0; 600], b"hello".to_vec(), vec![0xff; 2000]] {
        assert!(matches!(validate_bytes(bytes), Err(Error::UnknownContainer(_))));
    }
    for start in [&b"\x1f\x8b"[..], b"BZh", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"] {
        let bytes = [start, &[7; 600]].concat();
        assert!(validate_bytes(bytes).is_err());
    }
}
