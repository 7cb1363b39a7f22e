//! The private key of one machine.
//!
//! Owns making, reading and writing Ed25519 keys and the request for a certificate. Where the PEM text is kept, and with
//! which permissions, is the caller's business.

use std::fmt;
use std::sync::Arc;

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ED25519, PublicKeyData};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::IdentityError;
use crate::fingerprint::Fingerprint;

/// An Ed25519 private key. Clones share the key; `Debug` shows the public fingerprint only.
#[derive(Clone)]
pub struct PrivateKey(Arc<KeyPair>);

impl PrivateKey {
    /// Makes a new key from the system's random source.
    ///
    /// # Errors
    /// When that source fails.
    pub fn generate() -> Result<Self, IdentityError> {
        let pair = KeyPair::generate_for(&PKCS_ED25519).map_err(IdentityError::GenerateKey)?;
        Ok(Self(Arc::new(pair)))
    }

    /// Reads a key that [`to_pem`](Self::to_pem) wrote.
    ///
    /// # Errors
    /// When the text is not one unencrypted Ed25519 key in PKCS #8 PEM.
    pub fn from_pem(pem: &str) -> Result<Self, IdentityError> {
        let pair =
            KeyPair::from_pkcs8_pem_and_sign_algo(pem, &PKCS_ED25519).map_err(IdentityError::ReadKey)?;
        Ok(Self(Arc::new(pair)))
    }

    /// The key as PKCS #8 PEM. The text is the secret: write it to a file of mode 0600 and drop it.
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// The fingerprint of the public half.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_spki(&self.0.subject_public_key_info())
    }

    /// A certificate request (PKCS #10, DER) that proves possession of this key and asks for nothing: the authority
    /// decides name, role and dates.
    ///
    /// # Errors
    /// When the request cannot be written.
    pub fn csr_der(&self) -> Result<Vec<u8>, IdentityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&*self.0).map_err(IdentityError::WriteRequest)?;
        Ok(request.der().to_vec())
    }

    /// The key in the form that rustls signs handshakes with.
    pub fn rustls_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.0.serialize_der()))
    }

    /// The key in the form that rcgen signs certificates with.
    pub(crate) fn pair(&self) -> &KeyPair {
        &self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_round_trip_keeps_the_key() {
        let key = PrivateKey::generate().unwrap();
        let read = PrivateKey::from_pem(&key.to_pem()).unwrap();
        assert_eq!(read.fingerprint(), key.fingerprint());
        assert_eq!(read.to_pem(), key.to_pem());
        assert_ne!(PrivateKey::generate().unwrap().fingerprint(), key.fingerprint());
    }

    #[test]
    fn debug_shows_the_public_half_only() {
        let key = PrivateKey::generate().unwrap();
        assert_eq!(format!("{key:?}"), format!("PrivateKey {{ fingerprint: {:?}, .. }}", key.fingerprint()));
    }

    #[test]
    fn another_kind_of_key_is_refused() {
        let other = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap().serialize_pem();
        for text in [other.as_str(), "", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert!(matches!(PrivateKey::from_pem(text), Err(IdentityError::ReadKey(_))), "{text}");
        }
    }
}
