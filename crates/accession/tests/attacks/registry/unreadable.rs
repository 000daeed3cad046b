//! Objects that cannot be read or lie in each other's place: the others are rebuilt and checked.

use crate::support::packages::directory;
use crate::support::world::World;
use serde_json::Value;
use std::path::{Path, PathBuf};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn world() -> World {
    let world = World::local(1);
    for name in NAMES {
        directory(&world.path(name), &[("a.txt", name)]);
        assert_eq!(world.ingest(&world.path(name), &[])["state"], "completed");
    }
    world
}

/// Where an object is.
fn object(world: &World, name: &str) -> PathBuf {
    let shown = world.json(&["objects", "show", name]).remove(0);
    Path::new(&world.stores[0].1).join(shown["copies"][0]["key"].as_str().unwrap())
}

fn identifier(world: &World, name: &str) -> String {
    let shown = world.json(&["objects", "show", name]).remove(0);
    shown["object"]["identifier"].as_str().unwrap().to_string()
}

fn record(object: &Path) -> PathBuf {
    object.join("v1/content/accession/record.jsonl")
}

fn rebuild(world: &World) -> Value {
    for name in std::fs::read_dir(world.path("data")).unwrap().flatten() {
        if name.file_name().to_string_lossy().starts_with("accession.db") {
            std::fs::remove_file(name.path()).unwrap();
        }
    }
    let ended = world.run(&["registry", "rebuild", "--from", "s1", "--json", "-q"]);
    assert_eq!(ended.status.code(), Some(1), "{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn count(list: &Value) -> usize {
    list.as_array().unwrap().len()
}

#[test]
fn a_rebuild_goes_on_past_records_that_are_damaged_or_gone() {
    let world = world();
    let (corrupt, gone) = (object(&world, "a"), object(&world, "c"));
    std::fs::write(record(&corrupt), "not a record").unwrap();
    std::fs::remove_file(record(&gone)).unwrap();
    let rebuilt = rebuild(&world);
    assert_eq!(rebuilt["objects"], 2, "{rebuilt:#}");
    assert_eq!(count(&rebuilt["unreadable"]), 2, "{rebuilt:#}");
    assert!(rebuilt["unreadable"].to_string().contains("record.jsonl"), "{rebuilt:#}");
    let listed = world.json(&["objects", "list"]).remove(0);
    assert_eq!(count(&listed["objects"]), 2);
}

#[test]
fn a_rebuild_refuses_an_object_that_is_not_in_its_place() {
    let world = world();
    let (from, to) = (object(&world, "b"), world.path("data/stores/s1/elsewhere/b"));
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let name = identifier(&world, "b");
    std::fs::rename(&from, &to).unwrap();
    let rebuilt = rebuild(&world);
    assert_eq!(rebuilt["objects"], 3, "{rebuilt:#}");
    assert_eq!(count(&rebuilt["misplaced"]), 1, "{rebuilt:#}");
    assert!(rebuilt["misplaced"][0].as_str().unwrap().contains(&name), "{rebuilt:#}");
}

#[test]
fn a_check_goes_on_past_objects_it_cannot_read_and_names_them() {
    let world = world();
    let [a, b, c, d] = NAMES.map(|name| object(&world, name));
    let names = NAMES.map(|name| identifier(&world, name));
    // Two in each other's place, one whose inventory is cut short, one damaged file.
    let aside = world.path("aside");
    std::fs::rename(&a, &aside).unwrap();
    std::fs::rename(&b, &a).unwrap();
    std::fs::rename(&aside, &b).unwrap();
    std::fs::write(c.join("inventory.json"), "{").unwrap();
    std::fs::write(d.join("v1/content/data/a.txt"), "x").unwrap();
    let ended = world.run(&["check", "--content", "--json", "-q"]);
    assert_eq!(ended.status.code(), Some(1), "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds = ["misplaced", "misplaced", "damaged", "damaged"];
    for (name, kind) in names.iter().zip(kinds) {
        let found = lines.iter().find(|f| f["identifier"] == name.as_str());
        let found = found.unwrap_or_else(|| panic!("{name}: {}", ended.stdout));
        assert_eq!(found["kind"], kind, "{found:#}");
    }
    assert_eq!(lines.last().unwrap()["looked"]["objects"], 4);
}
