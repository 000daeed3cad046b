//! `accession check`: what it looks at, what it finds, and what it records.

use crate::support::packages::{directory, noise};
use crate::support::world::{Ended, World};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An object of two versions in two stores.
fn world() -> World {
    let world = World::local(2);
    let package = directory(
        &world.path("box"),
        &[("old.txt", noise(100, 3)), ("big.bin", noise(300_000, 4))],
    );
    world.ingest(&package, &[]);
    std::fs::remove_file(package.join("old.txt")).unwrap();
    directory(&package, &[("new.txt", "new")]);
    assert_eq!(world.ingest(&package, &[])["objects"][0]["version"], 2);
    world
}

fn object(world: &World, store: usize) -> PathBuf {
    let shown = world.json(&["objects", "show", "box"]).remove(0);
    let key = shown["copies"][store]["key"].as_str().unwrap().to_string();
    Path::new(&world.stores[store].1).join(key)
}

fn copy(world: &World, store: usize) -> Value {
    world.json(&["objects", "show", "box"]).remove(0)["copies"][store].clone()
}

fn checks(world: &World) -> Vec<Value> {
    let events = world.json(&["objects", "events", "box"])[0]["events"].as_array().unwrap().clone();
    events.into_iter().filter(|e| e["kind"] == "fixity check" && e["job"].is_null()).collect()
}

/// The findings of a check that finds something.
fn findings(ended: &Ended) -> Vec<Value> {
    assert_eq!(ended.status.code(), Some(1), "{}{}", ended.stdout, ended.stderr);
    let mut lines: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["findings"], lines.len(), "{summary:#}");
    lines
}

#[test]
fn a_check_says_what_it_looked_at() {
    let world = world();
    let listed = world.done(&["check"]);
    assert!(listed.contains("1 object and 2 copies"), "{listed}");
    // Three files, a record of each version, and the description that both share; in two copies.
    assert!(listed.contains("14 content files listed with the size, not read"), "{listed}");
    assert!(checks(&world).is_empty());
    let read = world.done(&["check", "--content"]);
    assert!(read.contains("14 of 14 content files"), "{read}");
    assert!(read.contains("read and compared"), "{read}");
    assert!(read.contains("agree, byte for byte") && !listed.contains("byte for byte"), "{read}");
    let one = world.json(&["check", "box", "--content"]).remove(0);
    assert_eq!((&one["content"], &one["looked"]["read"]), (&"read".into(), &14.into()), "{one:#}");
}

#[test]
fn a_check_without_content_finds_what_is_gone_and_what_has_another_size() {
    for (name, damage) in [
        // Content of an earlier version, a record, and what is beside the content.
        ("v1/content/data/old.txt", "gone"),
        ("v2/content/data/new.txt", "longer"),
        ("v1/content/accession/record.jsonl", "gone"),
        ("v1/inventory.json", "gone"),
        ("v2/inventory.json.sha512", "gone"),
        ("0=ocfl_object_1.1", "gone"),
        ("v1/content/data/more.txt", "more"),
    ] {
        let world = world();
        let path = object(&world, 1).join(name);
        let intact = std::fs::read(&path).ok();
        match damage {
            "gone" => std::fs::remove_file(&path).unwrap(),
            _ => std::fs::write(&path, "longer than it was").unwrap(),
        }
        let ended = world.run(&["check", "--json", "-q"]);
        let found = findings(&ended);
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert_eq!(found[0]["store"], "s2");
        let kind = match damage {
            "gone" => "missing",
            "more" => "extra",
            _ => "damaged",
        };
        assert_eq!(found[0]["kind"], kind, "{name}: {found:#?}");
        let path_found = found[0]["path"].as_str().unwrap();
        assert!(name.ends_with(path_found), "{name}: {path_found}");
        // What is beside the object does it no harm.
        let state = if damage == "more" { "good" } else { "bad" };
        assert_eq!(copy(&world, 1)["state"], state, "{name}");
        assert_eq!(copy(&world, 0)["state"], "good");
        if let Some(intact) = intact {
            std::fs::write(&path, intact).unwrap();
            world.done(&["check", "--content"]);
            assert_eq!(copy(&world, 1)["state"], "good", "{name}");
        }
    }
}

