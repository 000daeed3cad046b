//! Fetching over http and https.

use super::guard::is_public;
use super::{Fetched, Fetcher};
use crate::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Connector, DefaultConnector, NextTimeout};

const REDIRECTS_MAX: u32 = 5;
/// How long a server may take to be found, to answer, or to send the next bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gets files by http and https. Unless told otherwise it refuses addresses that are not public;
/// the address is judged after the name is resolved, again for every redirect, and it is the
/// judged address that is connected to.
pub struct HttpFetcher {
    agent: Agent,
}

impl HttpFetcher {
    pub fn new(allow_private: bool) -> HttpFetcher {
        let (resolver, connector) = (DefaultResolver::default(), DefaultConnector::default());
        HttpFetcher::with_parts(allow_private, resolver, connector)
    }

    /// The resolver and the connector are parts, so that tests need no network.
    fn with_parts(
        allow_private: bool,
        resolver: impl Resolver,
        connector: impl Connector,
    ) -> HttpFetcher {
        let config = Config::builder()
            .max_redirects(REDIRECTS_MAX)
            .max_redirects_will_error(true)
            // A proxy would resolve names where they cannot be judged.
            .proxy(None)
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .accept_encoding("identity")
            .user_agent(concat!("bagit-rs/", env!("CARGO_PKG_VERSION")))
            .build();
        let resolver = Guarded { inner: resolver, allow_private };
        HttpFetcher { agent: Agent::with_parts(config, connector, resolver) }
    }
}

impl Fetcher for HttpFetcher {
    fn get(&self, url: &str) -> Result<Fetched, Error> {
        let failed = |reason: String| Error::Fetch { url: url.to_owned(), reason };
        let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return Err(failed(format!("{scheme:?} is not fetched; only http and https are")));
        }
        let response = self.agent.get(url).call().map_err(|e| failed(e.to_string()))?;
        let length = response.body().content_length();
        let body = response.into_body().into_with_config().limit(u64::MAX).reader();
        Ok(Fetched { length, body: Box::new(body) })
    }
}

#[derive(Debug)]
struct Guarded<R> {
    inner: R,
    allow_private: bool,
}

impl<R: Resolver> Resolver for Guarded<R> {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let addresses = self.inner.resolve(uri, config, timeout)?;
        let inside = addresses.iter().find(|address| !is_public(address.ip()));
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

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
