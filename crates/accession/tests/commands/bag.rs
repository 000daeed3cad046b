//! `accession bag` as people and programs use it: what it prints, and with which status it ends.

use crate::answers;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn accession(arguments: &[&str], directory: &Path) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_accession"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    answers::hold(arguments, &String::from_utf8_lossy(&output.stdout));
    output
}

fn status(arguments: &[&str], directory: &Path) -> i32 {
    accession(arguments, directory).status.code().unwrap()
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("letters/1900")).unwrap();
    std::fs::write(place.path().join("letters/1900/one.txt"), "Dear reader").unwrap();
    std::fs::write(place.path().join("letters/100%.txt"), "all").unwrap();
    place
}

#[test]
fn a_bag_is_made_checked_changed_and_fixed() {
    let place = place();
    let at = place.path();
    let create = [
        "bag",
        "create",
        "letters",
        "-o",
        "bag",
        "-a",
        "md5",
        "-a",
        "sha256",
        "--tag",
        "Title=Letters",
    ];
    assert_eq!(status(&create, at), 0);
    assert_eq!(status(&create, at), 2, "what is there is not overwritten");
    assert_eq!(status(&["bag", "create", "letters", "-o", "letters.tar"], at), 0);
    let valid = accession(&["bag", "validate", "bag", "letters.tar"], at);
    assert_eq!(valid.status.code(), Some(0), "{valid:?}");
    assert_eq!(String::from_utf8_lossy(&valid.stderr), "", "nothing to complain about");

    std::fs::write(at.join("bag/data/100%.txt"), "ALL").unwrap();
    assert_eq!(status(&["bag", "validate", "--fast", "bag"], at), 0);
    assert_eq!(status(&["bag", "validate", "--complete", "bag"], at), 0);
    let invalid = accession(&["bag", "validate", "bag", "letters.tar"], at);
    assert_eq!(invalid.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&invalid.stderr).into_owned();
    assert!(complaint.contains("manifest-sha256.txt:1: data/100%.txt"), "{complaint}");
    assert!(complaint.contains("[digest-mismatch]"), "{complaint}");

    assert_eq!(status(&["bag", "manifest", "bag"], at), 0);
    assert_eq!(status(&["bag", "validate", "bag"], at), 0);
}

#[test]
fn programs_get_json_a_line() {
    let place = place();
    let at = place.path();
    assert_eq!(status(&["bag", "create", "letters", "--date", "2026-01-31"], at), 0);
    let output = accession(&["--json", "bag", "validate", "letters"], at);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["valid"], true);
    assert_eq!(report["payload"]["files"], 2);
    let output = accession(&["--json", "bag", "info", "letters"], at);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["version"], "1.0");
    assert_eq!(summary["tags"][0]["value"], "2026-01-31");
}

#[test]
fn the_status_tells_what_kind_of_no_it_is() {
    let place = place();
    let at = place.path();
    assert_eq!(status(&["bag", "validate"], at), 2);
    assert_eq!(status(&["bag", "validate", "--profile", "nowhere.json", "letters"], at), 2);
    assert_eq!(status(&["bag", "create", "letters", "-a", "crc32"], at), 2);
    assert_eq!(status(&["bag", "validate", "nothing-there"], at), 3);
    assert_eq!(status(&["bag", "validate", "letters"], at), 1, "a directory that is no bag");
    std::fs::write(at.join("noise.tar"), "noise").unwrap();
    assert_eq!(status(&["bag", "validate", "noise.tar"], at), 1);
    assert_eq!(status(&["bag", "info", "letters"], at), 1);
}

#[test]
fn fetching_refuses_addresses_that_are_not_public() {
    let place = place();
    let at = place.path();
    assert_eq!(status(&["bag", "create", "letters"], at), 0);
    std::fs::remove_file(at.join("letters/data/100%.txt")).unwrap();
    std::fs::write(at.join("letters/fetch.txt"), "http://127.0.0.1:9/x - data/100%25.txt\n")
        .unwrap();
    let listed = accession(&["--json", "bag", "fetch", "--list", "letters"], at);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["files"][0]["path"], "data/100%.txt");
    assert_eq!((&listed["files"][0]["line"], &listed["next"]), (&1.into(), &().into()));
    let refused = accession(&["bag", "fetch", "letters"], at);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not a public address"));
}
