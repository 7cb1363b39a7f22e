//! Who is who on the wire: the gateway's authority, keys, certificates, pins, TLS configurations, and the words and
//! links that people use to tie two machines together.
//!
//! This crate owns the cryptographic side of "Trust" in the design: one [`Authority`] per gateway, Ed25519 keys that
//! never leave the machine which made them, short-lived certificates, and handshakes that accept nothing else.
//!
//! It does not own who is paired, what a role may do, when a certificate is renewed, or where PEM text is kept: callers
//! read and write files, hold the list of paired keys behind [`ClientGate`], and pass the time in. It does no I/O.
//!
//! A [`Fingerprint`] is always of a public key, never of a certificate, so a pin survives every renewal.

mod authority;
mod certificate;
mod client;
mod error;
mod fingerprint;
mod key;
mod pair_link;
mod problem;
mod server;
mod signature;
mod words;

pub use authority::{Authority, MAX_CSR_BYTES, ServerIdentity, SignedCert};
pub use certificate::{Role, Subject, Validity, subject_of, validity_of};
pub use client::{ClientIdentity, Pin, client_config, presented_authority, server_name};
pub use error::IdentityError;
pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use key::PrivateKey;
pub use pair_link::{PairLink, PairLinkError};
pub use problem::{AuthorityMismatch, TlsProblem};
pub use server::{ClientGate, ServerCertificate, server_config};
pub use signature::{ParseKeyError, PublicKey};
pub use words::AuthWords;

/// The one DNS name that a gateway's server certificate carries. It is a label inside the pinned authority and never
/// looked up, so a gateway may move to any address without a new certificate.
pub const SERVER_NAME: &str = "gateway.farrun.internal";

/// The application protocol both sides offer: gRPC needs HTTP/2 and nothing else is served.
pub(crate) const ALPN: &[u8] = b"h2";

/// Makes `ring` the process-wide provider of rustls. Call it first in `main`; further calls do nothing.
///
/// The configurations of this crate name their provider themselves; this is for libraries that ask for the default.
pub fn install_crypto_provider() {
    // An error only means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
