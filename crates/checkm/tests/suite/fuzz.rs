//! An in-process mutator: whatever the bytes, reading ends, counts truly, and never panics.
//!
//! Runs for `ACCESSION_FUZZ_SECONDS` a target (4 by default). A failure prints its seed;
//! `ACCESSION_FUZZ_SEED` runs that one input again.

use checkm::{Format, Header, Options, Profile, Reader, Writer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A small generator of reproducible noise (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn checkm_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Profile::ALL
        .iter()
        .map(|profile| {
            let fields: Vec<_> = profile.columns().iter().map(|c| c.field()).collect();
            let uri = profile.uri().unwrap_or("http://x/");
            format!(
                "#%checkm_0.7\n#%profile | {uri}\n#%prefix | nfo: | http://x#\n#%fields | {}\n\
                 http://h/a%20b | md5 | d41d8cd98f00b204e9800998ecf8427e | 0 | 2024-02-29 | a%7cb | ark:/1/x | i;j | c | t | d\n\
                 @http://h/b.checkm | sha256 | {} | 18446744073709551616 | 20240101120000 | ../../b.checkm\n\
                 C:\\x | dir\r\n/etc/passwd | | | -1 | x | \0\n%ff%00%\n{}\n#%eof\n",
                fields.join(" | "), "AB".repeat(32), "n".repeat(300),
            )
            .into_bytes()
        })
        .collect();
    seeds.push(b"\xef\xbb\xbf#%checkm_0.7\r\na|b|c|d|e|f|g|h\r\n\r\r\n\xff\xfe\n".to_vec());
    seeds.push(b"\xff\xfe#\0%\0".to_vec());
    seeds.push(b"#%fields\n#%columns |\n#%prefix\n#%profile |||\n|||||\n@\n#%eof\nx\n".to_vec());
    seeds.push(vec![b'|'; 5000]);
    seeds.push("ü\u{202e}\u{1b}[31m|\u{7f}\n".repeat(30).into_bytes());
    seeds
}

fn json_seeds() -> Vec<Vec<u8>> {
    let rows = r#"{"source":"http://h/a","algorithm":"md5","digest":"d41d8cd98f00b204e9800998ecf8427e","size":9,"name":"a\u00fc\"|","local_ids":["x","y"],"extra":{"7":"z"},"include":true},
{"name":"../b","size":1e400,"source":null},"x",[[]],{"a":{"b":{"c":[1,2,{"d":"\ud800"}]}}}"#;
    let mut seeds: Vec<Vec<u8>> = ["object", "general", "container", "single-file-batch"]
        .iter()
        .map(|p| format!(r#"{{"$schema":"x","format":"checkm-json/1","profile":"{p}","columns":["nfo:fileUrl","x:y"],"prefixes":{{"x":"http://x#"}},"rows":[{rows}]}}"#).into_bytes())
        .collect();
    seeds.push(b"{\"rows\":[".to_vec());
    seeds.push(format!("{{\"rows\":[{}", "[{\"a\":".repeat(500)).into_bytes());
    seeds
}

const WORDS: &[&str] = &[
    "|",
    " | ",
    "\n",
    "\r\n",
    "\0",
    "../",
    "%7c",
    "%20",
    "%",
    "@",
    "#%eof\n",
    "#%fields | ",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "\u{feff}",
    "\u{fffd}",
    "99999999999999999999",
    "ark:/",
    "http://",
    ";",
];

fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(12) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] = random.next() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len()))),
            3 => {
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
            4 => {
                let from = random.below(bytes.len() + 1);
                let piece = bytes[from..(from + random.below(200)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

/// Reads, and holds the reader to what it promises.
fn run(bytes: &[u8], random: &mut Random) {
    let options = Options {
        problems_max: 3,
        line_bytes_max: 1 << (4 + random.below(12)),
        memory_bytes_max: random.below(4096),
        profile: random.next().is_multiple_of(4).then(|| Profile::ALL[random.below(7)]),
        ..Options::default()
    };
    let source = std::io::BufReader::with_capacity(1 + random.below(64), bytes);
    let mut reader = Reader::new(source, &options).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().unwrap() {
        if let Some(name) = &row.name
            && !name.contains("://")
        {
            let path = std::path::Path::new(&**name);
            let plain = path.components().all(|c| matches!(c, std::path::Component::Normal(_)));
            assert!(plain, "an unsafe name got through: {name:?}");
        }
        rows.push(row);
    }
    let header = reader.header().cloned();
    let report = reader.finish().unwrap();
    assert!(report.rows() >= rows.len() as u64);
    let problems = report.problems();
    assert!(problems.windows(2).all(|pair| pair[0].line <= pair[1].line));
    assert_eq!(problems.len() as u64 + report.not_shown(), report.errors() + report.warnings());
    assert!(problems.iter().all(|p| p.message.len() < 2000));
    let header = header.unwrap_or(Header::new(Profile::General));
    for format in [Format::Checkm, Format::Json] {
        // A header that no line can hold is refused.
        let Ok(writer) = Writer::new(Vec::new(), format, header.clone()) else { continue };
        let mut writer = writer.dropping();
        // What a format cannot say is refused; what it takes must come back.
        let written: Vec<_> = rows.iter().filter(|row| writer.write(row).is_ok()).collect();
        if written.len() < rows.len() || report.count(checkm::Code::FieldRepeated) > 0 {
            continue;
        }
        let bytes = writer.finish().unwrap();
        let options =
            Options { format: Some(format), profile: Some(header.profile), ..Options::default() };
        let mut again = Reader::new(&bytes[..], &options).unwrap();
        for row in written {
            let Some(back) = again.next_row().unwrap() else {
                let text = String::from_utf8_lossy(&bytes);
                panic!("{row:?} was written and not read: {:?}\n{text}", again.report().problems());
            };
            let same = checkm::Row { place: back.place, ..row.clone() };
            assert_eq!(back, same);
        }
    }
}

fn fuzz(seeds: Vec<Vec<u8>>) {
    let seconds = std::env::var("ACCESSION_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(4));
    let replay: Option<u64> =
        std::env::var("ACCESSION_FUZZ_SEED").ok().and_then(|s| s.parse().ok());
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut seed = replay.unwrap_or(start.as_nanos() as u64);
    for input in &seeds {
        run(input, &mut Random(seed));
    }
    let mut count = 0;
    loop {
        let mut random = Random(seed);
        let input = mutate(&seeds[random.below(seeds.len())], &mut random);
        let result = catch_unwind(AssertUnwindSafe(|| run(&input, &mut random)));
        assert!(
            result.is_ok(),
            "ACCESSION_FUZZ_SEED={seed} fails on {:?}",
            String::from_utf8_lossy(&input)
        );
        count += 1;
        seed = seed.wrapping_add(1);
        if replay.is_some() || Instant::now() > until {
            println!("{count} inputs");
            return;
        }
    }
}

#[test]
fn checkm() {
    fuzz(checkm_seeds());
}

#[test]
fn json() {
    fuzz(json_seeds());
}
