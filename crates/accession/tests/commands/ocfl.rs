//! `accession ocfl` as people and programs meet it: output, JSON, and exit statuses.

use crate::answers;
use ocfl::{About, DraftOptions, StorageRoot, User};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use store::{LocalOptions, LocalStore};

const ID: &str = "ark:/12345/bcd987";

struct Answer {
    status: i32,
    out: String,
    err: String,
}

fn accession(arguments: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_accession")).arg("ocfl").args(arguments).output();
    let output = output.expect("the binary runs");
    let typed = [&["ocfl"][..], arguments].concat();
    answers::hold(&typed, &String::from_utf8_lossy(&output.stdout));
    Answer {
        status: output.status.code().expect("an exit status"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

fn open(path: &Path) -> LocalStore {
    let temporaries = StorageRoot::TEMPORARIES.to_owned();
    LocalStore::open_with(path, &LocalOptions { temporaries, ..LocalOptions::default() })
        .expect("a store")
}

/// An object of two versions.
async fn fill(path: &Path) {
    let root = StorageRoot::open(Arc::new(open(path))).await.expect("a root");
    for (message, content) in [("First", "one"), ("Second\u{1b}[31m", "two")] {
        let user = User { name: "A Person".into(), address: Some("mailto:a@example.org".into()) };
        let created = "2026-01-02T03:04:05Z".into();
        let about = About { created, message: Some(message.into()), user: Some(user) };
        let draft = root.begin(ID, about, &DraftOptions::default()).await.expect("a draft");
        draft.put("letter.txt", content.into()).await.expect("a put");
        draft.put(&format!("{content}/more.txt"), "more".into()).await.expect("a put");
        root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
    }
}

#[tokio::test]
async fn from_init_to_purge() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("root");
    let root = path.to_str().expect("UTF-8");
    let made = accession(&["init", root]);
    assert_eq!(made.status, 0, "{}", made.err);
    assert_eq!(accession(&["init", root]).status, 2, "a root is made once");
    fill(&path).await;

    let listed = accession(&["ls", root]);
    assert!(listed.status == 0 && listed.out.contains(ID) && listed.out.contains("v2"));
    let listed: serde_json::Value =
        serde_json::from_str(accession(&["ls", root, "--json"]).out.trim()).expect("JSON");
    assert_eq!((&listed["id"], &listed["files"]), (&ID.into(), &3.into()));

    let log = accession(&["log", root, ID]);
    assert!(log.out.contains("+1 ~1 >0 -0"), "{}", log.out);
    assert!(!log.out.contains('\u{1b}'), "control characters are shown, not obeyed");
    assert_eq!(accession(&["log", root, ID, "--json"]).out.lines().count(), 2);

    let shown = accession(&["show", root, ID, "--at", "1"]);
    assert!(shown.out.contains("v1 of v2") && shown.out.contains("one/more.txt"));
    assert!(!shown.out.contains("two/more.txt"));
    assert_eq!(accession(&["diff", root, ID]).out, "~ letter.txt\n+ two/more.txt\n");

    assert_eq!(accession(&["cat", root, ID, "letter.txt", "--at", "v1"]).out, "one");
    let missing = accession(&["cat", root, ID, "nothing.txt"]);
    assert!(missing.status == 1 && missing.err.contains("[not-found]"));
    assert_eq!(accession(&["cat", root, ID, "letter.txt", "--at", "v9"]).status, 1);

    let target = directory.path().join("out");
    let out = target.to_str().expect("UTF-8");
    assert_eq!(accession(&["export", root, ID, out]).status, 0);
    assert_eq!(std::fs::read(target.join("letter.txt")).expect("a file"), b"two");
    assert_eq!(std::fs::read_dir(&target).expect("a directory").count(), 3);
    assert_eq!(accession(&["export", root, ID, out]).status, 2, "only into what is empty");

    assert_eq!(accession(&["purge", root, ID]).status, 2, "not without --yes");
    assert_eq!(accession(&["purge", root, ID, "--yes"]).status, 0);
    assert_eq!(accession(&["log", root, ID]).status, 1);
    assert_eq!(accession(&["validate", root]).status, 0);
}

#[tokio::test]
async fn damage_is_found_and_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().to_str().expect("UTF-8");
    assert_eq!(accession(&["init", root, "--layout", "0003"]).status, 0);
    fill(directory.path()).await;
    assert_eq!(accession(&["validate", root]).status, 0);
    let store = StorageRoot::open(Arc::new(open(directory.path()))).await.expect("a root");
    let object = directory.path().join(store.object_path(ID).expect("a path"));
    std::fs::write(object.join("v1/content/letter.txt"), "0ne").expect("damage");

    let found = accession(&["validate", root, ID]);
    assert!(found.status == 1 && found.out.contains("E092"), "{}", found.out);
    assert_eq!(accession(&["validate", root, "--no-fixity"]).status, 0);
    let alone = accession(&["validate", object.to_str().expect("UTF-8"), "--json"]);
    let last = alone.out.lines().last().expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!((&summary["valid"], &summary["counts"]["E092"]), (&false.into(), &1.into()));
    let damaged = accession(&["cat", root, ID, "letter.txt", "--at", "v1"]);
    assert!(damaged.status == 1 && damaged.err.contains("[corrupt]"), "{}", damaged.err);
}

#[tokio::test]
async fn what_was_left_behind_is_swept() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().to_str().expect("UTF-8");
    accession(&["init", root]);
    let opened = StorageRoot::open(Arc::new(open(directory.path()))).await.expect("a root");
    let draft =
        opened.begin(ID, About::default(), &DraftOptions::default()).await.expect("a draft");
    draft.put("a", "a".into()).await.expect("a put");
    drop(draft);
    assert!(accession(&["sweep", root]).out.contains("kept"), "it is young");
    let told = accession(&["sweep", root, "--older-than", "0", "--dry-run"]);
    assert!(told.out.contains("1 would be removed") && told.out.contains(ID), "{}", told.out);
    assert!(accession(&["sweep", root, "--older-than", "0"]).out.contains("\n1 removed\n"));
    std::fs::create_dir_all(directory.path().join("extensions/unsealed-versions/0123/object"))
        .expect("a directory");
    let told = accession(&["sweep", root, "--dry-run"]).out;
    assert!(told.contains("directory") && told.contains("1 would be removed"), "{told}");
    assert!(accession(&["sweep", root]).out.contains("1 removed"));
    assert_eq!(accession(&["sweep", root, "--older-than", "0"]).out, "nothing was left behind\n");
    assert_eq!(accession(&["sweep", root, "--older-than", "soon"]).status, 2);
}

