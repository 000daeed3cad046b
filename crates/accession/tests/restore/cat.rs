//! `accession objects cat`: one file, compared with its digest.

use crate::damage::{content, flip};
use crate::support::packages::{directory, noise};
use crate::support::world::World;

#[test]
fn a_file_of_any_version_is_written_as_it_was_deposited() {
    World::both(|world| {
        let package = directory(&world.path("box"), &[("a.txt", "one"), ("empty", "")]);
        world.ingest(&package, &[]);
        directory(&package, &[("a.txt", "two")]);
        world.ingest(&package, &[]);
        assert_eq!(world.done(&["objects", "cat", "box", "data/a.txt"]), "two");
        assert_eq!(world.done(&["objects", "cat", "box", "a.txt"]), "two", "as depositors know it");
        assert_eq!(world.done(&["objects", "cat", "box", "a.txt", "--version", "1"]), "one");
        assert_eq!(world.done(&["objects", "cat", "box", "empty"]), "");
        for (args, said) in [
            (&["box", "b.txt"][..], "[unknown_file]"),
            (&["box", "a.txt", "--version", "3"], "[unknown_version]"),
            (&["nothing", "a.txt"], "[unknown_object]"),
        ] {
            let ended = world.run(&[&["objects", "cat"], args].concat());
            assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
            assert!(ended.stderr.contains(said), "{}", ended.stderr);
        }
    });
}

#[test]
fn damaged_bytes_are_taken_from_another_copy_and_the_copy_is_recorded_as_bad() {
    let world = World::local(2);
    let package = directory(&world.path("box"), &[("a.txt", "the letter"), ("b.txt", "other")]);
    world.ingest(&package, &[]);
    flip(&content(&world, "s1", "a.txt"));
    assert_eq!(world.done(&["objects", "cat", "box", "a.txt"]), "the letter");
    let shown = world.json(&["objects", "show", "box"]).remove(0);
    let states: Vec<&str> =
        shown["copies"].as_array().unwrap().iter().map(|c| c["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["bad", "good"], "{shown:#}");
    let events = world.json(&["objects", "events", "box"]).remove(0);
    let bad = events["events"].as_array().unwrap().iter().find(|e| e["outcome"] == "failure");
    let bad = bad.unwrap();
    assert_eq!(
        (bad["kind"].as_str(), bad["path"].as_str()),
        (Some("fixity check"), Some("data/a.txt"))
    );
    assert!(bad["note"].as_str().unwrap().contains("does not have its sha512"), "{bad}");
    // With no good copy left nothing is written.
    flip(&content(&world, "s2", "a.txt"));
    let ended = world.run(&["objects", "cat", "box", "a.txt"]);
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(3), ""));
    assert!(ended.stderr.contains("no store has data/a.txt"), "{}", ended.stderr);
    assert_eq!(world.done(&["objects", "cat", "box", "b.txt"]), "other");
}

#[test]
fn a_large_file_that_is_damaged_is_no_success() {
    let world = World::local(2);
    let path = world.path("box");
    directory(&path, &[("large.bin", noise(20 << 20, 1))]);
    world.ingest(&path, &[]);
    flip(&content(&world, "s1", "large.bin"));
    let ended = world.run(&["objects", "cat", "box", "large.bin", "-q"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(ended.stderr.contains("[copy_damaged]"), "{}", ended.stderr);
    let ended = world.run(&["restore", "box", "--to", world.path("out").to_str().unwrap(), "-q"]);
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(std::fs::read(world.path("out/large.bin")).unwrap(), noise(20 << 20, 1));
}
