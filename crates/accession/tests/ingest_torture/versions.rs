//! A new version arrives while the one before it is in any of the twelve stages.

use crate::house::House;
use crate::invariants::{self, Failed};
use crate::packages;

#[test]
fn a_version_arrives_while_another_is_in_each_stage() {
    let house = House::local(1);
    // The pipelines are there from the first command of the archive on.
    house.done(&["status"]);
    for stage in archive::stage::STAGES {
        let path = house.path(&format!("box-{stage}"));
        let shown = path.display().to_string();
        packages::directory(&path, &packages::small(5, "first"));
        house.done(&["jobs", "pause", "ingest", "--stage", stage]);
        house.deposit(&shown, &[]);
        let mut worker = house.worker();
        let at = |job: &serde_json::Value| job["stage"] == *stage && job["status"] == "queued";
        house.until(&format!("a job in {stage}"), |jobs| jobs.first().is_some_and(at));
        // What is read where it is must stay as it is until it is in: the new version is elsewhere.
        let elsewhere = house.path(&format!("again/box-{stage}"));
        packages::directory(&elsewhere, &packages::small(6, "second"));
        house.deposit(&elsewhere.display().to_string(), &[]);
        house.until("two jobs of one object", |jobs| {
            jobs.iter().filter(|job| job["subject"] == format!("box-{stage}")).count() == 2
        });
        house.done(&["jobs", "unpause", "ingest", "--stage", stage]);
        house.until(&format!("both versions after {stage}"), |jobs| {
            jobs.iter().all(|job| job["status"] == "succeeded")
        });
        worker.kill();
    }
    let dump = house.done(&["registry", "dump"]);
    assert_eq!(dump.lines().filter(|line| line.starts_with("object ")).count(), 12);
    assert_eq!(dump.lines().filter(|line| line.starts_with("version ")).count(), 24);
    invariants::check(&house, Failed::None);
}

/// A job that is cancelled with everything stored and nothing sealed: the janitor removes it all.
/// One that failed keeps what it has for a while, and no store shows anything of it.
#[test]
fn cancelled_and_failed_jobs_leave_nothing_to_see() {
    let house = House::local(1);
    house.done(&["status"]);
    let path = house.path("box");
    packages::directory(&path, &packages::small(5, "box"));
    house.done(&["jobs", "pause", "ingest", "--stage", "recording"]);
    house.deposit(&path.display().to_string(), &[]);
    let mut worker = house.worker();
    house.until("a job in recording", |jobs| {
        jobs.first().is_some_and(|job| job["stage"] == "recording" && job["status"] == "queued")
    });
    let bag = packages::bag(&house.path("bad"), &packages::small(3, "bad"));
    std::fs::write(bag.join("data/d0/f0.txt"), "something else").unwrap();
    house.deposit(&bag.display().to_string(), &[]);
    house.until("a bag that failed", |jobs| jobs[0]["status"] == "failed");
    worker.kill();
    let job = house.jobs()[1]["id"].to_string();
    let cancelled = house.run(&["jobs", "cancel", &job, "--reason", "deposited by mistake"]);
    // What has come to recording has not begun it, and may still be cancelled or only go forward.
    house.done(&["jobs", "unpause", "ingest", "--stage", "recording"]);
    let mut worker = house.worker();
    let store = house.stores[0].1.clone();
    house.until("nothing left behind", |jobs| {
        let sweep = ["ocfl", "sweep", "--dry-run", "--older-than", "0", &store, "--json"];
        let expected = if cancelled.status.success() { "cancelled" } else { "succeeded" };
        jobs[1]["status"] == expected && house.done(&sweep).is_empty()
    });
    worker.kill();
    invariants::check(&house, Failed::Some);
}
