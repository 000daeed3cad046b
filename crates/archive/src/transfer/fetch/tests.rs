use super::testing::{End, Reply, Server};
use super::*;
use crate::config::AllowPrivate;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keeps what it was given.
#[derive(Default)]
struct Kept(Vec<u8>, usize);

impl Sink for Kept {
    fn begin(&mut self) {
        self.0.clear();
        self.1 += 1;
    }
    fn bytes(&mut self, chunk: &[u8]) {
        self.0.extend(chunk);
    }
}

fn allowing(list: &[&str]) -> Fetcher {
    let allow_private = AllowPrivate::Only(list.iter().map(|s| s.to_string()).collect());
    let settings =
        FetchSection { allow_private, bytes_max: 8 << 30, tries: 3, ..Default::default() };
    let mut fetcher = Fetcher::new(&settings).unwrap();
    fetcher.pause = Duration::from_millis(1);
    fetcher
}

fn local() -> Fetcher {
    allowing(&["127.0.0.1"])
}

/// A fetcher that loses its patience at once.
fn hasty() -> Fetcher {
    let allow = || AllowList::new(&AllowPrivate::All(true)).unwrap();
    let short = Duration::from_millis(150);
    let http = |allow| http::Http::new(allow, limits::Limits::new(4, 4), short, short).unwrap();
    Fetcher {
        http: http(allow()),
        questions: http(allow()),
        heads_time_max: short,
        file_roots: Vec::new(),
        bytes_max: 1 << 40,
        bytes_per_second_min: 0,
        rate_window: Duration::from_secs(1),
        tries: 2,
        pause: Duration::from_millis(1),
    }
}

fn content(size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    std::iter::repeat_with(|| random.u8(..)).take(size).collect()
}

struct Got {
    dir: tempfile::TempDir,
    sink: Kept,
}

impl Got {
    fn new() -> Got {
        Got { dir: tempfile::tempdir().unwrap(), sink: Kept::default() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("file")
    }

    async fn get(&mut self, fetcher: &Fetcher, url: &str, size: Option<u64>) -> Result<Downloaded> {
        let (path, expect) = (self.path(), Expect { size, ..Expect::default() });
        fetcher.download(url, &path, &expect, &mut self.sink, &|_| {}).await
    }

    /// The file and what the sink saw are both the content, and nothing else is left.
    fn check(&self, content: &[u8]) {
        assert!(std::fs::read(self.path()).unwrap() == content, "the file differs");
        assert!(self.sink.0 == content, "the sink saw something else");
        let names = std::fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["file"], "the file is whole");
    }
}

#[tokio::test]
async fn a_file_is_fetched_and_seen_once() {
    let body = content(300_000);
    let sent = body.clone();
    let server = Server::start(move |_, _| Reply::ok(&sent, "a"));
    let mut got = Got::new();
    let seen = AtomicU64::new(0);
    let done = local()
        .download(
            &server.url("/x?key=1#f"),
            &got.path(),
            &Expect { size: Some(300_000), ..Expect::default() },
            &mut got.sink,
            &|n| {
                seen.store(n, Ordering::Relaxed);
            },
        )
        .await
        .unwrap();
    assert_eq!(done, Downloaded { bytes: 300_000, resumed_from: 0 });
    assert_eq!(seen.load(Ordering::Relaxed), 300_000);
    got.check(&body);
    let request = server.seen.lock().unwrap()[0].clone();
    assert_eq!(request.path, "/x?key=1");
    assert_eq!(request.headers["accept-encoding"], "identity");
    assert!(request.headers["user-agent"].starts_with("accession/"));
}

#[tokio::test]
async fn a_cut_connection_is_gone_on_with() {
    let body = content(500_000);
    let sent = body.clone();
    let server = Server::start(move |number, request| {
        let reply = Reply::ranged(request, &sent, "a");
        // Five cuts, though only three tries in vain are allowed: each got further.
        if number < 5 { reply.ending(End::Cut(60_000)) } else { reply }
    });
    let mut got = Got::new();
    let done = got.get(&local(), &server.url("/"), None).await.unwrap();
    assert_eq!(done, Downloaded { bytes: 500_000, resumed_from: 0 });
    got.check(&body);
    assert_eq!(got.sink.1, 1, "it never started over");
    let starts: Vec<_> = server.seen.lock().unwrap().iter().map(|r| r.range()).collect();
    assert_eq!(
        starts,
        [None, Some(60_000), Some(120_000), Some(180_000), Some(240_000), Some(300_000)]
    );
}

