//! Answers that cannot be right are errors: half a list, another object, or a page of a proxy must
//! not pass for what was asked for.

use crate::server::{Fault, MIB, Server};
use crate::suite::{chunked, noise, put};
use http::Method;
use std::sync::Arc;
use store::{Body, ErrorKind, ListOptions, PutOptions, Store};

const CUT_OFF: Fault =
    Fault::Replace("<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated>");
const GREETING: Fault = Fault::Answer("<html><body>Welcome to the guest network</body></html>");

async fn setup() -> (Server, Arc<dyn Store>) {
    let server = Server::full().await;
    let store = server.store().await;
    for name in ["dir/a", "dir/b", "dir/c/d", "other"] {
        put(&store, name, "x").await;
    }
    (server, store)
}

fn kind<T: std::fmt::Debug>(result: store::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[tokio::test]
async fn a_list_that_is_cut_off_does_not_count_as_complete() {
    let (server, store) = setup().await;
    let options = ListOptions::default();
    let strange = [
        CUT_OFF,
        GREETING,
        Fault::Answer("<ListBucketResult/>"),
        Fault::Answer("<Error><Code>InternalError</Code></Error>"),
        Fault::Replace("<Key>some/where/dir/a</Key>", ""),
        Fault::Replace("<Key>some/where/dir/a</Key>", "<Key>some/where/other</Key>"),
        Fault::Replace("<Size>1</Size>", "<Size>many</Size>"),
        Fault::Replace("<KeyCount>3</KeyCount>", "<KeyCount>4</KeyCount>"),
    ];
    for fault in strange {
        server.faults.add(Method::GET, "list-type=2", fault.clone());
        let error = store.list("dir", &options).await.unwrap_err();
        let expected = [ErrorKind::Corrupt, ErrorKind::Transient];
        assert!(expected.contains(&error.kind()), "{fault:?}: {error}");
        server.faults.add(Method::GET, "list-type=2", fault.clone());
        store.delete_all("dir").await.expect_err("nothing was deleted by such a list");
    }
    assert_eq!(store.list("dir", &options).await.unwrap().entries.len(), 3);
    assert_eq!(server.faults.left(), 0);
}

/// Ceph lists pages without keys in buckets from which much was deleted; the rest follows.
#[tokio::test]
async fn a_page_without_keys_is_not_the_end() {
    let (server, store) = setup().await;
    let empty = "<ListBucketResult><IsTruncated>true</IsTruncated>\
                 <NextContinuationToken>more</NextContinuationToken></ListBucketResult>";
    let rest = "<ListBucketResult><IsTruncated>false</IsTruncated>\
                <Contents><Key>some/where/dir/a</Key><Size>1</Size></Contents>\
                <Contents><Key>some/where/dir/c/d</Key><Size>1</Size></Contents></ListBucketResult>";
    server.faults.add(Method::GET, "list-type=2", Fault::Answer(empty));
    server.faults.add(Method::GET, "continuation-token=more", Fault::Answer(rest));
    assert_eq!(store.delete_all("dir").await.unwrap(), 2);
    assert_eq!(server.faults.left(), 0);
    let left = store.list("", &ListOptions::default()).await.unwrap().entries;
    let left: Vec<&str> = left.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(left, ["dir/b", "other"]);
}

const VERSIONS: &str = "<ListVersionsResult><IsTruncated>false</IsTruncated><Version>\
                        <Key>some/where/dir/a</Key><VersionId>1</VersionId></Version>\
                        <DeleteMarker><Key>some/where/dir/a</Key><VersionId>2</VersionId>\
                        </DeleteMarker></ListVersionsResult>";
const NO_VERSIONS: &str =
    "<ListVersionsResult><IsTruncated>false</IsTruncated></ListVersionsResult>";
const MORE_VERSIONS: &str = "<ListVersionsResult><IsTruncated>true</IsTruncated>\
                             <NextKeyMarker>some/where/dir/a</NextKeyMarker></ListVersionsResult>";

#[tokio::test]
async fn versions_are_counted_and_removed_to_the_end_or_not_at_all() {
    let (server, store) = setup().await;
    let listed = |answers: &[&'static str]| {
        for answer in answers {
            server.faults.add(Method::GET, "versions=", Fault::Answer(answer));
        }
    };
    listed(&[MORE_VERSIONS, VERSIONS]);
    assert_eq!(store.versions("dir").await.unwrap(), Some(2));
    // A list that contradicts itself does not count as a store that does not tell.
    listed(&["<ListVersionsResult><IsTruncated>true</IsTruncated></ListVersionsResult>"]);
    assert_eq!(kind(store.versions("dir").await), ErrorKind::Corrupt);
    listed(&["<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"]);
    assert_eq!(store.versions("dir").await.unwrap(), None, "an answer to another question");
    let removed = Fault::Answer("<DeleteResult/>");
    listed(&[MORE_VERSIONS, VERSIONS, NO_VERSIONS]);
    server.faults.add(Method::POST, "?delete", removed.clone());
    assert_eq!(store.remove_versions("dir").await.unwrap(), 2);
    // A server that only says that they are gone is not asked for ever.
    listed(&[VERSIONS, VERSIONS]);
    server.faults.add(Method::POST, "?delete", removed);
    assert_eq!(kind(store.remove_versions("dir").await), ErrorKind::Corrupt);
    assert_eq!(server.faults.left(), 0);
}

#[tokio::test]
async fn a_list_of_uploads_that_is_cut_off_does_not_count_as_complete() {
    let (server, store) = setup().await;
    for fault in [CUT_OFF, GREETING] {
        server.faults.add(Method::GET, "uploads=", fault);
        assert_eq!(kind(store.unfinished("").await), ErrorKind::Corrupt);
    }
    assert_eq!(server.faults.left(), 0);
}

#[tokio::test]
async fn a_put_that_a_proxy_answered_was_not_put() {
    let (server, store) = setup().await;
    server.faults.add(Method::PUT, "where/k", GREETING);
    assert_eq!(kind(store.put("k", "x".into(), &PutOptions::default()).await), ErrorKind::Corrupt);
    server.faults.add(Method::PUT, "where/k", Fault::Without("etag"));
    assert_eq!(kind(store.put("k", "x".into(), &PutOptions::default()).await), ErrorKind::Corrupt);
    store.delete("k").await.unwrap();
    let content = noise(11 * MIB as usize, 1);
    let options = PutOptions::default();
    let large = || store.put("k", chunked(&content, None), &options);
    server.faults.add(Method::POST, "?uploads", GREETING);
    assert_eq!(kind(large().await), ErrorKind::Corrupt);
    server.faults.add(Method::PUT, "partNumber=2", GREETING);
    large().await.expect_err("a part without etag");
    for _ in 0..4 {
        server.faults.add(Method::POST, "?uploadId", Fault::Answer("<Welcome/>"));
    }
    assert_eq!(kind(large().await), ErrorKind::Transient);
    assert_eq!(kind(store.head("k").await), ErrorKind::NotFound);
    server.faults.add(Method::PUT, "where/copy", GREETING);
    assert_eq!(kind(store.copy("other", "copy").await), ErrorKind::Corrupt);
    assert_eq!(server.faults.left(), 0);
    assert_eq!(store.unfinished("").await.unwrap(), []);
}

#[tokio::test]
async fn what_was_not_said_to_be_deleted_is_deleted_again() {
    let (server, store) = setup().await;
    server.faults.add(Method::POST, "?delete", Fault::Answer("<DeleteResult></DeleteResult>"));
    assert_eq!(store.delete_all("dir").await.unwrap(), 3);
    assert_eq!(store.list("", &ListOptions::default()).await.unwrap().entries.len(), 1);
    let refused = "<DeleteResult><Error><Key>some/where/other</Key><Code>AccessDenied</Code>\
                   </Error></DeleteResult>";
    server.faults.add(Method::POST, "?delete", Fault::Answer(refused));
    assert_eq!(kind(store.delete_all("").await), ErrorKind::Denied);
    server.faults.add(Method::POST, "?delete", GREETING);
    assert_eq!(kind(store.delete_all("").await), ErrorKind::Corrupt);
}

#[tokio::test]
async fn the_rest_of_another_object_is_not_taken_for_the_rest() {
    let (server, store) = setup().await;
    server.faults.add(Method::GET, "where/other", Fault::Header("content-range", "bytes 0-0/1"));
    let whole = store.get("other", None).await.unwrap();
    assert_eq!(whole.range, 0..1);
    // The answer breaks off, and the rest comes from another object of the same size.
    put(&store, "long", noise(100_000, 1)).await;
    server.faults.add(Method::GET, "where/long", Fault::Truncate(1000));
    server.faults.add(Method::GET, "where/long", Fault::Header("etag", "\"another\""));
    let read = store.get("long", None).await.unwrap().bytes(usize::MAX).await;
    assert_eq!(kind(read), ErrorKind::PreconditionFailed);
    assert_eq!(server.faults.left(), 0);
}

#[tokio::test]
async fn an_empty_file_is_put_with_its_length() {
    let (_server, store) = setup().await;
    store.put("empty", Body::from_bytes(""), &PutOptions::default()).await.unwrap();
    assert_eq!(store.head("empty").await.unwrap().size, 0);
    assert!(store.get("empty", None).await.unwrap().bytes(1).await.unwrap().is_empty());
}
