//! Databases and stores that go away and come back, and disks that fill up.

use crate::failpoints::{self, Shape};
use crate::house::House;
use crate::invariants::{self, Failed};
use crate::server::Server;
use crate::{kills, packages, s3};
use std::process::Command;
use std::sync::atomic::Ordering;

/// PostgreSQL and S3.
fn large(server: &Server, s3: &s3::Server) -> House {
    let stores = vec![("far".to_string(), s3.store("archive"))];
    let mut house = House::new(tempfile::tempdir().unwrap(), server.url(), stores);
    let keys = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
    ];
    house.environment = keys.map(|(k, v)| (k.to_string(), v.to_string())).to_vec();
    house
}

fn postgres() -> Option<Server> {
    let server = Server::start();
    if server.is_none() {
        println!("skipped: no PostgreSQL binaries found");
    }
    server
}

#[test]
fn failpoints_on_postgres_and_s3() {
    let Some(server) = postgres() else { return };
    let s3 = s3::Server::start();
    let house = large(&server, &s3);
    let everything = std::env::var("ACCESSION_FAILPOINTS").is_ok_and(|v| v == "all");
    let chosen = ["storing.file", "storing.end", "verifying.inventory", "recording.sealed"];
    let chosen = |name: &str| everything || chosen.contains(&name) || name == "recording.end";
    let met = failpoints::each(&house, Shape::Again, chosen);
    assert!(met.len() >= 5, "{met:?}");
}

#[test]
fn killed_at_random_on_postgres_and_s3() {
    let Some(server) = postgres() else { return };
    let s3 = s3::Server::start();
    kills::torture(&large(&server, &s3));
}

/// A server that stops at once and starts again costs nothing but time.
#[test]
fn postgres_stops_and_starts_again() {
    let Some(mut server) = postgres() else { return };
    let s3 = s3::Server::start();
    let house = large(&server, &s3);
    for number in 0..12 {
        let path = house.path(&format!("box-{number}"));
        packages::directory(&path, &packages::small(30, &number.to_string()));
        house.deposit(&path.display().to_string(), &[]);
    }
    let worker = house.worker();
    house.until("some work", |jobs| jobs.iter().any(|job| job["status"] == "succeeded"));
    server.crash();
    server.restart();
    house.until("all done after the crash", |jobs| {
        jobs.len() == 12 && jobs.iter().all(|job| job["status"] == "succeeded")
    });
    drop(worker);
    house.work();
    invariants::check(&house, Failed::None);
}

/// A store that answers with errors is waited for; the error names it, and no package is blamed.
#[test]
fn s3_fails_for_a_while_and_is_slow() {
    let s3 = s3::Server::start();
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", directory.path().join("accession.db").display());
    let mut house = House::new(directory, database, vec![("far".to_string(), s3.store("archive"))]);
    let keys = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    house.environment = keys.map(|(k, v)| (k.to_string(), v.to_string())).to_vec();
    house.environment.push(("AWS_REGION".to_string(), "us-east-1".to_string()));
    s3.status.store(503, Ordering::SeqCst);
    let path = house.path("box");
    packages::directory(&path, &packages::small(10, "box"));
    house.deposit(&path.display().to_string(), &[]);
    let worker = house.worker();
    house.until("an error that names the store", |jobs| {
        jobs.iter().any(|job| job["target"] == "store far" && job["stage"] == "storing")
    });
    s3.delay_millis.store(20, Ordering::SeqCst);
    s3.status.store(0, Ordering::SeqCst);
    let code = |job: &serde_json::Value| job["error_code"].as_str().unwrap_or("").to_string();
    house.until("done, or failed with the store's code", |jobs| {
        let job = &jobs[0];
        if job["status"] == "failed" {
            assert!(code(job).starts_with("store_"), "{job:#?}");
            house.done(&["jobs", "requeue", &job["id"].to_string(), "--reason", "it is back"]);
        }
        job["status"] == "succeeded"
    });
    drop(worker);
    house.work();
    invariants::check(&house, Failed::None);
}

/// A real small file system, unmounted when it is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(mebibytes: u32) -> Option<SmallDisk> {
        let disk = SmallDisk(tempfile::tempdir().unwrap());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]);
        if !mount.arg(disk.0.path()).output().is_ok_and(|o| o.status.success()) {
            println!("skipped: a tmpfs cannot be mounted here");
            return None;
        }
        Some(disk)
    }

    fn grow(&self, mebibytes: u32) {
        let size = format!("remount,size={mebibytes}m");
        let done = Command::new("mount").args(["-o", &size]).arg(self.0.path()).status();
        assert!(done.is_ok_and(|s| s.success()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// A full store fails the job with a code that says so; made larger, the job goes on.
#[test]
fn a_store_that_is_full() {
    let Some(disk) = SmallDisk::mount(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", directory.path().join("accession.db").display());
    let store = disk.0.path().join("store").display().to_string();
    let house = House::new(directory, database, vec![("small".to_string(), store)]);
    failpoints::deposit(&house, Shape::Bag, "box");
    let worker = house.worker();
    house.until("a store that is full", |jobs| {
        jobs.first().is_some_and(|job| job["error_code"] == "store_full")
    });
    assert!(house.run(&["ocfl", "validate", &house.stores[0].1]).status.success());
    disk.grow(64);
    house.until("done after there was room", |jobs| {
        let job = &jobs[0];
        if job["status"] == "failed" {
            house.done(&["jobs", "requeue", &job["id"].to_string(), "--reason", "room was made"]);
        }
        job["status"] == "succeeded"
    });
    drop(worker);
    house.work();
    invariants::check(&house, Failed::None);
}

/// A work space that is too small is said to be; a job that does not fit for now waits.
#[test]
fn a_work_space_that_is_full() {
    let Some(disk) = SmallDisk::mount(8) else { return };
    let mut house = House::local(1);
    let space = disk.0.path().display().to_string();
    house.environment.push(("ACCESSION_WORK_SPACE_PATH".to_string(), space));
    std::fs::write(disk.0.path().join("others"), packages::noise(7 << 20, 1)).unwrap();
    failpoints::deposit(&house, Shape::Manifest, "box");
    let worker = house.worker();
    house.until("it waits for space", |jobs| {
        jobs.first().is_some_and(|job| job["stage"] == "provisioning" && job["status"] == "queued")
    });
    let job = house.jobs()[0]["id"].to_string();
    let why = house.done(&["jobs", "why", &job]);
    assert!(why.contains("work space"), "{why}");
    std::fs::remove_file(disk.0.path().join("others")).unwrap();
    house.until("done after there was room", |jobs| jobs[0]["status"] == "succeeded");
    drop(worker);
    house.work();
    let left: Vec<_> = std::fs::read_dir(disk.0.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    invariants::check(&house, Failed::None);
}
