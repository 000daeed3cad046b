//! What is left of an archive after its database is gone, and of a deposit that was cancelled.

use crate::support::packages::directory;
use crate::support::world::World;

pub fn remove_database(world: &World) {
    for name in std::fs::read_dir(world.path("data")).unwrap().flatten() {
        if name.file_name().to_string_lossy().starts_with("accession.db") {
            std::fs::remove_file(name.path()).unwrap();
        }
    }
}

#[test]
fn a_registry_rebuilt_from_all_stores_goes_on_where_it_was() {
    let world = World::local(2);
    for name in ["one", "two"] {
        directory(&world.path(name), &[("a.txt", name)]);
        assert_eq!(world.ingest(&world.path(name), &[])["state"], "completed");
    }
    let copies = || {
        let mut copies = world.json(&["objects", "show", "one"])[0]["copies"].clone();
        for copy in copies.as_array_mut().unwrap() {
            copy.as_object_mut().unwrap().remove("verified_at");
        }
        copies
    };
    let before = copies();
    remove_database(&world);
    let first = world.json(&["registry", "rebuild", "--from", "s1"]).remove(0);
    assert_eq!((&first["objects"], &first["copies"]), (&2.into(), &0.into()), "{first}");
    let second = world.json(&["registry", "rebuild", "--from", "s2"]).remove(0);
    assert_eq!((&second["known"], &second["copies"]), (&2.into(), &2.into()), "{second}");
    assert_eq!(before, copies());
    // Rebuilding reads no content, so that it claims no check of it.
    assert!(world.done(&["objects", "show", "one"]).contains("never"));

    // Something new gets a name that nothing has.
    directory(&world.path("three"), &[("a.txt", "three")]);
    let third = world.ingest(&world.path("three"), &[]);
    assert_eq!(third["state"], "completed", "{third:#}");
    let listed = world.json(&["objects", "list"]).remove(0);
    assert_eq!(listed["objects"].as_array().unwrap().len(), 3);
    directory(&world.path("one"), &[("b.txt", "more")]);
    assert_eq!(world.ingest(&world.path("one"), &[])["objects"][0]["version"], 2);
    let checked = world.run(&["check", "--content"]);
    assert!(checked.status.success(), "{}", checked.stdout);
}

#[test]
fn a_store_that_is_behind_is_said_to_be() {
    let world = World::local(2);
    directory(&world.path("one"), &[("a.txt", "one")]);
    world.ingest(&world.path("one"), &[]);
    let (old, store) = (world.path("old"), world.path("data/stores/s2"));
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let done = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status();
        assert!(done.unwrap().success());
    };
    copy(&store, &old);
    directory(&world.path("one"), &[("b.txt", "more")]);
    world.ingest(&world.path("one"), &[]);
    std::fs::remove_dir_all(&store).unwrap();
    copy(&old, &store);
    remove_database(&world);
    assert!(world.run(&["registry", "rebuild", "--from", "s1"]).status.success());
    let behind = world.run(&["registry", "rebuild", "--from", "s2"]);
    assert_eq!(behind.status.code(), Some(1));
    let said = behind.stdout;
    assert!(said.contains("the store has version 1, and the registry version 2"), "{said}");
    let shown = world.json(&["objects", "show", "one"]).remove(0);
    assert_eq!(shown["copies"].as_array().unwrap().len(), 1, "{shown}");
}

#[test]
fn a_minter_that_counts_from_the_beginning_passes_over_what_is_taken() {
    let world = World::local(1);
    directory(&world.path("one"), &[("a.txt", "one")]);
    let taken = world.ingest(&world.path("one"), &[])["objects"][0]["identifier"].clone();
    let other = World::local(1);
    directory(&other.path("its"), &[("a.txt", "its")]);
    other.ingest(&other.path("its"), &["--id", taken.as_str().unwrap()]);
    directory(&other.path("new"), &[("a.txt", "new")]);
    let minted = other.ingest(&other.path("new"), &[]);
    assert_eq!(minted["state"], "completed", "{minted:#}");
    assert_ne!(minted["objects"][0]["identifier"], taken);
}

#[test]
fn a_deposit_that_is_cancelled_before_it_began_is_not_taken_in() {
    World::both(|world| {
        directory(&world.path("mistake"), &[("a.txt", "one")]);
        let batch = world.deposit(&world.path("mistake"), &[]).to_string();
        let cancel = ["batches", "cancel", &batch, "--reason", "by mistake"];
        let cancelled = world.run(&cancel);
        assert!(cancelled.status.success(), "{}", cancelled.stderr);
        assert!(world.run(&["work", "--until-empty"]).status.success());
        let listed = world.json(&["objects", "list"]).remove(0);
        assert_eq!(listed["objects"], serde_json::json!([]));
        let shown = world.json(&["batches", "show", &batch]).remove(0);
        assert_eq!(shown["state"], "failed", "{shown:#}");
        assert!(shown["error"].as_str().unwrap().ends_with("by mistake"), "{shown:#}");
        assert_eq!(shown["succeeded"], 0);
        let again = world.run(&cancel);
        assert_eq!(again.status.code(), Some(2));
        assert!(again.stderr.contains("nothing left to cancel"), "{}", again.stderr);
    });
}

#[test]
fn what_is_asked_wrongly_leaves_the_output_file_as_it_was() {
    let world = World::local(1);
    let kept = world.path("kept.txt");
    std::fs::write(&kept, "mine").unwrap();
    let output = kept.to_str().unwrap();
    for args in [
        ["export", "premis", "nothing", "--output", output],
        ["batches", "report", "99", "--output", output],
    ] {
        assert!(!world.run(&args).status.success());
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "mine", "{args:?}");
    }
}

#[test]
fn what_is_deposited_can_be_read_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::local(1);
    let data = world.path("new/data");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let place = data.to_str().unwrap();
    assert!(world.run(&["--data", place, "doctor"]).status.code().is_some());
    assert_eq!(mode(&data), 0o700);
    let backup = world.path("backup.db");
    world.done(&["db", "backup", backup.to_str().unwrap()]);
    assert_eq!(mode(&backup), 0o600);
}
