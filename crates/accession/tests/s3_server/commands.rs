//! Commands on a real server: what `store check` says, wrong keys, versioned buckets.

use crate::support::packages;
use crate::support::real::RealServer;
use crate::support::world::World;
use serde_json::Value;

/// An archive whose only store is a place on the server.
pub fn world(server: &RealServer, url: String) -> World {
    let dir = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", dir.path().join("data/accession.db").display());
    let mut world = World::new(dir, database, vec![("s1".to_string(), url)]);
    world.env = server.environment();
    world
}

#[test]
fn store_check_tries_everything_and_leaves_nothing() {
    let server = RealServer::required();
    let url = server.url("checked");
    let world = world(&server, url.clone());
    let ended = world.run(&["store", "check", &url, "--storage-class", "STANDARD", "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    println!("{report:#}");
    let mut serves = true;
    for trial in report["trials"].as_array().unwrap() {
        let known = server.fails(trial["what"].as_str().unwrap());
        assert_eq!(trial["works"] == "no", known, "{trial}");
        serves &= !known;
    }
    assert_eq!(ended.status.success(), serves, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(report["verdicts"][0]["serves"], serves, "as a required store");
    assert_eq!(server.judge("keys", &[&server.key("checked")]), "");
    server.judge("uploaded", &[&server.key("checked")]);
}

#[test]
fn wrong_keys_and_wrong_buckets_are_told_at_once() {
    let server = RealServer::required();
    let url = server.url("denied");
    let mut world = world(&server, url.clone());
    let missing = url.replace(&server.bucket, "no-such-bucket-of-accession");
    let ended = world.run(&["ocfl", "ls", &missing]);
    assert_eq!(ended.status.code(), Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("NoSuchBucket"), "{}", ended.stderr);
    world.env.retain(|(name, _)| name != "AWS_SECRET_ACCESS_KEY");
    world.env.push(("AWS_SECRET_ACCESS_KEY".into(), "another secret".into()));
    let began = std::time::Instant::now();
    let ended = world.run(&["ocfl", "init", &url]);
    // moto lets everybody in unless it is told otherwise.
    if !ended.status.success() {
        assert!(ended.stderr.contains("denied"), "{}", ended.stderr);
        assert!(began.elapsed().as_secs() < 60, "it was tried again and again");
    }
}

#[test]
fn a_versioned_bucket_keeps_versions_until_they_are_removed() {
    let server = RealServer::required();
    let bucket = format!("{}-versioned", server.prefix);
    if let Err(why) = server.asked(&["make", &bucket, "versioned"], b"") {
        println!("skipped: this server has no versioned buckets: {}", why.trim());
        return;
    }
    let url = server.url("root").replacen(&server.bucket, &bucket, 1);
    let world = world(&server, url.clone());
    let path = world.path("box");
    packages::directory(&path, &packages::small(6, "versions"));
    let report = world.ingest(&path, &[]);
    assert_eq!(report["state"], "completed", "{report:#}");
    let identifier = report["objects"][0]["identifier"].as_str().unwrap().to_owned();
    let told = world.done(&["ocfl", "purge", &url, &identifier, "--yes"]);
    assert!(told.contains("remove them with --versions"), "{told}");
    let object = server.key("root");
    let count = || {
        let asked = server.asked(&["versions", &bucket, &object], b"");
        asked.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = count();
    let told = world.done(&["ocfl", "purge", &url, &identifier, "--yes", "--versions"]);
    assert!(told.contains("were removed from the bucket"), "{told}");
    assert!(count() + 12 < before, "{} of {before} versions stay", count());
}
