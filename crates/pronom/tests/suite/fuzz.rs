//! Mutated signature files, patterns and files to identify. Runs `$ACCESSION_FUZZ_SECONDS` for
//! each target (default 4); a failure prints its seed, and `$ACCESSION_FUZZ_SEED` replays it.

use crate::build;
use crate::common;
use pronom::{Identifier, Scope, SignatureSet};
use std::time::{Duration, Instant};

/// Nothing here takes a tenth of this even unoptimised; more is a hang.
const HANG: Duration = Duration::from_secs(20);

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

/// Changes a few things: bytes, words, pieces cut out, doubled, moved or taken from elsewhere.
fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        let length = random.below(64).min(bytes.len() - at);
        match random.below(8) {
            0 | 1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 if at + 4 <= bytes.len() => {
                let words = [0, 1, 0xffff_ffff, 0xffff_fffe, 0x8000_0000, random.next() as u32];
                bytes[at..at + 4].copy_from_slice(&words[random.below(6)].to_le_bytes());
            }
            3 => drop(bytes.drain(at..at + length)),
            4 => bytes.truncate(at),
            5 => {
                let piece = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            6 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let piece = other[from..(from + 200).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            7 if at < bytes.len() => {
                let byte = bytes[at];
                bytes.splice(at..at, std::iter::repeat_n(byte, random.below(70_000)));
            }
            _ => {}
        }
        bytes.truncate(2 << 20);
    }
    bytes
}

/// Runs a target on mutations until the time is up.
fn fuzz(name: &str, seeds: &[Vec<u8>], mut target: impl FnMut(&[u8])) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let replay = number("ACCESSION_FUZZ_SEED");
    let time = Duration::from_secs(number("ACCESSION_FUZZ_SECONDS").unwrap_or(4));
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = replay.unwrap_or(clock.map_or(1, |d| d.as_nanos() as u64));
    let (start, mut runs) = (Instant::now(), 0u64);
    while start.elapsed() < time {
        let seed = first.wrapping_add(runs);
        let input = mutate(&mut Random(seed), seeds);
        let began = Instant::now();
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&input)));
        let took = began.elapsed();
        assert!(run.is_ok(), "{name} panicked: ACCESSION_FUZZ_SEED={seed}");
        assert!(took < HANG, "{name} took {took:?}: ACCESSION_FUZZ_SEED={seed}");
        runs += 1;
        if replay.is_some() {
            break;
        }
    }
    println!("{name}: {runs} inputs");
}

fn containers() -> Vec<Vec<u8>> {
    let types = b"<Types ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/>";
    let mut word = vec![0; 48];
    word.extend(b"\x10\0\0\0Word.Document.8\0");
    let manifest = b"media-type=\"application/vnd.oasis.opendocument.text\"".to_vec();
    let content = b"<office:document-content office:version=\"1.2\">".to_vec();
    vec![
        build::zip(&[("[Content_Types].xml", types.to_vec())], true),
        build::zip(&[("META-INF/manifest.xml", manifest), ("content.xml", content)], false),
        build::ole2(&[("WordDocument", vec![1; 5000]), ("\u{1}CompObj", word)]),
        build::ole2(&[
            ("a/b/c/d", vec![2; 100]),
            ("Workbook", b"\x09\x08\x10\0\0\x06\x05\0".to_vec()),
        ]),
    ]
}

#[test]
fn identified_files() {
    let mut seeds = containers();
    seeds.extend(common::skeletons().unwrap_or_default().into_iter().map(|s| s.bytes));
    let set = common::official().unwrap_or_else(|| SignatureSet::essential().clone());
    let identifiers = [
        Identifier::new(set.clone()),
        Identifier::new(set).with_scope(Scope::Whole),
        Identifier::new(SignatureSet::essential().clone()).with_scope(Scope::Ends(100)),
    ];
    fuzz("identified files", &seeds, |bytes| {
        for identifier in &identifiers {
            let found = identifier.identify(&mut { bytes }, Some("a.doc")).expect("never an error");
            let mut stream = identifier.stream();
            bytes.chunks(7001).for_each(|piece| stream.feed(piece));
            let streamed =
                stream.finish(Some("a.doc"), Some(&mut { bytes })).expect("never an error");
            assert_eq!(found, streamed, "a stream and a file differ");
        }
    });
}

