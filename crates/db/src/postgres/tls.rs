//! TLS for `tokio-postgres`, with libpq's meanings of `sslmode`.
//!
//! Hides certificates, their verification and channel binding.

use crate::address::{Server, Tls};
use crate::error::{Error, Result};
use ring::digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// Encrypts connections to a server, as its address says.
#[derive(Clone)]
pub(super) struct Connector {
    /// Absent if the address forbids encryption; the library does not ask for it then.
    config: Option<Arc<ClientConfig>>,
}

impl Connector {
    /// Reads the certificates that the address names.
    pub fn new(server: &Server) -> Result<Connector> {
        Ok(Connector { config: client(server)? })
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        let name = match host {
            "" => None,
            host => Some(ServerName::try_from(host.to_string())?),
        };
        Ok(Handshake { config: self.config.clone().zip(name) })
    }
}

/// A TLS handshake with one server.
pub(super) struct Handshake {
    config: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Some((config, name)) = self.config else {
                return Err(io::Error::other("encryption is not configured"));
            };
            Ok(Encrypted(TlsConnector::from(config).connect(name, socket).await?))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(TlsStream<Socket>);

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        channel_binding(self.0.get_ref().1)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The settings of TLS for a server; `None` if its address forbids encryption.
fn client(server: &Server) -> Result<Option<Arc<ClientConfig>>> {
    if server.tls == Tls::Disable {
        return Ok(None);
    }
    let wrong = |text: String| Error::CannotOpen(server.shown().to_string(), text);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // As in libpq, `require` with a root certificate verifies it.
    let chain = match (server.tls, &server.root_certificate) {
        (Tls::VerifyCa | Tls::VerifyFull, _) | (Tls::Require, Some(_)) => {
            let roots = Arc::new(roots(server).map_err(wrong)?);
            let built =
                WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
            Some(built.map_err(|e| wrong(format!("its root certificates cannot be used: {e}")))?)
        }
        _ => None,
    };
    let trusted = match chain.is_some() {
        true => certificates(server).map_err(wrong)?,
        false => Vec::new(),
    };
    let verifier = Arc::new(Verifier {
        chain,
        trusted,
        names: server.tls == Tls::VerifyFull,
        provider: provider.clone(),
    });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Some(Arc::new(config)))
}

/// Binds a password to this connection (RFC 5929, `tls-server-end-point`): the hash of the server's
/// certificate, by the algorithm of its signature, or SHA-256 in place of a weaker one.
fn channel_binding(session: &ClientConnection) -> ChannelBinding {
    let Some(certificate) = session.peer_certificates().and_then(|all| all.first()) else {
        return ChannelBinding::none();
    };
    let Ok(parsed) = Certificate::from_der(certificate) else { return ChannelBinding::none() };
    let hash = match parsed.signature_algorithm.oid.to_string().as_str() {
        // RSA with SHA-1 and SHA-256, ECDSA with SHA-256.
        "1.2.840.113549.1.1.5" | "1.2.840.113549.1.1.11" | "1.2.840.10045.4.3.2" => &digest::SHA256,
        // RSA and ECDSA with SHA-384.
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => &digest::SHA384,
        // RSA and ECDSA with SHA-512, Ed25519.
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" | "1.3.101.112" => &digest::SHA512,
        _ => return ChannelBinding::none(),
    };
    ChannelBinding::tls_server_end_point(digest::digest(hash, certificate).as_ref().to_vec())
}

fn roots(server: &Server) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = &server.root_certificate else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    };
    for certificate in certificates(server)? {
        store.add(certificate).map_err(|e| format!("sslrootcert {}: {e}", path.display()))?;
    }
    Ok(store)
}

/// The certificates of `sslrootcert`.
fn certificates(server: &Server) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = &server.root_certificate else { return Ok(Vec::new()) };
    let wrong = |e| format!("sslrootcert {}: {e}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    found.map(|certificate| certificate.map_err(wrong)).collect()
}

/// Verifies what `sslmode` asks for: only the handshake, also the chain, or also the name.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates of `sslrootcert`.
    trusted: Vec<CertificateDer<'static>>,
    names: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names => Ok(ServerCertVerified::assertion()),
            // A self-signed certificate is often marked as that of an authority. Its dates have been
            // checked. libpq accepts it where `sslrootcert` names the certificate itself.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.trusted.iter().any(|t| t == certificate) =>
            {
                if self.names {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