#[tokio::test]
async fn a_later_run_goes_on_and_feeds_what_was_there() {
    let body = content(200_000);
    let sent = body.clone();
    let server = Server::start(move |number, request| match number {
        0 => Reply::ranged(request, &sent, "a").ending(End::Cut(150_000)),
        1..=3 => Reply::new("500 No\r\nContent-Length: 0", ""),
        _ => Reply::ranged(request, &sent, "a"),
    });
    let mut got = Got::new();
    let error = got.get(&local(), &server.url("/"), None).await.unwrap_err();
    assert_eq!(error.code(), "host_failed");
    assert!(matches!(&error, Error::Transient { target: Some(t), .. } if t == "host 127.0.0.1"));
    got.sink = Kept::default();
    let done = got.get(&local(), &server.url("/"), None).await.unwrap();
    assert_eq!(done, Downloaded { bytes: 200_000, resumed_from: 150_000 });
    got.check(&body);
}

#[tokio::test]
async fn a_changed_source_is_fetched_anew() {
    let (old, new) = (content(100_000), vec![9; 120_000]);
    let (first, second) = (old.clone(), new.clone());
    let server = Server::start(move |number, request| match number {
        0 => Reply::ranged(request, &first, "old").ending(End::Cut(50_000)),
        _ => Reply::ranged(request, &second, "new"),
    });
    let mut got = Got::new();
    let done = got.get(&local(), &server.url("/"), None).await.unwrap();
    assert_eq!(done, Downloaded { bytes: 120_000, resumed_from: 0 });
    got.check(&new);
    assert_eq!(got.sink.1, 2);
}

#[tokio::test]
async fn servers_without_ranges_send_everything_again() {
    let body = content(100_000);
    let sent = body.clone();
    let server = Server::start(move |number, _| {
        let reply = Reply::ok(&sent, "a");
        if number == 0 { reply.ending(End::Cut(70_000)) } else { reply }
    });
    let mut got = Got::new();
    got.get(&local(), &server.url("/"), None).await.unwrap();
    got.check(&body);
    // Without anything to tell versions apart by, nothing is gone on with.
    let sent = body.clone();
    let server = Server::start(move |number, request| {
        assert_eq!(request.range(), None);
        let reply = Reply::new(
            format!("200 OK\r\nContent-Length: {}\r\nETag: W/\"a\"", sent.len()),
            &sent[..],
        );
        if number == 0 { reply.ending(End::Cut(70_000)) } else { reply }
    });
    let mut got = Got::new();
    got.get(&local(), &server.url("/"), None).await.unwrap();
    got.check(&body);
}

#[tokio::test]
async fn a_part_that_does_not_fit_is_not_taken() {
    let body = content(100_000);
    let sent = body.clone();
    let server = Server::start(move |number, request| match (number, request.range()) {
        (0, _) => Reply::ok(&sent, "a").ending(End::Cut(70_000)),
        (_, Some(_)) => Reply::new(
            "206 Partial Content\r\nContent-Length: 3\r\nContent-Range: bytes 0-2/100000",
            "abc",
        ),
        _ => Reply::ok(&sent, "a"),
    });
    let mut got = Got::new();
    got.get(&local(), &server.url("/"), None).await.unwrap();
    got.check(&body);
    // 416: what is there is longer than what the server has now.
    let server = Server::start(move |number, request| match (number, request.range()) {
        (0, _) => Reply::ok(&[1; 100_000], "a").ending(End::Cut(70_000)),
        (_, Some(_)) => Reply::new("416 No\r\nContent-Length: 0\r\nContent-Range: bytes */10", ""),
        _ => Reply::ok(&[2; 10], "b"),
    });
    let mut got = Got::new();
    got.get(&local(), &server.url("/"), None).await.unwrap();
    got.check(&[2; 10]);
}

