//! What the ends of a file leave open, and what its name decides.

use pronom::{Identification, Identifier, Scope, SignatureSet, Warning};

const WINDOW: usize = 65_535;

/// A PDF/A-1b whose metadata is so far from its beginning.
fn pdf(at: usize, length: usize) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    bytes.resize(at, b' ');
    bytes.extend_from_slice(
        b"<rdf:Description xmlns:pdfaid=\"http://www.aiim.org/pdfa/ns/id/\" pdfaid:part=\"1\" pdfaid:conformance=\"B\"/>",
    );
    bytes.resize(length, b' ');
    bytes.extend_from_slice(b"\n%%EOF\n");
    bytes
}

fn identifier() -> Identifier {
    Identifier::new(SignatureSet::essential().clone())
}

fn puids(found: &Identification) -> Vec<&str> {
    found.puids().collect()
}

fn incomplete(found: &Identification) -> Option<u64> {
    found.warnings.iter().find_map(|warning| match warning {
        Warning::Incomplete { scanned, puids } => {
            assert!(puids.iter().any(|puid| puid == "fmt/354"), "{puids:?}");
            Some(*scanned)
        }
        _ => None,
    })
}

#[test]
fn a_file_is_scanned_further_where_its_ends_leave_open_what_it_is() {
    let bytes = pdf(300_000, 600_000);
    let name = Some("a.pdf");
    let found = identifier().identify(&mut bytes.as_slice(), name).unwrap();
    assert_eq!((puids(&found), incomplete(&found)), (vec!["fmt/354"], None));

    // Not so far: the answer is what the ends say, and says that it may be incomplete.
    for further in [0, 250_000] {
        let near = identifier().with_further_bytes(further);
        let found = near.identify(&mut bytes.as_slice(), name).unwrap();
        let scanned = (WINDOW as u64).max(further);
        assert_eq!((puids(&found), incomplete(&found)), (vec!["fmt/18"], Some(scanned)));
    }
    // All of it was seen: nothing is left open.
    let plain = pdf(300_000, 600_000).into_iter().map(|b| if b == b'd' { b'e' } else { b });
    let plain: Vec<u8> = plain.collect();
    let found = identifier().identify(&mut plain.as_slice(), name).unwrap();
    assert_eq!((puids(&found), incomplete(&found)), (vec!["fmt/18"], None));
    let short = &pdf(100, 2000)[..];
    let found = identifier().with_further_bytes(0).identify(&mut &*short, name).unwrap();
    assert_eq!((puids(&found), incomplete(&found)), (vec!["fmt/354"], None));
}

#[test]
fn a_stream_is_read_again_where_that_is_possible_and_says_where_not() {
    let bytes = pdf(300_000, 600_000);
    let identifier = identifier();
    for again in [true, false] {
        let mut stream = identifier.stream();
        bytes.chunks(10_007).for_each(|chunk| stream.feed(chunk));
        let mut whole = bytes.as_slice();
        let object = again.then_some(&mut whole as &mut dyn pronom::Source);
        let found = stream.finish(Some("a.pdf"), object).unwrap();
        let expected = if again { (vec!["fmt/354"], None) } else { (vec!["fmt/18"], Some(65_535)) };
        assert_eq!((puids(&found), incomplete(&found)), expected);
    }
    let whole = identifier.with_scope(Scope::Whole);
    let found = whole.identify(&mut bytes.as_slice(), Some("a.pdf")).unwrap();
    assert_eq!((puids(&found), incomplete(&found)), (vec!["fmt/354"], None));
}

#[test]
fn an_extension_that_formats_of_other_kinds_have_claims_nothing() {
    for name in ["firmware.bin", "drawing.cdr", "Thumbs.db", "main.ts"] {
        let found = identifier().identify(&mut &b"\x01\x02\x03\x04"[..], Some(name)).unwrap();
        assert_eq!(
            (puids(&found), &found.warnings[..]),
            (vec![], &[Warning::Unknown][..]),
            "{name}"
        );
    }
    // With the bytes to show for it, the extension fits.
    let mut image = vec![0; 40_000];
    image[32_769..32_774].copy_from_slice(b"CD001");
    image[34_816..34_822].copy_from_slice(b"\xffCD001");
    let found = identifier().identify(&mut image.as_slice(), Some("disk.bin")).unwrap();
    assert_eq!((puids(&found), &found.warnings[..]), (vec!["fmt/468"], &[][..]));
}

#[test]
fn the_newest_opendocument_formats_are_known() {
    for (kind, extension, puid) in [
        ("text", "odt", "fmt/1756"),
        ("spreadsheet", "ods", "fmt/1755"),
        ("presentation", "odp", "fmt/1754"),
        ("graphics", "odg", "fmt/1753"),
    ] {
        let media = format!("application/vnd.oasis.opendocument.{kind}");
        let manifest = format!("<m><manifest:file-entry manifest:media-type=\"{media}\"/></m>");
        let content = "<?xml version=\"1.0\"?><office:document-content office:version=\"1.3\">";
        let zip = stored(&[
            ("mimetype", media.as_bytes()),
            ("META-INF/manifest.xml", manifest.as_bytes()),
            ("content.xml", content.as_bytes()),
        ]);
        let name = format!("a.{extension}");
        let found = identifier().identify(&mut zip.as_slice(), Some(&name)).unwrap();
        assert_eq!(puids(&found), [puid]);
    }
}

/// A zip of files that are not compressed; checksums are left out, as identification does not ask.
fn stored(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in files {
        let offset = bytes.len() as u32;
        let mut common = Vec::new();
        common.extend_from_slice(&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        common.extend_from_slice(&(content.len() as u32).to_le_bytes());
        common.extend_from_slice(&(content.len() as u32).to_le_bytes());
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(b"PK\x03\x04");
        bytes.extend_from_slice(&common);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(content);
        directory.extend_from_slice(b"PK\x01\x02\x14\0");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, size) = (bytes.len() as u32, directory.len() as u32);
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    bytes.extend_from_slice(&(files.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&(files.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes
}
