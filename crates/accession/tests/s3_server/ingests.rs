//! Ingests: every byte is what it was, whatever the names, after outages, kills and cancellations.

use crate::relay::Relay;
use crate::support::invariants::{self, Failed};
use crate::support::packages::{self, Files};
use crate::support::real::RealServer;
use crate::support::s3;
use crate::support::world::World;
use serde_json::Value;

/// A place of its own on the server, judged by boto3 at the end.
fn archive() -> World {
    World::half_remote()
}

fn real(world: &World) -> &RealServer {
    world.s3.as_ref().and_then(|s3| s3.real.as_ref()).expect("a real server")
}

/// Names and sizes as people have them.
fn odd_files(server: &RealServer) -> Files {
    let mut files = packages::small(40, "odd");
    let named = [
        "empty.txt",
        "with space.txt",
        "ünïcödé/名前.txt",
        "back\\slash.txt",
        "a&b<c>/quote\"'.txt",
        "percent%20+plus.txt",
        "...",
        "~tilde*",
        "@:;,$!()[]{}|^`",
    ];
    for name in named {
        if name.contains('\\') && server.fails("backslash") {
            continue;
        }
        let content = if name == "empty.txt" { Vec::new() } else { name.as_bytes().to_vec() };
        files.push((name.to_owned(), content));
    }
    for (number, length) in
        [256 << 10, (256 << 10) + 1, 16 << 20, (16 << 20) + 1, 35 << 20].into_iter().enumerate()
    {
        files.push((format!("large/{number}.bin"), packages::noise(length, number as u64)));
    }
    files
}

fn identifier(report: &Value) -> String {
    assert_eq!(report["state"], "completed", "{report:#}");
    report["objects"][0]["identifier"].as_str().unwrap().to_owned()
}

#[test]
fn every_byte_is_what_it_was_in_every_version() {
    let world = archive();
    let path = world.path("odd");
    packages::directory(&path, &odd_files(real(&world)));
    let first = identifier(&world.ingest(&path, &[]));
    real(&world).judge_root("bucket/root", &[(&first, &path)]);
    std::fs::remove_file(path.join("large/1.bin")).unwrap();
    packages::directory(&path, &[("large/0.bin", packages::noise(300 << 10, 99))]);
    packages::directory(&path, &[("new/later.bin", packages::noise(17 << 20, 98))]);
    let second = identifier(&world.ingest(&path, &[]));
    assert_eq!(first, second);
    let bag = world.path("bag");
    packages::bag(&bag, &packages::small(1200, "many"));
    let many = identifier(&world.ingest(&packages::archive(&bag, "tar.gz"), &[]));
    let payload = bag.join("data");
    real(&world).judge_root("bucket/root", &[(&second, &path)]);
    // In a bag, the payload is below data/ as well.
    real(&world).judge_root("bucket/root", &[(&many, &payload)]);
    world.check();
}

#[test]
fn damage_in_the_store_is_found() {
    let world = archive();
    let path = world.path("box");
    packages::directory(&path, &packages::small(5, "damage"));
    identifier(&world.ingest(&path, &[]));
    assert!(world.run(&["check", "--content"]).status.success());
    let server = real(&world);
    let listed = server.judge("keys", &[&server.key("bucket/root")]);
    let keys = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let keys: Vec<String> = keys.map(|line| line["key"].as_str().unwrap().to_owned()).collect();
    let key = keys.iter().find(|key| key.ends_with("f3.txt")).unwrap();
    server.judge("damage", &[key]);
    let checked = world.run(&["check", "--content"]);
    assert_eq!(checked.status.code(), Some(1), "{}{}", checked.stdout, checked.stderr);
    if server.fails("nested-listing") {
        println!("not tried: this server does not list what there is to validate");
        return;
    }
    let valid = world.run(&["ocfl", "validate", &world.stores[0].1]);
    assert!(valid.stdout.contains("E092"), "{}{}", valid.stdout, valid.stderr);
}

/// Content in a class that cannot be read is vouched for by the server, or the store is refused with
/// the reason before anything is stored there.
#[test]
fn cold_content_is_vouched_for_or_the_store_is_refused() {
    let mut world = archive();
    let class = ("ACCESSION_STORES_S1_STORAGE_CLASS".to_string(), "GLACIER".to_string());
    world.env.push(class);
    let path = world.path("box");
    packages::directory(&path, &[("letter.txt", b"a letter".to_vec())]);
    packages::directory(&path, &[("film.bin", packages::noise(20 << 20, 7))]);
    world.deposit(&path, &[]);
    let worked = world.run(&["work", "--until-empty", "-q"]);
    let server = real(&world);
    let listed = server.judge("keys", &[&server.key("bucket/root")]);
    let class_of = |end: &str| {
        let line = listed.lines().find(|line| line.contains(end))?;
        serde_json::from_str::<Value>(line).unwrap()["class"].as_str().map(str::to_owned)
    };
    if !worked.status.success() {
        println!("refused: {}", worked.stderr.trim());
        assert!(worked.stderr.contains("nothing vouches for the bytes"), "{}", worked.stderr);
        assert_eq!(class_of("film.bin"), None);
        return;
    }
    assert!(world.jobs().iter().all(|job| job["status"] == "succeeded"), "{:#?}", world.jobs());
    assert_eq!(class_of("film.bin").as_deref(), Some("GLACIER"));
    assert_eq!(class_of("letter.txt").as_deref(), Some("GLACIER"));
    assert_ne!(class_of("/inventory.json").as_deref(), Some("GLACIER"));
    server.judge_root("bucket/root", &[]);
}

