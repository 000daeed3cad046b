//! Random changes to what comes from outside: every answer is an answer or an error, never a
//! panic, and what was read can be written and read again.
//!
//! Runs for `$ACCESSION_FUZZ_SECONDS` for each target (4 by default). A failure prints its seed;
//! `$ACCESSION_FUZZ_SEED` replays it.

use archive::identifier::{Ark, check, normalise};
use archive::metadata::{
    Metadata, from_bag_info, parse_dc, parse_dc_json, parse_dc_xml, parse_erc, write_dc_xml,
    write_erc,
};
use archive::model::mail_address;
use archive::premis::{self, read_xml};
use archive::transfer::callback;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Pieces that parsers trip over.
const PIECES: [&[u8]; 20] = [
    b"<",
    b"&",
    b"%",
    b":",
    b"|",
    b"\n",
    b"\0",
    b"\xff",
    b"<![CDATA[",
    b"]]>",
    b"<!DOCTYPE x [",
    b"&#0;",
    b"&#x110000;",
    b"%{",
    b"%zz",
    b"erc:",
    b"{\"title\":",
    b"\xef\xbf\xbf",
    b"#v9223372036854775808/",
    b"</",
];

fn changed(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
            1 => bytes.truncate(at),
            2 if bytes.len() < 100_000 => bytes.extend_from_within(at..),
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            4 => {
                let end = at + random.below(bytes.len() - at.min(bytes.len()));
                bytes.drain(at.min(end)..end);
            }
            _ => drop(bytes.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
        }
    }
    bytes
}

fn fuzz(seeds: &[Vec<u8>], target: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let replayed = number("ACCESSION_FUZZ_SEED");
    let end = Instant::now() + Duration::from_secs(number("ACCESSION_FUZZ_SECONDS").unwrap_or(4));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    for nth in 0.. {
        let seed = replayed.unwrap_or_else(|| now.wrapping_add(nth));
        let bytes = changed(seeds, &mut Random(seed));
        if let Err(panic) = std::panic::catch_unwind(|| target(&bytes)) {
            eprintln!(
                "ACCESSION_FUZZ_SEED={seed} fails with {:?}",
                String::from_utf8_lossy(&bytes)
            );
            std::panic::resume_unwind(panic);
        }
        if replayed.is_some() || Instant::now() > end {
            return;
        }
    }
}

fn written_and_read_again(metadata: &Metadata) {
    let xml = parse_dc_xml(write_dc_xml(metadata).as_bytes()).unwrap();
    // An element that is to be removed has no values, and is not written.
    let mut written = metadata.dublin_core.clone();
    written.retain(|_, values| !values.is_empty());
    assert_eq!(xml.dublin_core, written);
    let erc = parse_erc(write_erc(metadata).as_bytes()).unwrap();
    let kernel =
        |of: &Metadata| [of.who.clone(), of.what.clone(), of.when.clone(), of.where_.clone()];
    // A value that says that there is none, or that is to be removed, is read as none.
    for (read, written) in kernel(&erc).into_iter().zip(kernel(metadata)) {
        let says_none = |value: &String| value.is_empty() || value.starts_with("(:");
        assert!(read == written || written.as_ref().is_some_and(says_none), "{read:?} {written:?}");
    }
    assert_eq!(metadata.clone().checked().unwrap(), *metadata);
}

#[test]
fn metadata() {
    let seeds = [
        &b"erc:\nwho: A %sp B\n  continued\nwhat: %{ x\n%}\nwhen: (:unas)\nwhere: ark:/1/a%20b\n"[..],
        b"erc: a | b%vb | c | d\n",
        b"<oai_dc:dc xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>a&amp;b<![CDATA[x]]></dc:title></oai_dc:dc>",
        b"{\"title\":[\"a\",{\"b\":1}],\"dc:date\":2}",
        b"title: a\ndc:creator: b\n c\n",
        b"External-Identifier: x\nDC-Title: y\n",
    ];
    fuzz(&seeds.map(<[u8]>::to_vec), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let tags = text.lines().filter_map(|line| line.split_once(':'));
        let all = [
            parse_erc(bytes),
            parse_dc(bytes),
            parse_dc_xml(bytes),
            parse_dc_json(bytes),
            from_bag_info(tags),
        ];
        all.iter().flatten().for_each(written_and_read_again);
    });
}

#[test]
fn identifiers_and_addresses() {
    let seeds = [
        &b"ark:/12345/x54-xz321/a.b%20"[..],
        b"https://n2t.net/ark:12345/x",
        b"https://doi.org/10.1234/X",
        b"urn:uuid:AB",
        b"Ada <ada@example.org>",
        b"v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163,v1=00",
    ];
    fuzz(&seeds.map(<[u8]>::to_vec), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(normal) = normalise(&text) {
            assert_eq!(normalise(&normal).unwrap(), normal);
        }
        if let Ok(ark) = Ark::parse(&text) {
            assert_eq!(Ark::parse(&ark.to_string()).unwrap(), ark);
        }
        check(&text);
        let _ = mail_address::check_address(&text);
        assert!(
            callback::verify(b"another secret", "1700000000", &text, bytes, 1_700_000_000, 1)
                .is_err()
        );
    });
}

#[test]
fn premis_records() {
    let object = premis::Object {
        identifier: "ark:/99999/x".into(),
        local_ids: vec!["a&b".into()],
        ..Default::default()
    };
    let file = premis::FileRecord {
        version: 1,
        path: "a\u{1} %41.tif".into(),
        digests: vec![("md5".into(), "aa".into())],
        ..Default::default()
    };
    let event = premis::Event {
        id: premis::event_id("here", queue::JobId::new(1), premis::EventType::Ingestion, None),
        kind: premis::EventType::Ingestion,
        at: 0,
        detail: Some("x".into()),
        outcome: premis::Outcome::Failure,
        outcome_note: Some("y".into()),
        agents: Vec::new(),
        object: object.identifier.clone(),
        version: Some(1),
        file: Some(file.path.clone()),
    };
    let mut writer = premis::Writer::new(premis::Format::Xml, &object, Vec::new()).unwrap();
    writer.version(&premis::Version { number: 1, ..Default::default() }).unwrap();
    writer.file(&file).unwrap();
    writer.event(&event).unwrap();
    let seed = writer.finish().unwrap();
    fuzz(&[seed], |bytes| {
        let mut records = 0;
        let read = read_xml(bytes, |_| {
            records += 1;
            Ok(())
        });
        assert!(read.is_ok() || read.is_err_and(|error| error.code() == "premis.xml"));
    });
}
