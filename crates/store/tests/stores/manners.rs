//! The manners of servers that are not Amazon's.

use crate::server::{Fault, MIB, Manners, Server};
use crate::suite::{self, chunked, noise};
use http::Method;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{ErrorKind, PutOptions, S3Config, S3Store, Sha256Digest, StorageClass, Store, Support};

const INTERNAL: Fault = Fault::Status(500, "InternalError", None);

fn resuming(content: &bytes::Bytes) -> PutOptions {
    let sha256 = Some(Sha256Digest::of(content));
    PutOptions { resume: true, sha256, ..PutOptions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_no_checksums_passes_the_suite() {
    let server = Server::with(Manners { no_checksums: true, ..Manners::default() }).await;
    let store = Arc::new(S3Store::open(server.config()).await.unwrap());
    assert_eq!(store.support().checksums_checked, Support::Yes);
    assert_eq!(store.support().checksums_kept, Support::No);
    assert_eq!(store.support().part_checksums_kept, Support::No);
    assert_eq!(store.support().parts_recognised, Support::Yes, "by the MD5 in their etags");
    suite::run(store.clone()).await;
    let put = store.put("k", "x".into(), &PutOptions::default()).await.unwrap();
    assert!(put.vouched_sha256().is_none() && put.digest.is_some());
    assert!(store.head("k").await.unwrap().vouched_sha256().is_none());
}

#[tokio::test]
async fn what_was_sent_is_recognised_without_checksums() {
    let server = Server::with(Manners { no_checksums: true, ..Manners::default() }).await;
    let store = server.store().await;
    let content = noise(23 * MIB as usize, 4);
    server.faults.add_times(4, Method::PUT, "partNumber=4&", INTERNAL);
    store.put("k", chunked(&content, None), &resuming(&content)).await.unwrap_err();
    let sent = |number: &str| server.faults.count("PUT", &format!("partNumber={number}&"));
    let before = (sent("1"), sent("2"), sent("3"));
    store.put("k", chunked(&content, None), &resuming(&content)).await.unwrap();
    assert_eq!((sent("1"), sent("2"), sent("3")), before, "they were there");
    assert!(store.get("k", None).await.unwrap().bytes(usize::MAX).await.unwrap() == content);
}

/// Parts are sent side by side, so any of them may be the one that did not arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_is_recognised_without_the_first_part() {
    let server = Server::full().await;
    let config = S3Config { tries_max: 1, answer: Duration::from_secs(2), ..server.config() };
    let store: Arc<dyn Store> = Arc::new(S3Store::open(config).await.unwrap());
    let content = noise(18 * MIB as usize, 4);
    server.faults.add(Method::PUT, "partNumber=1&", Fault::Stall);
    store.put("k", chunked(&content, None), &resuming(&content)).await.unwrap_err();
    let sent = |number: &str| server.faults.count("PUT", &format!("where/k?partNumber={number}&"));
    let before = (sent("2"), sent("3"), sent("4"));
    assert_eq!(before, (1, 1, 1));
    store.put("k", chunked(&content, None), &resuming(&content)).await.unwrap();
    assert_eq!((sent("2"), sent("3"), sent("4")), before, "they were there");
    assert_eq!(sent("1"), 2);
    assert!(store.get("k", None).await.unwrap().bytes(usize::MAX).await.unwrap() == content);
    assert_eq!(store.unfinished("").await.unwrap(), []);
}

#[tokio::test]
async fn an_upload_that_was_begun_with_other_content_is_given_up() {
    for manners in [Manners::default(), Manners { no_checksums: true, ..Manners::default() }] {
        let server = Server::with(manners).await;
        let store = server.store().await;
        let first = noise(23 * MIB as usize, 4);
        // Other bytes in a part that was sent, and in one that was not.
        for at in [6 * MIB as usize, 22 * MIB as usize] {
            server.faults.add_times(4, Method::PUT, "partNumber=5&", INTERNAL);
            store.put("k", chunked(&first, None), &resuming(&first)).await.unwrap_err();
            let mut other = first.to_vec();
            other[at] ^= 1;
            let other = bytes::Bytes::from(other);
            let error = store.put("k", chunked(&other, None), &resuming(&other)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
            assert_eq!(store.unfinished("").await.unwrap(), []);
            assert!(store.head("k").await.is_err(), "nothing with a wrong digest is left");
            store.put("k", chunked(&other, None), &resuming(&other)).await.unwrap();
            let meta = store.head("k").await.unwrap();
            assert_eq!(meta.digest.unwrap().whole(), Some(Sha256Digest::of(&other)));
            store.delete("k").await.unwrap();
        }
    }
}

/// One request at a time is enough for everything, whatever the server answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_request_at_a_time_is_enough() {
    for unchecked in [false, true] {
        let server = Server::full().await;
        server.faults.unchecked.store(unchecked, Ordering::SeqCst);
        let config = S3Config { requests_max: 1, ..server.config() };
        let opened = tokio::time::timeout(Duration::from_secs(60), S3Store::open(config)).await;
        let store = opened.expect("a place is given back before another is taken").unwrap();
        assert_eq!(store.support().checksums_checked == Support::No, unchecked);
        server.faults.unchecked.store(false, Ordering::SeqCst);
        suite::run(Arc::new(store)).await;
    }
}

/// A checksum that is kept as it was told, without a look at the bytes, vouches for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checksums_that_nobody_compares_vouch_for_nothing() {
    for manners in [
        Manners { no_checks: true, ..Manners::default() },
        Manners { no_part_checks: true, ..Manners::default() },
    ] {
        let server = Server::with(manners.clone()).await;
        let store = Arc::new(S3Store::open(server.config()).await.unwrap());
        let (support, can) = (store.support(), store.capabilities());
        assert_eq!(support.checksums_kept, Support::Yes);
        assert_eq!(support.checksums_checked == Support::No, manners.no_checks);
        assert_eq!((can.digests, can.digests_of_large), (!manners.no_checks, false));
        suite::run(store.clone()).await;
        let put = store.put("k", "x".into(), &PutOptions::default()).await.unwrap();
        let head = store.head("k").await.unwrap();
        let got = store.get("k", None).await.unwrap().meta;
        for meta in [put, head, got] {
            let digest = Sha256Digest::of(b"x");
            assert_eq!(meta.digest.unwrap().whole(), Some(digest), "it is good for reading");
            assert_eq!(meta.vouched_sha256(), (!manners.no_checks).then_some(digest));
        }
    }
}

