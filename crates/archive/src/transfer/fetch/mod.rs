//! Downloading files that depositors name, safely and resumably.
//!
//! A URL is someone else's word: only http, https and (below configured directories) file; no
//! address inside a private network unless it is allowed, after the name is resolved and on each
//! redirect; no more bytes than expected. A download goes on where it stopped, in the same run, in
//! a later one, or on another machine that sees the same work space.

mod error;
mod get;
mod http;
mod limits;
mod local;
mod partial;
mod rate;
mod target;

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use crate::ErrorCode;
use crate::config::AllowList;
pub(crate) use error::of_disk;

use crate::config::FetchSection;
use crate::{Error, Result};
use ::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderValue, LAST_MODIFIED, RANGE,
};
use ::http::{HeaderMap, Method};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use url::Url;

/// Is given every byte of a file in order, once. When a download starts over, `begin` is called
/// again, and everything before it does not count.
pub trait Sink: Send + Sync {
    fn begin(&mut self);
    fn bytes(&mut self, chunk: &[u8]);
}

/// For who only wants the file.
impl Sink for () {
    fn begin(&mut self) {}
    fn bytes(&mut self, _: &[u8]) {}
}

/// Is told how many bytes of the file are there.
pub type Progress<'a> = dyn Fn(u64) + Send + Sync + 'a;

/// What is known of a file without fetching it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub size: Option<u64>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub accepts_ranges: bool,
}

/// What a file has to be, and what it may take.
#[derive(Clone, Default)]
pub struct Expect<'r> {
    pub size: Option<u64>,
    /// The digest that was given for it. It is not checked here: a partial file of another one is
    /// not gone on with.
    pub digest: Option<String>,
    /// The most bytes it may have, where that is less than `fetch.bytes_max`.
    pub bytes_max: Option<u64>,
    /// Is asked before anything is written; without it there is room for everything.
    pub room: Option<&'r dyn Room>,
}

/// Grants room for what is downloaded.
pub trait Room: Send + Sync {
    /// Takes room for so many bytes more; what has arrived stays where there is none.
    fn take(&self, bytes: u64) -> BoxFuture<'_, Result<()>>;
    /// Gives back the room of bytes that were removed.
    fn give(&self, bytes: u64);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downloaded {
    /// The size of the whole file.
    pub bytes: u64,
    /// How many of them were there when this download began and were kept.
    pub resumed_from: u64,
}

/// Fetches for a whole process: its limits hold for all downloads together.
#[derive(Debug)]
pub struct Fetcher {
    http: http::Http,
    /// Asks about files. Downloads that take all connections do not make questions wait.
    questions: http::Http,
    heads_time_max: Duration,
    file_roots: Vec<PathBuf>,
    bytes_max: u64,
    bytes_per_second_min: u64,
    rate_window: Duration,
    tries: u32,
    /// The first wait before another try; doubles each time.
    pause: Duration,
}

/// A file that may be read where it is. Its reader opens it again, perhaps in another
/// process, and a link may lie in its place by then: only what still has this fingerprint was
/// allowed, see [`crate::package::Package::that_is`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    pub path: PathBuf,
    pub fingerprint: String,
}

impl Fetcher {
    pub fn new(settings: &FetchSection) -> Result<Fetcher> {
        let allow = || {
            AllowList::new(&settings.allow_private).map_err(|why| {
                Error::permanent(ErrorCode::ConfigValue, format!("fetch.allow_private: {why}"))
            })
        };
        let limits = || limits::Limits::new(settings.connections_per_host, settings.connections);
        let connect = Duration::from_secs(settings.connect_timeout_seconds);
        let timeout = Duration::from_secs(settings.timeout_seconds);
        Ok(Fetcher {
            http: http::Http::new(allow()?, limits(), connect, timeout)?,
            questions: http::Http::new(allow()?, limits(), connect, timeout)?,
            heads_time_max: Duration::from_secs(settings.estimate_seconds_max),
            file_roots: settings.file_roots.clone(),
            bytes_max: settings.bytes_max,
            bytes_per_second_min: settings.bytes_per_second_min,
            rate_window: Duration::from_secs(settings.rate_window_seconds),
            tries: settings.tries,
            pause: Duration::from_millis(250),
        })
    }

