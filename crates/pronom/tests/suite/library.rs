//! Installing, choosing and loading sets of signatures.

use crate::common;
use pronom::{Error, Identifier, Library, NewFile, SignatureSet};

fn official() -> Option<(NewFile, NewFile)> {
    let (signatures, containers) = common::official_files()?;
    let signatures = NewFile { name: "DROID_SignatureFile_V122.xml".into(), bytes: signatures };
    let name = "container-signature-20260119.xml".into();
    Some((signatures, NewFile { name, bytes: containers }))
}

#[test]
fn a_new_library_has_the_essential_set_and_uses_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let library = Library::new(dir.path().join("not there yet"));
    let sets = library.list().expect("listed");
    assert_eq!(sets.len(), 1);
    assert!(sets[0].in_use && sets[0].origin.name == "essential-2");
    assert_eq!(&library.load(None).expect("loaded"), SignatureSet::essential());
}

#[test]
fn official_files_are_installed_used_and_put_back() {
    let Some((signatures, containers)) = official() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let library = Library::new(dir.path());
    let alone = library.install(vec![containers.clone()]).expect_err("nothing to go with it");
    assert!(matches!(alone, Error::ContainerAlone));
    let without = library.install(vec![signatures.clone()]).expect("installed");
    assert_eq!((without.origin.name.as_str(), without.containers), ("v122", 0));
    let both = library.install(vec![containers]).expect("installed with the signatures in use");
    assert_eq!(both.origin.name, "v122-20260119");
    assert_eq!(both.files, ["DROID_SignatureFile_V122.xml", "container-signature-20260119.xml"]);
    assert!(both.origin.attribution.contains("Open Government Licence"));
    let names: Vec<_> =
        library.list().expect("listed").into_iter().map(|s| (s.origin.name, s.in_use)).collect();
    assert_eq!(
        names,
        [("essential-2".into(), false), ("v122".into(), false), ("v122-20260119".into(), true)]
    );

    // The result names the set in use; a compiled set answers like the one read from XML.
    let set = library.load(None).expect("loaded");
    assert_eq!(set.skipped(), &[] as &[String]);
    let identifier = Identifier::new(set);
    let found = identifier.identify(&mut &b"GIF89a..;"[..], None).expect("readable");
    assert_eq!((found.signatures.as_str(), found.puids().next()), ("v122-20260119", Some("fmt/4")));

    library.choose("essential-2").expect("put back");
    assert_eq!(library.current().expect("a name"), "essential-2");
    assert!(matches!(library.choose("v9"), Err(Error::NoSuchSet { .. })));
    assert!(matches!(library.load(Some("../etc")), Err(Error::NoSuchSet { .. })));
}

#[test]
fn a_damaged_compiled_set_is_made_again() {
    let Some((signatures, containers)) = official() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let library = Library::new(dir.path());
    let name = library.install(vec![signatures, containers]).expect("installed").origin.name;
    let before = library.load(None).expect("loaded");
    let compiled = dir.path().join(&name).join("compiled");
    std::fs::write(&compiled, b"damaged").expect("written");
    assert_eq!(library.load(None).expect("loaded again"), before);
    assert!(std::fs::metadata(&compiled).expect("there").len() > 10_000, "and kept again");
}

#[test]
fn other_files_are_refused_and_nothing_changes() {
    let dir = tempfile::tempdir().expect("a directory");
    let library = Library::new(dir.path());
    let file = |bytes: &[u8]| vec![NewFile { name: "x.xml".into(), bytes: bytes.to_vec() }];
    assert!(matches!(library.install(file(b"<html/>")), Err(Error::UnknownFile(_))));
    let cut = b"<FFSignatureFile Version=\"1\"><InternalSignatureCollection>";
    assert!(matches!(library.install(file(cut)), Err(Error::SignatureFile { .. })));
    assert_eq!(library.list().expect("listed").len(), 1);
}
