//! Bytes that change on their way: in the package after it was validated, and in a store after it
//! took them. Each is found by reading back, and told apart.

use crate::support::packages;
use crate::support::world::World;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One that is put and read back with others, and one on its own.
const NAMES: [&str; 2] = ["small.txt", "large.bin"];

fn files() -> Vec<(String, Vec<u8>)> {
    let sizes = [100, 300 * 1024];
    NAMES.iter().zip(sizes).map(|(n, size)| (n.to_string(), packages::noise(size, 7))).collect()
}

/// Changes one byte, and neither size nor times.
fn flip(path: &Path) {
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    let mut content = std::fs::read(path).unwrap();
    content[50] ^= 1;
    std::fs::write(path, content).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

fn find(under: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(under).unwrap().flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => path.ends_with(name).then_some(path),
    })
}

fn only_job(world: &World) -> Value {
    let mut jobs = world.jobs();
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    jobs.remove(0)
}

fn failed(world: &World, code: &str, name: &str) -> String {
    let job = only_job(world);
    assert_eq!((&job["status"], &job["stage"]), (&"failed".into(), &"verifying".into()), "{job:#}");
    let id = job["id"].to_string();
    let shown = world.json(&["jobs", "show", &id]).remove(0);
    assert_eq!(shown["job"]["error_code"], code, "{shown:#}");
    assert!(shown["job"]["error"].as_str().unwrap().contains(name), "{shown:#}");
    assert_eq!(world.json(&["objects", "list"])[0]["objects"].as_array().unwrap().len(), 0);
    id
}

#[test]
fn a_package_that_changed_after_it_was_validated_is_not_taken_in() {
    for name in NAMES {
        let world = World::local(1);
        let package = packages::directory(&world.path("box"), &files());
        world.deposit(&package, &[]);
        assert!(world.work_until("resolving.classified"));
        flip(&package.join(name));
        world.work();
        failed(&world, "package_changed", name);
        // As it is now, it is another package.
        assert_eq!(world.ingest(&package, &[])["state"], "completed");
        world.done(&["check", "--content"]);
    }
}

#[test]
fn a_store_that_changes_what_it_took_is_found_out_and_gets_it_again() {
    for name in NAMES {
        let world = World::local(1);
        world.deposit(&packages::directory(&world.path("box"), &files()), &[]);
        world.done(&["queue", "set", "ingest", "--stage", "verifying", "max_attempts=1"]);
        assert!(world.work_until("verifying"));
        flip(&find(&world.path("data/stores"), name).expect("it was stored"));
        world.work();
        let job = failed(&world, "store_corrupt", name);
        world.done(&["jobs", "requeue", &job, "--to", "storing"]);
        world.work();
        assert_eq!(only_job(&world)["status"], "succeeded");
        world.check();
    }
}

/// What was verified before an interruption is not read again after it: a byte that changed in
/// between is for the fixity check to find, and it does.
#[test]
fn verified_files_are_not_looked_at_again() {
    let world = World::local(1);
    let files: Vec<(String, String)> =
        (0..2100).map(|n| (format!("{n:04}.txt"), format!("letter {n:060}"))).collect();
    world.deposit(&packages::directory(&world.path("box"), &files), &[]);
    assert!(world.work_until("verifying.portion"));
    flip(&find(&world.path("data/stores"), "0007.txt").expect("it was stored"));
    world.work();
    assert_eq!(only_job(&world)["status"], "succeeded");
    let checked = world.run(&["check", "--content"]);
    assert!(!checked.status.success() && checked.stdout.contains("0007.txt"), "{}", checked.stdout);
}
