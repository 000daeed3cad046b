//! What becomes of an object that comes again.

use crate::support::invariants;
use crate::support::packages::{archive, bag, directory};
use crate::support::world::World;
use std::path::Path;

fn object(report: &serde_json::Value) -> &serde_json::Value {
    assert_eq!(report["state"], "completed", "{report:#}");
    &report["objects"][0]
}

#[test]
fn unchanged_changed_added_absent_renamed() {
    World::both(|world| {
        let box17 = world.path("box-17");
        bag(&box17, &[("a.txt", "one"), ("b.txt", "two"), ("c.txt", "three")]);
        let first = world.ingest(&box17, &["--what", "Box 17"]);
        let line = object(&first);
        assert_eq!((&line["version"], &line["files_new"]), (&1.into(), &4.into()), "{line}");
        let identifier = line["identifier"].as_str().unwrap().to_string();

        // As a tar.gz it is still the same object with the same content.
        let again = world.ingest(&archive(&box17, "tar.gz"), &["--what", "Box 17"]);
        assert_eq!(object(&again)["state"], "unchanged");
        assert_eq!(object(&again)["identifier"], identifier.as_str());

        std::fs::remove_dir_all(&box17).unwrap();
        bag(&box17, &[("a.txt", "ONE"), ("d/c.txt", "three"), ("new.txt", "four")]);
        let third = world.ingest(&archive(&box17, "zip"), &["--what", "Box 17"]);
        let line = object(&third);
        assert_eq!(line["version"], 2);
        assert!(line["files_changed"].as_i64().unwrap() >= 1, "{line}");
        assert_eq!(line["files_removed"], 2, "b.txt and c.txt: {line}");
        let now = world.files(&identifier, None);
        assert!(
            now.contains(&"data/d/c.txt".to_string()) && !now.contains(&"data/b.txt".to_string())
        );
        let before = world.files(&identifier, Some(1));
        assert!(before.contains(&"data/b.txt".to_string()), "earlier versions keep what they had");
        world.check();
    });
}

#[test]
fn files_that_are_not_deposited_stay_if_the_deposit_adds() {
    let world = World::local(2);
    directory(&world.path("album"), &[("1.txt", "one"), ("2.txt", "two")]);
    world.ingest(&world.path("album"), &[]);
    std::fs::remove_file(world.path("album/1.txt")).unwrap();
    directory(&world.path("album"), &[("3.txt", "three")]);
    let report = world.ingest(&world.path("album"), &["--update", "add"]);
    assert_eq!(object(&report)["files_removed"], 0);
    assert_eq!(world.files("album", None), ["data/1.txt", "data/2.txt", "data/3.txt"]);
    let shown = world.json(&["objects", "show", "album"]).remove(0);
    assert_eq!(shown["copies"].as_array().unwrap().len(), 2, "one in each store");
    world.check();
}

#[test]
fn two_versions_that_wait_at_once_are_taken_in_order() {
    World::both(|world| {
        for (n, content) in ["first", "second", "third"].iter().enumerate() {
            let path = world.path(&format!("{n}/letters"));
            directory(&path, &[("a.txt", *content), ("same.txt", "same")]);
            world.deposit(&path, &["--local-id", "letters"]);
        }
        world.work();
        assert_eq!(world.versions("letters"), 3);
        for version in 1..=3 {
            assert_eq!(world.files("letters", Some(version)).len(), 2);
        }
        world.check();
    });
}

#[test]
fn a_version_that_arrives_while_the_one_before_is_in_any_stage_comes_after_it() {
    let world = World::local(1);
    let web = crate::support::web::serve(world.dir.path());
    for stage in archive::pipeline::ingest::PIPELINE.stage_names() {
        let path = world.path(&format!("{stage}/1/o"));
        directory(&path, &[("a.txt", "old")]);
        // What is here passes these two stages by.
        let path = match stage {
            "provisioning" | "downloading" => format!("{web}/{stage}/1/o/a.txt").into(),
            _ => path,
        };
        world.deposit(&path, &["--local-id", stage]);
        // It is in the stage when its worker dies there.
        assert!(world.work_until(stage));
        let newer = world.path(&format!("{stage}/2/o"));
        directory(&newer, &[("a.txt", "new")]);
        world.deposit(&newer, &["--local-id", stage]);
        world.work();
        assert_eq!(world.versions(stage), 2, "{stage}");
    }
    world.check();
}

#[test]
fn identifiers_that_contradict_each_other_are_refused() {
    let world = World::local(1);
    let make = |name: &str| directory(&world.path(name), &[("a.txt", name)]);
    let one = world.ingest(&make("one"), &["--local-id", "L1"]);
    world.ingest(&make("two"), &["--local-id", "L2"]);
    let ark = object(&one)["identifier"].as_str().unwrap();
    let code = |path: &Path, options: &[&str]| {
        let report = world.ingest(path, options);
        assert_eq!(report["state"], "failed");
        report["failures"][0]["code"].as_str().unwrap().to_string()
    };
    let three = make("three");
    assert_eq!(code(&three, &["--id", ark, "--local-id", "L2"]), "contradictory_identifiers");
    assert_eq!(
        code(&three, &["--local-id", "L1", "--local-id", "L2"]),
        "contradictory_identifiers"
    );
    assert_eq!(code(&three, &["--local-id", "L1", "--mode", "new"]), "object_exists");
    assert_eq!(code(&three, &["--local-id", "L9", "--mode", "update"]), "object_missing");
    let report = world.ingest(&three, &["--id", ark, "--local-id", "L1b"]);
    assert_eq!(object(&report)["version"], 2, "another name for the same object");
    // Those that failed are resolved by now, and the janitor comes to them.
    let mut worker = world.worker();
    world.until_some("the janitor", || (invariants::uncleaned(&world) == 0).then_some(()));
    worker.kill();
    world.check();
}

#[test]
fn the_failed_one_is_fixed_and_run_again_and_the_report_says_so() {
    let world = World::local(1);
    bag(&world.path("torn"), &[("page.txt", "whole")]);
    std::fs::write(world.path("torn/data/page.txt"), "whxle").unwrap();
    let report = world.ingest(&world.path("torn"), &[]);
    assert_eq!((&report["state"], &report["failed"]), (&"failed".into(), &1.into()));
    let failure = &report["failures"][0];
    assert_eq!(failure["code"], "bag_digest_mismatch");
    assert!(failure["message"].as_str().unwrap().contains("data/page.txt"));
    let job = failure["job"].as_i64().unwrap().to_string();
    // 001, use case 3: the cause is fixed, the job runs again, the batch reports again.
    std::fs::write(world.path("torn/data/page.txt"), "whole").unwrap();
    let again = world.run(&["jobs", "requeue", &job, "--reason", "fixed"]);
    assert!(again.status.success());
    world.work();
    let updated = world.batch(1);
    assert_eq!(
        (&updated["state"], &updated["version"]),
        (&"completed".into(), &2.into()),
        "{updated:#}"
    );
    assert_eq!(updated["changed"][0]["after"], "preserved");
    world.check();
}
