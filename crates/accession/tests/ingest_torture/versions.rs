//! A new version arrives while the one before it is in any of the twelve stages.

use crate::support::invariants::{self, Failed};
use crate::support::packages;
use crate::support::world::World;

#[test]
fn a_version_arrives_while_another_is_in_each_stage() {
    let world = World::local(1);
    for stage in archive::pipeline::ingest::PIPELINE.stage_names() {
        let path = world.path(&format!("box-{stage}"));
        packages::directory(&path, &packages::small(5, "first"));
        world.done(&["jobs", "pause", "ingest", "--stage", stage]);
        world.deposit(&path, &[]);
        let mut worker = world.worker();
        let at = |job: &serde_json::Value| job["stage"] == *stage && job["status"] == "queued";
        world.until(&format!("a job in {stage}"), |jobs| jobs.first().is_some_and(at));
        // What is read where it is must stay as it is until it is in: the new version is elsewhere.
        let elsewhere = world.path(&format!("again/box-{stage}"));
        packages::directory(&elsewhere, &packages::small(6, "second"));
        world.deposit(&elsewhere, &[]);
        world.until("two jobs of one object", |jobs| {
            jobs.iter().filter(|job| job["subject"] == format!("box-{stage}")).count() == 2
        });
        world.done(&["jobs", "unpause", "ingest", "--stage", stage]);
        world.until(&format!("both versions after {stage}"), |jobs| {
            jobs.iter().all(|job| job["status"] == "succeeded")
        });
        worker.kill();
    }
    let dump = world.done(&["registry", "dump"]);
    assert_eq!(dump.lines().filter(|line| line.starts_with("object ")).count(), 12);
    assert_eq!(dump.lines().filter(|line| line.starts_with("version ")).count(), 24);
    invariants::check(&world, Failed::None);
}

/// A job that is cancelled with everything stored and nothing sealed: the janitor removes it all.
/// One that failed keeps what it has for a while, and no store shows anything of it.
#[test]
fn cancelled_and_failed_jobs_leave_nothing_to_see() {
    let world = World::local(1);
    let path = world.path("box");
    packages::directory(&path, &packages::small(5, "box"));
    world.done(&["jobs", "pause", "ingest", "--stage", "recording"]);
    world.deposit(&path, &[]);
    let mut worker = world.worker();
    world.until("a job in recording", |jobs| {
        jobs.first().is_some_and(|job| job["stage"] == "recording" && job["status"] == "queued")
    });
    let bag = packages::bag(&world.path("bad"), &packages::small(3, "bad"));
    std::fs::write(bag.join("data/d0/f0.txt"), "something else").unwrap();
    world.deposit(&bag, &[]);
    world.until("a bag that failed", |jobs| jobs[0]["status"] == "failed");
    worker.kill();
    let job = world.jobs()[1]["id"].to_string();
    let cancelled = world.run(&["jobs", "cancel", &job, "--reason", "deposited by mistake"]);
    // What has come to recording has not begun it, and may still be cancelled or only go forward.
    world.done(&["jobs", "unpause", "ingest", "--stage", "recording"]);
    let mut worker = world.worker();
    let store = world.stores[0].1.clone();
    world.until("nothing left behind", |jobs| {
        let sweep = ["ocfl", "sweep", "--dry-run", "--older-than", "0", &store, "--json"];
        let expected = if cancelled.status.success() { "cancelled" } else { "succeeded" };
        jobs[1]["status"] == expected && world.done(&sweep).is_empty()
    });
    worker.kill();
    invariants::check(&world, Failed::Some);
}
