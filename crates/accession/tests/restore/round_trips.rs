//! What goes out is what came in: byte for byte, in every form, and deposited again it is unchanged.

use crate::damage::{tree, unpack};
use crate::support::packages::{bag, directory, noise};
use crate::support::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Names and contents that are hard to keep. No bucket takes the name with a line end, and the stand-in
/// keeps notes in files that are named after keys, which must be short for it.
fn files(world: &World, version: usize) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("plain.txt".into(), b"plain".to_vec()),
        ("empty".into(), Vec::new()),
        ("100%25 ü 名.txt".into(), b"percent".to_vec()),
        ("a/b/c/d/e/deep.txt".into(), b"deep".to_vec()),
        ("same1.bin".into(), noise(300_000, 1)),
        ("same2.bin".into(), noise(300_000, 1)),
    ];
    if world.s3.is_none() {
        files.push(("line\nend".into(), b"a name with a line end".to_vec()));
        files.push((format!("{}/deeper.txt", ["d"; 60].join("/")), b"deeper".to_vec()));
        files.push((format!("{}.txt", "long".repeat(50)), b"long name".to_vec()));
    }
    files.push((format!("v{version}.bin"), noise(1_000 * version, version as u64)));
    files
}

fn unchanged(report: &Value) -> bool {
    report["state"] == "completed" && report["objects"][0]["state"] == "unchanged"
}

fn restore(world: &World, object: &str, to: &Path, options: &[&str]) -> Value {
    let args = [&["restore", object, "--to", to.to_str().unwrap()], options].concat();
    world.json(&args).remove(0)
}

#[test]
fn every_version_goes_out_in_every_form_as_it_came_in() {
    World::both(|world| {
        let package = world.path("box");
        let mut versions: Vec<BTreeMap<String, Vec<u8>>> = Vec::new();
        for version in 1..=3 {
            let _ = std::fs::remove_dir_all(&package);
            directory(&package, &files(world, version));
            let report = world.ingest(&package, &["--local-id", "box"]);
            assert_eq!(report["state"], "completed", "{report:#}");
            versions.push(tree(&package));
        }
        for (at, wanted) in versions.iter().enumerate() {
            let number = (at + 1).to_string();
            for form in ["directory", "tar", "tar.gz", "zip"] {
                let ending = if form == "directory" { String::new() } else { format!(".{form}") };
                let out = world.path(&format!("out-{number}{ending}"));
                let answer = restore(world, "box", &out, &["--version", &number, "--as", form]);
                assert_eq!(answer["state"], "completed", "{answer:#}");
                let found = match form {
                    "directory" => tree(&out),
                    _ => {
                        let to = world.path(&format!("unpacked-{number}-{form}"));
                        unpack(&out, &to);
                        let sha256 = answer["delivered"][0]["sha256"].as_str().unwrap().to_string();
                        let bytes = std::fs::read(&out).unwrap();
                        assert_eq!(crate::support::packages::sha256(&bytes), sha256);
                        tree(&to)
                    }
                };
                assert!(found == *wanted, "{form} of version {number}");
            }
        }
        // Whatever it is called by now, it is the object that it came from.
        for name in ["out-3", "out-3.tar", "out-3.tar.gz", "out-3.zip"] {
            let report = world.ingest(&world.path(name), &[]);
            assert!(unchanged(&report), "{name}: {report:#}");
        }
        assert_eq!(world.versions("box"), 3);
        // Something else in its place is another object.
        directory(&world.path("out-3"), &[("plain.txt", "changed")]);
        let report = world.ingest(&world.path("out-3"), &[]);
        assert_eq!(report["objects"][0]["version"], 1, "{report:#}");
        world.check();
    });
}

/// `restore X --to out/`, then `ingest out/`, as people type it.
#[test]
fn a_slash_at_the_end_makes_no_other_place() {
    let world = World::local(1);
    let package = directory(&world.path("letters"), &[("1.txt", "Dear Ann")]);
    assert_eq!(world.ingest(&package, &[])["state"], "completed");
    let out = world.path("out/");
    let answer = restore(&world, "letters", &out, &[]);
    assert_eq!(answer["state"], "completed", "{answer:#}");
    for out in [out, world.path("out")] {
        let report = world.ingest(&out, &[]);
        assert!(unchanged(&report), "{}: {report:#}", out.display());
    }
}

#[test]
fn a_bag_goes_out_as_the_bag_that_came_in() {
    World::both(|world| {
        let package = bag(&world.path("box"), &files(world, 1));
        std::fs::write(package.join("notes.txt"), "a tag file").unwrap();
        bagit::update(&package, &Default::default(), &()).unwrap();
        let report = world.ingest(&package, &[]);
        assert_eq!(report["state"], "completed", "{report:#}");
        for (name, options) in
            [("a", &[][..]), ("b.tar", &[]), ("c.zip", &["--as", "bag"]), ("d", &["--as", "bag"])]
        {
            let out = world.path(name);
            let answer = restore(world, "box", &out, options);
            assert_eq!(answer["state"], "completed", "{answer:#}");
            let opened = bagit::Bag::open(&out).unwrap();
            let report = opened.validate(&bagit::Options::default()).unwrap();
            assert!(report.valid, "{name}: {:?}", report.problems);
            let report = world.ingest(&out, &[]);
            assert!(unchanged(&report), "{name}: {report:#}");
        }
        // Where a store vouches for SHA-256, there is a manifest of it too.
        let without = |path: &Path| {
            let mut found = tree(path);
            found.retain(|name, _| !name.contains("manifest-"));
            found
        };
        assert!(without(&world.path("a")) == without(&package), "tag files are the original ones");
    });
}

