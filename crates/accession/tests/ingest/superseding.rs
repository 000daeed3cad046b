//! "OK" means that everything that was submitted is preserved, whichever row shares an identifier with
//! which.

use crate::support::packages::directory;
use crate::support::web;
use crate::support::world::World;
use serde_json::{Value, json};

/// Rows of files at `base`, all with one local identifier.
fn manifest(world: &World, name: &str, base: &str, files: &[&str]) -> std::path::PathBuf {
    let rows: Vec<Value> = files
        .iter()
        .map(|file| json!({"source": format!("{base}/{file}"), "name": file, "local_ids": ["M-1"]}))
        .collect();
    let text = json!({"format": "checkm-json/1", "profile": "single-file-batch", "rows": rows});
    let path = world.path(name);
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

fn report(world: &World, batch: i64) -> Value {
    let ended = world.run(&["batches", "report", &batch.to_string(), "--format", "json"]);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Row 2 is not there, row 3 is: row 2 stays failed, and so does the batch; `deposit --wait` says so.
#[test]
fn a_failed_row_does_not_end_as_ok() {
    let world = World::local(1);
    let files = directory(&world.path("web"), &[("1.txt", "one"), ("3.txt", "three")]);
    let base = web::serve(&files);
    let path = manifest(&world, "box.json", &base, &["1.txt", "2.txt", "3.txt"]);
    let _worker = world.worker();
    let waited = world.run(&["deposit", path.to_str().unwrap(), "--wait"]);
    assert_eq!(waited.status.code(), Some(1), "{}{}", waited.stdout, waited.stderr);
    let found = report(&world, 1);
    assert_eq!(found["state"], "failed", "{found:#}");
    assert_eq!(
        (&found["succeeded"], &found["failed"], &found["superseded"]),
        (&json!(2), &json!(1), &json!(0)),
        "{found:#}"
    );
    // Once the file is there, the row can go again, and then everything is preserved.
    directory(&files, &[("2.txt", "two")]);
    let job = found["failures"][0]["job"].to_string();
    world.done(&["jobs", "requeue", &job, "--reason", "it is there now"]);
    world.until("the batch to be completed", |_| world.batch(1)["state"] == "completed");
}

/// A later deposit of the same thing supersedes: both reports say so, and whether the content is the
/// same. What was never read is not called preserved.
#[test]
fn both_reports_say_what_replaced_what() {
    let world = World::local(1);
    let files = directory(&world.path("web"), &[("1.txt", "one")]);
    let base = web::serve(&files);
    let first = world.ingest(&manifest(&world, "a.json", &base, &["2.txt"]), &[]);
    assert_eq!(first["state"], "failed", "{first:#}");
    directory(&files, &[("2.txt", "two")]);
    let second = world.ingest(&manifest(&world, "b.json", &base, &["2.txt"]), &[]);
    assert_eq!(second["state"], "completed", "{second:#}");
    let notes = second["objects"][0]["notes"].to_string();
    assert!(notes.contains("replaces failed job 2 of batch 1"), "{notes}");
    assert!(notes.contains("content not compared: it was never read"), "{notes}");
    world.work();
    let first = report(&world, 1);
    assert_eq!((&first["state"], &first["superseded"]), (&json!("failed"), &json!(1)), "{first:#}");
    let line = &first["cancellations"][0];
    assert_eq!(line["state"], "superseded");
    assert!(line["reason"].as_str().unwrap().contains("job 4 of batch 2"), "{line:#}");
    let text = world.run(&["batches", "report", "1", "--format", "text"]).stdout;
    assert!(text.contains("1 superseded") && text.contains("job 4 of batch 2"), "{text}");
}

/// A folder of the same name from elsewhere is another object: what failed of it stays failed.
#[test]
fn a_failed_folder_is_not_superseded_by_another_of_its_name() {
    World::both(|world| {
        let mine = directory(&world.path("a/scans"), &[("1.tif", "mine")]);
        let other = directory(&world.path("b/scans"), &[("1.tif", "other")]);
        // Nothing of the first is preserved when the second is accepted, so that only a worker sees that
        // the second would replace the first. Its job is added first.
        let first = world.deposit(&mine, &[]);
        world.done(&["work", "--stages", "batch", "--until-empty"]);
        let second = world.deposit(&other, &[]);
        world.work();
        assert_eq!(world.batch(first)["state"], "completed");
        let failed = report(world, second);
        assert_eq!(failed["failures"][0]["code"], "derived_identity", "{failed:#}");
        directory(&mine, &[("2.tif", "more")]);
        let again = world.ingest(&mine, &[]);
        assert_eq!(again["state"], "completed", "{again:#}");
        assert_eq!(again["objects"][0]["notes"].as_array().map_or(0, Vec::len), 0, "{again:#}");
        let failed = report(world, second);
        assert_eq!((&failed["failed"], &failed["superseded"]), (&json!(1), &json!(0)));
        // Told which object it is, it is preserved, and that supersedes the failure.
        let told = world.ingest(&other, &["--mode", "update", "--local-id", "scans"]);
        assert_eq!(told["state"], "completed", "{told:#}");
        world.work();
        let failed = report(world, second);
        assert_eq!((&failed["superseded"], &failed["state"]), (&json!(1), &json!("completed")));
    });
}

/// Who waits for a batch hears that not everything is preserved, also where a person cancelled the rest.
#[test]
fn waiting_for_a_batch_ends_well_only_if_all_of_it_is_preserved() {
    let world = World::local(1);
    let files = directory(&world.path("web"), &[("1.txt", "one"), ("2.txt", "two")]);
    let base = web::serve(&files);
    let rows: Vec<Value> = ["1.txt", "2.txt"]
        .map(|file| json!({"source": format!("{base}/{file}"), "name": file, "local_ids": [file]}))
        .to_vec();
    let text = json!({"format": "checkm-json/1", "profile": "single-file-batch", "rows": rows});
    let path = world.path("box.json");
    std::fs::write(&path, text.to_string()).unwrap();
    world.done(&["jobs", "pause", "ingest", "--stage", "storing", "--reason", "disks"]);
    let worker = world.worker();
    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.run(&["deposit", path.to_str().unwrap(), "--wait"]));
        let is_second = |job: &Value| job["subject"] == "2.txt" && job["stage"] == "storing";
        let second = world.until_some("the second row to come to storing", || {
            world.jobs().into_iter().find(is_second)
        });
        world.done(&["jobs", "cancel", &second["id"].to_string(), "--reason", "sent by mistake"]);
        world.done(&["jobs", "unpause", "ingest", "--stage", "storing"]);
        waiting.join().unwrap()
    });
    drop(worker);
    assert_eq!(world.batch(1)["state"], "completed");
    assert_eq!(waited.status.code(), Some(1), "{}{}", waited.stdout, waited.stderr);
    assert!(waited.stdout.contains("1 of 2 objects preserved, 1 cancelled"), "{}", waited.stdout);
}

/// Who cancelled a row is named, and why.
#[test]
fn a_cancelled_row_is_named_with_who_and_why() {
    let world = World::local(1);
    let files = directory(&world.path("web"), &[("1.txt", "one")]);
    let base = web::serve(&files);
    let first = world.ingest(&manifest(&world, "a.json", &base, &["1.txt", "2.txt"]), &[]);
    let job = first["failures"][0]["job"].to_string();
    world.done(&["jobs", "cancel", &job, "--as", "ann", "--reason", "sent by mistake"]);
    world.work();
    let found = report(&world, 1);
    assert_eq!(found["state"], "completed", "{found:#}");
    let cancelled = &found["cancellations"][0];
    assert_eq!((&cancelled["state"], &cancelled["by"]), (&json!("cancelled"), &json!("ann")));
    assert_eq!(cancelled["reason"], "sent by mistake");
}