/// An upload keeps the digest that was announced when it was begun. A put that announces none cannot
/// tell whether that is the digest of what it has.
#[tokio::test]
async fn an_upload_that_was_announced_is_not_taken_up_without_a_digest() {
    let server = Server::full().await;
    let store = server.store().await;
    let first = noise(23 * MIB as usize, 4);
    server.faults.add_times(4, Method::PUT, "partNumber=5&", INTERNAL);
    store.put("k", chunked(&first, None), &resuming(&first)).await.unwrap_err();
    let mut other = first.to_vec();
    other[22 * MIB as usize] ^= 1;
    let other = bytes::Bytes::from(other);
    let options = PutOptions { resume: true, ..PutOptions::default() };
    let error = store.put("k", chunked(&other, None), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
    assert_eq!(store.unfinished("").await.unwrap(), []);
    assert!(store.head("k").await.is_err(), "nothing with a wrong digest is left");
    store.put("k", chunked(&other, None), &options).await.unwrap();
    assert!(store.get("k", None).await.unwrap().bytes(usize::MAX).await.unwrap() == other);
}

#[tokio::test]
async fn a_server_that_does_not_mind_conditions_is_found_out() {
    let server = Server::with(Manners { no_conditions: true, ..Manners::default() }).await;
    let store = S3Store::open(server.config()).await.unwrap();
    assert_eq!(store.support().put_if_absent, Support::No);
    assert_eq!(store.support().put_if_match, Support::No);
}

#[tokio::test]
async fn the_region_is_taken_from_the_body_of_a_refusal() {
    let server = Server::with(Manners { region: Some("garage"), ..Manners::default() }).await;
    assert_eq!(server.config().region, "us-east-1");
    let store = server.store().await;
    suite::put(&store, "k", "x").await;
    // The first question may be one whose refusal has no body.
    let reading = S3Store::connect(server.config(), Some("nothing")).await.unwrap();
    assert_eq!(reading.head("k").await.unwrap().size, 1);
    let fresh = S3Config { probe: false, ..server.config() };
    let fresh = S3Store::open(fresh).await.unwrap();
    assert_eq!(fresh.head("k").await.unwrap().size, 1);
}

#[tokio::test]
async fn cold_objects_are_vouched_for_where_checksums_are_kept() {
    let large = noise(11 * MIB as usize, 1);
    for (manners, vouched) in [
        (Manners::default(), [true, true]),
        (Manners { no_part_checksums: true, ..Manners::default() }, [true, false]),
        (Manners { no_checksums: true, ..Manners::default() }, [false, false]),
    ] {
        let server = Server::with(manners).await;
        let store = S3Store::open(server.config()).await.unwrap();
        let can = store.capabilities();
        assert_eq!([can.digests, can.digests_of_large], vouched);
        for (index, content) in [large.slice(..1000), large.clone()].into_iter().enumerate() {
            let digest = Sha256Digest::of(&content);
            let storage_class = Some(StorageClass::new("DEEP_ARCHIVE"));
            let options = PutOptions { storage_class, ..resuming(&content) };
            store.put("k", chunked(&content, None), &options).await.unwrap();
            let meta = store.head("k").await.unwrap();
            assert!(!meta.availability.is_readable());
            assert_eq!(meta.vouched_sha256(), vouched[index].then_some(digest));
            assert_eq!(store.get("k", None).await.unwrap_err().kind(), ErrorKind::Cold);
        }
    }
}

#[tokio::test]
async fn a_store_that_is_down_is_told_from_a_request_that_fails() {
    let server = Server::full().await;
    let store = server.store().await;
    server.faults.add_times(4, Method::PUT, "where/k", INTERNAL);
    let failed = store.put("k", "x".into(), &PutOptions::default()).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Transient);
    server.faults.add_times(4, Method::PUT, "where/k", INTERNAL);
    server.faults.add(Method::GET, "list-type=2", INTERNAL);
    let failed = store.put("k", "x".into(), &PutOptions::default()).await.unwrap_err();
    assert_eq!((failed.kind(), server.faults.left()), (ErrorKind::Unavailable, 0), "{failed}");
    let endpoint = Some("http://127.0.0.1:9".to_owned());
    let config = S3Config { endpoint, probe: false, ..server.config() };
    let store = S3Store::open(config).await.unwrap();
    let failed = store.put("k", "x".into(), &PutOptions::default()).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
    assert!(failed.is_retryable());
}

