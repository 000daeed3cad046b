//! TLS with libpq's meanings of `sslmode`.

use crate::address::{Server, Tls};
use crate::error::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) fn connector(server: &Server) -> Result<Option<MakeRustlsConnect>> {
    if server.tls == Tls::Disable {
        return Ok(None);
    }
    let wrong = |text: String| Error::CannotOpen(server.shown().to_string(), text);
    let provider = Arc::new(ring::default_provider());
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
    let verifier = Arc::new(Verifier {
        chain,
        names: server.tls == Tls::VerifyFull,
        provider: provider.clone(),
    });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn roots(server: &Server) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = &server.root_certificate else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    };
    let shown = path.display();
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|e| format!("sslrootcert {shown}: {e}"))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|e| format!("sslrootcert {shown}: {e}"))?;
        store.add(certificate).map_err(|e| format!("sslrootcert {shown}: {e}"))?;
    }
    Ok(store)
}

/// Verifies as much as `sslmode` asks for: nothing but the handshake, the chain, or chain and name.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
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
