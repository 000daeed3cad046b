//! What a caller of the writing half notices.

use crate::support;
use crate::support::{about, findings, seen};
use ocfl::{
    Algorithm, Change, DraftOptions, Error, Layout, Leftovers, Spec, Start, StorageRoot, Sweep,
};
use std::sync::Arc;
use std::time::Duration;
use store::{MemoryStore, Store};

const ID: &str = "ark:/12345/bcd987";

fn stores() -> [Arc<dyn Store>; 2] {
    [Arc::new(MemoryStore::new()), Arc::new(MemoryStore::like_s3())]
}

async fn root(store: Arc<dyn Store>) -> StorageRoot {
    StorageRoot::init(store, Spec::V1_1, Layout::default()).await.expect("a root")
}

async fn version(root: &StorageRoot, files: &[(&str, &'static str)]) {
    let draft = root.begin(ID, about("change"), &DraftOptions::default()).await.expect("a draft");
    for (path, content) in files {
        draft.put(path, (*content).into()).await.expect("a put");
    }
    root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
}

#[tokio::test]
async fn content_that_the_object_has_is_not_kept_again() {
    for store in stores() {
        let root = root(store).await;
        version(&root, &[("a", "same"), ("b", "other")]).await;
        let draft = root.begin(ID, about("2"), &DraftOptions::default()).await.expect("a draft");
        let put = draft.put("c", "same".into()).await.expect("a put");
        assert!(put.deduplicated);
        assert_eq!(put.content_path, "v1/content/a");
        let digest = Algorithm::Sha512.hex(b"other");
        let found = draft.reference("d", &digest.to_uppercase()).expect("an answer");
        assert!(found.is_some());
        let unknown = draft.reference("e", &Algorithm::Sha512.hex(b"unknown"));
        assert_eq!(unknown.expect("an answer"), None);
        root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
        let object = root.object(ID).await.expect("an object");
        assert_eq!(object.inventory().content_count(), 2);
        assert_eq!(object.version(None).expect("a version").file_count(), 4);
        assert!(findings(&root, ID).await.is_empty());
    }
}

#[tokio::test]
async fn nothing_is_visible_before_the_seal_and_another_process_can_seal() {
    for store in stores() {
        let root = root(store.clone()).await;
        let draft = root.begin(ID, about("1"), &DraftOptions::default()).await.expect("a draft");
        draft.put("a", "1".into()).await.expect("a put");
        let unsealed = draft.write().await.expect("an inventory");
        assert!(matches!(root.object(ID).await, Err(Error::NoSuchObject(_))));
        let elsewhere = StorageRoot::open(store).await.expect("the root");
        assert_eq!(elsewhere.unsealed(ID).await.expect("an answer"), Some(unsealed.clone()));
        elsewhere.seal(&unsealed).await.expect("a seal");
        elsewhere.seal(&unsealed).await.expect("sealed is sealed");
        assert_eq!(elsewhere.unsealed(ID).await.expect("an answer"), None);
        version(&root, &[("a", "2")]).await;
        root.seal(&unsealed).await.expect("also when there are later versions");
        assert_eq!(seen(&root, ID).await.expect("an object").len(), 2);
    }
}

#[tokio::test]
async fn a_writer_that_comes_too_late_is_told() {
    for store in stores() {
        let root = root(store).await;
        version(&root, &[("a", "1")]).await;
        let draft = root.begin(ID, about("late"), &DraftOptions::default()).await.expect("a draft");
        draft.put("a", "late".into()).await.expect("a put");
        let begun = root.begin(ID, about("other"), &DraftOptions::default()).await;
        assert!(matches!(begun, Err(Error::UnfinishedWrite { .. })));
        let late = draft.write().await.expect("an inventory");
        let options = DraftOptions { leftovers: Leftovers::Discard, ..DraftOptions::default() };
        let other = root.begin(ID, about("other"), &options).await.expect("a draft");
        other.put("a", "other".into()).await.expect("a put");
        root.seal(&other.write().await.expect("an inventory")).await.expect("a seal");
        assert!(matches!(root.seal(&late).await, Err(Error::NothingUnsealed { .. })));
        let last = seen(&root, ID).await.expect("an object").pop().expect("a version");
        assert_eq!(last["a"], b"other");
    }
}

#[tokio::test]
async fn an_interrupted_write_goes_on_where_it_stopped() {
    for store in stores() {
        let root = root(store).await;
        let draft = root.begin(ID, about("1"), &DraftOptions::default()).await.expect("a draft");
        let put = draft.put("kept", "kept".into()).await.expect("a put");
        draft.put("stray/x", "stray".into()).await.expect("a put");
        drop(draft);
        let options = DraftOptions { leftovers: Leftovers::Adopt, ..DraftOptions::default() };
        let draft = root.begin(ID, about("1"), &options).await.expect("a draft");
        assert!(draft.adopt("kept", &put.digest, put.size).await.expect("an answer"));
        assert!(!draft.adopt("kept2", &put.digest, put.size).await.expect("an answer"));
        assert!(!draft.adopt("stray/x", &put.digest, 17).await.expect("an answer"));
        draft.put("new", "new".into()).await.expect("a put");
        root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
        assert!(findings(&root, ID).await.is_empty());
        let files = seen(&root, ID).await.expect("an object").pop().expect("a version");
        assert_eq!(files.keys().collect::<Vec<_>>(), ["kept", "new"]);
    }
}

#[tokio::test]
async fn paths_that_cannot_be_are_refused_and_odd_ones_are_kept() {
    let root = root(stores()[0].clone()).await;
    let draft = root.begin(ID, about("1"), &DraftOptions::default()).await.expect("a draft");
    for bad in ["", "/a", "a/", "a//b", "../a", "a/./b"] {
        assert!(matches!(draft.put(bad, "x".into()).await, Err(Error::BadPath(..))), "{bad}");
    }
    for odd in ["a\nb", &"x".repeat(2000), "~x", "dir/\u{7f}"] {
        draft.put(odd, odd.as_bytes().to_vec().into()).await.expect("a put");
    }
    // A file that becomes a directory while its content is still needed elsewhere.
    draft.put("f", "file".into()).await.expect("a put");
    assert!(draft.rename("f", "g").expect("a rename"));
    draft.put("f/inner", "inner".into()).await.expect("a put");
    root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
    assert!(findings(&root, ID).await.is_empty());
    assert_eq!(seen(&root, ID).await.expect("an object")[0].len(), 6);
}

#[tokio::test]
async fn differences_between_versions() {
    let root = root(stores()[0].clone()).await;
    version(&root, &[("same", "1"), ("changed", "2"), ("moved", "3"), ("gone", "4")]).await;
    let draft = root.begin(ID, about("2"), &DraftOptions::default()).await.expect("a draft");
    draft.put("changed", "2b".into()).await.expect("a put");
    draft.put("new", "5".into()).await.expect("a put");
    assert!(draft.rename("moved", "dir/moved").expect("a rename") && draft.remove("gone"));
    root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
    let object = root.object(ID).await.expect("an object");
    let inventory = object.inventory();
    let changes = inventory.diff(inventory.version(1), inventory.version(2).expect("v2"));
    let expected = [
        Change::Modified("changed"),
        Change::Renamed { from: "moved", to: "dir/moved" },
        Change::Removed("gone"),
        Change::Added("new"),
    ];
    assert_eq!(changes, expected);
    assert_eq!(inventory.diff(None, inventory.version(1).expect("v1")).len(), 4);
}

#[tokio::test]
async fn damaged_content_is_never_handed_out_as_if_it_were_good() {
    let store = Arc::new(MemoryStore::new());
    let root = root(store.clone()).await;
    version(&root, &[("a", "some content")]).await;
    let path = root.object_path(ID).expect("a path");
    assert!(store.corrupt(&format!("{path}/v1/content/a"), 3));
    let object = root.object(ID).await.expect("an object");
    let target = MemoryStore::new();
    object.export(None, &target, "", &|_, _| ()).await.expect_err("it is damaged");
    assert!(target.snapshot().is_empty());
    assert!(!findings(&root, ID).await.is_valid());
}

#[tokio::test]
async fn logs_purge_and_young_leftovers() {
    for store in stores() {
        let root = root(store.clone()).await;
        version(&root, &[("a", "1")]).await;
        root.add_log(ID, "2026-01-01.premis.xml", "<premis/>".into()).await.expect("a log");
        assert!(root.add_log(ID, "2026-01-01.premis.xml", "again".into()).await.is_err());
        assert!(matches!(root.add_log(ID, "../x", "x".into()).await, Err(Error::BadLogName(_))));
        assert!(findings(&root, ID).await.is_empty());
        let draft = root.begin(ID, about("2"), &DraftOptions::default()).await.expect("a draft");
        draft.put("b", "2".into()).await.expect("a put");
        drop(draft);
        let young = Sweep { older_than: Duration::from_secs(3600), dry_run: false };
        assert_eq!(root.sweep(&young).await.expect("a sweep")[0].outcome, ocfl::Outcome::Kept);
        root.purge(ID).await.expect("a purge");
        assert!(matches!(root.purge(ID).await, Err(Error::NoSuchObject(_))));
        let mut left = store::list_all(store, "", true);
        let mut keys = Vec::new();
        while let Some(entry) =
            futures_util::TryStreamExt::try_next(&mut left).await.expect("a listing")
        {
            keys.push(entry.key);
        }
        assert_eq!(keys.len(), 3, "a root with nothing in it: {keys:?}");
    }
}

#[tokio::test]
async fn what_a_sweep_cannot_read_it_tells_and_goes_on() {
    for store in stores() {
        let root = root(store.clone()).await;
        let options = DraftOptions::default();
        for id in ["urn:x:1", "urn:x:2", "urn:x:3"] {
            let draft = root.begin(id, about("1"), &options).await.expect("a draft");
            draft.put("a", "1".into()).await.expect("a put");
        }
        let mut notes = Vec::new();
        let mut entries = store::list_all(store.clone(), "extensions/unsealed-versions", true);
        while let Some(entry) =
            futures_util::TryStreamExt::try_next(&mut entries).await.expect("a listing")
        {
            notes.extend(entry.key.ends_with("/note.json").then_some(entry.key));
        }
        let [torn, other, _] = &notes[..] else { panic!("three notes: {notes:?}") };
        let put = store::PutOptions::default();
        store.put(torn, "{\"id\": ".into(), &put).await.expect("a put");
        if store.capabilities().rename {
            // A crash before the note: its files are found without it.
            store.delete(other).await.expect("a delete");
        }
        let swept = root.sweep(&Sweep::default()).await.expect("a sweep");
        assert_eq!(swept.len(), 3);
        let blocked = swept.iter().find(|left| left.outcome == ocfl::Outcome::Blocked);
        assert_eq!(blocked.expect("the torn one").path, *torn);
        let swept = root.sweep(&Sweep::default()).await.expect("a sweep");
        assert_eq!(swept.len(), 1, "only the torn note is left: {swept:?}");
    }
}

/// A crash between a file and its directory leaves the directory.
#[tokio::test]
async fn a_sweep_removes_directories_with_nothing_in_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = root(support::local(directory.path())).await;
    version(&root, &[("a", "1")]).await;
    let unsealed = directory.path().join("extensions/unsealed-versions");
    let left = unsealed.join("0123/object/v1/content");
    std::fs::create_dir_all(&left).expect("a directory");
    let dry = Sweep { dry_run: true, ..Sweep::default() };
    assert_eq!(root.sweep(&dry).await.expect("a sweep")[0].kind, ocfl::LeftoverKind::Directory);
    assert!(left.exists(), "a dry run changes nothing");
    let hour = Sweep { older_than: Duration::from_secs(3600), ..Sweep::default() };
    assert_eq!(root.sweep(&hour).await.expect("a sweep").len(), 1);
    assert_eq!(root.sweep(&hour).await.expect("a sweep"), []);
    assert!(!unsealed.join("0123").exists());
    assert!(root.object(ID).await.is_ok());
}

/// A caller whose batch failed may try it again, or go on without it.
#[tokio::test]
async fn a_batch_that_failed_is_not_in_the_version() {
    for again in [true, false] {
        for store in [MemoryStore::new(), MemoryStore::like_s3()] {
            // Room for two files of the batch and all the rest, but not for the batch.
            let store = Arc::new(store.with_capacity(18_000));
            let root = root(store.clone()).await;
            let options = DraftOptions::default();
            let draft = root.begin(ID, about("1"), &options).await.expect("a draft");
            draft.put("first", "first".into()).await.expect("a put");
            let file = |n: u8, size| (format!("f{n}"), bytes::Bytes::from(vec![n; size]));
            let batch = vec![file(1, 1_000), file(2, 9_000), file(3, 9_000)];
            draft.put_batch(batch).await.expect_err("it is full");
            let bad = vec![file(1, 1_000), ("../x".to_owned(), bytes::Bytes::new())];
            draft.put_batch(bad).await.expect_err("a bad path");
            if again {
                draft.put_batch(vec![file(1, 1_000)]).await.expect("there is room for one");
            }
            root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
            let found = findings(&root, ID).await;
            assert!(found.is_empty(), "{:?}", found.errors().collect::<Vec<_>>());
            let files = seen(&root, ID).await.expect("an object").remove(0);
            assert_eq!(files.len(), if again { 2 } else { 1 });
        }
    }
}

#[tokio::test]
async fn a_log_added_while_a_version_waits_is_kept() {
    let directory = support::scratch();
    for store in [support::local(directory.path()), stores()[0].clone(), stores()[1].clone()] {
        let root = root(store).await;
        version(&root, &[("a", "1")]).await;
        let draft = root.begin(ID, about("2"), &DraftOptions::default()).await.expect("a draft");
        draft.put("a", "2".into()).await.expect("a put");
        let unsealed = draft.write().await.expect("an inventory");
        root.add_log(ID, "meanwhile.log", "a log".into()).await.expect("a log");
        root.seal(&unsealed).await.expect("a seal");
        let key = format!("{}/logs/meanwhile.log", root.object_path(ID).expect("a path"));
        root.store().head(&key).await.expect("the log");
        assert!(findings(&root, ID).await.is_empty());
    }
}

#[tokio::test]
async fn a_directory_that_no_inventory_names_is_not_taken_over() {
    for store in stores() {
        let root = root(store.clone()).await;
        version(&root, &[("a", "1")]).await;
        let draft = root.begin(ID, about("2"), &DraftOptions::default()).await.expect("a draft");
        draft.put("a", "2".into()).await.expect("a put");
        let unsealed = draft.write().await.expect("an inventory");
        if !store.capabilities().rename {
            continue; // There the version itself is that directory.
        }
        let stray = format!("{}/v2/content/stray", root.object_path(ID).expect("a path"));
        store.put(&stray, "x".into(), &store::PutOptions::default()).await.expect("a put");
        assert!(matches!(root.seal(&unsealed).await, Err(Error::Conflict { .. })));
        assert_eq!(seen(&root, ID).await.expect("an object").len(), 1);
        store.delete(&stray).await.expect("a delete");
        root.seal(&unsealed).await.expect("a seal");
        assert!(findings(&root, ID).await.is_empty());
    }
}

#[tokio::test]
async fn objects_of_others_keep_their_habits() {
    // Zero-padded versions, sha256, another content directory, digests in upper case, OCFL 1.0.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let root = StorageRoot::init(store.clone(), Spec::V1_1, Layout::named("0002").expect("0002"));
    let root = root.await.expect("a root");
    let digest = Algorithm::Sha256.hex(b"old").to_uppercase();
    let inventory = format!(
        r#"{{"id": "other", "type": "https://ocfl.io/1.0/spec/#inventory", "digestAlgorithm": "sha256",
        "head": "v0001", "contentDirectory": "stuff", "manifest": {{"{digest}": ["v0001/stuff/old"]}},
        "versions": {{"v0001": {{"created": "2020-01-01T00:00:00Z", "state": {{"{digest}": ["old"]}}}}}}}}"#
    );
    let sidecar = format!("{}  inventory.json", Algorithm::Sha256.hex(inventory.as_bytes()));
    let files = [
        ("other/0=ocfl_object_1.0", "ocfl_object_1.0\n"),
        ("other/inventory.json", &inventory),
        ("other/inventory.json.sha256", &sidecar),
        ("other/v0001/inventory.json", &inventory),
        ("other/v0001/inventory.json.sha256", &sidecar),
        ("other/v0001/stuff/old", "old"),
    ];
    for (key, content) in files {
        let body = content.as_bytes().to_vec().into();
        store.put(key, body, &store::PutOptions::default()).await.expect("a put");
    }
    assert!(findings(&root, "other").await.is_valid());
    let draft = root.begin("other", about("2"), &DraftOptions::default()).await.expect("a draft");
    assert!(draft.put("again", "old".into()).await.expect("a put").deduplicated);
    let put = draft.put("new", "new".into()).await.expect("a put");
    assert_eq!(put.content_path, "v0002/stuff/new");
    root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
    let found = findings(&root, "other").await;
    assert!(found.is_valid(), "{:?}", found.errors().collect::<Vec<_>>());
    let object = root.object("other").await.expect("an object");
    assert_eq!(object.inventory().spec(), Spec::V1_0);
    assert_eq!(object.inventory().head().to_string(), "v0002");
}

