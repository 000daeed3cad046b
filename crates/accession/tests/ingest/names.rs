//! Names that are hard to show or to keep.

use crate::support::packages::directory;
use crate::support::world::World;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_line_end_in_a_name_makes_no_row() {
    let world = World::local(1);
    directory(&world.path("one"), &[("a\nb\u{1b}.txt", "one")]);
    assert_eq!(world.ingest(&world.path("one"), &[])["state"], "completed");
    let shown = world.run(&["objects", "files", "one"]).stdout;
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains("data/a\\nb\\u{1b}.txt"), "{shown}");
    assert_eq!(world.files("one", None), ["data/a\nb\u{1b}.txt"], "kept as it is");
}

#[test]
fn a_name_that_is_not_utf8_is_kept_in_a_way_that_is_recorded() {
    let world = World::local(1);
    let one = directory(&world.path("one"), &[("a.txt", "one")]);
    std::fs::write(one.join(OsStr::from_bytes(b"x\xff")), "bytes").unwrap();
    assert_eq!(world.ingest(&one, &[])["state"], "completed");
    assert_eq!(world.files("one", None), ["data/a.txt", "data/x%FF"]);
    let events = world.json(&["objects", "events", "one"])[0]["events"].as_array().unwrap().clone();
    let noted =
        |e: &&serde_json::Value| e["note"].as_str().is_some_and(|n| n.ends_with("kept as x%FF"));
    assert_eq!(events.iter().filter(noted).count(), 1, "{events:?}");

    directory(&one, &[("x%FF", "text")]);
    let both = world.ingest(&one, &[]);
    let why = both["failures"][0]["message"].as_str().unwrap();
    assert!(why.contains("x%FF is the name of one file, and what the name of another"), "{why}");
}

#[test]
fn a_percent_sign_in_a_name_is_not_taken_for_an_escape() {
    let world = World::local(1);
    directory(&world.path("in"), &[("100%FF.txt", "one")]);
    let report = world.ingest(&world.path("in/100%FF.txt"), &[]);
    assert_eq!(report["objects"][0]["subject"], "100%25FF.txt", "{report:#}");
    let name = report["objects"][0]["identifier"].as_str().unwrap();
    assert_eq!(world.files(name, None), ["data/100%FF.txt"]);
}

#[test]
fn a_container_that_is_not_unpacked_is_kept_with_a_warning() {
    let world = World::local(1);
    for name in ["letters.tar.xz", "Letters.7Z"] {
        let path = world.path(name);
        std::fs::write(&path, b"\xfd7zXZ\0 and so on").unwrap();
        let report = world.ingest(&path, &[]);
        assert_eq!(report["state"], "completed");
        let warning = report["objects"][0]["warnings"][0].as_str().unwrap();
        assert!(warning.contains("kept as a single file"), "{warning}");
        let object = report["objects"][0]["identifier"].as_str().unwrap();
        assert_eq!(world.files(object, None), [format!("data/{name}")]);
    }
}

#[test]
fn a_file_that_is_called_a_container_and_is_none_is_kept_with_a_warning() {
    let world = World::local(1);
    let zeros = world.path("letters.zip");
    std::fs::write(&zeros, [0; 4096]).unwrap();
    let checked = world.run(&["deposit", zeros.to_str().unwrap(), "--check"]);
    assert!(checked.stdout.contains("not_a_container"), "{}", checked.stdout);
    let report = world.ingest(&zeros, &[]);
    assert_eq!(report["state"], "completed");
    let warning = report["objects"][0]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("letters.zip is called a container and is none"), "{warning}");
    let batch = report["batch"].to_string();
    let text = world.run(&["batches", "report", &batch, "--format", "text"]).stdout;
    assert!(text.contains("    warning: [not_a_container] letters.zip is called"), "{text}");
    let name = report["objects"][0]["identifier"].as_str().unwrap();
    assert_eq!(world.files(name, None), ["data/letters.zip"]);
    // Of others nothing is said.
    std::fs::write(world.path("plain.txt"), [0; 4096]).unwrap();
    let plain = world.ingest(&world.path("plain.txt"), &[]);
    assert_eq!(plain["objects"][0]["warnings"], serde_json::json!([]));
}
