//! Every constraint of BagIt Profiles.

#![allow(clippy::unwrap_used)]

mod common;

use bagit::{Algorithm, Bag, Catalog, Code, Options, Profile};
use common::{Files, codes};

const URL: &str = "https://example.org/profile.json";

fn profile(rest: &str) -> Profile {
    let json = format!(
        r#"{{"BagIt-Profile-Info": {{"BagIt-Profile-Identifier": "{URL}"}},
            "Accept-BagIt-Version": ["1.0"]{rest}}}"#
    );
    Profile::from_json(json.as_bytes(), "test").unwrap()
}

fn bag() -> Files {
    let info = format!("BagIt-Profile-Identifier: {URL}\nTitle: One\nTitle: Two\nEmpty:\n");
    Files::new("1.0")
        .with("data/a.txt", "x")
        .with("bag-info.txt", info)
        .with("extra/notes.txt", "n")
        .manifest(Algorithm::Sha256)
}

fn found(rest: &str) -> Vec<Code> {
    found_in(bag(), rest)
}

fn found_in(files: Files, rest: &str) -> Vec<Code> {
    codes(&files.validate_with(&Options { profile: Some(profile(rest)), ..Options::default() }))
}

#[test]
fn a_bag_that_fits_has_no_problem() {
    assert_eq!(
        found(
            r#", "Bag-Info": {"Title": {"required": true, "values": ["One", "Two"], "repeatable": true}},
               "Manifests-Required": ["sha-256"], "Manifests-Allowed": ["sha256", "md5"],
               "Tag-Files-Allowed": ["extra/*"], "Tag-Files-Required": ["extra/notes.txt"],
               "Payload-Files-Required": ["data/a.txt"], "Payload-Files-Allowed": ["data/*.txt"],
               "Allow-Fetch.txt": false, "Serialization": "optional",
               "Accept-Serialization": ["application/tar"]"#
        ),
        []
    );
}

#[test]
fn each_constraint_has_its_code() {
    for (rest, code) in [
        (r#", "Bag-Info": {"Missing": {"required": true}}"#, Code::ProfileTagMissing),
        (r#", "Bag-Info": {"Empty": {"required": true}}"#, Code::ProfileTagMissing),
        (r#", "Bag-Info": {"Missing": {"recommended": true}}"#, Code::ProfileTagRecommended),
        (r#", "Bag-Info": {"title": {"repeatable": false}}"#, Code::ProfileTagRepeated),
        (r#", "Bag-Info": {"Title": {"values": ["One"]}}"#, Code::ProfileTagValue),
        (r#", "Manifests-Required": ["md5"]"#, Code::ProfileManifestRequired),
        (r#", "Manifests-Allowed": ["md5"]"#, Code::ProfileManifestAllowed),
        (r#", "Tag-Manifests-Required": ["md5"]"#, Code::ProfileTagManifestRequired),
        (r#", "Tag-Files-Required": ["x.txt"]"#, Code::ProfileTagFileRequired),
        (r#", "Tag-Files-Allowed": ["x/*"]"#, Code::ProfileTagFileAllowed),
        (r#", "Payload-Files-Required": ["data/b.txt"]"#, Code::ProfilePayloadFileRequired),
        (r#", "Payload-Files-Allowed": ["data/*.pdf"]"#, Code::ProfilePayloadFileAllowed),
        (r#", "Fetch.txt-Required": true"#, Code::ProfileFetch),
        (r#", "Data-Empty": true"#, Code::ProfileDataEmpty),
        (r#", "Serialization": "required""#, Code::ProfileSerialization),
    ] {
        assert_eq!(found(rest), [code], "{rest}");
    }
    let tagged = bag().tagmanifest(Algorithm::Md5);
    assert_eq!(
        found_in(tagged, r#", "Tag-Manifests-Allowed": ["sha256"]"#),
        [Code::ProfileTagManifestAllowed]
    );
    let fetching = bag().with("fetch.txt", "http://example.org/ - data/a.txt\n");
    assert_eq!(found_in(fetching, r#", "Allow-Fetch.txt": false"#), [Code::ProfileFetch]);
    let old = bag().with("bagit.txt", "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n");
    assert_eq!(found_in(old, ""), [Code::ProfileVersion]);
    let stranger = bag().with("bag-info.txt", "Title: One\n");
    assert_eq!(found_in(stranger, ""), [Code::ProfileIdentifier]);
}

#[test]
fn containers_are_accepted_by_media_type() {
    let validate = |rest: &str| {
        let bag = Bag::from_read_at(bag().tar("bag/"), "bag").unwrap();
        let options = Options { profile: Some(profile(rest)), ..Options::default() };
        codes(&bag.validate(&options).unwrap())
    };
    let accept = r#", "Serialization": "required", "Accept-Serialization": ["application/"#;
    assert_eq!(validate(&format!(r#"{accept}x-tar"]"#)), []);
    assert_eq!(validate(&format!(r#"{accept}zip"]"#)), [Code::ProfileSerialization]);
    assert_eq!(validate(r#", "Serialization": "forbidden""#), [Code::ProfileSerialization]);
}

#[test]
fn profiles_that_contradict_themselves_are_refused() {
    for rest in [
        r#", "Manifests-Required": ["md5"], "Manifests-Allowed": ["sha256"]"#,
        r#", "Tag-Files-Required": ["a"], "Tag-Files-Allowed": ["b"]"#,
        r#", "Fetch.txt-Required": true, "Allow-Fetch.txt": false"#,
        r#", "Serialization": "perhaps""#,
    ] {
        let json =
            format!(r#"{{"BagIt-Profile-Info": {{"BagIt-Profile-Identifier": "x"}}{rest}}}"#);
        assert!(Profile::from_json(json.as_bytes(), "test").is_err(), "{rest}");
    }
    assert!(Profile::from_json(b"{}", "test").is_err());
}

#[test]
fn a_known_copy_is_found_by_its_url() {
    let directory = tempfile::tempdir().unwrap();
    let json = format!(r#"{{"BagIt-Profile-Info": {{"BagIt-Profile-Identifier": "{URL}"}}}}"#);
    std::fs::write(directory.path().join("copy.json"), json).unwrap();
    let catalog = Catalog::open(directory.path()).unwrap();
    assert_eq!(catalog.get(URL).unwrap().identifier(), URL);
    assert!(catalog.get("https://example.org/other.json").is_none());
}
