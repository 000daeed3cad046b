//! The conformance suite on every kind of store.

mod suite;

use std::sync::Arc;
use store::{LocalStore, MemoryStore};

#[tokio::test]
async fn a_local_directory() {
    let dir = tempfile::tempdir().unwrap();
    suite::run(Arc::new(LocalStore::open(dir.path()).unwrap())).await;
}

#[tokio::test]
async fn memory() {
    suite::run(Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn memory_that_cannot_rename() {
    suite::run(Arc::new(MemoryStore::like_s3())).await;
}
