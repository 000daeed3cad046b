//! Fetching what fetch.txt lists: only what the manifests vouch for, and only into the bag.

use crate::common::{Files, codes};
use bagit::{
    Algorithm, Bag, Code, Error, FetchOptions, FetchReport, Fetched, Fetcher, HttpFetcher, Options,
};
use std::collections::HashMap;
use std::io::{Cursor, Read, Write};
use std::net::TcpListener;
use std::path::Path;

struct Shelf(HashMap<&'static str, &'static [u8]>);

impl Fetcher for Shelf {
    fn get(&self, url: &str) -> Result<Fetched, Error> {
        let bytes =
            self.0.get(url).ok_or_else(|| Error::Fetch { url: url.into(), reason: "no".into() })?;
        Ok(Fetched { length: None, body: Box::new(Cursor::new(*bytes)) })
    }
}

/// A bag that lacks two of its files.
fn holey(fetch: &str) -> Files {
    Files::new("1.0")
        .with("data/a", "alpha")
        .with("data/deep/er/b c", "beta")
        .manifest(Algorithm::Md5)
        .manifest(Algorithm::Sha256)
        .with("fetch.txt", fetch)
        .without("data/a")
        .without("data/deep/er/b c")
}

fn fetch(directory: &Path, fetcher: &dyn Fetcher, options: &FetchOptions) -> FetchReport {
    bagit::fetch(directory, fetcher, options, &()).unwrap()
}

#[test]
fn missing_files_are_fetched_checked_and_put_in_place() {
    let directory = tempfile::tempdir().unwrap();
    holey("x:a 5 data/a\nx:b - data/deep/er/b c\n").write(directory.path());
    let shelf = Shelf(HashMap::from([("x:a", &b"alpha"[..]), ("x:b", b"beta")]));
    let report = fetch(directory.path(), &shelf, &FetchOptions::default());
    assert_eq!((report.fetched, report.bytes, report.failed), (2, 9, 0), "{:?}", report.problems);
    let valid = Bag::open(directory.path()).unwrap().validate(&Options::default()).unwrap();
    assert_eq!(codes(&valid), []);
    let again = fetch(directory.path(), &shelf, &FetchOptions::default());
    assert_eq!((again.fetched, again.present), (0, 2));
}

#[test]
fn what_is_wrong_is_not_kept() {
    for (fetch_txt, a, options, code) in [
        ("x:a - data/a\n", &b"ALPHA"[..], FetchOptions::default(), Code::DigestMismatch),
        ("x:a 4 data/a\n", b"alpha", FetchOptions::default(), Code::FetchPending),
        ("x:a 6 data/a\n", b"alpha", FetchOptions::default(), Code::FetchLengthDiffers),
        ("x:z - data/a\n", b"alpha", FetchOptions::default(), Code::FetchPending),
        ("x:a - data/other\n", b"alpha", FetchOptions::default(), Code::FetchUnlisted),
        ("x:a - ../a\n", b"alpha", FetchOptions::default(), Code::FetchLineMalformed),
        ("x:a - a\n", b"alpha", FetchOptions::default(), Code::FetchPathOutsidePayload),
        (
            "x:a - data/a\n",
            b"alpha",
            FetchOptions { file_bytes_max: Some(3), ..FetchOptions::default() },
            Code::FetchPending,
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        holey(fetch_txt).write(directory.path());
        let before = std::fs::read_dir(directory.path()).unwrap().count();
        let report = fetch(directory.path(), &Shelf(HashMap::from([("x:a", a)])), &options);
        assert_eq!(report.fetched, 0, "{fetch_txt}");
        assert_eq!(
            report.problems.iter().map(|p| p.code).collect::<Vec<_>>(),
            [code],
            "{fetch_txt}"
        );
        assert!(!directory.path().join("data/a").exists());
        let after = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(before, after, "no temporary file is left");
    }
}

#[test]
#[cfg(unix)]
fn a_link_in_the_path_is_not_followed() {
    let (directory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    holey("x:b - data/deep/er/b c\n").write(directory.path());
    std::os::unix::fs::symlink(outside.path(), directory.path().join("data/deep")).unwrap();
    let shelf = Shelf(HashMap::from([("x:b", &b"beta"[..])]));
    let report = fetch(directory.path(), &shelf, &FetchOptions::default());
    assert_eq!((report.fetched, report.failed), (0, 1));
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn the_list_of_any_container_can_be_read() {
    let tar = holey("http://x/a 5 data/a\nbroken\n").tar("bag/");
    let mut lines = Vec::new();
    let bag = Bag::from_read_at(tar, "bag").unwrap();
    bag.fetch_list(&mut |line| {
        lines.push((line.url, line.length, line.path));
        Ok(())
    })
    .unwrap();
    assert_eq!(lines, [("http://x/a".to_owned(), Some(5), "data/a".to_owned())]);
}

/// A server for one connection after another, each of which gets the answer.
fn serve(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn http_is_fetched_from_private_addresses_only_when_allowed() {
    let url = serve(vec![ok("alpha")]);
    let directory = tempfile::tempdir().unwrap();
    holey(&format!("{url}/a 5 data/a\n")).write(directory.path());
    let guarded = fetch(directory.path(), &HttpFetcher::new(false), &FetchOptions::default());
    assert_eq!((guarded.fetched, guarded.failed), (0, 1));
    let message = &guarded.problems[0].message;
    assert!(message.contains("not a public address"), "{message}");
    let open = fetch(directory.path(), &HttpFetcher::new(true), &FetchOptions::default());
    assert_eq!((open.fetched, open.failed), (1, 0), "{:?}", open.problems);
}

#[test]
fn redirects_are_followed_a_few_times_and_other_schemes_not_at_all() {
    let target = serve(vec![ok("alpha")]);
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nLocation: {target}/a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let first = serve(vec![redirect]);
    let mut body = String::new();
    let fetched = HttpFetcher::new(true).get(&format!("{first}/x")).unwrap();
    { fetched.body }.read_to_string(&mut body).unwrap();
    assert_eq!(body, "alpha");
    for url in ["file:///etc/passwd", "ftp://example.org/x", "gopher://x/", "http://"] {
        assert!(HttpFetcher::new(true).get(url).is_err(), "{url}");
    }
}
