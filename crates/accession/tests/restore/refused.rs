//! Requests that cannot be: one line that says what to do, and nothing changed.

use crate::damage::tree;
use crate::support::packages::directory;
use crate::support::world::World;

fn refused(world: &World, args: &[&str], said: &str) {
    let ended = world.run(&[&["restore"], args, &["-q"]].concat());
    let code = ended.status.code();
    assert!(matches!(code, Some(1 | 2)), "{args:?}: {code:?} {}", ended.stderr);
    assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    let jobs = world.json(&["jobs", "list", "restore-object"]).remove(0);
    assert!(jobs["jobs"].as_array().unwrap().is_empty(), "{args:?}: {jobs:#}");
}

#[test]
fn what_cannot_be_restored_is_refused_before_anything_is_done() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    world.ingest(&package, &[]);
    let out = world.path("out");
    let to = out.to_str().unwrap();
    directory(&world.path("there"), &[("x", "kept")]);
    let there = world.path("there");
    let inside = world.path("data/stores/s1/out");
    std::fs::write(world.path("list"), "box\nnothing\n\nbox2\n").unwrap();
    std::fs::write(world.path("none"), "# nothing\n").unwrap();
    let list = world.path("list");
    for (args, said) in [
        (&["nothing", "--to", to][..], "[unknown_object]"),
        (&["box", "--version", "2", "--to", to], "[unknown_version]"),
        (&["box", "--path", "data/*.tif", "--to", to], "[no_file_matches]"),
        (&["box", "--to", there.to_str().unwrap()], "[destination_exists]"),
        (&["box", "--to", inside.to_str().unwrap()], "[destination_in_store]"),
        (&["box", "--to", "ftp://x/y"], "[bad_destination]"),
        (&["box", "--to", "s3://bucket/x", "--as", "directory"], "[no_directory_in_bucket]"),
        (&["box", "--to", to, "--metadata"], "[metadata_needs_bag]"),
        (&["box", "--to", to, "--as", "ocfl", "--version", "1"], "[ocfl_is_whole]"),
        (&["box", "--enqueue"], "[no_destination]"),
        (&["box", "box", "--to", to], "[restored_twice]"),
        (&["--collection", "maps", "--to", to], "[unknown_collection]"),
        (&["--from", world.path("none").to_str().unwrap(), "--to", to], "[empty_list]"),
    ] {
        refused(&world, args, said);
    }
    let args = ["--from", list.to_str().unwrap(), "--to", to];
    refused(&world, &args, "line 2: there is no object `nothing`");
    refused(&world, &args, "line 4: there is no object `box2`");
    assert!(!out.exists());
    assert_eq!(tree(&there).into_values().collect::<Vec<_>>(), [b"kept"]);
}

/// What appears at the destination while the package is written is not written over either.
#[test]
fn a_destination_that_is_taken_meanwhile_is_left_alone() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    world.ingest(&package, &[]);
    let out = world.path("out.tar");
    world.done(&["restore", "box", "--to", out.to_str().unwrap(), "--enqueue", "-q"]);
    std::fs::write(&out, "somebody's").unwrap();
    world.work();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "somebody's");
    let jobs = world.json(&["jobs", "list", "restore-object"]).remove(0);
    assert_eq!(jobs["jobs"][0]["status"], "failed", "{jobs:#}");
    std::fs::remove_file(&out).unwrap();
    let job = jobs["jobs"][0]["id"].to_string();
    world.done(&["jobs", "requeue", &job, "--reason", "it is gone"]);
    world.work();
    assert!(std::fs::read(&out).unwrap().len() > 1024);
}