/// The address of a relay instead of the server's.
fn relayed(relay: &Relay) -> World {
    let server = RealServer::required().through(relay.endpoint.clone());
    let dir = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", dir.path().join("data/accession.db").display());
    let s3 = s3::Server::at(server);
    let stores = vec![("s1".to_string(), s3.store("bucket/root"))];
    let world = World::new(dir, database, stores);
    World { env: s3::keys(), s3: Some(s3), ..world }
}

/// The network fails in the middle of a large file; the only attempt of the only job is not lost,
/// and the file goes on where it was.
#[test]
fn a_lone_job_waits_for_a_store_that_cannot_be_reached() {
    let server = RealServer::required();
    let relay = Relay::to(&server.endpoint);
    let world = relayed(&relay);
    let path = world.path("box");
    packages::directory(&path, &[("film.bin", packages::noise(80 << 20, 3))]);
    world.deposit(&path, &[]);
    world.done(&["queue", "set", "ingest", "--stage", "storing", "max_attempts=1"]);
    relay.cut_after(40 << 20);
    let worker = world.worker();
    world.until("the network is cut", |_| relay.is_cut());
    world.until("an error that names the store", |jobs| {
        let names_it = |job: &Value| job["note"].as_str().is_some_and(|n| n.contains("store s1"));
        jobs.iter().any(|job| names_it(job) && job["stage"] == "storing")
    });
    relay.restore();
    world.until("done", |jobs| jobs.iter().all(|job| job["status"] == "succeeded"));
    drop(worker);
    world.work();
    world.check();
}

/// Workers are killed while large files are on their way; the last one finishes the job.
#[test]
fn workers_killed_in_the_middle_of_uploads() {
    let server = RealServer::required();
    let relay = Relay::to(&server.endpoint);
    let world = relayed(&relay);
    let path = world.path("box");
    let files: Files =
        (0..3).map(|n| (format!("{n}.bin"), packages::noise(50 << 20, n as u64))).collect();
    packages::directory(&path, &files);
    world.deposit(&path, &[]);
    for _ in 0..3 {
        let (worker, before) = (world.worker(), relay.sent());
        world.until("an upload under way", |jobs| {
            let over = jobs.iter().all(|job| job["status"] == "succeeded");
            over || relay.sent() > before + (15 << 20)
        });
        drop(worker);
    }
    world.work();
    for job in world.jobs().iter().filter(|job| job["status"] == "failed") {
        world.done(&["jobs", "requeue", &job["id"].to_string(), "--reason", "killed by the test"]);
    }
    world.work();
    assert!(world.jobs().iter().all(|job| job["status"] == "succeeded"), "{:#?}", world.jobs());
    invariants::check(&world, Failed::None);
    let listed = world.json(&["objects", "list"]).remove(0);
    let object = listed["objects"][0]["identifier"].as_str().unwrap().to_owned();
    real(&world).judge_root("bucket/root", &[(&object, &path)]);
}

/// What a cancelled job had sent goes with it.
#[test]
fn a_cancelled_batch_leaves_no_uploads() {
    let server = RealServer::required();
    let relay = Relay::to(&server.endpoint);
    let world = relayed(&relay);
    let path = world.path("box");
    packages::directory(&path, &[("film.bin", packages::noise(80 << 20, 4))]);
    let batch = world.deposit(&path, &[]);
    relay.cut_after(40 << 20);
    let worker = world.worker();
    world.until("the network is cut", |_| relay.is_cut());
    drop(worker);
    relay.restore();
    world.done(&["batches", "cancel", &batch.to_string(), "--reason", "tried by the test"]);
    world.work();
    assert!(world.jobs().iter().all(|job| job["status"] == "cancelled"), "{:#?}", world.jobs());
    let sweep = || world.done(&["ocfl", "sweep", "--older-than", "0", &world.stores[0].1]);
    sweep();
    let said = sweep();
    // SeaweedFS goes on listing directories that have become empty.
    let is_left = |line: &&str| line.starts_with("extensions/") && !line.contains("empty");
    assert_eq!(said.lines().find(is_left), None, "{said}");
    assert!(server.fails("backslash") || said.starts_with("nothing was left behind"), "{said}");
    real(&world).judge_root("bucket/root", &[]);
}
