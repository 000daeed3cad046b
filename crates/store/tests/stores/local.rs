//! What only a local directory has to be careful about.

use crate::suite::{entries, get, keys, noise, put};
use bytes::Bytes;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use store::{
    Body, ErrorKind, Kind, ListOptions, LocalOptions, LocalStore, PutOptions, SmallFile, Store,
};

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(LocalStore::open(path).unwrap())
}

#[tokio::test]
async fn no_symbolic_link_leads_out_or_anywhere() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    std::fs::create_dir(outside.path().join("dir")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "inside/file", "x").await;
    symlink(outside.path(), dir.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), dir.path().join("secret")).unwrap();
    symlink("inside", dir.path().join("alias")).unwrap();
    symlink("nowhere", dir.path().join("dangling")).unwrap();

    for key in ["out/secret", "secret", "alias/file"] {
        let options = PutOptions::default();
        let into = store.put(&format!("{key}/new"), "x".into(), &options).await;
        let results = [
            store.get(key, None).await.map(drop),
            store.head(key).await.map(drop),
            store.copy(key, "copy").await.map(drop),
            into.map(drop),
        ];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::NotPlain, "{key}");
        }
    }
    for (from, to) in [("inside/file", "out/x"), ("out/secret", "x"), ("inside", "out/dir/x")] {
        assert_eq!(store.rename(from, to).await.unwrap_err().kind(), ErrorKind::NotPlain);
    }
    let batch = ["a", "out/b", "c"].map(|key| SmallFile::new(key, "x"));
    store.put_batch(batch.into()).await.unwrap_err();
    store.delete("out/secret").await.unwrap_err();
    store.delete_all("out").await.unwrap_err();

    // A put over a link replaces the link, not what it points to.
    put(&store, "secret", "mine").await;
    assert_eq!(get(&store, "secret").await, "mine");
    let kinds: Vec<_> = entries(&store, "", true)
        .await
        .into_iter()
        .filter(|entry| entry.kind == Kind::Other)
        .map(|entry| entry.key)
        .collect();
    assert_eq!(kinds, ["alias", "dangling", "out"]);
    store.delete_all("").await.unwrap();
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(outside.path().join("dir")).unwrap().count(), 0);
}

#[tokio::test]
async fn special_files_odd_names_and_empty_directories_are_listed_as_such() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    std::fs::create_dir_all(dir.path().join("d/empty/er")).unwrap();
    put(&store, "d/file", "x").await;
    for raw in [&b"d/\xff\xfe"[..], b"d/\xff"] {
        std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(raw)), "x").unwrap();
    }
    let made = Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let found: Vec<_> =
        entries(&store, "", true).await.into_iter().map(|e| (e.key, e.kind)).collect();
    let expected = [
        ("d/empty/er", Kind::Directory),
        ("d/file", Kind::File),
        ("d/\\xff", Kind::NotUtf8),
        ("d/\\xff\\xfe", Kind::NotUtf8),
        ("pipe", Kind::Other),
    ];
    assert_eq!(found, expected.map(|(key, kind)| (key.to_owned(), kind)));
    for after in [1, 2] {
        let mut seen = 0;
        let mut options = ListOptions { limit: after, ..ListOptions::default() };
        loop {
            let page = open(dir.path()).list("", &options).await.unwrap();
            seen += page.entries.len();
            options.after = page.next;
            if options.after.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected.len(), "a store that is opened anew goes on where it was");
    }
    // Opening a pipe would wait for a writer for ever.
    assert_eq!(store.get("pipe", None).await.unwrap_err().kind(), ErrorKind::NotPlain);
    let foreign = ListOptions { after: Some("no".into()), ..ListOptions::default() };
    store.list("", &foreign).await.unwrap_err();
    assert_eq!(store.delete_all("d/empty").await.unwrap(), 0);
    assert!(!dir.path().join("d/empty").exists());
    assert_eq!(store.delete_all("d").await.unwrap_err().kind(), ErrorKind::NotPlain);
}

