//! Sending requests: signed, watched for stalls, tried again with pauses that differ.

use super::answer::{Refusal, Remedy, text};
use super::clock;
use super::config::{AccessPoint, Base, S3Config};
use super::connect::{Connecting, Lost};
use super::credentials::CachedCredentials;
use super::http::{Answer, Http, Moment};
use super::limit::{Limit, SharedMemory};
use super::pause::Pauses;
use super::sign::{ToSign, encode, query_string, sign};
use crate::checksum::Sha256Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::StorageClass;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, StatusCode};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio::sync::OwnedSemaphorePermit;

/// An error page is short; more of it is not read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// A page of a listing: a thousand keys of a thousand bytes, escaped.
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What servers write into their logs about who asked.
const NAME_AND_VERSION: &str = concat!("accession-store/", env!("CARGO_PKG_VERSION"));

/// A request that can be sent again: its body is in memory.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub method: Method,
    /// The key as callers know it; empty for requests about the bucket.
    pub key: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
    pub body_sha256: Sha256Digest,
}

impl Request {
    pub(super) fn new(method: Method, key: &str) -> Request {
        Request {
            method,
            key: key.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            body_sha256: Sha256Digest::of(b""),
        }
    }

    /// Whether this was refused in a way that may be about the region, without a body to say so.
    fn is_unexplained(&self, failure: &Try) -> bool {
        let Try::Refused(refusal) = failure else { return false };
        let code = refusal.status.as_u16();
        self.method == Method::HEAD && matches!(code, 301 | 307 | 400)
    }

    pub(super) fn query(mut self, name: &str, value: impl ToString) -> Request {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl ToString) -> Request {
        self.headers.push((name, value.to_string()));
        self
    }

    pub(super) fn body(mut self, body: Bytes, sha256: Sha256Digest) -> Request {
        self.body = body;
        self.body_sha256 = sha256;
        self
    }
}

/// An answer that is a success. The permit keeps the number of requests under way bounded until
/// the body is read.
pub(super) struct Success {
    pub answer: Answer,
    pub permit: OwnedSemaphorePermit,
}

impl Success {
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.answer.headers
    }
}

/// Why a request failed, and whether it may have been carried out all the same.
pub(super) struct Failure {
    pub error: Error,
    pub status: Option<StatusCode>,
    pub code: String,
    pub uncertain: bool,
}

impl Failure {
    fn of_store_that_is_down(self) -> Failure {
        let (key, detail) = (self.error.key(), self.error.detail());
        let error = Error::new(ErrorKind::Unavailable, key, detail)
            .in_store(self.error.store())
            .with_retry_after(self.error.retry_after());
        Failure { error, ..self }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        failure.error
    }
}

/// A bucket and everything that its requests share.
pub(super) struct Client {
    pub config: S3Config,
    pub url: String,
    http: Http,
    credentials: CachedCredentials,
    pauses: Pauses,
    requests: Limit,
    /// What puts, and what gets, take beyond one part each.
    pub put_memory: SharedMemory,
    pub get_memory: SharedMemory,
    /// The region and address that answered last; a bucket may turn out to be elsewhere.
    place: RwLock<(String, Base)>,
    /// Seconds by which the server's clock is ahead of ours.
    clock_ahead: AtomicI64,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(config: S3Config) -> Result<Client> {
        let how = Connecting { proxies: true, ca_bundle: config.ca_bundle.clone() };
        let http = Http::new(config.stall, config.answer, &how)?;
        let place = RwLock::new((config.region.clone(), config.base()?));
        Ok(Client {
            url: config.url(),
            credentials: CachedCredentials::new(config.credentials.clone(), http.clone()),
            http,
            pauses: Pauses::new(config.pause_first),
            requests: Limit::new(config.requests_max),
            put_memory: SharedMemory::new(config.memory_bytes),
            get_memory: SharedMemory::new(config.memory_bytes),
            place,
            clock_ahead: AtomicI64::new(0),
            config,
        })
    }

