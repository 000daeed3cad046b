//! One request over HTTP: the address that is checked is the address that is connected to, and
//! redirects are followed by hand so that each is checked as well.

use super::error;
use super::limits::{Limits, Permit};
use super::rate::Meter;
use crate::ErrorCode;
use crate::config::AllowList;
use crate::{Error, Result};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, LOCATION, USER_AGENT};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use url::{Host, Url};

const REDIRECTS_MAX: usize = 10;

#[derive(Debug)]
pub(super) struct Http {
    client: Client<HttpsConnector<HttpConnector<Guarded>>, Empty<Bytes>>,
    allow: Arc<AllowList>,
    limits: Limits,
    connect_timeout: Duration,
    timeout: Duration,
}

/// An answer whose body is still to be read.
pub(super) struct Answer {
    /// Where it came from, after redirects.
    pub url: Url,
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    timeout: Duration,
    _permit: Permit,
}

impl Answer {
    /// The next bytes of the body, or `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(self.timeout, self.body.frame()).await;
            let Ok(frame) = frame else {
                let why = format!("nothing arrived for {} s", self.timeout.as_secs_f32());
                return Err(error::timeout(&self.url, &why));
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|e| error::lost(&self.url, &chain(&e)))?;
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
    }

    pub(super) fn header(&self, name: http::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Http {
    pub(super) fn new(
        allow: AllowList,
        limits: Limits,
        connect_timeout: Duration,
        timeout: Duration,
    ) -> Result<Http> {
        let allow = Arc::new(allow);
        let mut tcp = HttpConnector::new_with_resolver(Guarded(allow.clone()));
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(connect_timeout));
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls_config()?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(20))
            .pool_max_idle_per_host(4)
            .build(https);
        Ok(Http { client, allow, limits, connect_timeout, timeout })
    }

    /// Sends a request, and again wherever the answers lead. All of it together has as long as
    /// one answer may take: a chain of slow redirects takes no longer than a slow server.
    pub(super) async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        meter: &mut Meter,
    ) -> Result<Answer> {
        let mut url = url.clone();
        // Names, connection and the handshake of TLS each have a connection's time.
        let mut left = self.connect_timeout * 2 + self.timeout;
        for _ in 0..=REDIRECTS_MAX {
            self.check_literal(&url)?;
            let answer = self.send_once(method, &url, headers, &mut left, meter).await?;
            if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return as_it_is(answer);
            }
            let Some(place) = answer.header(LOCATION) else {
                return Err(error::bad_answer(&url, "it is a redirect to nowhere"));
            };
            let next = url.join(place).map_err(|e| {
                let place = crate::model::text::shown_url(place);
                error::bad_answer(&url, &format!("it is a redirect to `{place}`: {e}"))
            })?;
            // A page that was reached safely must not lead to a place that is not safe.
            if url.scheme() == "https" && next.scheme() == "http" {
                return Err(Error::permanent(
                    ErrorCode::UrlRedirects,
                    format!(
                        "{} is not followed to {}: it would leave https; use the second URL if that is right",
                        error::shown(&url),
                        error::shown(&next)
                    ),
                ));
            }
            url = super::target::check_redirect(next)?;
        }
        Err(Error::permanent(
            ErrorCode::UrlRedirects,
            format!(
                "{} redirects more than {REDIRECTS_MAX} times; use the URL of the file itself",
                error::shown(&url)
            ),
        ))
    }

    async fn send_once(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        left: &mut Duration,
        meter: &mut Meter,
    ) -> Result<Answer> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(USER_AGENT, concat!("accession/", env!("CARGO_PKG_VERSION")))
            // The file is wanted as it is, not packed for the journey.
            .header(ACCEPT_ENCODING, "identity")
            .body(Empty::new())
            .map_err(|e| super::target::wrong(url.as_str(), &e.to_string()))?;
        request.headers_mut().extend(headers.clone());
        let permit = self.limits.permit(&error::host_of(url)).await;
        // Waiting for the permit is not the server's fault, and is not counted.
        let began = Instant::now();
        let answer = async {
            match tokio::time::timeout(*left, self.client.request(request)).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(e)) => Err(why_not(url, &e)),
                Err(_) => {
                    let limit = self.connect_timeout * 2 + self.timeout;
                    let why = format!("no answer for {} s", limit.as_secs_f32());
                    Err(error::timeout(url, &why))
                }
            }
        };
        let answer = meter.watch(url, answer).await?;
        *left = left.saturating_sub(began.elapsed());
        let (head, body) = answer.into_parts();
        Ok(Answer {
            url: url.clone(),
            status: head.status,
            headers: head.headers,
            body,
            timeout: self.timeout,
            _permit: permit,
        })
    }

    /// Addresses in URLs are not resolved, so they are checked here.
    fn check_literal(&self, url: &Url) -> Result<()> {
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(v4)) => v4.into(),
            Some(Host::Ipv6(v6)) => v6.into(),
            _ => return Ok(()),
        };
        if self.allow.permits(&address.to_string(), address) {
            return Ok(());
        }
        Err(error::private(&error::shown(url), &address.to_string()))
    }
}

