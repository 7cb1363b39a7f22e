//! What can go wrong while keys and certificates are made, read and checked.

use crate::fingerprint::ParseFingerprintError;

/// A failed operation on keys, certificates or TLS configurations. Each variant names the operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// No new key could be made.
    #[error("cannot generate an Ed25519 key")]
    GenerateKey(#[source] rcgen::Error),
    /// The text is not the PEM form of an Ed25519 private key in PKCS #8.
    #[error("cannot read the private key: it must be one Ed25519 key in PKCS #8 PEM")]
    ReadKey(#[source] rcgen::Error),
    /// The operating system gave no random bytes.
    #[error("the system's random source failed")]
    Random,
    /// A certificate request could not be written.
    #[error("cannot write a certificate request")]
    WriteRequest(#[source] rcgen::Error),
    /// A certificate request is longer than [`MAX_CSR_BYTES`](crate::MAX_CSR_BYTES).
    #[error("the certificate request has {found} bytes, the limit is {limit}")]
    RequestTooLong {
        /// Bytes received.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A certificate request is malformed or not signed by the key it carries.
    #[error("the certificate request is malformed or its own signature is wrong")]
    VerifyRequest(#[source] rcgen::Error),
    /// A certificate request carries a key of another kind than Ed25519.
    #[error("the certificate request must carry an Ed25519 key")]
    RequestKeyKind,
    /// A decision could not be signed.
    #[error("cannot sign with this key")]
    SignMessage(#[source] rcgen::Error),
    /// A public key has another length than Ed25519's.
    #[error("the public key has another length than 32 bytes")]
    KeyLength,
    /// The authority could not sign.
    #[error("cannot sign a certificate")]
    Sign(#[source] rcgen::Error),
    /// The authority's own certificate is not valid at the time given, so nothing it signs would be.
    #[error("the authority's certificate is not valid at {now}; it is from {not_before} to {not_after}")]
    AuthorityDates {
        /// The time given.
        now: time::OffsetDateTime,
        /// Start of the authority's validity.
        not_before: time::OffsetDateTime,
        /// End of the authority's validity.
        not_after: time::OffsetDateTime,
    },
    /// A lifetime reaches beyond the dates that can be written.
    #[error("the certificate lifetime is out of range")]
    Lifetime,
    /// A PEM text holds no certificate.
    #[error("cannot read the certificate: it must be one certificate in PEM")]
    ReadPem(#[source] rustls_pki_types::pem::Error),
    /// A certificate is not well-formed X.509.
    #[error("cannot parse the certificate")]
    ParseCertificate(#[source] x509_parser::error::X509Error),
    /// Bytes follow the certificate.
    #[error("the certificate is followed by other bytes")]
    TrailingBytes,
    /// The certificate stored beside the authority's key is not an authority's, or belongs to another key.
    #[error("the authority's certificate and key do not belong together: {reason}")]
    AuthorityPair {
        /// What differs.
        reason: &'static str,
    },
    /// A certificate names no single node or operator in the form that this crate writes.
    #[error("the certificate does not name one node or operator: {reason}")]
    Subject {
        /// What is missing or superfluous.
        reason: &'static str,
    },
    /// A certificate names a key in a form that is not a fingerprint.
    #[error("the certificate names a malformed fingerprint")]
    SubjectFingerprint(#[source] ParseFingerprintError),
    /// A peer presented something else than its own certificate followed by its authority's.
    #[error("the peer presented {found} certificates, expected its own and its authority's")]
    ChainShape {
        /// Certificates received.
        found: usize,
    },
    /// rustls refused the key, the certificate or the settings.
    #[error("cannot build the TLS configuration")]
    Configure(#[source] rustls::Error),
    /// rustls refused the authority's certificate as root of client certificates.
    #[error("cannot build the check of client certificates")]
    ConfigureClients(#[source] rustls::server::VerifierBuilderError),
}
