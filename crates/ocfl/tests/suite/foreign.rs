//! Objects and roots of other programs: names that we would not choose, rules of an older
//! specification, and things that cannot be read. One of them does not hide the others.

use crate::support;
use ocfl::{Algorithm, Code, Layout, SingleHasher, Spec, StorageRoot, Validation};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use store::{Body, MemoryStore, PutOptions, StorageClass, Store};

fn sha512(content: &[u8]) -> String {
    let mut hasher = SingleHasher::new(Algorithm::Sha512);
    hasher.update(content);
    hasher.finish().to_string()
}

/// The files of an object of one version, by their keys: as another program would write it, which
/// uses the names of its files in the content directory.
fn object(id: &str, spec: &str, files: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let mut manifest = serde_json::Map::new();
    let mut state = serde_json::Map::new();
    let mut keys = Vec::new();
    for (name, content) in files {
        let digest = sha512(content.as_bytes());
        let path = format!("v1/content/{name}");
        manifest.insert(digest.clone(), serde_json::json!([path]));
        state.insert(digest, serde_json::json!([name]));
        keys.push((path, content.as_bytes().to_vec()));
    }
    let inventory = serde_json::json!({
        "id": id,
        "type": format!("https://ocfl.io/{spec}/spec/#inventory"),
        "digestAlgorithm": "sha512",
        "head": "v1",
        "manifest": manifest,
        "versions": {"v1": {
            "created": "2026-01-02T03:04:05Z",
            "message": "Made elsewhere",
            "user": {"name": "A Person", "address": "mailto:a.person@example.org"},
            "state": state,
        }},
    });
    keys.extend(with_inventory(spec, &inventory));
    keys
}

fn with_inventory(spec: &str, inventory: &serde_json::Value) -> Vec<(String, Vec<u8>)> {
    let inventory = inventory.to_string().into_bytes();
    let sidecar = format!("{} inventory.json\n", sha512(&inventory)).into_bytes();
    let declaration = format!("ocfl_object_{spec}\n").into_bytes();
    let mut keys = vec![(format!("0=ocfl_object_{spec}"), declaration)];
    for place in ["", "v1/"] {
        keys.push((format!("{place}inventory.json"), inventory.clone()));
        keys.push((format!("{place}inventory.json.sha512"), sidecar.clone()));
    }
    keys
}

fn write(root: &Path, object: &str, keys: &[(String, Vec<u8>)]) {
    for (key, content) in keys {
        let path = root.join(object).join(key);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }
}

async fn root(path: &Path) -> Arc<dyn Store> {
    let store = support::local(path);
    let layout = Layout::named("0002").expect("a layout");
    StorageRoot::init(store.clone(), Spec::V1_1, layout).await.expect("a root");
    store
}

fn codes(findings: &ocfl::Findings) -> Vec<&str> {
    findings.counts().keys().map(|code| code.as_str()).collect()
}

/// Names that are legal and that we never write.
const ODD: [(&str, &str); 4] = [
    ("two\nlines.txt", "one"),
    ("\u{1b}[31mred\u{7f}", "two"),
    ("dir\t/tab\u{1}", "three"),
    ("\u{202e}backwards +%41", "four"),
];

