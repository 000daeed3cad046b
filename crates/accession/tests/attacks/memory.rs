//! Large files and objects of many files, worked on within the documented 512 MiB.

use crate::support::world::{World, finish};
use std::path::Path;
use std::process::Command;

const LIMIT_KIB: u64 = 512 * 1024;

/// Runs a command that must succeed, and gives the most memory it had resident, in KiB.
fn peak_kib(world: &World, args: &[&str]) -> u64 {
    const MEASURE: &str = "
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=sys.stderr)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)";
    let measured = world.command(args);
    let mut command = Command::new("python3");
    command.args(["-c", MEASURE]).arg(measured.get_program()).args(measured.get_args());
    command.env_clear();
    command.envs(measured.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = finish(command, &format!("{args:?}"));
    assert!(ended.status.success(), "{args:?}: {}{}", ended.stdout, ended.stderr);
    let peak = ended.stdout.trim().parse().unwrap();
    println!("{args:?}: at most {} MiB", peak / 1024);
    peak
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
    let commands: [&[&str]; 4] = [
        &["ingest", package, "-q"],
        &["check"],
        &["check", "--content"],
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
