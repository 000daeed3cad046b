//! Copies that are damaged while they are read: no one gets their bytes, and no one waits for them.

use crate::support::packages::{directory, noise};
use crate::support::world::World;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a store of this machine has the content of a file.
pub fn content(world: &World, store: &str, name: &str) -> PathBuf {
    let mut found = Vec::new();
    walk(&world.path(&format!("data/stores/{store}")), &mut found);
    let ending = format!("content/data/{name}");
    found.retain(|path| path.to_string_lossy().ends_with(&ending));
    found.pop().unwrap_or_else(|| panic!("{store} has no {name}"))
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => walk(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

/// All files below a directory, by their paths in it.
pub fn tree(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = Vec::new();
    walk(directory, &mut found);
    let name = |path: &PathBuf| path.strip_prefix(directory).unwrap().to_str().unwrap().to_string();
    found.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

/// Changes the last byte of a file.
pub fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let mut permissions = std::fs::metadata(path).unwrap().permissions();
    #[allow(clippy::permissions_set_readonly_false)]
    permissions.set_readonly(false);
    std::fs::set_permissions(path, permissions).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Unpacks an archive with programs that are not ours.
pub fn unpack(archive: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let mut command = match archive.extension().unwrap().to_str().unwrap() {
        "zip" => {
            let mut python = std::process::Command::new("python3");
            python.args(["-m", "zipfile", "-e"]).arg(archive).arg(to);
            python
        }
        _ => {
            let mut tar = std::process::Command::new("tar");
            tar.arg("-xaf").arg(archive).arg("-C").arg(to);
            tar
        }
    };
    assert!(command.status().unwrap().success(), "{}", archive.display());
}

/// A file in the middle turns out bad after most of it was written. What was written of it is not in
/// the package, whatever the package is.
#[test]
fn a_file_that_turns_out_bad_half_way_is_taken_from_another_copy() {
    let world = World::local(2);
    let files =
        [("a.txt", b"first".to_vec()), ("m.bin", noise(3 << 20, 7)), ("z.txt", b"last".to_vec())];
    let package = directory(&world.path("box"), &files);
    world.ingest(&package, &[]);
    for (at, form) in ["directory", "tar", "tar.gz", "zip"].iter().enumerate() {
        // The copy is good again, and read first.
        let bad = content(&world, "s1", "m.bin");
        flip(&bad);
        let ending = if at == 0 { String::new() } else { format!(".{form}") };
        let out = world.path(&format!("out{at}{ending}"));
        world.done(&["restore", "box", "--as", form, "--to", out.to_str().unwrap(), "-q"]);
        let unpacked = match at {
            0 => out,
            _ => {
                let to = world.path(&format!("unpacked{at}"));
                unpack(&out, &to);
                to
            }
        };
        assert_eq!(tree(&unpacked), tree(&package), "{form}");
        flip(&bad);
        world.done(&["check", "--content", "-q"]);
    }
}

#[test]
fn what_no_store_has_is_left_out_and_named() {
    let world = World::local(2);
    let files =
        [("a.txt", b"first".to_vec()), ("m.bin", noise(1 << 20, 7)), ("z.txt", b"last".to_vec())];
    let package = directory(&world.path("box"), &files);
    world.ingest(&package, &[]);
    for store in ["s1", "s2"] {
        flip(&content(&world, store, "m.bin"));
        flip(&content(&world, store, "z.txt"));
    }
    for form in ["directory", "bag"] {
        let out = world.path(form);
        let args = ["restore", "box", "--as", form, "--to", out.to_str().unwrap(), "--json", "-q"];
        let ended = world.run(&args);
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let missing = answer["delivered"][0]["missing"].as_array().unwrap();
        let paths: Vec<&str> = missing.iter().map(|m| m["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["data/m.bin", "data/z.txt"]);
    }
    assert_eq!(tree(&world.path("directory")).into_keys().collect::<Vec<_>>(), ["a.txt"]);
    let bag = bagit::Bag::open(world.path("bag")).unwrap();
    let report = bag.validate(&bagit::Options::default()).unwrap();
    assert!(report.valid, "{:?}", report.problems);
}

#[test]
fn the_store_that_is_preferred_is_read_and_another_when_it_is_gone() {
    let world = World::local(2);
    // The last table that is written is that of the last store.
    world.configure("restore_priority = 1\n");
    let package = directory(&world.path("box"), &[("a.txt", "one")]);
    world.ingest(&package, &[]);
    let dry = |priority: &str| {
        let answer = world.json(&[
            "restore",
            "box",
            "--dry-run",
            "--to",
            "/nonexistent/out",
            "--set",
            priority,
        ]);
        answer[0]["restores"][0]["store"].as_str().unwrap().to_string()
    };
    assert_eq!(dry("stores.s2.restore_priority=1"), "s2");
    assert_eq!(dry("stores.s1.restore_priority=1"), "s1");
    std::fs::rename(world.path("data/stores/s1"), world.path("gone")).unwrap();
    world.done(&["restore", "box", "--to", world.path("out").to_str().unwrap(), "-q"]);
    assert_eq!(tree(&world.path("out")), tree(&package));
}