    /// The key as the bucket knows it.
    pub(super) fn full_key(&self, key: &str) -> String {
        crate::key::join(&self.config.prefix, key)
    }

    /// How a new object is to be kept: its class, and how the server encrypts it.
    pub(super) fn keep_as(&self, request: Request, class: Option<&StorageClass>) -> Request {
        let class = class.or(self.config.storage_class.as_ref());
        let request = self.encrypted(request);
        match class {
            Some(class) => request.header("x-amz-storage-class", &class.0),
            None => request,
        }
    }

    /// How the server is to encrypt a new object. Buckets may refuse whatever does not say it.
    pub(super) fn encrypted(&self, request: Request) -> Request {
        let headers = [
            ("x-amz-server-side-encryption", self.config.sse.as_ref()),
            ("x-amz-server-side-encryption-aws-kms-key-id", self.config.sse_kms_key_id.as_ref()),
        ];
        headers.into_iter().fold(request, |request, (name, value)| match value {
            Some(value) => request.header(name, value),
            None => request,
        })
    }

    /// The value of a copy's source.
    pub(super) fn copy_source(&self, key: &str) -> String {
        let key = encode(&self.full_key(key), true);
        match AccessPoint::of(&self.config.bucket) {
            Some(_) => format!("{}/object/{key}", self.config.bucket),
            None => format!("/{}/{key}", self.config.bucket),
        }
    }

    /// Sends a request as often as it takes, within the limits.
    pub(super) async fn send(&self, request: &Request) -> Result<Success, Failure> {
        let mut uncertain = false;
        let mut moved = false;
        let mut refreshed = false;
        let mut tries = 1;
        loop {
            let failure = match self.send_once(request).await {
                Ok((answer, permit)) => {
                    self.pauses.succeeded();
                    self.requests.succeeded();
                    return Ok(Success { answer, permit });
                }
                Err(failure) => failure,
            };
            let remedy = failure.remedy();
            uncertain |= failure.is_uncertain();
            // Each of these is done once, at once, and does not count as a try.
            let corrected = match remedy {
                Remedy::ChangeRegion => {
                    !std::mem::replace(&mut moved, true) && self.moved(&failure)
                }
                // The answer to a HEAD cannot say which region it should be; that to a GET can.
                Remedy::GiveUp if !moved && request.is_unexplained(&failure) => {
                    moved = true;
                    match self.send_once(&Request::new(Method::GET, "").query("max-keys", 1)).await
                    {
                        Ok(_) => false,
                        Err(explained) => self.moved(&explained),
                    }
                }
                Remedy::RefreshCredentials if !refreshed => {
                    refreshed = true;
                    self.credentials.forget();
                    true
                }
                Remedy::AdjustClock if !refreshed => {
                    refreshed = true;
                    self.adjust_clock(&failure)
                }
                _ => false,
            };
            if corrected {
                continue;
            }
            let hopeless = !matches!(remedy, Remedy::TryAgain | Remedy::SlowDown);
            if hopeless || tries >= self.config.tries_max {
                let down = !hopeless && failure.may_be_down() && !self.answers().await;
                let failure = failure.report(&request.key, &self.url, tries, uncertain);
                return Err(if down { failure.of_store_that_is_down() } else { failure });
            }
            let throttled = remedy == Remedy::SlowDown;
            if throttled {
                self.requests.throttled();
            }
            let pause = self.pauses.failed(tries, throttled, failure.retry_after());
            tracing::debug!(key = request.key, tries, ?pause, "trying again: {failure}");
            tokio::time::sleep(pause).await;
            tries += 1;
        }
    }

    /// Whether the store answers anything but failures of its own: asked once, when something
    /// else failed again and again, to tell a store that is down from a request that it cannot
    /// carry out.
    async fn answers(&self) -> bool {
        let request = Request::new(Method::GET, "").query("list-type", 2).query("max-keys", 1);
        match self.send_once(&request).await {
            Ok(_) => true,
            Err(Try::Refused(refusal)) => !refusal.status.is_server_error(),
            Err(_) => false,
        }
    }

