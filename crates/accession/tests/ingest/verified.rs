//! When a copy counts as verified: never by an ingest that has not read all of it.

use crate::support::packages::directory;
use crate::support::world::World;
use serde_json::Value;
use std::path::Path;

/// When the copy was verified and is due, as the registry says.
fn verified(world: &World) -> Vec<(Value, Value)> {
    let shown = world.json(&["objects", "show", "box"]).remove(0);
    let copies = shown["copies"].as_array().unwrap();
    copies.iter().map(|c| (c["verified_at"].clone(), c["fixity_due"].clone())).collect()
}

fn fixity_checks(world: &World) -> Vec<Value> {
    let events = world.json(&["objects", "events", "box"])[0]["events"].as_array().unwrap().clone();
    events.into_iter().filter(|event| event["kind"] == "fixity check").collect()
}

fn ingest(world: &World, package: &Path, options: &[&str]) {
    let report = world.ingest(package, &[&["--local-id", "box"], options].concat());
    assert_eq!(report["state"], "completed", "{report:#}");
}

#[test]
fn no_ingest_renews_what_is_known_of_an_earlier_version() {
    let world = World::local(2);
    let package = directory(&world.path("box"), &[("a.txt", "a"), ("b.txt", "b")]);
    ingest(&world, &package, &[]);
    let first = verified(&world);
    assert_eq!(fixity_checks(&world).len(), 2);
    // Unchanged; metadata only; files that are added; a file that replaces all.
    ingest(&world, &package, &[]);
    ingest(&world, &package, &["--what", "T"]);
    let more = directory(&world.path("more/box"), &[("c.txt", "c")]);
    ingest(&world, &more, &["--update", "add"]);
    ingest(&world, &more, &["--update", "replace"]);
    assert_eq!(world.versions("box"), 4);
    assert_eq!(verified(&world), first);
    for check in fixity_checks(&world) {
        let detail = check["detail"].as_str().unwrap();
        assert!(!detail.starts_with('0'), "{check:#}");
    }
    // Only reading everything does.
    world.done(&["check", "--content"]);
    let now = verified(&world);
    assert!(now.iter().zip(&first).all(|(now, first)| now.0 != first.0 && now.1 != first.1));
    world.check();
}

/// Where the files of the current version are only listed, nothing is said to be checked.
#[test]
fn content_that_was_only_listed_is_not_said_to_be_read() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a"), ("b.txt", "b")]);
    ingest(&world, &package, &[]);
    let more = directory(&world.path("more/box"), &[("c.txt", "c")]);
    ingest(&world, &more, &["--update", "add"]);
    let last = fixity_checks(&world).pop().unwrap();
    assert_eq!(
        last["detail"], "1 file read and compared; 2 files referenced, listed with the size",
        "{last:#}"
    );
}

#[test]
fn a_rebuilt_registry_claims_no_check() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    ingest(&world, &package, &[]);
    world.done(&["check", "--content"]);
    for name in std::fs::read_dir(world.path("data")).unwrap().flatten() {
        if name.file_name().to_string_lossy().starts_with("accession.db") {
            std::fs::remove_file(name.path()).unwrap();
        }
    }
    world.done(&["registry", "rebuild", "--from", "s1"]);
    assert_eq!(verified(&world)[0].0, Value::Null);
    // Nor does what is deposited then.
    directory(&package, &[("b.txt", "b")]);
    ingest(&world, &package, &[]);
    ingest(&world, &package, &[]);
    assert_eq!(verified(&world)[0].0, Value::Null);
    world.done(&["check", "--content"]);
    assert_ne!(verified(&world)[0].0, Value::Null);
}
