//! S3 when the network or the server fails: what can be fixed is, what cannot is an error, and
//! nothing that is not the object is ever passed off as it.

use crate::server::{Fault, MIB, Server};
use crate::suite::{chunked, noise};
use bytes::Bytes;
use http::Method;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Body, Condition, Error, ErrorKind, PutOptions, S3Config, S3Store, Store};

const SLOW_DOWN: Fault = Fault::Status(503, "SlowDown", None);
const INTERNAL: Fault = Fault::Status(500, "InternalError", None);

struct Setup {
    server: Server,
    store: Arc<dyn Store>,
}

async fn setup() -> Setup {
    setup_with(|_| {}).await
}

async fn setup_with(change: impl FnOnce(&mut S3Config)) -> Setup {
    let server = Server::full().await;
    let mut config = server.config();
    change(&mut config);
    let store = Arc::new(S3Store::open(config).await.unwrap());
    Setup { server, store }
}

impl Setup {
    async fn put(&self, key: &str, content: &Bytes) -> Result<(), Error> {
        self.store.put(key, chunked(content, None), &PutOptions::default()).await.map(drop)
    }

    async fn get(&self, key: &str) -> Result<Bytes, Error> {
        self.store.get(key, None).await?.bytes(usize::MAX).await
    }

    fn fault(&self, method: Method, contains: &'static str, fault: Fault) {
        self.server.faults.add(method, contains, fault);
    }

    /// Every fault has met its request, and nothing is left unfinished.
    async fn finish(&self) {
        assert_eq!(self.server.faults.left(), 0, "a fault found no request");
        assert_eq!(self.store.unfinished("").await.unwrap(), []);
    }
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Ok(_) => panic!("this should have failed"),
        Err(error) => error.kind(),
    }
}

#[tokio::test]
async fn failures_that_pass_are_not_noticed() {
    let t = setup().await;
    let content = noise(100_000, 1);
    for fault in [INTERNAL, SLOW_DOWN, Fault::Reset, Fault::ResetAfter, Fault::FailAfter] {
        for method in [Method::PUT, Method::GET, Method::HEAD, Method::DELETE] {
            t.server.faults.add_times(2, method, "some/where/k", fault.clone());
        }
        t.put("k", &content).await.unwrap();
        assert_eq!(t.get("k").await.unwrap(), content);
        assert_eq!(t.store.head("k").await.unwrap().size, 100_000);
        t.store.delete("k").await.unwrap();
        assert_eq!(t.server.faults.left(), 0, "{fault:?}");
    }
}

