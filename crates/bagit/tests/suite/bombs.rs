//! Small archives that expand without end: each is refused early, whatever holds the zeros.

use crate::common::{Files, bz2, gz, member, octal, plain, zst};
use bagit::{Algorithm, Bag, Error, Limits, Observer, Options};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ten gigabytes, of which a megabyte of archive tells.
const BOMB_BYTES: u64 = 10_000_000_000;
/// What is compressed once and repeated: compressed streams may be strung together.
const PART_BYTES: u64 = 8_000_000;

/// The start of a bag whose payload is all zeros.
fn start(kind: u8, path: &[u8]) -> Vec<u8> {
    let text = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
    // Sizes beyond 8 GiB are written in binary.
    let mut size = [0; 12];
    size[0] = 0x80;
    size[4..].copy_from_slice(&BOMB_BYTES.to_be_bytes());
    let zeros = member(path, kind, &size, b"");
    [plain("bag/bagit.txt", text), zeros].concat()
}

fn repeated(start: &[u8], compress: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let part = compress(&vec![0; PART_BYTES as usize]);
    let mut bomb = compress(start);
    (0..BOMB_BYTES / PART_BYTES).for_each(|_| bomb.extend_from_slice(&part));
    bomb
}

/// Counts what was read of the bag.
#[derive(Default)]
struct Count(AtomicU64);

impl Observer for Count {
    fn bytes(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Validates, and gives the outcome and how much was unpacked.
fn read(bytes: Vec<u8>, limits: Limits) -> (Result<bagit::Report, Error>, u64) {
    let count = Count::default();
    let options = Options { limits, ..Options::default() };
    let bag = Bag::from_read_at(bytes, "bag").unwrap();
    let result = bag.validate_observed(&options, &count);
    (result, count.0.into_inner())
}

fn assert_refused(bomb: Vec<u8>, unpacked_max: u64) {
    let (result, unpacked) = read(bomb, Limits::default());
    match result {
        Err(Error::Limit { what, .. }) => assert!(what.contains("bomb"), "{what}"),
        other => panic!("{other:?}"),
    }
    assert!(unpacked <= unpacked_max, "{unpacked} bytes were unpacked");
}

#[test]
fn ten_gigabytes_of_zeros_in_a_megabyte_are_refused_early() {
    for compress in [bz2, zst] {
        let bomb = repeated(&start(b'0', b"bag/data/zeros"), compress);
        assert!(bomb.len() < 1_100_000, "{}", bomb.len());
        assert_refused(bomb, 400_000_000);
    }
}

#[test]
fn zeros_that_no_one_would_use_are_not_unpacked_either() {
    for start in [start(b'Q', b"bag/data/zeros"), start(b'0', b"../outside")] {
        assert_refused(repeated(&start, zst), 400_000_000);
    }
}

/// Deflate does not shrink more than a thousand times, so the limit for it is one of bytes.
#[test]
fn a_limit_of_bytes_stops_any_bag() {
    let limits = || Limits { bytes_max: Some(1 << 20), ..Limits::default() };
    let bomb = repeated(&start(b'0', b"bag/data/zeros"), gz);
    let (result, unpacked) = read(bomb, limits());
    assert!(matches!(result, Err(Error::Limit { .. })));
    assert!(unpacked <= 2 << 20);
    let files = Files::new("1.0").with("data/zeros", vec![0; 2 << 20]).manifest(Algorithm::Md5);
    let (result, unpacked) = read(files.zip("bag/", true), limits());
    assert!(matches!(result, Err(Error::Limit { .. })));
    assert_eq!(unpacked, 0, "the announced sizes are enough");
}

#[test]
fn a_zip_that_announces_too_much_is_refused_before_it_is_read() {
    let files = Files::new("1.0").with("data/zeros", vec![0; 1000]).manifest(Algorithm::Md5);
    let mut zip = files.zip("bag/", true);
    let name = zip.windows(14).rposition(|w| w == b"bag/data/zeros").unwrap();
    zip[name - 46 + 24..name - 46 + 28].copy_from_slice(&4_000_000_000_u32.to_le_bytes());
    assert_refused(zip, 0);
}

#[test]
fn a_sparse_member_that_is_almost_all_hole_is_refused() {
    let records = "30 GNU.sparse.size=9000000000\n";
    let pax = member(b"pax", b'x', &octal(records.len()), records.as_bytes());
    let text = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
    let tar = [plain("bag/bagit.txt", text), pax, plain("bag/data/x", b""), vec![0; 1024]].concat();
    assert_refused(tar.clone(), 0);
    assert_refused(zst(&tar), 400_000_000);
}

#[test]
fn a_limit_of_members_stops_any_bag() {
    let limits = Limits { members_max: Some(3), ..Limits::default() };
    let (result, _) = read(Files::valid(&[Algorithm::Md5]).tar("bag/"), limits);
    assert!(matches!(result, Err(Error::Limit { .. })));
}
