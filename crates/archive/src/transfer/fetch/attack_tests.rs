//! Servers that lie, crawl or change what they send.

use super::testing::{End, Reply, Server};
use super::*;
use crate::ErrorCode;
use crate::config::AllowPrivate;
use std::sync::Mutex;

fn fetcher(bytes_per_second_min: u64) -> Fetcher {
    let settings = FetchSection {
        allow_private: AllowPrivate::All(true),
        bytes_per_second_min,
        rate_window_seconds: 1,
        ..Default::default()
    };
    let mut fetcher = Fetcher::new(&settings).unwrap();
    fetcher.pause = Duration::from_millis(1);
    fetcher
}

async fn get(fetcher: &Fetcher, url: &str, into: &Path, expect: &Expect<'_>) -> Result<Downloaded> {
    fetcher.download(url, into, expect, &mut (), &|_| ()).await
}

fn space() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("file");
    (dir, into)
}

/// A server that sends a little now and then never meets a timeout: the minimum rate does.
#[tokio::test]
async fn a_crawling_server_is_given_up_and_gone_on_with_later() {
    let server = Server::start(|number, request| {
        let reply = Reply::ranged(request, &[7; 5000], "a");
        if number == 0 { reply.ending(End::Crawl(Duration::from_millis(50))) } else { reply }
    });
    let (_dir, into) = space();
    let url = server.url("/");
    let error = get(&fetcher(1000), &url, &into, &Expect::default()).await.unwrap_err();
    assert_eq!(error.code(), "host_slow", "{error}");
    assert!(error.is_transient() && error.to_string().contains("fetch.bytes_per_second_min"));
    assert!(matches!(&error, Error::Transient { target: Some(t), .. } if t == "host 127.0.0.1"));
    assert_eq!(server.count(), 1, "the same run does not try again");
    let done = get(&fetcher(1000), &url, &into, &Expect::default()).await.unwrap();
    assert!(done.resumed_from > 0, "{done:?}");
    assert_eq!(std::fs::read(&into).unwrap(), [7; 5000]);
}

#[tokio::test]
async fn any_rate_will_do_where_none_is_set() {
    let server = Server::start(|_, request| {
        Reply::ranged(request, &[7; 40], "a").ending(End::Crawl(Duration::from_millis(40)))
    });
    let (_dir, into) = space();
    get(&fetcher(0), &server.url("/"), &into, &Expect::default()).await.unwrap();
    assert_eq!(std::fs::read(&into).unwrap(), [7; 40]);
}

/// A server that ignores If-Range and goes on with another file shows it by its headers.
#[tokio::test]
async fn a_part_of_another_version_is_not_appended() {
    for (before, after) in [
        ("ETag: \"old\"", "ETag: \"new\""),
        (
            "Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT",
            "Last-Modified: Tue, 03 Nov 2026 10:00:00 GMT",
        ),
        (
            "ETag: \"same\"\r\nLast-Modified: Mon, 02 Nov 2026 10:00:00 GMT",
            "ETag: \"same\"\r\nLast-Modified: Tue, 03 Nov 2026 10:00:00 GMT",
        ),
    ] {
        let server = Server::start(move |number, request| match (number, request.range()) {
            (0, _) => Reply::new(format!("200 OK\r\nContent-Length: 1000\r\n{before}"), [1; 1000])
                .ending(End::Cut(600)),
            (_, Some(start)) => Reply::new(
                format!(
                    "206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-999/1000\r\n{after}",
                    1000 - start
                ),
                vec![2; 1000 - start],
            ),
            _ => Reply::new(format!("200 OK\r\nContent-Length: 1000\r\n{after}"), [2; 1000]),
        });
        let (_dir, into) = space();
        get(&fetcher(0), &server.url("/"), &into, &Expect::default()).await.unwrap();
        assert!(std::fs::read(&into).unwrap() == [2; 1000], "{after}: two versions were joined");
    }
}

#[tokio::test]
async fn an_encoded_answer_is_refused() {
    for (sent, refused) in [("gzip", true), ("br, identity", true), ("Identity", false)] {
        let server = Server::start(move |_, _| {
            let head = format!("200 OK\r\nContent-Length: 4\r\nContent-Encoding: {sent}");
            Reply::new(head, "\x1f..x")
        });
        let (dir, into) = space();
        let got = get(&fetcher(0), &server.url("/"), &into, &Expect::default()).await;
        assert_eq!(got.is_err(), refused, "{sent}");
        if let Err(error) = got {
            assert_eq!((error.code(), error.is_transient()), ("content_encoded", false));
            assert!(error.to_string().contains(sent), "{error}");
            let left = std::fs::read_dir(dir.path())
                .unwrap()
                .filter(|e| e.as_ref().unwrap().metadata().unwrap().len() > 0);
            assert_eq!(left.count(), 0, "nothing of it is kept");
        }
    }
}

