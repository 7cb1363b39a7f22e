//! The client's side of TLS: what a node or an operator accepts as its gateway.
//!
//! Owns the pin check. The path from the authority to the server's certificate is checked by webpki; no path, date or
//! name is compared by hand here.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, PeerIncompatible, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, DnsName, ServerName, UnixTime};

use crate::error::IdentityError;
use crate::fingerprint::Fingerprint;
use crate::key::PrivateKey;
use crate::problem::AuthorityMismatch;
use crate::{ALPN, SERVER_NAME};

/// Which gateway a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Any: the caller compares words, or asks a person, and pins [`presented_authority`] from then on. Nothing secret
    /// may be sent before that.
    FirstUse,
    /// Only the gateway whose authority has this key.
    Fingerprint(Fingerprint),
}

/// The certificate a client shows, and its key. `Debug` does not show the key.
#[derive(Clone, Debug)]
pub struct ClientIdentity {
    /// The certificate that the gateway signed.
    pub cert_der: CertificateDer<'static>,
    /// The key that it certifies.
    pub key: PrivateKey,
}

/// The TLS configuration of a client: TLS 1.3 only, HTTP/2 only, no resumption, the gateway checked against `pin`.
/// Without an identity only the enrolment service answers. Connect with [`server_name`].
///
/// # Errors
/// When the identity's certificate is malformed or not for its key.
pub fn client_config(
    pin: Pin,
    identity: Option<&ClientIdentity>,
) -> Result<Arc<ClientConfig>, IdentityError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(PinnedAuthority { pin, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(IdentityError::Configure)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(vec![identity.cert_der.clone()], identity.key.rustls_key())
            .map_err(IdentityError::Configure)?,
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session shows no certificate: it would outlive its removal.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// [`SERVER_NAME`] in the form that rustls connects with, whatever address was dialled.
pub fn server_name() -> ServerName<'static> {
    match DnsName::try_from_str(SERVER_NAME) {
        Ok(name) => ServerName::DnsName(name),
        Err(_) => unreachable!("SERVER_NAME is a DNS name; a test reads it"),
    }
}

/// The key of the authority behind a server, from the certificates that it presented. Only worth something after a
/// complete handshake with [`client_config`], which has checked that they belong together.
///
/// # Errors
/// When they are not a certificate and its authority's.
pub fn presented_authority(certs: &[CertificateDer<'_>]) -> Result<Fingerprint, IdentityError> {
    match certs {
        [_, authority] => Fingerprint::of_certificate(authority),
        _ => Err(IdentityError::ChainShape { found: certs.len() }),
    }
}

/// Accepts a server whose certificate was signed by the pinned authority, which it must present as well.
#[derive(Debug)]
struct PinnedAuthority {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let [authority] = intermediates else {
            let error = IdentityError::ChainShape { found: intermediates.len() + 1 };
            return Err(CertificateError::Other(OtherError(Arc::new(error))).into());
        };
        let presented = Fingerprint::of_certificate(authority).map_err(|_| CertificateError::BadEncoding)?;
        match self.pin {
            Pin::Fingerprint(expected) if expected != presented => {
                let mismatch = AuthorityMismatch { expected, presented };
                return Err(CertificateError::Other(OtherError(Arc::new(mismatch))).into());
            }
            Pin::Fingerprint(_) | Pin::FirstUse => {}
        }
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let leaf = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &leaf,
            &roots,
            &[],
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        // The fixed name, not the dialled one: the pin says which gateway it is, the name that the authority meant this
        // key for serving.
        verify_server_name(&leaf, &server_name())?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
