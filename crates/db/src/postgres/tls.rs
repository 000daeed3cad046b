//! TLS with libpq's meanings of `sslmode`.

use crate::address::{Server, Tls};
use crate::error::{Error, Result};
use ring::digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use std::sync::Arc;
use tokio_postgres::tls::ChannelBinding;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// How connections to a server are encrypted, if they are.
pub(super) fn client(server: &Server) -> Result<Option<Arc<ClientConfig>>> {
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

/// What ties a password to this very connection (RFC 5929, `tls-server-end-point`): the server's
/// certificate, hashed as it is signed, but with SHA-256 for what is weaker.
pub(super) fn channel_binding(session: &ClientConnection) -> ChannelBinding {
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

/// Verifies as much as `sslmode` asks for: nothing but the handshake, the chain, or chain and name.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// What `sslrootcert` names.
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
            // A self-signed certificate is often marked as an authority's, which nothing else about
            // it contradicts once its dates were found good. libpq takes it where it is named itself.
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