#[tokio::test]
async fn a_version_can_start_empty_and_be_empty() {
    let root = root(stores()[1].clone()).await;
    version(&root, &[("a", "1")]).await;
    let options = DraftOptions { start: Start::Empty, ..DraftOptions::default() };
    let draft = root.begin(ID, about("nothing"), &options).await.expect("a draft");
    root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
    assert!(findings(&root, ID).await.is_empty());
    assert!(seen(&root, ID).await.expect("an object")[1].is_empty());
}

/// Content may be where it cannot be read at once; all that is read to find it may not.
#[tokio::test]
async fn content_is_cold_and_inventories_are_not() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::like_s3());
    let class = |name: &str| Some(store::StorageClass::new(name));
    let classes = ocfl::Classes { content: class("DEEP_ARCHIVE"), own: class("STANDARD") };
    let layout = Layout::default();
    let root = StorageRoot::init_with(store.clone(), Spec::V1_1, layout, classes).await;
    let root = root.expect("a root");
    for content in ["one", "two"] {
        let draft = root.begin(ID, about("change"), &DraftOptions::default()).await;
        let draft = draft.expect("a draft");
        draft.put("large", content.into()).await.expect("a put");
        let small = vec![("small".to_owned(), format!("small {content}").into())];
        draft.put_batch(small).await.expect("a batch");
        let record = vec![("record".to_owned(), format!("record {content}").into())];
        draft.put_records(record).await.expect("a record");
        root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
    }
    root.add_log(ID, "log.txt", "log".into()).await.expect("a log");
    let mut content = 0;
    let all = store.list("", &store::ListOptions::default()).await.expect("a listing");
    for entry in all.entries {
        let found = store.head(&entry.key).await.expect("an object").storage_class;
        let is_content = entry.key.contains("/content/") && !entry.key.ends_with("/record");
        content += usize::from(is_content);
        let expected = if is_content { class("DEEP_ARCHIVE") } else { class("STANDARD") };
        assert_eq!(found, expected, "{}", entry.key);
    }
    assert_eq!(content, 4);
    let object = root.object(ID).await.expect("an object that can be read");
    assert_eq!(object.version(None).expect("a version").file_count(), 3);
}
