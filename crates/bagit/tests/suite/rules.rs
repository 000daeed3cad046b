//! The rules of RFC 8493 and the drafts before it, one wrong bag after another.

use crate::common::{Files, codes, digest};
use bagit::{Algorithm, Code, Options, Severity};

fn valid() -> Files {
    Files::valid(&[Algorithm::Sha256])
}

/// The tag manifest would only repeat that tag files were changed.
fn untagged() -> Files {
    valid().without("tagmanifest-sha256.txt")
}

fn old(files: Files) -> Files {
    files.with("bagit.txt", "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n")
}

fn line(path: &str, bytes: &str) -> String {
    format!("{}  {path}\n", digest(Algorithm::Sha256, bytes.as_bytes()))
}

#[test]
fn structure() {
    let cases: Vec<(Files, Vec<Code>)> = vec![
        (valid(), vec![]),
        (untagged().without("bagit.txt"), vec![Code::BagitTxtMissing]),
        (untagged().without("manifest-sha256.txt"), vec![Code::PayloadManifestMissing]),
        (untagged().with("manifest-crc32.txt", ""), vec![Code::AlgorithmUnknown]),
        (
            untagged().with("bag-info.txt", "no colon\nPayload-Oxum: 6006.3\n"),
            vec![Code::InfoLineMalformed],
        ),
        (untagged().with("bag-info.txt", "Payload-Oxum: 6006\n"), vec![Code::OxumMalformed]),
        (untagged().with("bag-info.txt", "Payload-Oxum: 1.1\n"), vec![Code::OxumMismatch]),
        (untagged().with("bag-info.txt", b"A: \xff\n"), vec![Code::TagFileEncoding]),
        (untagged().with("bag-info.txt", "\u{feff}A: b\n"), vec![Code::TagFileBom]),
        (valid().with("data/extra", ""), vec![Code::PayloadFileUnlisted, Code::OxumMismatch]),
        (valid().without("data/empty"), vec![Code::OxumMismatch, Code::PayloadFileMissing]),
        (valid().without("bag-info.txt"), vec![Code::TagFileMissing]),
        (valid().with("notes.txt", "x"), vec![Code::TagFileUnlisted]),
    ];
    for (index, (files, mut expected)) in cases.into_iter().enumerate() {
        let mut found = codes(&files.validate());
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "case {index}");
    }
}

#[test]
fn no_payload_directory() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files::new("1.0").with("manifest-md5.txt", "");
    files.write(directory.path());
    let validate =
        || bagit::Bag::open(directory.path()).unwrap().validate(&Options::default()).unwrap();
    assert!(validate().valid, "an empty payload directory is a payload");
    std::fs::remove_dir(directory.path().join("data")).unwrap();
    assert_eq!(codes(&validate()), [Code::PayloadDirectoryMissing]);
}

#[test]
fn manifest_lines() {
    for (text, code) in [
        ("xyz  data/hello.txt\n", Code::ManifestLineMalformed),
        ("abcd\n", Code::ManifestLineMalformed),
        (&line("../outside", ""), Code::ManifestPathUnsafe),
        (&line("/etc/passwd", ""), Code::ManifestPathUnsafe),
        (&line("elsewhere/x", ""), Code::ManifestPathOutsidePayload),
    ] {
        let mut manifest = untagged();
        let at = manifest.0.iter().position(|(p, _)| p == "manifest-sha256.txt").unwrap();
        manifest.0[at].1.extend_from_slice(text.as_bytes());
        let report = manifest.validate();
        assert_eq!(codes(&report), [code], "{text}");
        assert_eq!(report.problems[0].line, Some(4));
        assert_eq!(report.problems[0].severity, Severity::Error);
    }
}