#[tokio::test]
async fn failures_that_stay_are_reported_as_what_they_are() {
    let t = setup().await;
    let tries = t.server.config().tries_max as usize;
    let cases = [
        (INTERNAL, ErrorKind::Transient, tries),
        (SLOW_DOWN, ErrorKind::Throttled, tries),
        (Fault::Reset, ErrorKind::Transient, tries),
        (Fault::Status(403, "AccessDenied", None), ErrorKind::Denied, 1),
        (Fault::Status(507, "XMinioStorageFull", None), ErrorKind::NoSpace, 1),
        (Fault::Status(403, "QuotaExceeded", None), ErrorKind::NoSpace, 1),
        (Fault::Status(400, "InvalidRequest", None), ErrorKind::Permanent, 1),
    ];
    for (fault, expected, tried) in cases {
        let puts = || t.server.faults.count("PUT", "where/k");
        let before = puts();
        t.server.faults.add_times(tried, Method::PUT, "where/k", fault);
        assert_eq!(kind(t.put("k", &noise(10, 1)).await), expected);
        assert_eq!(puts() - before, tried);
        assert_eq!(t.server.faults.left(), 0);
    }
    assert_eq!(kind(t.store.head("k").await), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_throttled_store_is_left_alone_as_long_as_it_asks() {
    let t = setup().await;
    t.put("k", &noise(10, 1)).await.unwrap();
    t.fault(Method::GET, "where/k", Fault::Status(503, "SlowDown", Some(1)));
    let began = Instant::now();
    t.get("k").await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    t.finish().await;
}

#[tokio::test]
async fn bytes_that_change_on_their_way_to_the_store_are_sent_again() {
    let t = setup().await;
    for (key, length) in [("small", 1000), ("large", 11 * MIB as usize)] {
        t.fault(
            Method::PUT,
            if key == "small" { "small" } else { "partNumber=2" },
            Fault::FlipRequest(500),
        );
        let content = noise(length, 5);
        t.put(key, &content).await.unwrap();
        assert!(t.get(key).await.unwrap() == content);
    }
    t.finish().await;
    let tries = t.server.config().tries_max as usize;
    t.server.faults.add_times(tries, Method::PUT, "where/k", Fault::FlipRequest(3));
    assert_eq!(kind(t.put("k", &noise(10, 1)).await), ErrorKind::Corrupt);
}

#[tokio::test]
async fn bytes_that_change_on_their_way_back_are_an_error() {
    let t = setup().await;
    // In one part, in two, and so large that it is read in parallel.
    for (key, length) in [("one", 1000), ("two", 6 * MIB as usize), ("many", 23 * MIB as usize)] {
        let content = noise(length, 8);
        t.put(key, &content).await.unwrap();
        assert!(t.get(key).await.unwrap() == content);
        t.fault(Method::GET, "where/", Fault::FlipAnswer(length / 5));
        assert_eq!(kind(t.get(key).await), ErrorKind::Corrupt, "{key}");
    }
    let wrong =
        Fault::Header("x-amz-checksum-sha256", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    t.fault(Method::GET, "where/one", wrong.clone());
    assert_eq!(kind(t.get("one").await), ErrorKind::Corrupt);
    t.fault(Method::PUT, "where/one", wrong);
    assert_eq!(kind(t.put("one", &noise(10, 1)).await), ErrorKind::Corrupt);
    t.finish().await;
}

#[tokio::test]
async fn a_shorter_answer_that_looks_whole_is_an_error() {
    let t = setup().await;
    for (key, length) in [("one", 1000), ("two", 6 * MIB as usize)] {
        t.put(key, &noise(length, 8)).await.unwrap();
        t.fault(Method::GET, "where/", Fault::Shorten(7));
        assert_eq!(kind(t.get(key).await), ErrorKind::Corrupt, "{key}");
    }
    t.fault(Method::GET, "where/one", Fault::Shorten(7));
    assert_eq!(kind(t.store.get("one", Some(10..500)).await), ErrorKind::Corrupt);
    t.fault(Method::GET, "where/one", Fault::IgnoreRange);
    assert_eq!(kind(t.store.get("one", Some(10..500)).await), ErrorKind::Corrupt);
    t.finish().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_taken_up_where_it_did() {
    let t = setup_with(|config| config.stall = Duration::from_secs(2)).await;
    let content = noise(23 * MIB as usize, 2);
    t.put("k", &content).await.unwrap();
    let cut = [
        Fault::Truncate(0),
        Fault::Truncate(1_000_000),
        Fault::StallBody(300_000),
        Fault::Truncate(77),
        Fault::Reset,
        SLOW_DOWN,
        Fault::Truncate(5),
    ];
    cut.into_iter().for_each(|fault| t.fault(Method::GET, "where/k", fault));
    assert!(t.get("k").await.unwrap() == content);
    t.fault(Method::GET, "where/k", Fault::Truncate(1000));
    let part = t.store.get("k", Some(5..2_000_000)).await.unwrap();
    assert!(part.bytes(usize::MAX).await.unwrap() == content[5..2_000_000]);
    t.finish().await;
}

#[tokio::test]
async fn an_answer_that_always_breaks_off_is_an_error_not_data() {
    let t = setup().await;
    let content = noise(100_000, 2);
    t.put("k", &content).await.unwrap();
    t.fault(Method::GET, "where/k", Fault::Truncate(50_000));
    t.server.faults.add_times(10, Method::GET, "where/k", Fault::Truncate(0));
    assert_eq!(kind(t.get("k").await), ErrorKind::Transient);
    t.server.faults.clear();
    assert_eq!(t.get("k").await.unwrap(), content);
}

#[tokio::test]
async fn an_object_that_is_replaced_while_it_is_read_is_not_mixed() {
    let t = setup().await;
    t.put("k", &noise(100_000, 2)).await.unwrap();
    t.fault(Method::GET, "where/k", Fault::Truncate(50_000));
    let object = t.store.get("k", None).await.unwrap();
    t.put("k", &noise(100_000, 3)).await.unwrap();
    assert_eq!(kind(object.bytes(usize::MAX).await), ErrorKind::PreconditionFailed);
    t.finish().await;
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_on() {
    let short = Duration::from_secs(2);
    let t = setup_with(|config| (config.answer, config.stall) = (short, short)).await;
    let content = noise(100_000, 2);
    t.fault(Method::PUT, "where/k", Fault::Stall);
    t.put("k", &content).await.unwrap();
    t.fault(Method::GET, "where/k", Fault::Stall);
    t.fault(Method::GET, "where/k", Fault::StallBody(10));
    assert_eq!(t.get("k").await.unwrap(), content);
    t.finish().await;
    t.server.faults.add_times(4, Method::GET, "where/k", Fault::Stall);
    assert_eq!(kind(t.get("k").await), ErrorKind::Transient);
}

#[tokio::test]
async fn a_conditional_put_whose_answer_is_lost_knows_its_own_work() {
    let t = setup().await;
    let large = noise(11 * MIB as usize, 4);
    for lost in [Fault::ResetAfter, Fault::FailAfter] {
        t.fault(Method::PUT, "where/small", lost.clone());
        t.store.put("small", "mine".into(), &PutOptions::if_absent()).await.unwrap();
        t.fault(Method::POST, "where/large?uploadId", lost);
        t.store.put("large", chunked(&large, None), &PutOptions::if_absent()).await.unwrap();
        assert!(t.get("large").await.unwrap() == large);
        let again = t.store.put("small", "mine".into(), &PutOptions::if_absent()).await;
        assert_eq!(kind(again), ErrorKind::PreconditionFailed);
        t.store.delete("small").await.unwrap();
        t.store.delete("large").await.unwrap();
    }
    // Somebody else's object with the same content is still somebody else's.
    t.put("small", &Bytes::from("mine")).await.unwrap();
    t.fault(Method::PUT, "where/small", INTERNAL);
    let second = t.store.put("small", "mine".into(), &PutOptions::if_absent()).await;
    assert_eq!(kind(second), ErrorKind::PreconditionFailed);
    t.finish().await;
}

#[tokio::test]
async fn an_upload_survives_faults_in_every_step() {
    let t = setup().await;
    let content = noise(23 * MIB as usize, 4);
    let part = |number: &'static str, fault| t.fault(Method::PUT, number, fault);
    for fault in [INTERNAL, SLOW_DOWN, Fault::Reset, Fault::ResetAfter, Fault::FlipRequest(9)] {
        t.fault(Method::POST, "where/k?uploads", fault.clone());
        part("partNumber=1&", fault.clone());
        part("partNumber=5&", fault.clone());
        t.fault(Method::POST, "where/k?uploadId", fault.clone());
        // Beginning an upload has no body to change; and one that was begun without our knowing
        // it is left to be found.
        if matches!(fault, Fault::FlipRequest(_)) {
            t.server.faults.clear();
            part("partNumber=1&", fault.clone());
        }
        t.put("k", &content).await.unwrap();
        assert!(t.get("k").await.unwrap() == content);
        assert_eq!(t.server.faults.left(), 0, "{fault:?}");
        for lost in t.store.unfinished("").await.unwrap() {
            assert!(matches!(fault, Fault::ResetAfter));
            t.store.abort(&lost).await.unwrap();
        }
    }
    t.fault(Method::POST, "where/k?uploadId", Fault::ErrorInSuccess("InternalError"));
    t.put("k", &content).await.unwrap();
    t.fault(Method::POST, "where/k?uploadId", Fault::Truncate(20));
    t.put("k", &content).await.unwrap();
    t.finish().await;
}

#[tokio::test]
async fn an_upload_that_fails_is_aborted() {
    let t = setup().await;
    let content = noise(23 * MIB as usize, 4);
    t.server.faults.add_times(4, Method::PUT, "partNumber=3", INTERNAL);
    assert_eq!(kind(t.put("k", &content).await), ErrorKind::Transient);
    t.finish().await;
    t.fault(Method::POST, "where/k?uploadId", Fault::ErrorInSuccess("MalformedXML"));
    assert_eq!(kind(t.put("k", &content).await), ErrorKind::Permanent);
    t.finish().await;
    assert_eq!(kind(t.get("k").await), ErrorKind::NotFound);
}

#[tokio::test]
async fn an_upload_whose_caller_goes_away_is_aborted() {
    let t = setup().await;
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let first = futures_util::stream::iter([Ok::<_, Error>(noise(11 * MIB as usize, 1))]);
    let never = futures_util::stream::once(async move {
        sender.send(()).unwrap();
        std::future::pending().await
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, never), None);
    let store = t.store.clone();
    let putting = tokio::spawn(async move { store.put("k", body, &PutOptions::default()).await });
    receiver.await.unwrap();
    assert_eq!(t.store.unfinished("").await.unwrap().len(), 1);
    putting.abort();
    putting.await.unwrap_err();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !t.store.unfinished("").await.unwrap().is_empty() {
        assert!(Instant::now() < deadline, "it is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_upload_is_resumed_without_sending_again_what_is_there() {
    let t = setup().await;
    let content = noise(33 * MIB as usize, 4);
    let options = PutOptions { resume: true, ..PutOptions::default() };
    t.server.faults.add_times(4, Method::PUT, "partNumber=6&", INTERNAL);
    assert_eq!(
        kind(t.store.put("k", chunked(&content, None), &options).await),
        ErrorKind::Transient
    );
    assert_eq!(t.store.unfinished("").await.unwrap().len(), 1);
    let sent =
        |number: &str| t.server.faults.count("PUT", &format!("where/k?partNumber={number}&"));
    let before = sent("1");
    t.store.put("k", chunked(&content, None), &options).await.unwrap();
    assert_eq!((sent("1"), sent("2")), (before, 1));
    assert!(t.get("k").await.unwrap() == content);
    t.finish().await;

    // The same key, but other bytes in the second part: only what differs is sent.
    t.server.faults.add_times(4, Method::PUT, "partNumber=6&", INTERNAL);
    t.store.put("k", chunked(&content, None), &options).await.unwrap_err();
    let mut other = content.to_vec();
    other[6 * MIB as usize] ^= 1;
    let other = Bytes::from(other);
    let before = (sent("1"), sent("2"));
    t.store.put("k", chunked(&other, None), &options).await.unwrap();
    assert_eq!((sent("1"), sent("2")), (before.0, before.1 + 1));
    assert!(t.get("k").await.unwrap() == other);
    t.finish().await;
}

#[tokio::test]
async fn an_unfinished_upload_can_be_given_up() {
    let t = setup().await;
    let options = PutOptions { resume: true, ..PutOptions::default() };
    t.server.faults.add_times(4, Method::PUT, "partNumber=3&", INTERNAL);
    let content = noise(23 * MIB as usize, 4);
    t.store.put("a/k", chunked(&content, None), &options).await.unwrap_err();
    assert_eq!(t.store.unfinished("b").await.unwrap(), []);
    let found = t.store.unfinished("a").await.unwrap();
    assert_eq!(found[0].key.as_deref(), Some("a/k"));
    t.store.abort(&found[0]).await.unwrap();
    t.store.abort(&found[0]).await.unwrap();
    t.finish().await;
}

#[tokio::test]
async fn large_objects_are_read_in_parallel_and_large_copies_made_in_parts() {
    let t = setup_with(|config| config.copy_bytes_max = 6 * MIB).await;
    let content = noise(33 * MIB as usize, 4);
    t.put("k", &content).await.unwrap();
    let before = t.server.faults.count("GET", "where/k");
    assert!(t.get("k").await.unwrap() == content);
    assert_eq!(t.server.faults.count("GET", "where/k") - before, 7);
    t.store.copy("k", "copy").await.unwrap();
    assert_eq!(t.server.faults.count("PUT", "where/copy?partNumber"), 6);
    assert!(t.get("copy").await.unwrap() == content);
    t.finish().await;
}

#[tokio::test]
async fn what_a_server_supports_is_found_out_and_the_probe_leaves_nothing() {
    use store::Support;
    let t = setup().await;
    let full = S3Store::open(t.server.config()).await.unwrap();
    assert_eq!(full.support().checksums_checked, Support::Yes);
    assert_eq!(full.support().uploads_listed, Support::Yes);
    assert_eq!(full.support().thaw, Support::No);

    // A server that keeps the condition for objects in one piece only.
    t.fault(Method::POST, "?uploadId", Fault::Status(200, "", None));
    let half = S3Store::open(t.server.config()).await.unwrap();
    assert_eq!(half.support().put_if_absent, Support::No);
    assert_eq!(half.support().put_if_match, Support::Yes);
    t.finish().await;

    // A server that takes conditions and checksums, and does not care.
    let plain = Server::plain().await;
    plain.faults.add(Method::PUT, "probe", Fault::Header("x-amz-checksum-sha256", ""));
    plain.faults.add(Method::PUT, "probe", Fault::Status(200, "", None));
    plain.faults.add(Method::PUT, "probe", Fault::Status(501, "NotImplemented", None));
    plain.faults.add(Method::PUT, "probe", Fault::Status(200, "", None));
    plain.faults.add(Method::HEAD, "probe", Fault::Header("x-amz-checksum-sha256", ""));
    let careless = S3Store::open(plain.config()).await.unwrap();
    let support = careless.support();
    assert_eq!(support.put_if_absent, Support::No);
    assert_eq!(support.put_if_match, Support::No);
    assert_eq!(support.checksums_checked, Support::No);
    assert_eq!(support.checksums_kept, Support::No);
    assert_eq!(support.uploads_listed, Support::No);
    let on = Condition::IfMatch("\"x\"".into());
    for condition in [Condition::IfAbsent, on] {
        let options = PutOptions { condition, ..PutOptions::default() };
        let put = careless.put("k", "x".into(), &options).await;
        assert_eq!(kind(put), ErrorKind::Unsupported);
    }
    assert_eq!(careless.list("", &store::ListOptions::default()).await.unwrap().entries, []);
}

#[tokio::test]
async fn wrong_keys_and_missing_buckets_are_said_so() {
    let server = Server::full().await;
    let mut config = server.config();
    config.bucket = "nothing".into();
    let error = S3Store::open(config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("NoSuchBucket"), "{error}");
    let mut config = server.config();
    let keys = store::Credentials::new("key", "wrong", None);
    config.credentials = store::CredentialSource::Static(keys);
    let error = S3Store::open(config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}
