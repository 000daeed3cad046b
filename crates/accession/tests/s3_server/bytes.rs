//! The store: what it promises, and that boto3 reads the bytes that we put, and we those of boto3.

use crate::suite::{self, noise};
use crate::support::real::RealServer;
use crate::{MIB, open};
use futures_util::TryStreamExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Body, ErrorKind, PutOptions, Sha256Digest, SmallFile, Store, list_all};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite() {
    let server = RealServer::required();
    let store = open(&server, "suite").await;
    println!("it supports {}", store.support());
    if server.fails("nested-listing") || server.fails("backslash") {
        println!("skipped: this server is known not to conform");
        return;
    }
    suite::run(store).await;
}

/// Lengths around every border: of nothing, of small files, of a part, of several.
const LENGTHS: [u64; 11] = [
    0,
    1,
    255 * 1024,
    256 * 1024,
    256 * 1024 + 1,
    5 * MIB - 1,
    5 * MIB,
    5 * MIB + 1,
    10 * MIB,
    15 * MIB + 1,
    37 * MIB,
];

const NAMES: [&str; 14] = [
    "with space",
    "plus+plus",
    "percent%20",
    "ünïcödé",
    "名前",
    "e\u{301}",
    "\u{e9}",
    "quote\"'",
    "a&b<c>",
    "q?a=b#c",
    "back\\slash",
    "...",
    "~tilde*",
    "@:;,$!()[]{}|^`",
];

/// Keys with size and SHA-256, as boto3 sees them.
fn judged(server: &RealServer, name: &str) -> BTreeMap<String, (u64, String)> {
    let prefix = server.key(name) + "/";
    let listed = server.judge("keys", &[&prefix]);
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let key = line["key"].as_str().unwrap().strip_prefix(&prefix).unwrap().to_owned();
        (key, (line["size"].as_u64().unwrap(), line["sha256"].as_str().unwrap().to_owned()))
    };
    listed.lines().map(line).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boto3_reads_the_bytes_that_we_put() {
    let server = RealServer::required();
    let store: Arc<dyn Store> = open(&server, "bytes").await;
    let mut expected = BTreeMap::new();
    let mut remember = |key: &str, content: &bytes::Bytes| {
        let digest = Sha256Digest::of(content).to_string();
        expected.insert(key.to_owned(), (content.len() as u64, digest));
    };
    for length in LENGTHS {
        let content = noise(length as usize, length + 1);
        let key = format!("length/{length}");
        remember(&key, &content);
        let options = PutOptions { sha256: Some(Sha256Digest::of(&content)), ..Default::default() };
        store.put(&key, suite::chunked(&content, Some(length)), &options).await.unwrap();
        let key = format!("streamed/{length}");
        remember(&key, &content);
        store.put(&key, suite::chunked(&content, None), &PutOptions::default()).await.unwrap();
    }
    for name in NAMES {
        if name.contains('\\') && server.fails("backslash") {
            continue;
        }
        let content = bytes::Bytes::copy_from_slice(name.as_bytes());
        let key = format!("names/{name}/{name}");
        remember(&key, &content);
        store.put(&key, Body::from_bytes(content), &PutOptions::default()).await.unwrap();
    }
    let batch: Vec<SmallFile> = (0..1100_u64)
        .map(|n| SmallFile::new(format!("batch/{}/{n}", n % 7), noise(n as usize, n)))
        .collect();
    for file in &batch {
        remember(&file.key, &file.content);
    }
    store.put_batch(batch).await.unwrap();
    store.copy("length/39845888", "copy").await.expect_err("there is no such length");
    let (from, to) = (format!("length/{}", 37 * MIB), "copied/whole");
    store.copy(&from, to).await.unwrap();
    remember(to, &noise(37 * MIB as usize, 37 * MIB + 1));

    assert!(judged(&server, "bytes") == expected, "boto3 reads something else");
    let ours: BTreeMap<String, u64> = list_all(store.clone(), "", true)
        .map_ok(|entry| (entry.key, entry.size))
        .try_collect()
        .await
        .unwrap();
    let theirs: BTreeMap<String, u64> =
        expected.iter().map(|(key, (size, _))| (key.clone(), *size)).collect();
    assert!(ours == theirs, "boto3 lists something else");
    assert_eq!(store.delete_all("").await.unwrap(), expected.len() as u64);
    assert_eq!(judged(&server, "bytes"), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn we_read_the_bytes_that_boto3_puts() {
    let server = RealServer::required();
    let store: Arc<dyn Store> = open(&server, "theirs").await;
    let content = noise(3 * MIB as usize + 7, 5);
    for (name, content) in [("empty", &b""[..]), ("large", &content), ("dir/ü &+%41", b"x")] {
        let key = server.key(&format!("theirs/{name}"));
        server.asked(&["put", &server.bucket, &key], content).unwrap();
        assert!(suite::get(&store, name).await == content, "{name}");
        assert_eq!(store.head(name).await.unwrap().size, content.len() as u64);
    }
    let part = store.get("large", Some(1_000_001..2_000_003)).await.unwrap();
    assert!(part.bytes(usize::MAX).await.unwrap() == content[1_000_001..2_000_003]);
    assert_eq!(suite::keys(&store, "", false).await, ["dir", "empty", "large"]);
    // What is damaged is noticed where the store keeps a digest of what was put.
    let options = PutOptions { sha256: Some(Sha256Digest::of(&content)), ..Default::default() };
    store.put("ours", suite::chunked(&content, None), &options).await.unwrap();
    server.judge("damage", &[&server.key("theirs/ours")]);
    let read = store.get("ours", None).await.unwrap().bytes(usize::MAX).await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt);
}