    /// Sends a request that is meant to fail, once.
    pub(super) async fn send_once_only(&self, request: &Request) -> Result<Success, Failure> {
        match self.send_once(request).await {
            Ok((answer, permit)) => Ok(Success { answer, permit }),
            Err(failure) => Err(failure.report(&request.key, &self.url, 1, false)),
        }
    }

    /// Sends a request and reads its whole answer as text in memory.
    pub(super) async fn document(&self, request: &Request) -> Result<Bytes, Failure> {
        let mut tries = 1;
        let mut uncertain = false;
        loop {
            let mut success = self.send(request).await.map_err(|mut failure| {
                failure.uncertain |= uncertain;
                failure
            })?;
            match success.answer.read(DOCUMENT_BYTES_MAX).await {
                Ok(body) => return Ok(body),
                Err(error) if tries >= self.config.tries_max => {
                    let error = Error::new(ErrorKind::Transient, &request.key, error);
                    let (error, code) = (error.in_store(&self.url), String::new());
                    return Err(Failure { error, status: None, code, uncertain: true });
                }
                Err(_) => self.pause(tries).await,
            }
            // It was carried out, only its answer was lost on the way.
            uncertain = true;
            tries += 1;
        }
    }

    /// Waits before something that broke off is asked for again.
    pub(super) async fn pause(&self, failures: u32) {
        tokio::time::sleep(self.pauses.failed(failures, false, None)).await;
    }

    async fn send_once(&self, request: &Request) -> Result<(Answer, OwnedSemaphorePermit), Try> {
        self.pauses.wait().await;
        let permit = self.requests.acquire().await;
        let permit = permit.ok_or_else(|| Try::bad("the store is being closed".to_owned()))?;
        let (http_request, moment) = self.build(request).await?;
        let mut answer = self.http.send(http_request, moment).await.map_err(Try::Lost)?;
        if answer.status.is_success() {
            return Ok((answer, permit));
        }
        let body = answer.read(REFUSAL_BYTES_MAX).await.unwrap_or_default();
        Err(Try::Refused(Box::new(Refusal::new(answer.status, answer.headers, &body))))
    }

    async fn build(
        &self,
        request: &Request,
    ) -> Result<(http::Request<super::http::Watched>, Moment), Try> {
        let (region, base) = self.place.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut path = base.path;
        path.push('/');
        if !request.key.is_empty() {
            path.push_str(&encode(&self.full_key(&request.key), true));
        }
        let mut headers = HeaderMap::new();
        let value = |text: &str| HeaderValue::from_str(text).map_err(|e| Try::bad(e.to_string()));
        headers.insert(HOST, value(&base.host)?);
        for (name, text) in &request.headers {
            headers.insert(HeaderName::from_static(name), value(text)?);
        }
        if let Some(credentials) = self.credentials.get().await.map_err(Try::Credentials)? {
            let to_sign = ToSign {
                method: request.method.as_str(),
                path: &path,
                query: &request.query,
                payload: request.body_sha256,
                region: &region,
                service: "s3",
                now: self.now(),
            };
            sign(&mut headers, &to_sign, &credentials).map_err(|e| Try::bad(e.to_string()))?;
        }
        // Not signed, since proxies may write them anew. An empty body has a length too: servers
        // refuse a put that does not say it.
        headers.insert(USER_AGENT, HeaderValue::from_static(NAME_AND_VERSION));
        if matches!(request.method, Method::PUT | Method::POST) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(request.body.len()));
        }
        let query = query_string(&request.query);
        let mark = if query.is_empty() { "" } else { "?" };
        let uri = format!("{}://{}{path}{mark}{query}", base.scheme, base.host);
        let (body, moment) = super::http::Watched::new(request.body.clone());
        let mut built = http::Request::builder().method(request.method.clone()).uri(uri);
        if let Some(map) = built.headers_mut() {
            *map = headers;
        }
        Ok((built.body(body).map_err(|error| Try::bad(error.to_string()))?, moment))
    }

    fn now(&self) -> SystemTime {
        let ahead = self.clock_ahead.load(Ordering::Relaxed);
        let shift = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 { SystemTime::now() - shift } else { SystemTime::now() + shift }
    }

    /// Follows a bucket to the region that the server named; whether that changed anything.
    fn moved(&self, failure: &Try) -> bool {
        let Try::Refused(refusal) = failure else { return false };
        let Some(region) = refusal.region() else { return false };
        let mut config = self.config.clone();
        region.clone_into(&mut config.region);
        let Ok(base) = config.base() else { return false };
        let mut place = self.place.write().unwrap_or_else(PoisonError::into_inner);
        let changed = place.0 != region;
        *place = (region.to_owned(), base);
        changed
    }

    fn adjust_clock(&self, failure: &Try) -> bool {
        let Try::Refused(refusal) = failure else { return false };
        let Some(theirs) = text(&refusal.headers, "date").and_then(clock::parse_http) else {
            return false;
        };
        let ahead = match theirs.duration_since(SystemTime::now()) {
            Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap_or(0),
            Err(behind) => -i64::try_from(behind.duration().as_secs()).unwrap_or(0),
        };
        self.clock_ahead.store(ahead, Ordering::Relaxed);
        true
    }
}

