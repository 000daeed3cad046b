//! Files made to hurt: none may panic, hang, or make the identifier read without end.

use crate::{Identification, Identifier, Scope, SignatureSet, Source, Warning, build, common};

/// No container, whatever it says about itself, makes us read more than this.
const READ_BYTES_MAX: u64 = 80 * 1024 * 1024;

struct Metered<'b> {
    bytes: &'b [u8],
    read: u64,
}

impl Source for Metered<'_> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = (&mut { self.bytes }).read_at(offset, buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

fn identify(identifier: &Identifier, bytes: &[u8]) -> Identification {
    let mut object = Metered { bytes, read: 0 };
    let found = identifier.identify(&mut object, Some("x.bin")).expect("bytes are never an error");
    assert!(object.read < READ_BYTES_MAX, "{} bytes read of {}", object.read, bytes.len());
    found
}

fn essential() -> Identifier {
    Identifier::new(SignatureSet::essential().clone())
}

/// The official signatures if they are there.
fn best() -> Identifier {
    Identifier::new(common::official().unwrap_or_else(|| SignatureSet::essential().clone()))
}

fn word_file() -> Vec<u8> {
    let mut object = vec![0; 48];
    object.extend(b"\x10\0\0\0Word.Document.8\0");
    let large = vec![7; 6000];
    build::ole2(&[
        ("WordDocument", large),
        ("\u{1}CompObj", object),
        ("ObjectPool/1/Data", vec![1; 90]),
    ])
}

fn docx() -> Vec<u8> {
    let types = b"<Types ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/>";
    build::zip(
        &[("[Content_Types].xml", types.to_vec()), ("word/document.xml", vec![b'x'; 300])],
        true,
    )
}

#[test]
fn containers_cut_at_every_byte() {
    let identifier = essential();
    for (file, puid) in [(word_file(), "fmt/40"), (docx(), "fmt/412")] {
        assert_eq!(identify(&identifier, &file).puids().collect::<Vec<_>>(), [puid]);
        for end in 0..file.len() {
            identify(&identifier, &file[..end]);
        }
    }
    let docx = docx();
    let cut = identify(&identifier, &docx[..docx.len() - 30]);
    let told =
        |w: &Warning| matches!(w, Warning::Truncated { .. } | Warning::ContainerUnreadable { .. });
    assert!(cut.warnings.iter().any(told), "{:?}", cut.warnings);
}

#[test]
fn compound_files_whose_chains_and_trees_go_in_circles() {
    let identifier = essential();
    let file = word_file();
    // Every word of the header, the directory and the tables points everywhere, itself included.
    for at in (24..file.len()).step_by(4).filter(|at| !(2600..8000).contains(at)) {
        let here = (at / 512).saturating_sub(1) as u32;
        for value in [0, 1, 2, here, 5, 0x7fff_ffff, 0xffff_fff9, 0xffff_fffe, u32::MAX] {
            let mut broken = file.clone();
            broken[at..at + 4].copy_from_slice(&value.to_le_bytes());
            identify(&identifier, &broken);
        }
    }
}

#[test]
fn zips_whose_directories_lie() {
    let identifier = essential();
    let file = docx();
    let directory = memchr::memmem::find(&file, b"PK\x01\x02").expect("a directory");
    for at in directory..file.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, !file[at]] {
            let mut broken = file.clone();
            broken[at] = value;
            identify(&identifier, &broken);
        }
    }
    // Four gigabytes of directory, a million entries, in a file of a few hundred bytes.
    let mut broken = file.clone();
    let end = broken.len() - 22;
    broken[end + 8..end + 20].fill(0xff);
    let found = identify(&identifier, &broken);
    assert!(found.warnings.iter().any(|w| matches!(w, Warning::ContainerUnreadable { .. })));
}

#[test]
fn a_bomb_is_inflated_only_as_far_as_it_is_looked_at() {
    let file = build::zip(&[("[Content_Types].xml", vec![b' '; 100 << 20])], true);
    for scope in [Scope::default(), Scope::Whole] {
        let found = identify(&essential().with_scope(scope), &file);
        assert!(!found.matches.is_empty(), "{scope:?}");
    }
}

#[test]
fn the_beginnings_of_all_signatures_in_one_file() {
    let identifier = best();
    let signatures = &identifier.set().signatures;
    let slots = || signatures.iter().flat_map(|s| &s.sequences).filter_map(|s| s.slots.first());
    let mut all: Vec<u8> = slots().flat_map(|slot| slot.choices[0].example()).collect();
    identify(&identifier, &all);
    all.reverse();
    identify(&identifier, &all);
    // Short files that are nothing but keys.
    let mut short: Vec<Vec<u8>> =
        slots().filter_map(|s| s.choices[0].needle().map(|n| n.1.to_vec())).collect();
    short.sort_by_key(Vec::len);
    short.dedup();
    for keys in short.chunks(150) {
        let file: Vec<u8> = keys.concat().into_iter().cycle().take(500).collect();
        identify(&identifier, &file);
    }
    let many: Vec<u8> = short.concat().into_iter().cycle().take(300_000).collect();
    identify(&identifier, &many);
    identify(&best().with_scope(Scope::Whole), &many);
}

#[test]
fn files_of_one_byte_repeated() {
    let (ends, whole) = (best(), best().with_scope(Scope::Whole));
    for byte in [0u8, 0xff, b' ', b'<', b'0', b'G', b'P', 1] {
        let file = vec![byte; 400_000];
        identify(&ends, &file);
        identify(&whole, &file);
    }
}

#[test]
fn gaps_of_a_hundred_thousand_bytes() {
    let xml = |gap: &str| {
        format!(
            "<FFSignatureFile Version='1'><InternalSignatureCollection><InternalSignature ID='1'>\
<ByteSequence Reference='BOFoffset'><SubSequence Position='1' SubSeqMinOffset='0' SubSeqMaxOffset='100000'>\
<Sequence>4141</Sequence><RightFragment Position='1' {gap}>4141</RightFragment>\
<RightFragment Position='2' {gap}>42</RightFragment></SubSequence></ByteSequence></InternalSignature>\
</InternalSignatureCollection><FileFormatCollection><FileFormat ID='1' PUID='fmt/1' Name='A'>\
<InternalSignatureID>1</InternalSignatureID></FileFormat></FileFormatCollection></FFSignatureFile>"
        )
    };
    for gap in ["MinOffset='100000' MaxOffset='100000'", "MinOffset='0' MaxOffset='100000'"] {
        let set = SignatureSet::from_official(xml(gap).as_bytes(), None).expect("usable");
        let identifier = Identifier::new(set).with_scope(Scope::Whole);
        let mut file = vec![b'A'; 400_000];
        assert!(identify(&identifier, &file).matches.is_empty());
        file[250_000] = b'B';
        assert_eq!(identify(&identifier, &file).puids().collect::<Vec<_>>(), ["fmt/1"], "{gap}");
    }
}
