//! The conformance suite on every kind of store.

use crate::server::Server;
use crate::suite;
use std::sync::Arc;
use store::{LocalStore, MemoryStore, Store};

#[tokio::test]
async fn a_local_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(LocalStore::open(dir.path()).unwrap());
    suite::others_keys_are_read(&store, dir.path()).await;
    suite::run(store).await;
}

#[tokio::test]
async fn memory() {
    suite::run(Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn memory_that_cannot_rename() {
    suite::run(Arc::new(MemoryStore::like_s3())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3() {
    let server = Server::full().await;
    let store = server.store().await;
    let all = store.capabilities();
    assert!(all.put_if_absent && all.put_if_match && all.digests && !all.rename);
    suite::others_keys_are_read(&store, &server.objects()).await;
    suite::run(store).await;
    assert_eq!(server.faults.left(), 0);
}