#[test]
fn a_malformed_line_is_one_problem_and_lists_its_file() {
    let right = digest(Algorithm::Sha256, b"x");
    for text in [
        "0123  data/a b\n".to_owned(),
        format!("{}  data/a b\n", &right[1..]),
        format!("{}g *./data/a b\n", &right[1..]),
        format!("data/a b  {right}\n"),
        "data/a b\n".to_owned(),
    ] {
        let files = Files::new("1.0").with("data/a b", "x").with("manifest-sha256.txt", text);
        assert_eq!(codes(&files.validate()), [Code::ManifestLineMalformed]);
        // What the line seems to name is not asked for.
        let gone = files.without("data/a b").with("data/b", "x");
        let mut found = codes(&gone.validate());
        found.sort();
        let mut expected = [Code::ManifestLineMalformed, Code::PayloadFileUnlisted];
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_line_without_a_blank_lists_its_file() {
    let right = digest(Algorithm::Sha256, b"x");
    for text in ["data/a\n".to_owned(), format!("{right}data/a\n")] {
        let files = Files::new("1.0").with("data/a", "x").with("manifest-sha256.txt", text);
        assert_eq!(codes(&files.validate()), [Code::ManifestLineMalformed]);
    }
}

#[test]
fn what_the_drafts_allowed_is_a_warning_in_their_bags() {
    let twice = line("data/a", "x").repeat(2);
    let files = Files::new("1.0").with("data/a", "x").with("manifest-sha256.txt", twice);
    let report = files.validate();
    assert_eq!(codes(&report), [Code::ManifestDuplicate]);
    assert!(!report.valid && old(files).validate().valid);

    let partly = Files::new("1.0")
        .with("data/a", "x")
        .with("data/b", "y")
        .manifest(Algorithm::Md5)
        .with("manifest-sha256.txt", line("data/a", "x"));
    assert_eq!(codes(&partly.validate()), [Code::ManifestIncomplete]);
    assert!(!partly.validate().valid && old(partly).validate().valid);

    let conflict = line("data/a", "x") + &line("data/a", "y");
    let files = Files::new("1.0").with("data/a", "x").with("manifest-sha256.txt", conflict);
    assert!(codes(&files.validate()).contains(&Code::ManifestConflict));
    assert!(!old(files).validate().valid);
}

#[test]
fn spellings_are_warnings_and_never_missing_files() {
    for (listed, file, code) in [
        ("data/N\u{fa}\u{f1}ez", "data/Nu\u{301}n\u{303}ez", Code::PathNormalization),
        ("data/Report.TXT", "data/report.txt", Code::PathCase),
        ("data/100%25.txt", "data/100%25.txt", Code::PathPercent),
    ] {
        let files =
            Files::new("1.0").with(file, "x").with("manifest-sha256.txt", line(listed, "x"));
        let report = files.validate();
        assert_eq!(codes(&report), [code], "{listed}");
        assert!(report.valid);
        let changed = files.with(file, "y").validate();
        assert!(codes(&changed).contains(&Code::DigestMismatch), "{listed} is still checked");
    }
    let escaped = Files::new("1.0")
        .with("data/a\nb%c", "x")
        .with("manifest-sha256.txt", line("data/a%0Ab%25c", "x"));
    assert_eq!(codes(&escaped.validate()), []);
}

#[test]
fn names_that_are_one_on_other_systems_are_pointed_out() {
    let files =
        Files::new("1.0").with("data/a", "x").with("data/A", "y").manifest(Algorithm::Sha256);
    assert_eq!(codes(&files.validate()), [Code::PathCaseCollision]);
    let files = Files::new("1.0")
        .with("data/\u{fa}", "x")
        .with("data/u\u{301}", "y")
        .manifest(Algorithm::Sha256);
    assert_eq!(codes(&files.validate()), [Code::PathNormalizationCollision]);
}

#[test]
fn tag_manifests() {
    let listing_itself = valid();
    let text = format!("{}  tagmanifest-md5.txt\n", digest(Algorithm::Sha256, b""));
    let files = listing_itself.with("tagmanifest-md5.txt", "").with("tagmanifest-sha256.txt", text);
    let found = codes(&files.validate());
    assert!(found.contains(&Code::TagmanifestListsTagmanifest), "{found:?}");
    assert!(found.contains(&Code::TagmanifestMissesManifest), "{found:?}");
    let payload = Files::new("1.0").with("data/a", "x").manifest(Algorithm::Md5);
    let payload = payload.tagmanifest(Algorithm::Sha256);
    let at = payload.0.len() - 1;
    let mut payload = payload;
    payload.0[at].1.extend_from_slice(line("data/a", "x").as_bytes());
    assert_eq!(codes(&payload.validate()), [Code::TagmanifestListsPayload]);
    let changed = valid().with("bag-info.txt", "Payload-Oxum: 6006.3\n");
    assert_eq!(codes(&changed.validate()), [Code::DigestMismatch]);
}

#[test]
fn fetch_files() {
    let fetch = |text: &str| untagged().with("fetch.txt", text);
    for (text, expected) in [
        ("http://example.org/h 6 data/hello.txt\n", vec![]),
        ("http://example.org/h 7 data/hello.txt\n", vec![Code::FetchLengthDiffers]),
        ("http://example.org/h - ../x\n", vec![Code::FetchPathUnsafe]),
        ("http://example.org/h - x\n", vec![Code::FetchPathOutsidePayload]),
        ("http://example.org/h\n", vec![Code::FetchLineMalformed]),
        ("http://example.org/h - data/new\n", vec![Code::FetchPending, Code::FetchUnlisted]),
    ] {
        let mut found = codes(&fetch(text).validate());
        found.sort();
        let mut expected = expected;
        expected.sort();
        assert_eq!(found, expected, "{text}");
    }
    let holey = fetch("http://example.org/h - data/hello.txt\n").without("data/hello.txt");
    let found = codes(&holey.validate());
    assert!(found.contains(&Code::FetchPending) && !found.contains(&Code::PayloadFileMissing));
}

#[test]
fn all_problems_are_counted_and_the_list_is_capped() {
    let bad: String = (0..5000).map(|i| format!("bad row {i}\n")).collect();
    let files = Files::new("1.0").with("data/a", "x").with("manifest-md5.txt", bad);
    let options = Options { problems_max: 10, ..Options::default() };
    let report = files.validate_with(&options);
    assert_eq!(report.errors, 5001);
    assert_eq!(report.problems.len(), 10);
    assert!(report.truncated);
}

#[test]
fn tag_files_are_read_in_the_declared_encoding() {
    let declared = "BagIt-Version: 0.97\nTag-File-Character-Encoding: ISO-8859-1\n";
    let mut manifest = digest(Algorithm::Md5, b"x").into_bytes();
    manifest.extend_from_slice(b"  data/M\xfcller\n");
    let files = Files::default()
        .with("bagit.txt", declared)
        .with("data/M\u{fc}ller", "x")
        .with("manifest-md5.txt", manifest);
    assert_eq!(codes(&files.validate()), []);
}

#[test]
fn the_documentation_names_every_code() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bags.md");
    let text = std::fs::read_to_string(page).unwrap();
    for code in Code::ALL {
        assert!(text.contains(&format!("`{code}`")), "docs/bags.md does not explain {code}");
    }
}
