//! How connections are made: through a proxy where the environment names one, and trusting the
//! certificates of this system or those of a file.

use crate::error::{Error, ErrorKind, Result};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How to connect.
#[derive(Debug, Clone, Default)]
pub(super) struct Connecting {
    /// Use the proxies of `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    pub proxies: bool,
    /// Trust the certificates in this file instead of those of the system.
    pub ca_bundle: Option<PathBuf>,
}

/// Connects directly or through a tunnel of a proxy.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    proxies: Option<Arc<Matcher>>,
}

impl Service<http::Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Connections are not limited in number here.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: http::Uri) -> Self::Future {
        let mut tcp = self.tcp.clone();
        let proxy = self.proxies.as_ref().and_then(|proxies| proxies.intercept(&target));
        Box::pin(async move {
            let Some(proxy) = proxy else { return Ok(tcp.call(target).await?) };
            let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            tunnel.call(target).await.map_err(|error| {
                format!("the proxy {}: {error}", proxy.uri().host().unwrap_or_default()).into()
            })
        })
    }
}

pub(super) fn connector(timeout: Duration, how: &Connecting) -> Result<HttpsConnector<Connector>> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(timeout));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    let proxies = how.proxies.then(|| Arc::new(Matcher::from_env()));
    Ok(hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls_config(how.ca_bundle.as_deref())?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(Connector { tcp, proxies }))
}

/// TLS with the certificates of this system, or those of a file. Where there are none, plain HTTP
/// still works, and the refusal of every certificate says what is wrong.
fn tls_config(ca_bundle: Option<&Path>) -> Result<rustls::ClientConfig> {
    use hyper_rustls::ConfigBuilderExt;
    let begin = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        builder.with_safe_default_protocol_versions().map_err(|error| {
            Error::new(ErrorKind::Permanent, "", format!("TLS cannot be set up: {error}"))
        })
    };
    if let Some(path) = ca_bundle {
        let roots = read_bundle(path)?;
        return Ok(begin()?.with_root_certificates(roots).with_no_client_auth());
    }
    match begin()?.with_native_roots() {
        Ok(builder) => Ok(builder.with_no_client_auth()),
        Err(error) => {
            tracing::warn!("this system has no certificates, https:// will not work: {error}");
            let none = rustls::RootCertStore::empty();
            Ok(begin()?.with_root_certificates(none).with_no_client_auth())
        }
    }
}

fn read_bundle(path: &Path) -> Result<rustls::RootCertStore> {
    let bad = |why: String| {
        let detail = format!("the certificates of {} cannot be used: {why}", path.display());
        Error::new(ErrorKind::Permanent, "", detail)
    };
    let mut roots = rustls::RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| bad(e.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|e| bad(e.to_string()))?;
        roots.add(certificate).map_err(|e| bad(e.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(bad("there are none in it".into())),
        false => Ok(roots),
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Lost {
    pub why: String,
    /// Trying again would change nothing: it is not the server that it should be.
    pub for_good: bool,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<String> for Lost {
    fn from(why: String) -> Lost {
        Lost { why, for_good: false }
    }
}

impl Lost {
    /// An error with its causes, since the outermost often says only that there was one.
    pub(super) fn new(error: &(dyn std::error::Error + 'static)) -> Lost {
        let mut lost = Lost { why: error.to_string(), for_good: is_untrusted(error) };
        let mut source = error.source();
        while let Some(cause) = source {
            lost.why.push_str(": ");
            lost.why.push_str(&cause.to_string());
            lost.for_good |= is_untrusted(cause);
            source = cause.source();
        }
        if lost.for_good {
            lost.why.push_str(
                "; if the store has an authority of its own, name its certificate with \
                 AWS_CA_BUNDLE or SSL_CERT_FILE",
            );
        }
        lost
    }
}

/// Whether the server is not who it should be, or does not speak TLS at all.
fn is_untrusted(error: &(dyn std::error::Error + 'static)) -> bool {
    use rustls::Error::{InvalidCertificate, InvalidMessage, NoCertificatesPresented};
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return matches!(
            error,
            InvalidCertificate(_) | InvalidMessage(_) | NoCertificatesPresented
        );
    }
    // TLS tells its errors as those of reading and writing, one within another, which do not name
    // them as a cause.
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    inner.is_some_and(|inner| is_untrusted(inner))
}
