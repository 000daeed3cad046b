//! Every constraint of BagIt Profiles.

use crate::common;
use crate::common::{Files, codes};
use bagit::{Algorithm, Bag, Catalog, Code, Options, Profile};

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

/// A profile as DART writes them, with what DART needs for its forms.
fn dart(rest: &str) -> Result<Profile, bagit::Error> {
    let tag = |file: &str, name: &str, required: bool, empty: bool, values: &str| {
        format!(
            r#"{{"id": "x", "tagFile": "{file}", "tagName": "{name}", "required": {required},
                "emptyOk": {empty}, "values": {values}, "defaultValue": null, "help": "h"}}"#
        )
    };
    let tags = [
        tag("bagit.txt", "BagIt-Version", true, false, r#"["0.97", "1.0"]"#),
        tag("bag-info.txt", "Source-Organization", true, false, "null"),
        tag("bag-info.txt", "Bag-Count", false, true, "[]"),
        tag("aptrust-info.txt", "Title", true, false, "[]"),
        tag("aptrust-info.txt", "Access", true, false, r#"["Consortia", "Institution"]"#),
        tag("aptrust-info.txt", "Description", false, true, r#"["One", "Two"]"#),
    ];
    let json = format!(
        r#"{{"id": "y", "name": "Test", "acceptBagItVersion": ["0.97", "1.0"],
            "acceptSerialization": ["application/tar"], "allowFetchTxt": false,
            "bagItProfileInfo": {{"bagItProfileIdentifier": "{URL}", "version": "2.3"}},
            "manifestsRequired": ["sha256"], "manifestsAllowed": [], "tagManifestsRequired": null,
            "tagFilesAllowed": ["*", ""], "serialization": "optional", "tags": [{}]{rest}}}"#,
        tags.join(", ")
    );
    Profile::from_json(json.as_bytes(), "dart")
}

fn dart_bag(info: &str) -> Files {
    Files::new("1.0")
        .with("data/a.txt", "x")
        .with("bag-info.txt", "Source-Organization: A\nBag-Count:\n")
        .with("aptrust-info.txt", info)
        .manifest(Algorithm::Sha256)
}

#[test]
fn profiles_of_dart_constrain_the_tags_of_every_tag_file() {
    let options = Options { profile: Some(dart("").unwrap()), ..Options::default() };
    for (info, expected) in [
        ("Title: T\nAccess: institution\nDescription:\n", vec![]),
        ("Access: Institution\n", vec![Code::ProfileTagMissing]),
        ("Title:\nAccess: Consortia\n", vec![Code::ProfileTagMissing]),
        ("Title: T\nAccess: All\n", vec![Code::ProfileTagValue]),
        ("Title: T\nAccess: Consortia\nDescription: Three\n", vec![Code::ProfileTagValue]),
        ("Title: T\nAccess: Consortia\nno colon\n", vec![Code::InfoLineMalformed]),
    ] {
        let report = dart_bag(info).validate_with(&options);
        assert_eq!(codes(&report), expected, "{info}");
        let file = report.problems.first().and_then(|problem| problem.file.as_deref());
        assert!(expected.is_empty() || file == Some("aptrust-info.txt"), "{file:?}");
    }
    let report = dart_bag("").without("aptrust-info.txt").validate_with(&options);
    assert_eq!(codes(&report), [Code::ProfileTagMissing; 2]);
    // A file of this name in the payload is none of the bag's tag files.
    let elsewhere = dart_bag("").without("aptrust-info.txt").without("manifest-sha256.txt");
    let elsewhere = elsewhere.with("data/aptrust-info.txt", "Title: T\nAccess: Consortia\n");
    let report = elsewhere.manifest(Algorithm::Sha256).validate_with(&options);
    assert_eq!(codes(&report), [Code::ProfileTagMissing; 2]);
}

#[test]
fn the_tags_of_other_files_are_checked_in_archives_too() {
    let profile = dart(r#", "tarDirMustMatchName": true"#).unwrap();
    let options = Options { profile: Some(profile), ..Options::default() };
    let directory = tempfile::tempdir().unwrap();
    for (name, info, expected) in [
        ("bag.tar", "Title: T\nAccess: Consortia\n", vec![]),
        ("bag.tar", "Title: T\nAccess: All\n", vec![Code::ProfileTagValue]),
        ("other.tar", "Title: T\nAccess: Consortia\n", vec![Code::BaseDirectoryName]),
        (
            "bag.tar.gz",
            "Title: T\nAccess: All\n",
            vec![Code::ProfileSerialization, Code::ProfileTagValue],
        ),
    ] {
        let tar = dart_bag(info).tar("bag/");
        let bytes = if name.ends_with("gz") { common::gz(&tar) } else { tar };
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let report = Bag::open(&path).unwrap().validate(&options).unwrap();
        let mut found = codes(&report);
        found.sort();
        let mut expected = expected;
        expected.sort();
        assert_eq!(found, expected, "{name} {info}");
        assert_eq!(report.valid, found.is_empty());
    }
}

#[test]
fn a_profile_of_the_specification_may_constrain_other_tag_files() {
    let rules = r#", "Tag-Files": {"extra/notes.txt": {"Shelf": {"required": true,
        "values": ["A1"], "repeatable": false}}}"#;
    for (notes, expected) in [
        ("Shelf: A1\n", vec![]),
        ("Shelf: A1\nShelf: A1\n", vec![Code::ProfileTagRepeated]),
        ("Shelf: B2\n", vec![Code::ProfileTagValue]),
        ("Shelf: a1\n", vec![Code::ProfileTagValue]),
        ("Other: x\n", vec![Code::ProfileTagMissing]),
    ] {
        assert_eq!(found_in(bag().with("extra/notes.txt", notes), rules), expected, "{notes}");
    }
}

#[test]
fn a_profile_of_dart_that_cannot_be_kept_to_is_refused() {
    assert!(dart(r#", "allowMiscTopLevelFiles": false"#).is_err());
    assert!(Profile::from_json(br#"{"bagItProfileInfo": {}}"#, "dart").is_err());
    assert!(Profile::from_json(br#"{"bagItProfileInfo": 1, "tags": 2}"#, "dart").is_err());
}
