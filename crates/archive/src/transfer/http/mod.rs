//! One careful HTTP request: bounded in time and size, no redirects, addresses judged.

#[cfg(test)]
pub(crate) mod stand_in;

use std::io::{self, ErrorKind, Read};
use std::time::Duration;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// Of an answer only the beginning is read: a status and a few lines are all we need.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

pub(crate) struct Request {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// For all of it, from finding the name to the end of the answer.
    pub timeout: Duration,
    pub allow_private: bool,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: String,
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// The request is wrong, or the address is not one we go to.
    Refused(String),
    /// No answer, or not in time, or not all of it.
    Unreachable(String),
}

/// Sends the request on a thread that may block. Any status is an answer.
pub(crate) async fn call(request: Request) -> Result<Answer, Failure> {
    let run = tokio::task::spawn_blocking(move || send(&request));
    run.await.unwrap_or_else(|error| Err(Failure::Unreachable(error.to_string())))
}

fn send(request: &Request) -> Result<Answer, Failure> {
    let config = Config::builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        // A proxy would resolve names where they cannot be judged.
        .proxy(None)
        .timeout_global(Some(request.timeout))
        .user_agent(concat!("accession/", env!("CARGO_PKG_VERSION")))
        .build();
    let resolver =
        Guarded { inner: DefaultResolver::default(), allow_private: request.allow_private };
    let agent = Agent::with_parts(config, DefaultConnector::default(), resolver);
    let mut built = ureq::http::Request::builder().method(request.method).uri(&request.url);
    for (name, value) in &request.headers {
        built = built.header(*name, value);
    }
    let built =
        built.body(request.body.as_slice()).map_err(|error| Failure::Refused(error.to_string()))?;
    let response = agent.run(built).map_err(failure)?;
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
    reader
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Unreachable(format!("the answer broke off: {error}")))?;
    Ok(Answer { status, body: String::from_utf8_lossy(&bytes).into_owned() })
}

fn failure(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::Io(error) if error.kind() == ErrorKind::PermissionDenied => {
            Failure::Refused(error.to_string())
        }
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => Failure::Refused(error.to_string()),
        other => Failure::Unreachable(other.to_string()),
    }
}

/// The scheme and host of a URL, or what is wrong with it.
pub(crate) fn scheme_and_host(url: &str) -> Result<(String, String), String> {
    let uri: Uri = url.parse().map_err(|error| format!("{url:?} is no URL: {error}"))?;
    let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        return Err(format!("{url:?} is neither an http nor an https URL"));
    }
    match uri.host() {
        Some(host) if !host.is_empty() => Ok((scheme, host.to_ascii_lowercase())),
        _ => Err(format!("{url:?} names no host")),
    }
}

/// Judges addresses after the name is resolved; the judged address is the one connected to.
#[derive(Debug)]
struct Guarded {
    inner: DefaultResolver,
    allow_private: bool,
}

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let addresses = self.inner.resolve(uri, config, timeout)?;
        let inside = addresses.iter().find(|address| !bagit::is_public(address.ip()));
        match inside {
            Some(address) if !self.allow_private => {
                let host = uri.host().unwrap_or_default();
                let message = format!("{host} is {}, which is not a public address", address.ip());
                Err(ureq::Error::Io(io::Error::new(ErrorKind::PermissionDenied, message)))
            }
            _ => Ok(addresses),
        }
    }
}
