//! The gateway's side of TLS: what it serves, and which clients it lets through.
//!
//! Owns the check that a client's certificate is ours, current, well-formed and about its own key. Who is paired is asked
//! of a [`ClientGate`] in every handshake; closing live connections of a removed client is the caller's business.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;

use crate::ALPN;
use crate::authority::ServerIdentity;
use crate::certificate::{Subject, subject_of};
use crate::error::IdentityError;
use crate::fingerprint::Fingerprint;

/// Who may connect with a certificate. Asked in every handshake, on the thread of the connection: answer from memory.
pub trait ClientGate: Send + Sync + std::fmt::Debug {
    /// Whether `subject`, whose certificate is in order, is still welcome.
    fn admits(&self, subject: &Subject) -> bool;
}

/// The certificate a server shows, exchangeable while it runs. A handshake takes the one that is current when it starts.
#[derive(Debug)]
pub struct ServerCertificate(RwLock<Current>);

#[derive(Debug)]
struct Current {
    certified: Arc<CertifiedKey>,
    not_after: OffsetDateTime,
}

impl ServerCertificate {
    /// Starts with `identity`.
    ///
    /// # Errors
    /// When its key is unusable or not the certificate's.
    pub fn new(identity: ServerIdentity) -> Result<Self, IdentityError> {
        Ok(Self(RwLock::new(Current::load(identity)?)))
    }

    /// Serves `identity` from the next handshake on. Open connections stay as they are.
    ///
    /// # Errors
    /// When its key is unusable or not the certificate's; the old certificate stays then.
    pub fn replace(&self, identity: ServerIdentity) -> Result<(), IdentityError> {
        let next = Current::load(identity)?;
        *self.0.write() = next;
        Ok(())
    }

    /// Last valid second of the current certificate.
    pub fn not_after(&self) -> OffsetDateTime {
        self.0.read().not_after
    }
}

impl Current {
    fn load(identity: ServerIdentity) -> Result<Self, IdentityError> {
        let certified = CertifiedKey::from_der(identity.chain, identity.key, &ring::default_provider())
            .map_err(IdentityError::Configure)?;
        Ok(Self { certified: Arc::new(certified), not_after: identity.not_after })
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().certified))
    }
}

/// The TLS configuration of a gateway: TLS 1.3 only, HTTP/2 only, no resumption, no early data. A client may come without
/// a certificate, for enrolment. One that shows a certificate is let through only when `authority` signed it for client
/// authentication, it is valid now, names the key it certifies, and `gate` admits it.
///
/// # Errors
/// When `authority` is not a well-formed certificate.
pub fn server_config(
    authority: &CertificateDer<'_>,
    certificate: Arc<ServerCertificate>,
    gate: Arc<dyn ClientGate>,
) -> Result<Arc<ServerConfig>, IdentityError> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone().into_owned()).map_err(IdentityError::Configure)?;
    let path = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(IdentityError::ConfigureClients)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(IdentityError::Configure)?
        .with_client_cert_verifier(Arc::new(AdmittedClient { path, gate }))
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session is never shown to the verifier: a removed client would come back with its ticket.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// webpki's check of the path, then ours of the name and the gate.
#[derive(Debug)]
struct AdmittedClient {
    path: Arc<dyn ClientCertVerifier>,
    gate: Arc<dyn ClientGate>,
}

impl ClientCertVerifier for AdmittedClient {
    fn client_auth_mandatory(&self) -> bool {
        self.path.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.path.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        // Our authority signs clients directly, so whatever else a client sends plays no part.
        let verified = self.path.verify_client_cert(end_entity, &[], now)?;
        let refused = CertificateError::ApplicationVerificationFailure;
        let subject = subject_of(end_entity).map_err(|_| refused.clone())?;
        let certified = Fingerprint::of_certificate(end_entity).map_err(|_| refused.clone())?;
        if subject.fingerprint != certified || !self.gate.admits(&subject) {
            return Err(refused.into());
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.path.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.path.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.path.supported_verify_schemes()
    }
}
