//! An in-process mutator for everything that is parsed. Each target runs for
//! `$ACCESSION_FUZZ_SECONDS` (4 by default); `$ACCESSION_FUZZ_SEED` replays one case.
//!
//! What must hold: no panic, an answer or an error for every input, and no more problems kept
//! than asked for.

use crate::common;
use crate::common::{Files, gz, member, octal, plain};
use bagit::{Algorithm, Bag, Limits, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

/// Bytes and words that parsers stumble over.
const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b"../",
    b"/",
    b"~",
    b"%0A",
    b"%25",
    b"%",
    b"*",
    b":",
    b" ",
    b"\t",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xfe\xff",
    b"data/",
    b"BagIt-Version: ",
    b"18446744073709551616",
    b"-1",
    b"PK\x01\x02",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
    b"ustar\0",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\x80\0\0\0",
    b"30 size=99999999999\n",
    b"GNU.sparse.size=1",
    b"http://",
    b"\\",
    b"C:\\",
    b"././@LongLink",
];

fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.next(6) {
        let at = random.next(bytes.len() + 1);
        match random.next(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.next(8),
            1 if at < bytes.len() => bytes[at] = random.next(256) as u8,
            2 => bytes.truncate(at),
            3 => {
                let token = TOKENS[random.next(TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
            4 => {
                let token = TOKENS[random.next(TOKENS.len())];
                let end = (at + token.len()).min(bytes.len());
                bytes.splice(at..end, token.iter().copied());
            }
            5 => {
                let len = random.next(600).min(bytes.len() - at);
                let copy = bytes[at..at + len].to_vec();
                let to = random.next(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            _ => {
                let end = (at + random.next(64)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

/// Makes the checksums of tar headers right again, so that what lies behind them is reached.
fn fix_tar(bytes: &mut [u8]) {
    for block in bytes.chunks_exact_mut(512) {
        if &block[257..262] == b"ustar" {
            block[148..156].copy_from_slice(b"        ");
            let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

fn run(name: &str, seeds: &[Vec<u8>], target: impl Fn(Vec<u8>, &mut Random)) {
    let seconds = std::env::var("ACCESSION_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let replay: Option<u64> =
        std::env::var("ACCESSION_FUZZ_SEED").ok().and_then(|s| s.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(4));
    let first = replay.unwrap_or_else(|| u64::from(std::process::id()) << 32);
    let mut cases = 0;
    while cases == 0 || (replay.is_none() && Instant::now() < end) {
        let case = first + cases;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut random = Random::new(case);
            let seed = &seeds[random.next(seeds.len())];
            let input = mutate(seed, &mut random);
            target(input, &mut random);
        }));
        assert!(outcome.is_ok(), "{name}: replay with ACCESSION_FUZZ_SEED={case}");
        cases += 1;
    }
    println!("{name}: {cases} cases");
}

fn options() -> Options {
    let limits =
        Limits { bytes_max: Some(16 << 20), members_max: Some(10_000), ..Limits::default() };
    Options { workers: 1, problems_max: 20, limits, memory_bytes: 256 * 1024, ..Options::default() }
}

fn check(bytes: Vec<u8>) {
    let Ok(bag) = Bag::from_read_at(bytes, "bag.tar") else { return };
    if let Ok(report) = bag.validate(&options()) {
        assert!(report.problems.len() <= 40);
        assert_eq!(report.valid, report.errors == 0);
        assert!(report.problems.iter().all(|p| !p.message.is_empty()));
    }
}

fn bag() -> Files {
    Files::valid(&[Algorithm::Md5, Algorithm::Sha256])
        .with(&format!("data/{}", "long/".repeat(40) + "name"), "x")
        .with("data/\u{fc}\u{308}", "y")
        .with("fetch.txt", "http://example.org/a 6 data/hello.txt\nhttp://x/ - data/gone\n")
}

#[test]
fn tar() {
    let hostile = tar_of_links();
    run("tar", &[bag().tar("bag/"), hostile, tar_of_holes()], |mut bytes, random| {
        fix_tar(&mut bytes);
        check(if random.next(4) == 0 { gz(&bytes) } else { bytes });
    });
}

/// Sparse members in the four forms of GNU tar.
fn tar_of_holes() -> Vec<u8> {
    let text = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
    let mut tar = plain("bag/bagit.txt", text);
    let mut old = member(b"bag/data/old", b'S', &octal(20), &[]);
    old[257..265].copy_from_slice(b"ustar  \0");
    for (index, offset) in [0_u32, 100, 200, 300].into_iter().enumerate() {
        let entry = format!("{offset:011o}\0{:011o}\0", 4);
        old[386 + 24 * index..410 + 24 * index].copy_from_slice(entry.as_bytes());
    }
    old[482] = 1;
    old[483..495].copy_from_slice(&octal(500));
    let mut more = [0; 512];
    more[..24].copy_from_slice(format!("{:011o}\0{:011o}\0", 400, 4).as_bytes());
    tar.extend([&old[..], &more, &[b'x'; 20], &[0; 492]].concat());
    let forms = [
        (&b"GNU.sparse.size=90\nGNU.sparse.offset=5\nGNU.sparse.numbytes=3"[..], "abc"),
        (b"GNU.sparse.size=90\nGNU.sparse.name=bag/data/m\nGNU.sparse.map=0,1,5,2", "abc"),
        (b"GNU.sparse.major=1\nGNU.sparse.realsize=90\nGNU.sparse.name=bag/data/n", "1\n7\n3\n"),
    ];
    for (records, body) in forms {
        let record = |r: &[u8]| [format!("{} ", r.len() + 4).as_bytes(), r, b"\n"].concat();
        let records: Vec<u8> = records.split(|b| *b == b'\n').flat_map(record).collect();
        tar.extend(member(b"pax", b'x', &octal(records.len()), &records));
        let mut body = body.as_bytes().to_vec();
        if body.ends_with(b"\n") {
            body.resize(512, 0);
            body.extend_from_slice(b"abc");
        }
        tar.extend(member(b"bag/data/sparse", b'0', &octal(body.len()), &body));
    }
    tar.extend([0; 1024]);
    fix_tar(&mut tar);
    tar
}

/// The seed must be read, or what is made of it never reaches the maps.
#[test]
fn the_seed_of_holes_is_an_archive() {
    let report = Bag::from_read_at(tar_of_holes(), "bag").unwrap().validate(&options()).unwrap();
    assert_eq!(report.payload.octets, 500 + 3 * 90);
}

fn tar_of_links() -> Vec<u8> {
    let mut builder = tar::Builder::new(bag().tar("bag/"));
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Char] {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_path("bag/data/link").unwrap();
        header.set_link_name("/etc/passwd").unwrap();
        header.set_cksum();
        builder.append(&header, std::io::empty()).unwrap();
    }
    let pax = [("path", &b"bag/data/pax"[..]), ("size", b"3"), ("GNU.sparse.major", b"1")];
    builder.append_pax_extensions(pax).unwrap();
    let mut bytes = builder.into_inner().unwrap();
    // The first archive's end must not hide what follows it.
    while let Some(at) = bytes.chunks(512).position(|block| block.iter().all(|b| *b == 0)) {
        if at * 512 + 1024 >= bytes.len() {
            break;
        }
        bytes.drain(at * 512..(at + 1) * 512);
    }
    bytes
}

#[test]
fn compressed_streams() {
    let tar = bag().tar("bag/");
    let seeds = [gz(&tar), common::bz2(&tar), common::zst(&tar)];
    run("compressed", &seeds, |bytes, _| check(bytes));
}

#[test]
fn zip() {
    let seeds = [bag().zip("bag/", true), bag().zip("bag/", false)];
    run("zip", &seeds, |bytes, _| check(bytes));
}

/// Puts mutated text into an otherwise fine bag.
fn tag_file(name: &'static str, seeds: &[Vec<u8>]) {
    run(name, seeds, |bytes, random| {
        let mut files = bag().with(name, bytes);
        if random.next(3) == 0 {
            let encoding = ["UTF-16", "ISO-8859-1", "Shift_JIS", "utf-16le"][random.next(4)];
            let text = format!("BagIt-Version: 0.97\nTag-File-Character-Encoding: {encoding}\n");
            if name != "bagit.txt" {
                files = files.with("bagit.txt", text);
            }
        }
        let tar = files.tar("bag/");
        let bag = Bag::from_read_at(tar.clone(), "bag.tar").unwrap();
        bag.summary().unwrap();
        bag.fetch_list(&mut |line| {
            assert!(line.path.starts_with("data/") && !line.path.split('/').any(|p| p == ".."));
            Ok(())
        })
        .unwrap();
        check(tar);
    });
}

fn file(name: &str) -> Vec<u8> {
    bag().0.into_iter().find(|(path, _)| path == name).unwrap().1
}

#[test]
fn declarations() {
    tag_file("bagit.txt", &[file("bagit.txt")]);
}

#[test]
fn information() {
    tag_file(
        "bag-info.txt",
        &[file("bag-info.txt"), b"A: b\n  c\n\td\nE : f\nPayload-Oxum: 1.2\n".to_vec()],
    );
}

#[test]
fn manifests() {
    tag_file("manifest-md5.txt", &[file("manifest-md5.txt")]);
}

#[test]
fn fetch_lists() {
    tag_file("fetch.txt", &[file("fetch.txt")]);
}

#[test]
fn profiles() {
    let json = br#"{"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "x"}, "Bag-Info": {"T":
        {"required": true, "values": ["a"], "repeatable": false}}, "Tag-Files-Allowed": ["[a-z]*?"],
        "Payload-Files-Required": ["data/*"], "Serialization": "optional"}"#;
    let tar = bag().tar("bag/");
    run("profile", &[json.to_vec()], |bytes, _| {
        let Ok(profile) = bagit::Profile::from_json(&bytes, "fuzz") else { return };
        let options = Options { profile: Some(profile), ..options() };
        Bag::from_read_at(tar.clone(), "bag").unwrap().validate(&options).unwrap();
    });
}