#[tokio::test]
async fn a_store_is_tried_out_once_and_never_by_a_reader() {
    let server = Server::full().await;
    let key = "extensions/support.json";
    let reader = S3Store::connect(server.config(), Some(key)).await.unwrap();
    assert_eq!(reader.support().put_if_absent, Support::Unknown);
    assert_eq!(server.faults.count("PUT", "") + server.faults.count("POST", ""), 0);
    let first = S3Store::open_remembering(server.config(), key).await.unwrap();
    let wrote = server.faults.count("PUT", "");
    let second = S3Store::open_remembering(server.config(), key).await.unwrap();
    assert_eq!(server.faults.count("PUT", ""), wrote, "nothing was tried again");
    assert_eq!(first.support(), second.support());
    let reader = S3Store::connect(server.config(), Some(key)).await.unwrap();
    assert_eq!(reader.support(), first.support());
    // What cannot be read is found out anew.
    first.put(key, "no JSON".into(), &PutOptions::default()).await.unwrap();
    let third = S3Store::open_remembering(server.config(), key).await.unwrap();
    assert_eq!(third.support(), first.support());
}

#[tokio::test]
async fn every_object_has_its_class_and_is_encrypted_as_configured() {
    let server = Server::full().await;
    let config = S3Config {
        storage_class: Some(StorageClass::new("STANDARD_IA")),
        sse: Some("AES256".into()),
        ..server.config()
    };
    let store: Arc<dyn Store> = Arc::new(S3Store::open(config).await.unwrap());
    suite::put(&store, "small", "x").await;
    let content = noise(11 * MIB as usize, 1);
    store.put("large", chunked(&content, None), &PutOptions::default()).await.unwrap();
    let file = store::SmallFile {
        storage_class: Some(StorageClass::new("STANDARD")),
        ..store::SmallFile::new("batch", "x")
    };
    store.put_batch(vec![file, store::SmallFile::new("other", "x")]).await.unwrap();
    for (key, class) in [
        ("small", "STANDARD_IA"),
        ("large", "STANDARD_IA"),
        ("batch", "STANDARD"),
        ("other", "STANDARD_IA"),
    ] {
        let found = store.head(key).await.unwrap().storage_class;
        assert_eq!(found, Some(StorageClass::new(class)), "{key}");
    }
}
