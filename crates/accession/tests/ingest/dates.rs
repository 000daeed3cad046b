//! What a store cannot keep of a package, and its versions' records do: when files were last written
//! to, and directories with nothing in them.

use crate::support::packages::{archive, directory};
use crate::support::world::World;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// 2023-11-14T22:13:20.123456Z, and a second in which every archive can write it.
const AT: Duration = Duration::from_micros(1_700_000_000_123_456);

fn date(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + AT).unwrap();
}

fn dated(path: &Path, content: &str) {
    directory(path, &[("a.txt", content)]);
    date(&path.join("a.txt"));
}

fn modified(world: &World, object: &str, path: &str) -> String {
    let files = world.json(&["objects", "files", object])[0]["files"].as_array().unwrap().clone();
    let file = files.iter().find(|file| file["path"] == path);
    file.unwrap_or_else(|| panic!("{files:#?}"))["modified"].as_str().unwrap_or_default().into()
}

#[test]
fn dates_of_files_are_kept_whatever_the_package_is() {
    World::both(|world| {
        let whole = "2023-11-14T22:13:20.123456Z";
        dated(&world.path("folder"), "one");
        world.ingest(&world.path("folder"), &[]);
        assert_eq!(modified(world, "folder", "data/a.txt"), whole);

        world.ingest(&world.path("folder/a.txt"), &["--local-id", "single"]);
        assert_eq!(modified(world, "single", "data/a.txt"), whole);

        for (form, second) in [("tar", "2023-11-14T22:13:20Z"), ("tar.gz", "2023-11-14T22:13:20Z")]
        {
            dated(&world.path("packed"), form);
            world.ingest(&archive(&world.path("packed"), form), &["--local-id", form]);
            assert_eq!(modified(world, form, "data/packed/a.txt"), second);
        }
        dated(&world.path("zipped"), "zip");
        world.ingest(&archive(&world.path("zipped"), "zip"), &["--local-id", "zip"]);
        let zipped = modified(world, "zip", "data/zipped/a.txt");
        // The time of MS-DOS has no zone.
        assert!(zipped.starts_with("2023-11-1"), "{zipped}");

        let csv = world.done(&["objects", "files", "folder", "--csv"]);
        assert!(csv.lines().next().unwrap().ends_with(",\"modified\""), "{csv}");
        assert!(csv.contains(whole), "{csv}");
        world.check();
    });
}

#[test]
fn a_date_alone_makes_no_version_and_dates_outlive_the_database() {
    let world = World::local(1);
    let path = world.path("letters");
    dated(&path, "one");
    world.ingest(&path, &[]);
    let file = std::fs::File::options().write(true).open(path.join("a.txt")).unwrap();
    file.set_modified(UNIX_EPOCH + AT + Duration::from_secs(60)).unwrap();
    assert_eq!(world.ingest(&path, &[])["objects"][0]["state"], "unchanged");
    crate::recovery::remove_database(&world);
    world.done(&["registry", "rebuild", "--from", "s1"]);
    assert_eq!(modified(&world, "letters", "data/a.txt"), "2023-11-14T22:13:20.123456Z");
}

fn empty(world: &World, object: &str) -> Value {
    world.json(&["objects", "show", object])[0]["empty_directories"].clone()
}

#[test]
fn empty_directories_are_warned_of_and_recorded() {
    World::both(|world| {
        let path = directory(&world.path("box"), &[("full/a.txt", "one")]);
        std::fs::create_dir_all(path.join("blank/deep")).unwrap();
        for (form, prefix) in [("folder", "data"), ("tar", "data/box"), ("zip", "data/box")] {
            let package = if form == "folder" { path.clone() } else { archive(&path, form) };
            let report = world.ingest(&package, &["--local-id", form]);
            let warning = report["objects"][0]["warnings"][0].as_str().unwrap();
            assert!(warning.contains("blank/deep is an empty directory"), "{form}: {warning}");
            let expected = serde_json::json!([format!("{prefix}/blank/deep")]);
            assert_eq!(empty(world, form), expected, "{form}");
        }
        // A new one alone makes no version, and the report does not claim that it is recorded.
        std::fs::create_dir(path.join("later")).unwrap();
        let report = world.ingest(&path, &["--local-id", "folder"]);
        let line = &report["objects"][0];
        assert_eq!(line["state"], "unchanged");
        assert!(line["warnings"].to_string().contains("[directories_not_recorded]"), "{line:#}");
        assert_eq!(empty(world, "folder"), serde_json::json!(["data/blank/deep"]));
        // A version that adds keeps those of the one before, where no file is now.
        let more = directory(&world.path("more/box"), &[("blank/deep/b.txt", "two")]);
        std::fs::create_dir(more.join("other")).unwrap();
        world.ingest(&more, &["--local-id", "folder", "--update", "add"]);
        assert_eq!(empty(world, "folder"), serde_json::json!(["data/other"]));
        std::fs::write(path.join("full/c.txt"), "three").unwrap();
        world.ingest(&path, &["--local-id", "folder", "--update", "add"]);
        let three = serde_json::json!(["data/later", "data/other"]);
        assert_eq!(empty(world, "folder"), three);
        world.check();
    });
    let world = World::local(1);
    let path = directory(&world.path("box"), &[("a.txt", "one")]);
    std::fs::create_dir(path.join("blank")).unwrap();
    world.ingest(&path, &[]);
    crate::recovery::remove_database(&world);
    world.done(&["registry", "rebuild", "--from", "s1"]);
    assert_eq!(empty(&world, "box"), serde_json::json!(["data/blank"]));
    assert!(world.done(&["objects", "show", "box"]).contains("data/blank"));
}