#[test]
fn places_that_are_no_roots() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().to_str().expect("UTF-8");
    let not = accession(&["ls", place]);
    assert!(not.status == 1 && not.err.contains("[not-a-root]"), "{}", not.err);
    let nowhere = directory.path().join("nowhere");
    assert_eq!(accession(&["ls", nowhere.to_str().expect("UTF-8")]).status, 3);
    assert_eq!(accession(&["validate", place]).status, 1);
}

#[tokio::test]
async fn names_with_control_characters_are_shown_escaped_and_hide_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().to_str().expect("UTF-8");
    assert_eq!(accession(&["init", root, "--layout", "0003"]).status, 0);
    fill(directory.path()).await;
    let store = StorageRoot::open(Arc::new(open(directory.path()))).await.expect("a root");
    let object = directory.path().join(store.object_path(ID).expect("a path"));
    std::fs::write(object.join("v1/content/evil\n\u{1b}[31m"), "x").expect("a file");
    std::fs::write(object.join("v1/content/letter.txt"), "0ne").expect("damage");
    let found = accession(&["validate", root]);
    assert_eq!(found.status, 1, "{}", found.err);
    assert!(found.out.contains("E092") && found.out.contains("v1/content/letter.txt"));
    assert!(found.out.contains("v1/content/evil\\n\\u{1b}[31m"), "{}", found.out);
    assert!(!found.out.contains('\u{1b}'), "shown, not obeyed");
}

#[tokio::test]
async fn an_object_without_its_declaration_is_validated_when_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().to_str().expect("UTF-8");
    accession(&["init", root]);
    fill(directory.path()).await;
    let store = StorageRoot::open(Arc::new(open(directory.path()))).await.expect("a root");
    let object = directory.path().join(store.object_path(ID).expect("a path"));
    std::fs::remove_file(object.join("0=ocfl_object_1.1")).expect("a declaration");
    let place = object.to_str().expect("UTF-8");
    let as_root = accession(&["validate", place]);
    assert!(as_root.status == 1 && as_root.out.contains("E069"), "{}", as_root.out);
    let found = accession(&["validate", "--object", place]);
    assert_eq!(found.status, 1);
    assert!(found.out.contains("E003") && !found.out.contains("E069"), "{}", found.out);
    assert!(found.out.contains("not valid: 1 object, 1 with errors"), "{}", found.out);
    assert_eq!(accession(&["validate", "--object", place, "x"]).status, 2);
}

#[tokio::test]
async fn what_cannot_be_checked_is_told_and_is_neither_valid_nor_invalid() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().to_str().expect("UTF-8");
    accession(&["init", root]);
    fill(directory.path()).await;
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::create_dir(directory.path().join(odd)).expect("a directory");
    let found = accession(&["validate", root]);
    assert_eq!(found.status, 3, "{}", found.out);
    assert!(found.out.contains("caf\\xe9") && found.out.contains("not checked in full: 1 object"));
    assert!(found.err.contains("[unchecked]"), "{}", found.err);
    let answer = accession(&["validate", root, "--json"]);
    let lines: Vec<serde_json::Value> =
        answer.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().any(|line| line["level"] == "unchecked" && line["place"] == "caf\\xe9"));
    assert!(lines.iter().any(|line| line["valid"] == false && line["places_unchecked"] == 1));
}