/// Refuses bytes that are not the file's own: what is kept must be what the depositor has.
fn as_it_is(answer: Answer) -> Result<Answer> {
    let encodings = answer.headers.get_all(CONTENT_ENCODING).iter();
    let mut other = encodings.filter(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    match other.next().filter(|_| answer.status.is_success()) {
        Some(value) => Err(error::encoded(&answer.url, &String::from_utf8_lossy(value.as_bytes()))),
        None => Ok(answer),
    }
}

fn why_not(url: &Url, failure: &hyper_util::client::legacy::Error) -> Error {
    let mut cause: Option<&dyn std::error::Error> = Some(failure);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return error::private(&error::shown(url), &refused.to_string());
        }
        cause = error.source();
    }
    match failure.is_connect() {
        true => error::unreachable(url, &chain(failure)),
        false => error::lost(url, &chain(failure)),
    }
}

/// Finds the addresses of a name, and leaves out those that may not be connected to.
#[derive(Debug, Clone)]
struct Guarded(Arc<AllowList>);

/// None of a name's addresses may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{host} ({address})")]
struct Refused {
    host: String,
    address: IpAddr,
}

type Found = std::vec::IntoIter<SocketAddr>;
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl tower_service::Service<Name> for Guarded {
    type Response = Found;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Found, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let allow = self.0.clone();
        Box::pin(async move {
            let all: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let permitted = |a: &&SocketAddr| allow.permits(name.as_str(), a.ip());
            let good: Vec<SocketAddr> = all.iter().filter(permitted).copied().collect();
            match (good.is_empty(), all.first()) {
                (true, Some(first)) => {
                    Err(Refused { host: name.as_str().to_string(), address: first.ip() }.into())
                }
                (true, None) => Err("the name has no address".into()),
                _ => Ok(good.into_iter()),
            }
        })
    }
}

/// TLS with the certificates of this system. Where it has none, plain HTTP still works, and the
/// refusal of every certificate says what is wrong.
fn tls_config() -> Result<rustls::ClientConfig> {
    use hyper_rustls::ConfigBuilderExt;
    let begin = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        builder
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::permanent(ErrorCode::Tls, format!("TLS cannot be set up: {e}")))
    };
    match begin()?.with_native_roots() {
        Ok(builder) => Ok(builder.with_no_client_auth()),
        Err(error) => {
            tracing::warn!("this system has no certificates, https:// will not work: {error}");
            let none = rustls::RootCertStore::empty();
            Ok(begin()?.with_root_certificates(none).with_no_client_auth())
        }
    }
}

/// An error with its causes, since the outermost often says only that there was one.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