#[test]
fn what_was_no_bag_can_go_out_as_one() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &files(&world, 1));
    world.ingest(&package, &["--what", "Letters", "--who", "Ada"]);
    let answer = restore(&world, "box", &world.path("bag"), &["--as", "bag"]);
    assert_eq!(answer["state"], "completed", "{answer:#}");
    assert!(unchanged(&world.ingest(&world.path("bag"), &[])));
    let part = ["--as", "bag", "--path", "data/same*.bin", "--metadata"];
    restore(&world, "box", &world.path("part"), &part);
    for name in ["bag", "part"] {
        let report = bagit::Bag::open(world.path(name)).unwrap();
        let report = report.validate(&bagit::Options::default()).unwrap();
        assert!(report.valid, "{name}: {:?}", report.problems);
    }
    let found = tree(&world.path("part"));
    let info = String::from_utf8(found["bag-info.txt"].clone()).unwrap();
    assert!(info.contains("External-Identifier: ark:/") && info.contains("Payload-Oxum: 600000.2"));
    assert!(found.contains_key("metadata/premis.xml") && found.contains_key("data/same1.bin"));
    assert!(String::from_utf8_lossy(&found["metadata/erc.txt"]).contains("Letters"));
}

#[test]
fn some_of_the_files_and_one_of_them() {
    let world = World::local(1);
    let package = directory(
        &world.path("box"),
        &[("letters/a.txt", "a"), ("letters/b.txt", "b"), ("maps/c.tif", "c")],
    );
    world.ingest(&package, &[]);
    restore(&world, "box", &world.path("out"), &["--path", "data/letters/*"]);
    let paths: Vec<String> = tree(&world.path("out")).into_keys().collect();
    assert_eq!(paths, ["letters/a.txt", "letters/b.txt"]);
    let one = restore(&world, "box", &world.path("one.txt"), &["--path", "data/maps/c.tif"]);
    assert_eq!(std::fs::read_to_string(world.path("one.txt")).unwrap(), "c");
    assert_eq!(one["delivered"][0]["files"], 1);
    std::fs::create_dir(world.path("into")).unwrap();
    restore(&world, "box", &world.path("into"), &["--path", "data/maps/c.tif"]);
    assert_eq!(std::fs::read_to_string(world.path("into/c.tif")).unwrap(), "c");
}

#[test]
fn dates_and_empty_directories_go_out_too() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    std::fs::create_dir_all(package.join("nothing/here")).unwrap();
    let date = SystemTime::UNIX_EPOCH + Duration::from_micros(1_234_567_890_123_456);
    let file = std::fs::File::options().write(true).open(package.join("a.txt")).unwrap();
    file.set_modified(date).unwrap();
    world.ingest(&package, &[]);
    restore(&world, "box", &world.path("out"), &[]);
    for name in ["out.tar", "out.zip"] {
        let archive = world.path(name);
        restore(&world, "box", &archive, &[]);
        assert!(unchanged(&world.ingest(&archive, &[])));
    }
    let modified = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(&world.path("out/a.txt")), date);
    assert!(world.path("out/nothing/here").is_dir());
    unpack(&world.path("out.tar"), &world.path("unpacked"));
    assert_eq!(modified(&world.path("unpacked/a.txt")), date);
    assert!(world.path("unpacked/nothing/here").is_dir());
}

#[test]
fn a_delivery_is_an_event_of_the_object() {
    let world = World::local(2);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    world.ingest(&package, &[]);
    restore(&world, "box", &world.path("out.tar"), &[]);
    let events = world.json(&["objects", "events", "box"])[0]["events"].as_array().unwrap().clone();
    let found: Vec<&Value> = events.iter().filter(|e| e["kind"] == "dissemination").collect();
    assert_eq!(found.len(), 1, "{events:#?}");
    assert!(found[0]["note"].as_str().unwrap().contains("out.tar"), "{}", found[0]);
    assert_eq!(found[0]["detail"], "version 1 as tar: 1 file, 1 byte");
    let id = found[0]["id"].as_str().unwrap();
    for store in ["s1", "s2"] {
        let kept = tree(&world.path(&format!("data/stores/{store}")));
        let log = kept.iter().find(|(path, _)| path.ends_with(&format!("logs/{id}.json")));
        let log: Value = serde_json::from_slice(log.unwrap().1).unwrap();
        assert_eq!((&log["kind"], &log["version"]), (&"dissemination".into(), &1.into()));
    }
    world.check();
}

#[test]
fn without_a_place_it_goes_where_the_person_is() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "a")]);
    world.ingest(&package, &[]);
    let here = world.path("here");
    std::fs::create_dir(&here).unwrap();
    let mut command = world.command(&["restore", "box", "-q"]);
    command.current_dir(&here);
    let ended = crate::support::world::finish(command, "restore");
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(tree(&here.join("box")), tree(&package));
    assert!(unchanged(&world.ingest(&here.join("box"), &[])));
}
