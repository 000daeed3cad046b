//! Uploads that are cut off: taken up again, given up, and found by the sweep.

use crate::relay::Relay;
use crate::suite::{chunked, noise};
use crate::support::real::RealServer;
use crate::{MIB, config};
use std::time::Duration;
use store::{ErrorKind, PutOptions, S3Config, S3Store, Sha256Digest, Store, Support};

const LENGTH: u64 = 40 * MIB;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_before_the_network_failed_is_not_sent_again() {
    let server = RealServer::required();
    let relay = Relay::to(&server.endpoint);
    let through = server.through(relay.endpoint.clone());
    let impatient = S3Config {
        // One part after the other, and no long wait for a network that is cut.
        requests_max: 1,
        tries_max: 2,
        pause_first: Duration::from_millis(1),
        ..config(&through, "resumed")
    };
    let store = S3Store::open(impatient).await.unwrap();
    let content = noise(LENGTH as usize, 11);
    let sha256 = Sha256Digest::of(&content);
    let options = PutOptions { resume: true, sha256: Some(sha256), ..PutOptions::default() };
    relay.cut_after(25 * MIB);
    let failed = store.put("k", chunked(&content, None), &options).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
    assert!(relay.is_cut());
    relay.restore();
    let before = relay.sent();
    let put = store.put("k", chunked(&content, None), &options).await.unwrap();
    let sent = relay.sent() - before;
    println!("{sent} of {LENGTH} bytes were sent again");
    assert_eq!(put.size, LENGTH);
    if store.support().parts_recognised == Support::Yes {
        assert!(sent < 26 * MIB, "{sent} bytes were sent again, after 20 MiB had arrived");
    }
    server.judge("uploaded", &[&server.key("resumed")]);
    let judged = server.judge("keys", &[&server.key("resumed/k")]);
    assert!(judged.contains(&sha256.to_string()), "{judged}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_fails_for_good_leaves_nothing() {
    let server = RealServer::required();
    let store = S3Store::open(config(&server, "failed")).await.unwrap();
    let content = noise(12 * MIB as usize, 1);
    let wrong = Some(Sha256Digest::of(b"something else"));
    let options = PutOptions { sha256: wrong, ..PutOptions::default() };
    let failed = store.put("k", chunked(&content, None), &options).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Corrupt);
    server.judge("uploaded", &[&server.key("failed")]);
    assert_eq!(server.judge("keys", &[&server.key("failed/")]), "");
}