#[test]
fn a_check_of_content_records_what_it_found() {
    let world = world();
    let before = [copy(&world, 0), copy(&world, 1)];
    let path = object(&world, 1).join("v1/content/data/old.txt");
    let intact = std::fs::read(&path).unwrap();
    let mut flipped = intact.clone();
    flipped[50] ^= 1;
    std::fs::write(&path, flipped).unwrap();
    // A listing cannot see it.
    world.done(&["check"]);
    let found = findings(&world.run(&["check", "--content", "--json", "-q"]));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&found[0]["kind"], &found[0]["path"]), (&"damaged".into(), &"data/old.txt".into()));
    let [good, bad] = [copy(&world, 0), copy(&world, 1)];
    assert_eq!((&good["state"], &bad["state"]), (&"good".into(), &"bad".into()));
    for name in ["verified_at", "fixity_due"] {
        assert_ne!(good[name], before[0][name], "{name}");
        assert_eq!(bad[name], before[1][name], "{name}");
    }
    assert!(before[1]["checked_at"].is_null() && bad["checked_at"].is_string(), "{bad:#}");
    // One event for each copy, and one for the bad file.
    let events = checks(&world);
    assert_eq!(events.len(), 3, "{events:#?}");
    let about_file: Vec<&Value> = events.iter().filter(|e| !e["path"].is_null()).collect();
    assert_eq!(about_file.len(), 1, "{events:#?}");
    assert_eq!(about_file[0]["path"], "data/old.txt");
    assert_eq!(
        (&about_file[0]["outcome"], &about_file[0]["version"]),
        (&"failure".into(), &1.into())
    );
    let outcomes: Vec<&str> = events
        .iter()
        .filter(|e| e["path"].is_null())
        .map(|e| e["outcome"].as_str().unwrap())
        .collect();
    assert!(outcomes.contains(&"success") && outcomes.contains(&"failure"), "{events:#?}");
    assert!(world.done(&["objects", "show", "box"]).contains("bad"));
    // Checks are not part of any version's record.
    std::fs::write(&path, intact).unwrap();
    world.done(&["check", "--content"]);
    assert_eq!(copy(&world, 1)["state"], "good");
    world.check();
}

/// A copy that was found to be bad stays bad until it is read, and every check and `status` say so.
#[test]
fn a_copy_that_is_known_to_be_bad_is_named_until_all_of_it_was_read() {
    World::both(|world| {
        let package = directory(&world.path("box"), &[("a.txt", "a")]);
        world.ingest(&package, &[]);
        let key = copy(world, 0)["key"].as_str().unwrap().to_string();
        let key = format!("{key}/v1/content/data/a.txt");
        let replace = |content: &str| match &world.s3 {
            None => std::fs::write(Path::new(&world.stores[0].1).join(&key), content).unwrap(),
            Some(s3) => s3.depositor("bucket").put(&format!("root/{key}"), content),
        };
        replace("b");
        // A listing sees no difference.
        assert!(world.done(&["check"]).contains("agree as far as listings show"));
        assert_eq!(findings(&world.run(&["check", "--content", "--json", "-q"])).len(), 1);
        let read = checks(world).len();
        for _ in 0..2 {
            let found = findings(&world.run(&["check", "--json", "-q"]));
            assert_eq!(found.len(), 1, "{found:#?}");
            assert_eq!(found[0]["kind"], "bad", "{found:#?}");
            let message = found[0]["message"].as_str().unwrap();
            assert!(message.contains("has not read all of it"), "{message}");
        }
        let shown = world.run(&["check"]).stdout;
        assert!(!shown.contains("agree") && shown.contains("1 finding"), "{shown}");
        // Nothing was read, so nothing is recorded.
        assert_eq!(checks(world).len(), read);
        let status = world.json(&["status"]).remove(0);
        assert_eq!(status["bad_copies"][0]["copies"], 1, "{status:#}");
        let finding = status["findings"].as_array().unwrap();
        let finding = finding.iter().find(|finding| finding["code"] == "copies_bad").unwrap();
        assert_eq!((&finding["level"], &finding["count"]), (&"wrong".into(), &1.into()));
        let text = finding["text"].as_str().unwrap();
        assert!(text.starts_with("1 copy in store s1 is damaged"), "{text}");

        replace("a");
        assert_eq!(world.run(&["check"]).status.code(), Some(1));
        let command = finding["command"].as_str().unwrap().to_string();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        world.done(&words);
        assert!(world.done(&["check"]).contains("agree as far as listings show"));
        let status = world.json(&["status"]).remove(0);
        assert_eq!(status["bad_copies"].as_array().unwrap().len(), 0);
        assert!(!world.done(&["status"]).contains("damaged"));
    });
}