    /// What can be known of a file without fetching it. One try; a caller that asks about many files
    /// decides about more.
    pub async fn head(&self, url: &str) -> Result<Head> {
        let url = target::parse(url)?;
        if url.scheme() == "file" {
            let local = local::open(&url, &self.file_roots)?;
            return Ok(Head {
                size: Some(local.size),
                etag: Some(local.version),
                last_modified: None,
                accepts_ranges: true,
            });
        }
        let answer = self.ask(&Method::HEAD, &url, &HeaderMap::new()).await?;
        if answer.status.is_success() {
            let ranges = answer.header(ACCEPT_RANGES) == Some("bytes");
            return Ok(facts(&answer.headers, ranges, length(&answer.headers)));
        }
        // Some servers, and URLs signed for GET, refuse HEAD; the first byte tells the same.
        if !matches!(answer.status.as_u16(), 400 | 401 | 403 | 405 | 501) {
            return Err(error::of_status(&answer.url, answer.status));
        }
        drop(answer);
        self.head_by_first_byte(&url).await
    }

    /// As [`Fetcher::head`]; `None` where it is not known before the deadline.
    pub async fn head_before(&self, url: &str, deadline: Instant) -> Result<Option<Head>> {
        match tokio::time::timeout_at(deadline.into(), self.head(url)).await {
            Ok(head) => head.map(Some),
            // What is wrong with the URL itself is known without asking.
            Err(_) => target::parse(url).map(|_| None),
        }
    }

    /// How long the files of one object may be asked about.
    pub fn heads_time_max(&self) -> Duration {
        self.heads_time_max
    }

    /// Asks for an answer whose body is not read.
    async fn ask(&self, method: &Method, url: &Url, headers: &HeaderMap) -> Result<http::Answer> {
        self.questions.send(method, url, headers, &mut rate::Meter::off()).await
    }

    async fn head_by_first_byte(&self, url: &Url) -> Result<Head> {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, HeaderValue::from_static("bytes=0-0"));
        let answer = self.ask(&Method::GET, url, &headers).await?;
        let total =
            |h: &HeaderMap| h.get(CONTENT_RANGE)?.to_str().ok()?.rsplit_once('/')?.1.parse().ok();
        match answer.status.as_u16() {
            206 => Ok(facts(&answer.headers, true, total(&answer.headers))),
            200 => Ok(facts(&answer.headers, false, length(&answer.headers))),
            // An empty file has no first byte.
            416 => Ok(facts(&answer.headers, true, total(&answer.headers))),
            _ => Err(error::of_status(&answer.url, answer.status)),
        }
    }

    /// The file that a `file:` URL names below one of the roots; `None` for other URLs. Such a file
    /// is read where it is.
    pub fn local_file(&self, url: &str) -> Result<Option<LocalFile>> {
        let url = target::parse(url)?;
        if url.scheme() != "file" {
            return Ok(None);
        }
        let local = local::open(&url, &self.file_roots)?;
        let meta = local.file.metadata().map_err(|e| local::unreadable(&url, &e))?;
        let fingerprint = crate::package::fingerprint(&meta);
        Ok(Some(LocalFile { path: local.path, fingerprint }))
    }

    /// Fetches a file into `into`, going on with what is there of it already, and makes it
    /// durable. While it is not whole, it is `into.part`, and `into.meta` describes it; dropping the
    /// future at any point leaves what a later call goes on with.
    pub async fn download(
        &self,
        url: &str,
        into: &Path,
        expect: &Expect<'_>,
        sink: &mut dyn Sink,
        progress: &Progress<'_>,
    ) -> Result<Downloaded> {
        let url = target::parse(url)?;
        let meter = rate::Meter::new(self.bytes_per_second_min, self.rate_window);
        get::Get { fetcher: self, url, expect, sink, progress, meter }.run(into).await
    }
}

/// Removes what is there of a file that is not whole.
pub fn forget_part(into: &Path) {
    for extension in [".meta", ".meta.new", ".part"] {
        let _ = std::fs::remove_file(partial::beside(into, extension));
    }
}

/// Refuses a URL with a name or password in it before it is written down anywhere.
pub fn check_credentials(url: &str) -> Result<()> {
    match target::parse(url) {
        Err(error) if error.is(ErrorCode::UrlCredentials) => Err(error),
        _ => Ok(()),
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn facts(headers: &HeaderMap, accepts_ranges: bool, size: Option<u64>) -> Head {
    let text = |name| Some(headers.get(name)?.to_str().ok()?.to_string());
    Head { size, etag: text(ETAG), last_modified: text(LAST_MODIFIED), accepts_ranges }
}