/// A partial file belongs to its URL, size and digest: for anything else it is given up.
#[tokio::test]
async fn a_part_of_something_else_is_not_gone_on_with() {
    let server = Server::start(|number, request| {
        let reply = Reply::ranged(request, &[3; 1000], "a");
        if number.is_multiple_of(6) { reply.ending(End::Cut(500)) } else { reply }
    });
    let one = Expect { digest: Some("sha-256:aa".into()), ..Expect::default() };
    let other = Expect { digest: Some("sha-256:bb".into()), ..Expect::default() };
    let sized = Expect { size: Some(1000), ..one.clone() };
    for (path, expect, goes_on) in
        [("/x", &one, true), ("/y", &one, false), ("/x", &other, false), ("/x", &sized, false)]
    {
        let (_dir, into) = space();
        let mut once = fetcher(0);
        once.tries = 1;
        while !server.count().is_multiple_of(6) {
            let (_other_dir, elsewhere) = space();
            get(&once, &server.url("/"), &elsewhere, &Expect::default()).await.unwrap();
        }
        get(&once, &server.url("/x"), &into, &one).await.unwrap_err();
        assert!(!into.exists(), "what is not whole does not have the name");
        let done = get(&once, &server.url(path), &into, expect).await.unwrap();
        assert_eq!(done.resumed_from, if goes_on { 500 } else { 0 }, "{path} {:?}", expect.digest);
        assert_eq!(std::fs::read(&into).unwrap(), [3; 1000]);
    }
}

/// After the machine failed, only what is known to be on the disk is gone on with.
#[tokio::test]
async fn bytes_that_a_failed_machine_may_have_lost_are_fetched_again() {
    let server = Server::start(|number, request| {
        let reply = Reply::ranged(request, &[3; 1000], "a");
        if number == 0 { reply.ending(End::Cut(500)) } else { reply }
    });
    let (_dir, into) = space();
    let mut once = fetcher(0);
    once.tries = 1;
    get(&once, &server.url("/"), &into, &Expect::default()).await.unwrap_err();
    let meta = partial::beside(&into, ".meta");
    let mut text: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&meta).unwrap()).unwrap();
    assert_eq!(text["bytes_durable"], 0);
    text["boot"] = "before".into();
    std::fs::write(&meta, text.to_string()).unwrap();
    std::fs::write(partial::beside(&into, ".part"), [0; 500]).unwrap();
    get(&once, &server.url("/"), &into, &Expect::default()).await.unwrap();
    assert!(std::fs::read(&into).unwrap() == [3; 1000]);
}

/// So many bytes, and no more.
struct Bounded(Mutex<(u64, u64)>);

impl Room for Bounded {
    fn take(&self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        let mut room = self.0.lock().unwrap();
        let fits = room.0 + bytes <= room.1;
        room.0 += if fits { bytes } else { 0 };
        let full = || Error::transient(ErrorCode::NoSpace, "the work space is full");
        Box::pin(std::future::ready(fits.then_some(()).ok_or_else(full)))
    }

    fn give(&self, bytes: u64) {
        self.0.lock().unwrap().0 -= bytes;
    }
}

#[tokio::test]
async fn an_answer_that_never_ends_stops_where_its_room_does() {
    let server = Server::start(|_, _| Reply::new("200 OK", vec![1; 3_000_000]));
    let (dir, into) = space();
    let room = Bounded(Mutex::new((0, 1_000_000)));
    let expect = Expect { room: Some(&room), ..Expect::default() };
    let error = get(&fetcher(0), &server.url("/"), &into, &expect).await.unwrap_err();
    assert_eq!((error.code(), server.count()), ("no_space", 1));
    let left: u64 =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(left, 0, "what cannot be gone on with takes no space");
    assert_eq!(room.0.lock().unwrap().0, 0);
}

/// Whatever a download gives up and fetches again, the room it has is the room it takes.
#[tokio::test]
async fn room_is_counted_through_all_restarts() {
    let server = Server::start(|number, request| match number {
        0 => Reply::ranged(request, &[1; 500_000], "a").ending(End::Cut(400_000)),
        1 => Reply::ranged(request, &[2; 600_000], "b").ending(End::Cut(100_000)),
        _ => Reply::ranged(request, &[2; 600_000], "b"),
    });
    let (_dir, into) = space();
    let room = Bounded(Mutex::new((0, 600_000)));
    let expect = Expect { room: Some(&room), ..Expect::default() };
    get(&fetcher(0), &server.url("/"), &into, &expect).await.unwrap();
    assert_eq!(room.0.lock().unwrap().0, 600_000);
    assert!(std::fs::read(&into).unwrap() == [2; 600_000]);
    get(&fetcher(0), &server.url("/"), &into, &expect).await.unwrap();
    assert_eq!(room.0.lock().unwrap().0, 600_000, "the file that was there is given back");
}

#[tokio::test]
async fn a_range_that_holds_more_than_it_says_is_refused() {
    let server = Server::start(|number, request| match (number, request.range()) {
        (0, _) => Reply::ok(&[1; 1000], "a").ending(End::Cut(500)),
        (1, Some(_)) => Reply::new(
            "206 Partial Content\r\nContent-Range: bytes 500-999/1000\r\nETag: \"a\"",
            vec![9; 900_000],
        ),
        _ => Reply::ranged(request, &[1; 1000], "a"),
    });
    let (_dir, into) = space();
    let got = get(&fetcher(0), &server.url("/"), &into, &Expect::default()).await;
    assert!(got.is_err() || std::fs::read(&into).unwrap() == [1; 1000], "{got:?}");
}

#[tokio::test]
async fn a_limit_of_the_caller_holds_too() {
    let server = Server::start(|_, _| Reply::new("200 OK", [1; 100]));
    let (_dir, into) = space();
    let expect = Expect { bytes_max: Some(99), ..Expect::default() };
    let error = get(&fetcher(0), &server.url("/"), &into, &expect).await.unwrap_err();
    assert_eq!(error.code(), "file_too_large", "{error}");
}