#[test]
fn containers_alone() {
    let identifier = Identifier::new(SignatureSet::essential().clone());
    fuzz("containers", &containers(), |bytes| {
        identifier.identify(&mut { bytes }, None).expect("never an error");
    });
}

const SIGNATURES: &str = r#"<FFSignatureFile DateCreated="2026-01-01" Version="1">
<InternalSignatureCollection><InternalSignature ID="1"><ByteSequence Reference="BOFoffset">
<SubSequence Position="1" SubSeqMinOffset="0" SubSeqMaxOffset="9"><Sequence>4142[!&amp;01][30:39]</Sequence>
<LeftFragment Position="1" MinOffset="0" MaxOffset="99">[!0000]41</LeftFragment>
<RightFragment Position="1" MinOffset="2" MaxOffset="4">[0000:1000]</RightFragment></SubSequence>
<SubSequence Position="2" SubSeqMinOffset="0"><Sequence>'text' (22|27) ['a'-'z'] {2-*} ??</Sequence></SubSequence>
</ByteSequence><ByteSequence Reference="EOFoffset"><SubSequence Position="1" SubSeqMinOffset="0"
SubSeqMaxOffset="70000"><Sequence>2525</Sequence></SubSequence></ByteSequence></InternalSignature>
</InternalSignatureCollection><FileFormatCollection><FileFormat ID="1" Name="A" PUID="fmt/1" MIMEType="a/b">
<InternalSignatureID>1</InternalSignatureID><Extension>a</Extension>
<HasPriorityOverFileFormatID>1</HasPriorityOverFileFormatID></FileFormat></FileFormatCollection></FFSignatureFile>"#;

const CONTAINERS: &str = r#"<ContainerSignatureMapping schemaVersion="1.0" signatureVersion="1"><ContainerSignatures>
<ContainerSignature Id="1" ContainerType="ZIP"><Files><File><Path>a</Path><BinarySignatures>
<InternalSignatureCollection><InternalSignature ID="1"><ByteSequence Reference="BOFoffset">
<SubSequence Position="1" SubSeqMinOffset="0" SubSeqMaxOffset="4"><Sequence>41 'b' {1-2} 00</Sequence></SubSequence>
</ByteSequence></InternalSignature></InternalSignatureCollection></BinarySignatures></File></Files></ContainerSignature>
</ContainerSignatures><FileFormatMappings><FileFormatMapping signatureId="1" Puid="fmt/1"/></FileFormatMappings>
<TriggerPuids><TriggerPuid ContainerType="ZIP" Puid="fmt/1"/></TriggerPuids></ContainerSignatureMapping>"#;

#[test]
fn signature_files() {
    let file = b"..ABC1..AB\x02text\"a....%%".to_vec();
    fuzz("signature files", &[SIGNATURES.into(), CONTAINERS.into()], |bytes| {
        for (signatures, containers) in
            [(bytes, CONTAINERS.as_bytes()), (SIGNATURES.as_bytes(), bytes)]
        {
            if let Ok(set) = SignatureSet::from_official(signatures, Some(containers)) {
                let compiled = set.to_compiled().expect("compiled");
                assert_eq!(SignatureSet::from_compiled(&compiled).expect("loaded"), set);
                let identifier = Identifier::new(set).with_scope(Scope::Whole);
                identifier.identify(&mut file.as_slice(), None).expect("never an error");
            }
        }
    });
}

#[test]
fn compiled_sets() {
    let compiled = SignatureSet::from_official(SIGNATURES.as_bytes(), Some(CONTAINERS.as_bytes()))
        .and_then(|set| set.to_compiled())
        .expect("compiled");
    fuzz("compiled sets", &[compiled[12..].to_vec()], |body| {
        // With a right checksum, so that the damage reaches the decoder.
        let mut crc = flate2::Crc::new();
        crc.update(body);
        let bytes = [&compiled[..8], &crc.sum().to_le_bytes(), body].concat();
        if let Ok(set) = SignatureSet::from_compiled(&bytes) {
            let identifier = Identifier::new(set).with_scope(Scope::Whole);
            identifier.identify(&mut &b"ABAB%%"[..], None).expect("never an error");
        }
    });
}
