//! Signatures of people over decisions.
//!
//! Owns the public key as people pass it on, signing and verifying. What is signed is the caller's business; it begins
//! with a name of its own, so that a signature for one purpose is none for another.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{PublicKeyData as _, SigningKey as _};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::error::IdentityError;
use crate::fingerprint::Fingerprint;
use crate::key::PrivateKey;

/// What the text of a key begins with.
const PREFIX: &str = "ed25519:";
/// What stands before the key in its `SubjectPublicKeyInfo` (RFC 8410 section 4).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// An Ed25519 public key. Written as `ed25519:` and 43 letters of base64 for URLs. Not a secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

/// A text that is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is `ed25519:` and 43 letters, as `gateway approvals key` prints it")]
pub struct ParseKeyError;

impl PublicKey {
    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The fingerprint, as that of any other key.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_spki(&[SPKI_HEAD.as_slice(), &self.0].concat())
    }

    /// Whether `signature` is this key's over exactly this message.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }
}

impl PrivateKey {
    /// The public half.
    ///
    /// # Errors
    /// The key is of another kind, which no way to make one yields.
    pub fn public(&self) -> Result<PublicKey, IdentityError> {
        let bytes = self.pair().der_bytes().try_into().map_err(|_| IdentityError::KeyLength)?;
        Ok(PublicKey(bytes))
    }

    /// Signs a message: 64 bytes.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, IdentityError> {
        self.pair().sign(message).map_err(IdentityError::SignMessage)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(ParseKeyError)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| ParseKeyError)?;
        Ok(Self(bytes.try_into().map_err(|_| ParseKeyError)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_for_its_key_and_message_only() {
        let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let signature = key.sign(b"message").unwrap();
        assert_eq!(signature.len(), 64);
        let public = key.public().unwrap();
        assert!(public.verify(b"message", &signature));
        assert!(!public.verify(b"massage", &signature));
        assert!(!other.public().unwrap().verify(b"message", &signature));
        assert!(!public.verify(b"message", &signature[..63]));
        assert!(!public.verify(b"message", b""));
        for at in 0..64 {
            let mut flipped = signature.clone();
            flipped[at] ^= 1;
            assert!(!public.verify(b"message", &flipped), "byte {at}");
        }
    }

    #[test]
    fn both_halves_have_one_fingerprint() {
        let key = PrivateKey::generate().unwrap();
        assert_eq!(key.public().unwrap().fingerprint(), key.fingerprint());
    }

    #[test]
    fn the_text_of_a_key_comes_back_and_others_are_refused() {
        let public = PrivateKey::generate().unwrap().public().unwrap();
        let text = public.to_string();
        assert_eq!((text.len(), text.parse()), (51, Ok(public)));
        assert_eq!(format!(" {text}\n").parse(), Ok(public));
        for bad in
            ["", "ed25519:", &text[8..], &text[..50], &format!("{text}A"), &text.replace("ed25519", "rsa")]
        {
            assert_eq!(bad.parse::<PublicKey>(), Err(ParseKeyError), "{bad}");
        }
    }
}
