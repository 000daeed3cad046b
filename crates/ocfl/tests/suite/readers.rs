//! Readers, listings and validators at work while versions are sealed: nobody sees anything but
//! the object before or after.

use crate::support;
use crate::support::{about, findings, seen};
use futures_util::TryStreamExt;
use ocfl::{DraftOptions, Layout, Spec, StorageRoot};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ID: &str = "urn:example:readers";
const VERSIONS: usize = 40;
const FILES: usize = 8;

async fn seal_version(root: &StorageRoot, number: usize) {
    let draft = root.begin(ID, about("change"), &DraftOptions::default()).await.expect("a draft");
    let name = |n: usize| format!("d{}/f{number}-{n}", n % 4);
    let files = (0..FILES).map(|n| (name(n), format!("{number} {n}").into())).collect();
    draft.put_batch(files).await.expect("a batch");
    root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
}

/// Looks at everything again and again until the writer is done.
async fn read(root: StorageRoot, done: Arc<AtomicBool>) -> usize {
    let path = root.object_path(ID).expect("a path");
    let mut rounds = 0;
    while !done.load(Ordering::SeqCst) {
        let versions = seen(&root, ID).await.expect("the object");
        for (version, files) in (1..).zip(&versions) {
            assert_eq!(files.len(), version * FILES, "a version is whole");
        }
        let paths: Vec<String> = root.object_paths().try_collect().await.expect("a listing");
        assert_eq!(paths, [&*path]);
        let found = findings(&root, ID).await;
        assert!(found.is_valid(), "{:?}", found.errors().collect::<Vec<_>>());
        rounds += 1;
    }
    rounds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_see_the_object_before_or_after() {
    let directory = support::scratch();
    let root = StorageRoot::init(support::local(directory.path()), Spec::V1_1, Layout::default());
    let root = root.await.expect("a root");
    seal_version(&root, 1).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        // Each opens the root for itself, as another process would.
        let root = StorageRoot::open(support::local(directory.path())).await.expect("the root");
        readers.spawn(read(root, done.clone()));
    }
    for number in 2..=VERSIONS {
        seal_version(&root, number).await;
    }
    done.store(true, Ordering::SeqCst);
    for rounds in readers.join_all().await {
        assert!(rounds > 0);
    }
}
