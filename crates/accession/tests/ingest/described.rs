//! What a deposit says of an object, what it does not say, and what it says is to be removed.

use crate::support::packages::directory;
use crate::support::world::World;
use serde_json::Value;

fn described(world: &World) -> Value {
    let shown = world.json(&["objects", "show", "box"]).remove(0);
    shown["object"]["metadata"].clone()
}

fn state(world: &World, options: &[&str]) -> String {
    let report = world.ingest(&world.path("box"), &[&["--local-id", "box"], options].concat());
    assert_eq!(report["state"], "completed", "{report:#}");
    report["objects"][0]["state"].as_str().unwrap().to_string()
}

#[test]
fn what_a_deposit_does_not_say_stays_and_makes_no_version() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    let all = ["--who", "A", "--what", "T", "--when", "1900", "--where", "shelf"];
    state(&world, &[&all[..], &["--dc", "subject=maps", "--dc", "rights=none"]].concat());
    let before = described(&world);
    assert_eq!((&before["what"], &before["where"]), (&"T".into(), &"shelf".into()), "{before:#}");
    // Nothing is said, or the same again: nothing changes.
    assert_eq!(state(&world, &[]), "unchanged");
    assert_eq!(state(&world, &["--what", "T"]), "unchanged");
    assert_eq!(world.versions("box"), 1);
    // New files say nothing of it either.
    directory(&package, &[("b.txt", "b")]);
    assert_ne!(state(&world, &[]), "unchanged");
    assert_eq!(described(&world), before);
    // One field is said, and the others stay.
    state(&world, &["--what", "T2", "--dc", "subject=charts"]);
    let after = described(&world);
    assert_eq!(after["what"], "T2");
    assert_eq!(after["dublin_core"]["subject"], serde_json::json!(["charts"]));
    assert_eq!((&after["who"], &after["dublin_core"]["rights"][0]), (&"A".into(), &"none".into()));
    assert_eq!(world.versions("box"), 3);
    let erc =
        world.done(&["ocfl", "cat", &world.stores[0].1, &object(&world), "accession/erc.txt"]);
    assert!(erc.contains("what: T2") && erc.contains("who: A"), "{erc}");
    world.check();
}

fn object(world: &World) -> String {
    let shown = world.json(&["objects", "show", "box"]).remove(0);
    shown["object"]["identifier"].as_str().unwrap().to_string()
}

#[test]
fn what_is_said_to_be_none_is_removed() {
    let world = World::local(1);
    directory(&world.path("box"), &[("a.txt", "a")]);
    state(&world, &["--who", "A", "--what", "T", "--dc", "subject=maps"]);
    assert_ne!(state(&world, &["--what", "", "--dc", "subject="]), "unchanged");
    assert_eq!(described(&world), serde_json::json!({"who": "A"}));
    let shown = world.json(&["objects", "show", "box"]).remove(0);
    assert_eq!(shown["object"]["title"], Value::Null);
    // What is not there cannot be removed.
    assert_eq!(state(&world, &["--what", ""]), "unchanged");
    assert_eq!(world.versions("box"), 2);
    world.check();
}

#[test]
fn files_that_are_unchanged_do_not_overrule_an_option_of_before() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("erc.txt", "erc:\nwhat: file\nwhen: 1900\n")]);
    state(&world, &["--what", "option"]);
    assert_eq!(described(&world), serde_json::json!({"what": "option", "when": "1900"}));
    assert_eq!(state(&world, &[]), "unchanged");
    // A file that has changed says it anew; what it no longer says stays, until it says that there
    // is none.
    directory(&package, &[("erc.txt", "erc:\nwhat: new\nwhen: (:unas)\n")]);
    state(&world, &[]);
    assert_eq!(described(&world), serde_json::json!({"what": "new", "when": "1900"}));
    directory(&package, &[("erc.txt", "erc:\nwhat: new\nwhen: (:none)\n")]);
    state(&world, &[]);
    assert_eq!(described(&world), serde_json::json!({"what": "new"}));
    world.check();
}

/// A job that failed after it found its object says again what it was told to say, and nothing
/// that the version of then said.
#[test]
fn a_job_that_resolves_again_says_only_what_it_was_told() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    state(&world, &["--what", "first"]);
    directory(&package, &[("b.txt", "b")]);
    world.deposit(&package, &["--local-id", "box", "--who", "A"]);
    world.done(&["queue", "set", "ingest", "--stage", "storing", "max_attempts=1"]);
    let store = world.path("data/stores/s1");
    let aside = world.path("aside");
    assert!(world.work_until("storing"));
    std::fs::rename(&store, &aside).unwrap();
    std::fs::write(&store, "in the way").unwrap();
    world.work();
    std::fs::remove_file(&store).unwrap();
    std::fs::rename(&aside, &store).unwrap();
    let failed = world.jobs()[0]["id"].to_string();
    assert_eq!(world.jobs()[0]["status"], "failed");
    // In between another process renames it, with other files.
    let other = directory(&world.path("more/box"), &[("c.txt", "c")]);
    let report =
        world.ingest(&other, &["--local-id", "box", "--update", "add", "--what", "second"]);
    assert_eq!(report["state"], "completed", "{report:#}");
    let requeued = world.run(&["jobs", "requeue", &failed]);
    if requeued.status.success() {
        world.work();
        let described = described(&world);
        assert_eq!((&described["what"], &described["who"]), (&"second".into(), &"A".into()));
    } else {
        // A later deposit of the same package has replaced it.
        assert_eq!(described(&world)["what"], "second", "{}", requeued.stderr);
    }
}