/// How one try ended, when not well.
enum Try {
    Refused(Box<Refusal>),
    /// No answer: it is not known whether the server did what was asked.
    Lost(Lost),
    Credentials(Error),
    Bad(String),
}

impl Try {
    fn bad(why: String) -> Try {
        Try::Bad(why)
    }

    fn remedy(&self) -> Remedy {
        match self {
            Try::Refused(refusal) => refusal.remedy(),
            Try::Lost(lost) if lost.for_good => Remedy::GiveUp,
            Try::Lost(_) => Remedy::TryAgain,
            Try::Credentials(error) if error.is_retryable() => Remedy::TryAgain,
            Try::Credentials(_) | Try::Bad(_) => Remedy::GiveUp,
        }
    }

    /// Whether it was the store that failed, as it would be if it were down.
    fn may_be_down(&self) -> bool {
        match self {
            Try::Refused(refusal) => refusal.status.is_server_error() && !refusal.is_throttling(),
            Try::Lost(_) | Try::Credentials(_) => true,
            Try::Bad(_) => false,
        }
    }

    /// A server that failed may have done it before it failed.
    fn is_uncertain(&self) -> bool {
        match self {
            Try::Refused(refusal) => refusal.status.is_server_error(),
            Try::Lost(_) => true,
            Try::Credentials(_) | Try::Bad(_) => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Try::Refused(refusal) => refusal.retry_after(),
            _ => None,
        }
    }

    fn report(self, key: &str, url: &str, tries: u32, uncertain: bool) -> Failure {
        let (mut status, mut code) = (None, String::new());
        let error = match self {
            Try::Refused(refusal) => {
                (status, code) = (Some(refusal.status), refusal.code.clone());
                refusal.into_error(key)
            }
            Try::Lost(lost) if lost.for_good => Error::new(ErrorKind::Permanent, key, lost.why),
            Try::Lost(why) => {
                let detail = format!("{why} (tried {tries} times)");
                Error::new(ErrorKind::Transient, key, detail)
            }
            Try::Credentials(error) => error,
            Try::Bad(why) => Error::new(ErrorKind::Permanent, key, why),
        };
        Failure { error: error.in_store(url), status, code, uncertain }
    }
}

impl std::fmt::Display for Try {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Try::Refused(refusal) => write!(f, "{} {}", refusal.status.as_u16(), refusal.code),
            Try::Lost(lost) => lost.fmt(f),
            Try::Bad(why) => f.write_str(why),
            Try::Credentials(error) => error.fmt(f),
        }
    }
}