#[test]
fn a_store_that_cannot_be_read_does_not_keep_the_others_from_being_checked() {
    let world = world();
    let store = PathBuf::from(&world.stores[0].1);
    let aside = world.path("aside");
    std::fs::rename(&store, &aside).unwrap();
    std::fs::write(&store, "in the way").unwrap();
    let ended = world.run(&["check", "--content", "--json", "-q"]);
    assert_eq!(ended.status.code(), Some(3), "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.iter().find(|line| !line["looked"].is_null()).unwrap();
    assert_eq!((&summary["findings"], &summary["looked"]["read"]), (&0.into(), &7.into()));
    assert!(lines.iter().any(|l| l["kind"] == "unreadable" && l["store"] == "s1"), "{lines:#?}");
    std::fs::remove_file(&store).unwrap();
    std::fs::rename(&aside, &store).unwrap();
    // With damage beside it, the damage decides.
    std::fs::remove_file(object(&world, 1).join("v1/content/data/old.txt")).unwrap();
    std::fs::rename(&store, &aside).unwrap();
    std::fs::write(&store, "in the way").unwrap();
    assert_eq!(world.run(&["check", "-q"]).status.code(), Some(1));
}

/// Versions that are made while everything is read are no alarm.
#[test]
fn an_object_that_is_versioned_meanwhile_is_no_alarm() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &[("a.txt", "0")]);
    world.ingest(&package, &[]);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for n in 1..6 {
                std::fs::write(package.join("a.txt"), n.to_string()).unwrap();
                assert_eq!(world.ingest(&package, &[])["state"], "completed");
            }
        });
        while !writing.is_finished() {
            let ended = world.run(&["check", "--content"]);
            assert_ne!(ended.status.code(), Some(1), "{}{}", ended.stdout, ended.stderr);
        }
    });
    world.check();
}

/// Content that is not in the registry's version any more, and a version that is written and waits.
#[test]
fn a_version_that_waits_to_be_sealed_is_no_finding() {
    World::both(|world| {
        let package = directory(&world.path("box"), &[("a.txt", "a")]);
        world.ingest(&package, &[]);
        directory(&package, &[("b.txt", "b")]);
        world.deposit(&package, &[]);
        assert!(world.work_until("recording"));
        says_nothing(world);
        world.work();
        world.check();
    });
}

fn says_nothing(world: &World) {
    for args in [&["check"][..], &["check", "--content"]] {
        let ended = world.run(args);
        assert!(ended.status.success(), "{args:?}: {}{}", ended.stdout, ended.stderr);
    }
}

/// The store shows a new object before the registry has it.
#[test]
fn a_version_that_is_sealed_and_not_yet_recorded_is_no_alarm() {
    World::both(|world| {
        let package = directory(&world.path("box"), &[("a.txt", "a")]);
        world.deposit(&package, &[]);
        assert!(world.work_until("recording.sealed"));
        says_nothing(world);
        world.work();
        directory(&package, &[("b.txt", "b")]);
        world.deposit(&package, &[]);
        assert!(world.work_until("recording.sealed"));
        let ended = world.run(&["check", "--json", "-q"]);
        assert_eq!(ended.status.code(), Some(3), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("\"changing\""), "{}", ended.stdout);
        world.work();
        world.check();
    });
}
