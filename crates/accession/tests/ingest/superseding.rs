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