#[tokio::test]
async fn a_wrong_length_is_refused_before_it_is_fetched() {
    let server = Server::start(|_, _| Reply::ok(&[1; 100], "a"));
    let error = Got::new().get(&local(), &server.url("/"), Some(99)).await.unwrap_err();
    assert_eq!(error.code(), "size_mismatch");
    assert!(error.to_string().contains("has 100 bytes but should have 99"));
    // Not announced: too many are noticed as they come, too few at the end.
    let server = Server::start(|_, _| Reply::new("200 OK", [1; 100]));
    let error = Got::new().get(&local(), &server.url("/"), Some(99)).await.unwrap_err();
    assert_eq!(error.code(), "size_mismatch");
    let error = Got::new().get(&local(), &server.url("/"), Some(101)).await.unwrap_err();
    assert_eq!(error.code(), "connection_lost");
    assert_eq!(server.count(), 1 + 3, "too few may be a cut, so it was tried again");
    let mut small = local();
    small.bytes_max = 50;
    let error = Got::new().get(&small, &server.url("/"), None).await.unwrap_err();
    assert_eq!(error.code(), "file_too_large");
}

#[tokio::test]
async fn redirects_are_followed_and_bounded() {
    let server = Server::start(|_, request| match request.path.as_str() {
        "/a" => Reply::new("302 Found\r\nLocation: /b/c\r\nContent-Length: 0", ""),
        "/b/c" => Reply::new("308 Moved\r\nLocation: ../d\r\nContent-Length: 0", ""),
        "/d" => Reply::ok(b"there", "a"),
        "/ftp" => Reply::new("301 Moved\r\nLocation: ftp://x/y\r\nContent-Length: 0", ""),
        "/file" => Reply::new("301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0", ""),
        _ => Reply::new("301 Moved\r\nLocation: /loop\r\nContent-Length: 0", ""),
    });
    let mut got = Got::new();
    got.get(&local(), &server.url("/a"), None).await.unwrap();
    got.check(b"there");
    let before = server.count();
    let error = Got::new().get(&local(), &server.url("/loop"), None).await.unwrap_err();
    assert_eq!(error.code(), "url_redirects");
    assert_eq!(server.count() - before, 11);
    for path in ["/ftp", "/file"] {
        let error = Got::new().get(&local(), &server.url(path), None).await.unwrap_err();
        assert_eq!(error.code(), "url_scheme", "{path}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_also_behind_redirects_and_names() {
    let inner = Server::start(|_, _| Reply::ok(b"secret", "a"));
    let port = inner.address.port();
    let outer = Server::start(move |_, request| {
        let host = request.path.trim_start_matches('/');
        Reply::new(format!("302 Found\r\nLocation: http://{host}:{port}/\r\nContent-Length: 0"), "")
    });
    for host in ["127.0.0.2", "[::1]", "[::ffff:127.0.0.9]", "0", "169.254.169.254", "10.0.0.1"] {
        let url = outer.url(&format!("/{host}"));
        let error = Got::new().get(&local(), &url, None).await.unwrap_err();
        assert_eq!(error.code(), "url_private_address", "{host}: {error}");
    }
    let by_name = format!("http://localhost:{port}/");
    let error = Got::new().get(&allowing(&["example.org"]), &by_name, None).await.unwrap_err();
    assert_eq!(error.code(), "url_private_address", "{error}");
    assert_eq!(inner.count(), 0, "nothing was sent");
    assert!(!error.is_transient());
    let mut got = Got::new();
    got.get(&allowing(&["localhost"]), &by_name, None).await.unwrap();
    got.check(b"secret");
    // An allowed name does not allow its address under another name.
    let by_address = format!("http://127.0.0.1:{port}/");
    let error = Got::new().get(&allowing(&["localhost"]), &by_address, None).await.unwrap_err();
    assert_eq!(error.code(), "url_private_address");
}

#[tokio::test]
async fn silence_is_a_timeout_and_what_came_is_kept() {
    let body = content(50_000);
    let sent = body.clone();
    let server = Server::start(move |number, request| match number {
        0 => Reply::ranged(request, &sent, "a").ending(End::Hang(20_000)),
        _ => Reply::ranged(request, &sent, "a"),
    });
    let mut got = Got::new();
    got.get(&hasty(), &server.url("/"), None).await.unwrap();
    got.check(&body);
    assert_eq!(server.seen.lock().unwrap()[1].range(), Some(20_000));
    // A listener that never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let error = Got::new().get(&hasty(), &url, None).await.unwrap_err();
    assert_eq!(error.code(), "host_timeout");
}

#[tokio::test]
async fn a_busy_server_is_tried_again_and_a_dead_one_is_named() {
    let server = Server::start(|number, _| match number {
        0 => Reply::new("503 Busy\r\nContent-Length: 0\r\nRetry-After: 0", ""),
        1 => Reply::new("502 Bad\r\nContent-Length: 0", ""),
        _ => Reply::ok(b"fine", "a"),
    });
    let mut got = Got::new();
    got.get(&local(), &server.url("/"), None).await.unwrap();
    got.check(b"fine");
    let server =
        Server::start(|_, _| Reply::new("503 Busy\r\nContent-Length: 0\r\nRetry-After: 3600", ""));
    let error = Got::new().get(&local(), &server.url("/"), None).await.unwrap_err();
    assert_eq!((error.code(), server.count()), ("host_busy", 1), "an hour is not waited for here");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Got::new().get(&local(), &format!("http://{gone}/"), None).await.unwrap_err();
    assert_eq!(error.code(), "host_unreachable");
    let error = Got::new().get(&local(), "http://no-such-host.invalid/", None).await.unwrap_err();
    assert_eq!(error.code(), "host_unreachable");
    assert!(
        matches!(&error, Error::Transient { target: Some(t), .. } if t == "host no-such-host.invalid")
    );
    let server = Server::start(|_, _| Reply::new("404 No\r\nContent-Length: 0", ""));
    let error = Got::new().get(&local(), &server.url("/"), None).await.unwrap_err();
    assert_eq!((error.code(), server.count()), ("url_not_found", 1));
}

#[tokio::test]
async fn file_urls_are_copied_and_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let body = content(700_000);
    let from = dir.path().join("from");
    std::fs::write(&from, &body).unwrap();
    let url = Url::from_file_path(&from).unwrap().to_string();
    let mut fetcher = local();
    let error = Got::new().get(&fetcher, &url, None).await.unwrap_err();
    assert_eq!(error.code(), "file_outside_roots");
    fetcher.file_roots = vec![dir.path().to_path_buf()];
    let mut got = Got::new();
    got.get(&fetcher, &url, Some(700_000)).await.unwrap();
    got.check(&body);
    let head = fetcher.head(&url).await.unwrap();
    assert_eq!(head.size, Some(700_000));
    // A partial copy of this very version.
    let mut got = Got::new();
    let etag = format!("\"{}\"", head.etag.unwrap());
    leave_part(&got.path(), &url, &Expect::default(), (&etag, 700_000), 500_000);
    std::fs::write(partial::beside(&got.path(), ".part"), &body[..500_000]).unwrap();
    let done = got.get(&fetcher, &url, None).await.unwrap();
    assert_eq!(done.resumed_from, 500_000);
    got.check(&body);
}

/// Leaves a partial file of zeros as a download that another machine made does.
fn leave_part(into: &Path, url: &str, expect: &Expect<'_>, source: (&str, u64), bytes: u64) {
    let (etag, size) = (Some(source.0.to_string()), Some(source.1));
    let source = partial::Source { etag, size, ..partial::Source::of(url, expect) };
    let text = serde_json::json!({"source": source, "bytes_durable": bytes, "boot": "another"});
    std::fs::write(partial::beside(into, ".meta"), text.to_string()).unwrap();
    let part = std::fs::File::create(partial::beside(into, ".part")).unwrap();
    part.set_len(bytes).unwrap();
}

/// Counts, and does not keep.
struct Count(u64);

impl Sink for Count {
    fn begin(&mut self) {
        self.0 = 0;
    }
    fn bytes(&mut self, chunk: &[u8]) {
        self.0 += chunk.len() as u64;
    }
}

#[tokio::test]
async fn files_larger_than_two_gibibytes_are_gone_on_with() {
    const THERE: u64 = (2 << 30) + 123;
    let server = Server::start(|_, request| {
        assert_eq!(request.headers["range"], format!("bytes={THERE}-"));
        let total = THERE + 4;
        Reply::new(
            format!(
                "206 Partial Content\r\nContent-Length: 4\r\nContent-Range: bytes {THERE}-{}/{total}",
                total - 1
            ),
            "tail",
        )
    });
    let got = Got::new();
    let url = server.url("/big");
    let mut count = Count(9);
    let expect = Expect { size: Some(THERE + 4), ..Expect::default() };
    leave_part(&got.path(), &url, &expect, ("\"a\"", THERE + 4), THERE);
    let done = local().download(&url, &got.path(), &expect, &mut count, &|_| {}).await.unwrap();
    assert_eq!(done, Downloaded { bytes: THERE + 4, resumed_from: THERE });
    assert_eq!(count.0, THERE + 4);
    assert_eq!(std::fs::metadata(got.path()).unwrap().len(), THERE + 4);
}

#[tokio::test]
async fn a_dropped_download_leaves_what_the_next_goes_on_with() {
    let body = content(400_000);
    let sent = body.clone();
    let server = Server::start(move |number, request| match number {
        0 => Reply::ranged(request, &sent, "a").ending(End::Hang(300_000)),
        _ => Reply::ranged(request, &sent, "a"),
    });
    let mut got = Got::new();
    let (fetcher, url, path) = (local(), server.url("/"), got.path());
    let came = tokio::sync::Notify::new();
    {
        let (expect, progress) = (Expect::default(), |n: u64| {
            if n == 300_000 {
                came.notify_one()
            }
        });
        let download = fetcher.download(&url, &path, &expect, &mut got.sink, &progress);
        tokio::select! {
            done = download => panic!("{done:?}"),
            () = came.notified() => {}
        }
    }
    got.sink = Kept::default();
    let done = got.get(&fetcher, &url, None).await.unwrap();
    assert!(done.resumed_from > 0, "{done:?}");
    got.check(&body);
}

#[tokio::test]
async fn what_is_whole_is_not_asked_for_again() {
    let body = content(1000);
    let got_before = Got::new();
    let server = Server::start(|_, _| panic!("nothing is asked"));
    let url = server.url("/");
    let expect = Expect { size: Some(1000), ..Expect::default() };
    leave_part(&got_before.path(), &url, &expect, ("\"a\"", 1000), 1000);
    std::fs::write(partial::beside(&got_before.path(), ".part"), &body).unwrap();
    let mut got = got_before;
    let done = got.get(&local(), &url, Some(1000)).await.unwrap();
    assert_eq!(done, Downloaded { bytes: 1000, resumed_from: 1000 });
    got.check(&body);
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn the_head_of_a_file_is_found_out_in_either_way() {
    let server = Server::start(|_, request| {
        match (request.method.as_str(), request.path.as_str()) {
            ("HEAD", "/plain") => Reply::new(
                "200 OK\r\nContent-Length: 12345\r\nAccept-Ranges: bytes\r\nETag: \"e\"",
                "",
            ),
            ("HEAD", "/gone") => Reply::new("404 No\r\nContent-Length: 0", ""),
            ("HEAD", _) => Reply::new("403 No\r\nContent-Length: 0", ""),
            ("GET", "/signed") => {
                assert_eq!(request.headers["range"], "bytes=0-0");
                Reply::new(
                    "206 Partial\r\nContent-Length: 1\r\nContent-Range: bytes 0-0/777\r\nLast-Modified: then",
                    "x",
                )
            }
            ("GET", "/unranged") => Reply::new("200 OK\r\nContent-Length: 9", "123456789"),
            _ => Reply::new("403 No\r\nContent-Length: 0", ""),
        }
    });
    let fetcher = local();
    let head = fetcher.head(&server.url("/plain")).await.unwrap();
    assert_eq!(
        head,
        Head {
            size: Some(12345),
            etag: Some("\"e\"".into()),
            last_modified: None,
            accepts_ranges: true
        }
    );
    let head = fetcher.head(&server.url("/signed")).await.unwrap();
    assert_eq!((head.size, head.accepts_ranges), (Some(777), true));
    assert_eq!(head.last_modified.as_deref(), Some("then"));
    assert_eq!(fetcher.head(&server.url("/unranged")).await.unwrap().size, Some(9));
    let code = |result: Result<Head>| result.unwrap_err().code();
    assert_eq!(code(fetcher.head(&server.url("/gone")).await), "url_not_found");
    assert_eq!(code(fetcher.head(&server.url("/closed")).await), "url_forbidden");
}