#[tokio::test]
async fn odd_names_are_validated_and_hide_no_damage_elsewhere() {
    let directory = support::scratch();
    let store = root(directory.path()).await;
    write(directory.path(), "a-odd", &object("a-odd", "1.1", &ODD));
    write(directory.path(), "b-damaged", &object("b-damaged", "1.1", &[("file", "right")]));
    std::fs::write(directory.path().join("b-damaged/v1/content/file"), "wrong").expect("damage");
    let long = vec!["x".repeat(200); 7].join("/");
    write(directory.path(), "c-long", &object("c-long", "1.1", &[(&long, "deep")]));

    let report =
        ocfl::validate_root(store.clone(), &Validation::default()).await.expect("a report");
    assert_eq!((report.objects, report.objects_invalid, report.objects_unchecked), (3, 1, 0));
    let places: Vec<_> = report.findings.errors().map(|f| (f.code, f.place.as_str())).collect();
    assert_eq!(places, [(Code::E092, "b-damaged/v1/content/file")]);

    // Damage in a file of such a name is found, and missing and surplus ones are.
    let odd = directory.path().join("a-odd/v1/content");
    std::fs::write(odd.join(ODD[0].0), "changed").expect("damage");
    std::fs::rename(odd.join(ODD[1].0), odd.join("an\nother")).expect("a rename");
    let findings = ocfl::validate_object(store.clone(), "a-odd", &Validation::default()).await;
    let findings = findings.expect("a validation");
    let found: Vec<_> = findings.errors().map(|f| (f.code, f.place.clone())).collect();
    for expected in [
        (Code::E092, format!("v1/content/{}", ODD[0].0)),
        (Code::E092, format!("v1/content/{}", ODD[1].0)),
        (Code::E023, "v1/content/an\nother".to_owned()),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

#[tokio::test]
async fn files_of_odd_names_are_read_exported_and_purged() {
    let directory = support::scratch();
    let store = root(directory.path()).await;
    write(directory.path(), "odd", &object("odd", "1.1", &ODD));
    let root = StorageRoot::open(store).await.expect("a root");
    let seen = support::seen(&root, "odd").await.expect("an object");
    let expected: support::Files =
        ODD.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
    assert_eq!(seen, [expected]);
    let out = support::scratch();
    let options = store::LocalOptions { any_names: true, ..store::LocalOptions::default() };
    let target = store::LocalStore::open_with(out.path(), &options).expect("a directory");
    let opened = root.object("odd").await.expect("an object");
    opened.export(None, &target, "", &|_, _| {}).await.expect("an export");
    for (name, content) in ODD {
        assert_eq!(std::fs::read(out.path().join(name)).expect("a file"), content.as_bytes());
    }
    root.purge("odd").await.expect("a purge");
    assert!(!directory.path().join("odd").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_names_are_validated_on_s3() {
    let served = support::scratch();
    let server = support::s3::Server::start(served.path()).await;
    std::fs::create_dir_all(served.path().join("bucket/root")).expect("a bucket");
    let store = server.store("bucket", "root").await;
    let layout = Layout::named("0002").expect("a layout");
    StorageRoot::init(store.clone(), Spec::V1_1, layout).await.expect("a root");
    write(&served.path().join("bucket/root"), "odd", &object("odd", "1.1", &ODD));
    write(&served.path().join("bucket/root"), "plain", &object("plain", "1.1", &[("f", "right")]));
    std::fs::write(served.path().join("bucket/root/plain/v1/content/f"), "wrong").expect("damage");
    let report = ocfl::validate_root(store, &Validation::default()).await.expect("a report");
    let found: Vec<_> = report.findings.errors().collect();
    assert_eq!((report.objects, report.objects_invalid), (2, 1), "{found:?}");
    assert_eq!(report.findings.unchecked_count(), 0);
}

#[tokio::test]
async fn names_that_are_not_utf8_are_told_of_and_the_rest_is_validated() {
    let directory = support::scratch();
    let store = root(directory.path()).await;
    write(directory.path(), "a", &object("a", "1.1", &[("f", "one")]));
    write(directory.path(), "b", &object("b", "1.1", &[("f", "two")]));
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::write(directory.path().join("a/v1/content").join(odd), "x").expect("a file");
    std::fs::create_dir(directory.path().join(odd)).expect("a directory");
    let report = ocfl::validate_root(store, &Validation::default()).await.expect("a report");
    let errors: Vec<_> = report.findings.errors().map(|f| (f.code, f.place.as_str())).collect();
    assert_eq!(errors, [(Code::E023, "a/v1/content/caf\\xe9")]);
    let unchecked: Vec<_> = report.findings.unchecked().map(|one| one.place.as_str()).collect();
    assert_eq!(unchecked, ["caf\\xe9"]);
    assert_eq!(report.objects, 2);
}

#[tokio::test]
async fn what_cannot_be_read_is_told_of_and_the_rest_is_validated() {
    let store = Arc::new(MemoryStore::new());
    let layout = Layout::named("0002").expect("a layout");
    StorageRoot::init(store.clone(), Spec::V1_1, layout).await.expect("a root");
    let mut objects = Vec::new();
    objects.push(("cold", object("cold", "1.1", &[("f", "one"), ("g", "two")])));
    // Longer than the limit below.
    objects.push(("large", object(&format!("urn:{}", "x".repeat(6000)), "1.1", &[("f", "three")])));
    objects.push(("wrong", object("wrong", "1.1", &[("f", "right"), ("g", "fine")])));
    for (name, keys) in &objects {
        for (key, content) in keys {
            let cold = *name == "cold" && key == "v1/content/f";
            let storage_class = cold.then(|| StorageClass::new("DEEP_ARCHIVE"));
            let options = PutOptions { storage_class, ..PutOptions::default() };
            let content = Body::from_bytes(content.clone());
            store.put(&format!("{name}/{key}"), content, &options).await.expect("a put");
        }
    }
    let damaged = Body::from_bytes("wrong");
    store.put("wrong/v1/content/f", damaged, &PutOptions::default()).await.expect("damage");
    let mut validation = Validation::default();
    validation.limits.inventory_bytes_max = 5000;
    let report = ocfl::validate_root(store.clone(), &validation).await.expect("a report");
    assert_eq!((report.objects, report.objects_invalid, report.objects_unchecked), (3, 1, 2));
    let mut unchecked: Vec<_> = report.findings.unchecked().map(|one| one.place.as_str()).collect();
    unchecked.sort_unstable();
    assert_eq!(
        unchecked,
        ["cold/v1/content/f", "large/inventory.json", "large/v1/inventory.json"][..2]
    );
    assert!(!report.is_valid());
    let errors: Vec<_> = report.findings.errors().map(|f| (f.code, f.place.as_str())).collect();
    assert_eq!(errors, [(Code::E092, "wrong/v1/content/f")]);

    let findings = ocfl::validate_object(store, "cold", &validation).await.expect("findings");
    assert!(!findings.has_errors() && !findings.is_valid(), "unread is not valid");
}

#[tokio::test]
async fn a_content_directory_without_content_is_a_warning() {
    for content in ["v1/content", "v1/stuff"] {
        let directory = support::scratch();
        let store = root(directory.path()).await;
        write(directory.path(), "o", &object("urn:o", "1.1", &[]));
        std::fs::create_dir_all(directory.path().join("o").join(content)).expect("a directory");
        let findings = ocfl::validate_object(store, "o", &Validation::default()).await;
        let expected = if content.ends_with("content") { "W003" } else { "W002" };
        assert_eq!(codes(&findings.expect("findings")), [expected]);
    }
}

#[tokio::test]
async fn another_place_than_the_layouts_is_a_warning_and_two_places_are_an_error() {
    let directory = support::scratch();
    let store = root(directory.path()).await;
    write(directory.path(), "elsewhere", &object("urn:x", "1.1", &[("f", "one")]));
    let report =
        ocfl::validate_root(store.clone(), &Validation::default()).await.expect("a report");
    assert!(report.is_valid());
    assert_eq!(codes(&report.findings), ["W014"]);
    write(directory.path(), "urn:x", &object("urn:x", "1.1", &[("f", "one")]));
    let report = ocfl::validate_root(store, &Validation::default()).await.expect("a report");
    assert_eq!(codes(&report.findings), ["E083", "W014"]);
}

#[tokio::test]
async fn objects_of_1_0_are_held_to_its_rules_by_its_codes() {
    let directory = support::scratch();
    let store = support::local(directory.path());
    let unused = |spec: &str| {
        let mut keys = object("urn:o", spec, &[("f", "one")]);
        keys.retain(|(key, _)| key.starts_with("v1/content"));
        let inventory = serde_json::json!({
            "id": "urn:o",
            "type": format!("https://ocfl.io/{spec}/spec/#inventory"),
            "digestAlgorithm": "sha512",
            "head": "v1",
            "manifest": {sha512(b"one"): ["v1/content/f"]},
            "versions": {"v1": {
                "created": "2026-01-02T03:04:05Z",
                "message": "Nothing in it",
                "user": {"name": "A Person", "address": "mailto:a.person@example.org"},
                "state": {},
            }},
            "fixity": [],
        });
        keys.extend(with_inventory(spec, &inventory));
        keys
    };
    for (spec, expected) in [("1.0", &["E056"][..]), ("1.1", &["E107", "E111"][..])] {
        write(directory.path(), spec, &unused(spec));
        let findings = ocfl::validate_object(store.clone(), spec, &Validation::default()).await;
        assert_eq!(codes(&findings.expect("findings")), expected, "{spec}");
    }
}