#[tokio::test]
async fn a_file_in_the_way_of_a_directory_is_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a/b", "x").await;
    for key in ["a", "a/b/c"] {
        let error = store.put(key, "x".into(), &PutOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotPlain, "{key}");
        assert_eq!(store.head(key).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(keys(&store, "", true).await, ["a/b"]);
    let long = "x".repeat(300);
    let error = store.put(&long, "x".into(), &PutOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidKey);
    assert_eq!(store.unfinished("").await.unwrap(), []);
}

#[tokio::test]
async fn temporary_files_lie_where_they_are_told_to_and_can_be_swept() {
    let dir = tempfile::tempdir().unwrap();
    let options = LocalOptions {
        temporaries: "extensions/t".into(),
        create: true,
        ..LocalOptions::default()
    };
    let root = dir.path().join("new/root");
    let store: Arc<dyn Store> = Arc::new(LocalStore::open_with(&root, &options).unwrap());
    put(&store, "a", "x").await;
    std::fs::write(root.join("extensions/t/left"), "half").unwrap();
    assert_eq!(keys(&store, "", true).await, ["a"]);
    assert_eq!(store.head("extensions/t/left").await.unwrap_err().kind(), ErrorKind::InvalidKey);
    let found = store.unfinished("").await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].begun.is_some());
    store.delete_all("").await.unwrap();
    assert!(root.join("extensions/t/left").exists(), "somebody may still be writing it");
    store.abort(&found[0]).await.unwrap();
    store.abort(&found[0]).await.unwrap();
    assert_eq!(store.unfinished("").await.unwrap(), []);
    let escape = store::Unfinished { key: None, id: "../../../x".into(), begun: None };
    store.abort(&escape).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn puts_and_deletes_side_by_side_do_not_pull_directories_from_under_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let tasks = (0..8).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for round in 0..40 {
                let key = format!("deep/er/dir/{task}");
                put(&store, &key, format!("{round}")).await;
                assert_eq!(get(&store, &key).await, format!("{round}"));
                store.delete(&key).await.unwrap();
            }
        })
    });
    for done in futures_util::future::join_all(tasks).await {
        done.unwrap();
    }
    assert!(!dir.path().join("deep").exists());
}

#[tokio::test]
async fn a_directory_of_many_files_is_listed_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    // More than are held in memory at once.
    let count = 70_000;
    std::fs::create_dir(dir.path().join("many")).unwrap();
    for number in 0..count {
        std::fs::File::create(dir.path().join(format!("many/{number:06}"))).unwrap();
    }
    let found = keys(&store, "many", true).await;
    assert_eq!(found.len(), count);
    assert!(found.is_sorted());
    assert_eq!(store.delete_all("many").await.unwrap(), count as u64);
}

/// A file system of its own, unmounted at the end.
struct Small(tempfile::TempDir);

impl Small {
    /// `None` where mounting is not allowed, as for everybody but root.
    fn mount(bytes: u64) -> Option<Small> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={bytes}");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(dir.path())
            .output()
            .ok()?;
        mount.status.success().then_some(Small(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_file_system_is_its_own_error_and_loses_nothing() {
    let Some(small) = Small::mount(4 * 1024 * 1024) else {
        testing::skip("mounting a small file system is not allowed here");
        return;
    };
    let store = open(small.0.path());
    put(&store, "kept", noise(1_000_000, 1)).await;
    let space = store.free_space().await.unwrap().unwrap();
    assert_eq!(space.total, 4 * 1024 * 1024);
    assert!(space.available < 3_200_000);

    let large = noise(8_000_000, 2);
    for length in [Some(8_000_000), None] {
        let stream = futures_util::stream::iter([Ok::<_, std::io::Error>(large.clone())]);
        let body = Body::from_stream(stream, length);
        let error = store.put("kept", body, &PutOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
    let file = |n: usize| SmallFile::new(format!("batch/{n}"), noise(100_000, 1));
    let error = store.put_batch((0..50).map(file).collect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    for number in 0..3 {
        store.copy("kept", &format!("copy-{number}")).await.unwrap();
    }
    let error = store.copy("kept", "copy-4").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);

    assert_eq!(store.unfinished("").await.unwrap(), []);
    assert_eq!(get(&store, "kept").await, noise(1_000_000, 1));
    store.delete_all("").await.unwrap();
    put(&store, "again", Bytes::from(vec![0; 3_000_000])).await;
}
