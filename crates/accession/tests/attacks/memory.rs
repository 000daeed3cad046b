//! Large files and objects of many files, worked on within the documented 512 MiB.

use crate::support::world::{World, finish_within};
use std::path::Path;
use std::time::Duration;

const LIMIT_KIB: u64 = 512 * 1024;
/// Many files take minutes while other tests run.
const TIMEOUT: Duration = Duration::from_secs(1200);

/// Runs a command that must succeed, and gives the most memory it had resident.
fn peak_kib(world: &World, args: &[&str]) -> u64 {
    let ended = finish_within(TIMEOUT, world.command(args), &format!("{args:?}"));
    assert!(ended.status.success(), "{args:?}: {}{}", ended.stdout, ended.stderr);
    println!("{args:?}: at most {} MiB", ended.peak_kib / 1024);
    ended.peak_kib
}

/// A file of zeros that takes no room, different from others by its first byte.
fn sparse(path: &Path, first: u8, bytes: u64) {
    std::fs::write(path, [first]).unwrap();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn large_files_take_little_memory() {
    let world = World::local(1);
    let package = world.path("box");
    std::fs::create_dir(&package).unwrap();
    for number in 0..4 {
        sparse(&package.join(format!("{number}.raw")), number, 256 << 20);
    }
    let peak = peak_kib(&world, &["ingest", package.to_str().unwrap(), "-q"]);
    // Half of the limit: memory that grows with the length of a file shows sooner.
    assert!(peak <= LIMIT_KIB / 2, "{peak} KiB");
}

#[test]
#[ignore = "takes minutes"]
fn objects_of_many_files_take_little_memory() {
    let world = World::local(1);
    let package = world.path("box");
    for number in 0..300_000 {
        let directory = package.join((number / 1000).to_string());
        if number % 1000 == 0 {
            std::fs::create_dir_all(&directory).unwrap();
        }
        std::fs::write(directory.join(format!("{number}.txt")), number.to_string()).unwrap();
    }
    let package = package.to_str().unwrap();
    let premis = world.path("premis.xml").display().to_string();
    let commands: [&[&str]; 5] = [
        &["ingest", package, "-q"],
        &["check"],
        &["check", "--content"],
        &["export", "premis", "box", "--output", &premis],
        &["registry", "rebuild", "--from", "s1"],
    ];
    for args in commands {
        if args[0] == "registry" {
            for file in ["accession.db", "accession.db-wal", "accession.db-shm"] {
                let _ = std::fs::remove_file(world.path("data").join(file));
            }
        }
        let peak = peak_kib(&world, args);
        assert!(peak <= LIMIT_KIB, "{args:?}: {peak} KiB");
    }
}
