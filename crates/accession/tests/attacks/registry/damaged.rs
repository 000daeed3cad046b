//! Copies that were damaged before a deposit builds on them.

use crate::support::packages::{directory, noise};
use crate::support::world::World;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One that is read back with others, and one on its own.
const NAMES: [&str; 2] = ["small.txt", "large.bin"];

/// How content is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Remove,
    Shorten,
}

impl Damage {
    const ALL: [Damage; 3] = [Damage::Flip, Damage::Remove, Damage::Shorten];

    fn inflict(self, path: &Path) {
        let mut content = std::fs::read(path).unwrap();
        match self {
            Damage::Flip => content[50] ^= 1,
            Damage::Shorten => content.truncate(60),
            Damage::Remove => return std::fs::remove_file(path).unwrap(),
        }
        std::fs::write(path, content).unwrap();
    }
}

fn find(under: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(under).unwrap().flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => path.ends_with(name).then_some(path),
    })
}

/// An object of two files in two stores.
fn world() -> (World, PathBuf) {
    let world = World::local(2);
    let files = [(NAMES[0], noise(100, 7)), (NAMES[1], noise(300 * 1024, 8))];
    let package = directory(&world.path("box"), &files);
    assert_eq!(world.ingest(&package, &[])["state"], "completed");
    (world, package)
}

fn stored(world: &World, name: &str) -> PathBuf {
    find(&world.path("data/stores/s2"), name).expect("it was stored")
}

/// The last job, and what its error says.
fn last_job(world: &World) -> Value {
    let id = world.jobs()[0]["id"].to_string();
    world.json(&["jobs", "show", &id]).remove(0)["job"].clone()
}

fn events(world: &World, kind: &str) -> Vec<Value> {
    let shown = world.json(&["objects", "events", "box"])[0]["events"].as_array().unwrap().clone();
    shown.into_iter().filter(|event| event["kind"] == kind).collect()
}

#[test]
fn content_that_a_deposit_holds_too_is_repaired_before_a_version_refers_to_it() {
    for name in NAMES {
        for damage in Damage::ALL {
            let (world, package) = world();
            damage.inflict(&stored(&world, name));
            directory(&package, &[("more.txt", "more")]);
            let report = world.ingest(&package, &[]);
            assert_eq!(report["objects"][0]["version"], 2, "{name} {damage:?} {report:#}");
            let repairs = events(&world, "recovery");
            assert_eq!(repairs.len(), 1, "{repairs:#?}");
            assert!(repairs[0]["note"].as_str().unwrap().contains(name), "{repairs:#?}");
            world.check();
        }
    }
}

/// A bucket tells by its listing what it lacks.
#[test]
fn a_bucket_that_lost_content_is_repaired_too() {
    for name in NAMES {
        for damage in [Damage::Remove, Damage::Shorten] {
            let world = World::half_remote();
            let files = [(NAMES[0], noise(100, 7)), (NAMES[1], noise(300 * 1024, 8))];
            let package = directory(&world.path("box"), &files);
            assert_eq!(world.ingest(&package, &[])["state"], "completed");
            let bucket = world.s3.as_ref().unwrap().file("bucket", "root");
            damage.inflict(&find(&bucket, name).expect("it was stored"));
            directory(&package, &[("more.txt", "more")]);
            let report = world.ingest(&package, &[]);
            assert_eq!(report["objects"][0]["version"], 2, "{name} {damage:?} {report:#}");
            assert_eq!(events(&world, "recovery").len(), 1, "{name} {damage:?}");
            world.check();
        }
    }
}

#[test]
fn a_deposit_that_changes_nothing_repairs_the_copies_of_what_it_holds() {
    for name in NAMES {
        for damage in Damage::ALL {
            let (world, package) = world();
            damage.inflict(&stored(&world, name));
            let report = world.ingest(&package, &[]);
            assert_eq!(report["objects"][0]["state"], "unchanged", "{name} {damage:?} {report:#}");
            assert_eq!(world.versions("box"), 1);
            assert_eq!(events(&world, "recovery").len(), 1);
            world.check();
        }
    }
}

#[test]
fn content_that_a_version_carries_over_is_known_good_or_the_version_is_not_made() {
    for (damage, days) in [(Damage::Remove, 30), (Damage::Shorten, 30), (Damage::Flip, 0)] {
        let (world, _) = world();
        world.configure(&format!("[limits]\nverify_referenced_days = {days}\n"));
        let path = stored(&world, NAMES[1]);
        let intact = std::fs::read(&path).unwrap();
        damage.inflict(&path);
        let more = directory(&world.path("more/box"), &[("more.txt", "more")]);
        world.deposit(&more, &["--update", "add"]);
        world.work();
        let job = last_job(&world);
        assert_eq!(job["error_code"], "store_damaged", "{damage:?} {job:#}");
        assert!(job["error"].as_str().unwrap().contains(NAMES[1]), "{job:#}");
        assert_eq!(world.versions("box"), 1);
        // With the file restored the same job goes on.
        std::fs::write(&path, intact).unwrap();
        world.done(&["jobs", "requeue", &job["id"].to_string()]);
        world.work();
        assert_eq!(world.versions("box"), 2);
        world.check();
    }
}

#[test]
fn a_copy_that_is_gone_is_never_unchanged() {
    let (world, package) = world();
    let mut object = stored(&world, NAMES[0]);
    while !object.join("inventory.json").is_file()
        || object.parent().unwrap().join("inventory.json").is_file()
    {
        object = object.parent().unwrap().to_path_buf();
    }
    let aside = world.path("aside");
    std::fs::rename(&object, &aside).unwrap();
    world.deposit(&package, &[]);
    world.work();
    let job = last_job(&world);
    assert_eq!(
        (&job["status"], &job["error_code"]),
        (&"failed".into(), &"store_out_of_step".into()),
        "{job:#}"
    );
    // A new version is refused likewise.
    directory(&package, &[("more.txt", "more")]);
    world.deposit(&package, &[]);
    world.work();
    assert_eq!(last_job(&world)["error_code"], "store_out_of_step");
    std::fs::rename(&aside, &object).unwrap();
    world.done(&["jobs", "requeue", &job["id"].to_string()]);
    world.work();
    world.done(&["check", "--content"]);
}

#[test]
fn a_version_builds_on_the_recorded_inventory_only() {
    let (world, package) = world();
    let root = find(&world.path("data/stores/s2"), "inventory.json").unwrap();
    let object = root.ancestors().filter(|d| d.join("inventory.json").is_file()).last().unwrap();
    // Another valid inventory, with a sidecar that vouches for it.
    for directory in [object.to_path_buf(), object.join("v1")] {
        let inventory = directory.join("inventory.json");
        let mut text = std::fs::read_to_string(&inventory).unwrap();
        text.push('\n');
        std::fs::write(&inventory, &text).unwrap();
        let digest = ocfl::Algorithm::Sha512.hex(text.as_bytes());
        std::fs::write(
            directory.join("inventory.json.sha512"),
            format!("{digest} inventory.json\n"),
        )
        .unwrap();
    }
    assert!(world.run(&["ocfl", "validate", &world.stores[1].1]).status.success());
    directory(&package, &[("more.txt", "more")]);
    world.deposit(&package, &[]);
    world.work();
    let job = last_job(&world);
    assert_eq!(job["error_code"], "store_out_of_step", "{job:#}");
    assert!(job["error"].as_str().unwrap().contains("not the one that was recorded"), "{job:#}");
    assert_eq!(world.versions("box"), 1);
}
