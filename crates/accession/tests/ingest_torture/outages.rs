//! Databases and stores that go away and come back, and disks that fill up.

use crate::failpoints::{self, Shape};
use crate::kills;
use crate::server::Server;
use crate::support::disk::SmallDisk;
use crate::support::invariants::{self, Failed};
use crate::support::world::World;
use crate::support::{packages, s3};
use std::sync::atomic::Ordering;

/// PostgreSQL and S3.
fn large(server: &Server) -> World {
    World::with_s3(server.url(), s3::Server::start())
}

fn postgres() -> Option<Server> {
    let server = Server::start();
    if server.is_none() {
        testing::skip("no PostgreSQL binaries found");
    }
    server
}

#[test]
fn failpoints_on_postgres_and_s3() {
    let Some(server) = postgres() else { return };
    let world = large(&server);
    let everything = std::env::var("ACCESSION_FAILPOINTS").is_ok_and(|v| v == "all");
    let chosen = ["storing.file", "storing.end", "verifying.inventory", "recording.sealed"];
    let chosen = |name: &str| everything || chosen.contains(&name) || name == "recording.end";
    let met = failpoints::each(&world, Shape::Again, chosen);
    assert!(met.len() >= 5, "{met:?}");
}

#[test]
fn killed_at_random_on_postgres_and_s3() {
    let Some(server) = postgres() else { return };
    kills::torture(&large(&server));
}

/// A server that stops at once and starts again costs nothing but time.
#[test]
fn postgres_stops_and_starts_again() {
    let Some(mut server) = postgres() else { return };
    let world = large(&server);
    for number in 0..12 {
        let path = world.path(&format!("box-{number}"));
        packages::directory(&path, &packages::small(30, &number.to_string()));
        world.deposit(&path, &[]);
    }
    let worker = world.worker();
    world.until("some work", |jobs| jobs.iter().any(|job| job["status"] == "succeeded"));
    server.crash();
    server.restart();
    world.until("all done after the crash", |jobs| {
        jobs.len() == 12 && jobs.iter().all(|job| job["status"] == "succeeded")
    });
    drop(worker);
    world.work();
    invariants::check(&world, Failed::None);
}

/// A store that answers with errors is waited for; the error names it, and no package is blamed.
#[test]
fn s3_fails_for_a_while_and_is_slow() {
    let world = World::half_remote();
    let control = world.s3.as_ref().unwrap().control.clone();
    control.status.store(503, Ordering::SeqCst);
    let path = world.path("box");
    packages::directory(&path, &packages::small(10, "box"));
    world.deposit(&path, &[]);
    let worker = world.worker();
    world.until("an error that names the store", |jobs| {
        jobs.iter().any(|job| job["target"] == "store s1" && job["stage"] == "storing")
    });
    control.delay_millis.store(20, Ordering::SeqCst);
    control.status.store(0, Ordering::SeqCst);
    world.until("done, or failed with the store's code", |jobs| {
        let job = &jobs[0];
        if job["status"] == "failed" {
            let code = job["error_code"].as_str().unwrap_or("");
            assert!(code.starts_with("store_"), "{job:#?}");
            world.done(&["jobs", "requeue", &job["id"].to_string(), "--reason", "it is back"]);
        }
        job["status"] == "succeeded"
    });
    drop(worker);
    world.work();
    invariants::check(&world, Failed::None);
}

/// A full store fails the job with a code that says so; made larger, the job goes on.
#[test]
fn a_store_that_is_full() {
    let Some(disk) = SmallDisk::mount(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", directory.path().join("accession.db").display());
    let store = disk.path().join("store").display().to_string();
    let world = World::new(directory, database, vec![("small".to_string(), store)]);
    failpoints::deposit(&world, Shape::Bag, "box");
    let worker = world.worker();
    world.until("a store that is full", |jobs| {
        jobs.first().is_some_and(|job| job["error_code"] == "store_full")
    });
    assert!(world.run(&["ocfl", "validate", &world.stores[0].1]).status.success());
    disk.grow(64);
    world.until("done after there was room", |jobs| {
        let job = &jobs[0];
        if job["status"] == "failed" {
            world.done(&["jobs", "requeue", &job["id"].to_string(), "--reason", "room was made"]);
        }
        job["status"] == "succeeded"
    });
    drop(worker);
    world.work();
    invariants::check(&world, Failed::None);
}

/// A work space that is too small is said to be; a job that does not fit for now waits.
#[test]
fn a_work_space_that_is_full() {
    let Some(disk) = SmallDisk::mount(8) else { return };
    let mut world = World::local(1);
    let space = disk.path().display().to_string();
    world.env.push(("ACCESSION_WORK_SPACE_PATH".to_string(), space));
    world.env.push(("ACCESSION_WORK_SPACE_ADMIT_PERCENT".to_string(), "70".to_string()));
    std::fs::write(disk.path().join("others"), packages::noise(7 << 20, 1)).unwrap();
    failpoints::deposit(&world, Shape::Manifest, "box");
    let worker = world.worker();
    world.until("it waits for space", |jobs| {
        jobs.first().is_some_and(|job| job["stage"] == "provisioning" && job["status"] == "queued")
    });
    let job = world.jobs()[0]["id"].to_string();
    let why = world.done(&["jobs", "why", &job]);
    assert!(why.contains("work space"), "{why}");
    std::fs::remove_file(disk.path().join("others")).unwrap();
    world.until("done after there was room", |jobs| jobs[0]["status"] == "succeeded");
    drop(worker);
    world.work();
    let left: Vec<_> = std::fs::read_dir(disk.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    invariants::check(&world, Failed::None);
}
