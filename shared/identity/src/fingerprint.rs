//! The name of a public key: SHA-256 of its SubjectPublicKeyInfo.
//!
//! Owns the value and its text form. Which keys are trusted is the caller's business.

use std::fmt;
use std::str::FromStr;

use rustls_pki_types::CertificateDer;

use crate::certificate;
use crate::error::IdentityError;

/// SHA-256 of a public key in DER (`SubjectPublicKeyInfo`, RFC 5280 section 4.1.2.7).
///
/// Written as 64 lower-case hex digits. Not a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// A text that is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFingerprintError {
    /// Too few or too many digits; colons are not counted.
    #[error("a fingerprint has 64 hex digits, found {found}")]
    Length {
        /// Digits found.
        found: usize,
    },
    /// Something else than a hex digit or a colon.
    #[error("a fingerprint has hex digits only, found {found:?}")]
    Digit {
        /// The first wrong character.
        found: char,
    },
}

impl Fingerprint {
    /// The fingerprint of the key that `certificate` certifies.
    ///
    /// # Errors
    /// When the certificate is not well-formed X.509.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, IdentityError> {
        Ok(Self::of_spki(certificate::parse(certificate)?.public_key().raw))
    }

    /// The fingerprint as 64 lower-case hex digits.
    pub fn to_hex(&self) -> String {
        self.to_string()
    }

    /// The fingerprint of a public key given as `SubjectPublicKeyInfo` in DER.
    pub(crate) fn of_spki(der: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, der).as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    /// Reads hex digits of any case, with or without a `sha256:` in front and colons between: the forms in which other
    /// programs print such a digest.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = match text.get(..7) {
            Some(prefix) if prefix.eq_ignore_ascii_case("sha256:") => &text[7..],
            _ => text,
        };
        let mut bytes = [0_u8; 32];
        let mut found = 0;
        for character in digits.chars().filter(|character| *character != ':') {
            let value = character.to_digit(16).ok_or(ParseFingerprintError::Digit { found: character })?;
            if let Some(byte) = bytes.get_mut(found / 2) {
                *byte = *byte << 4 | value as u8;
            }
            found += 1;
        }
        if found != 64 {
            return Err(ParseFingerprintError::Length { found });
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEX: &str = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef";

    #[test]
    fn common_spellings_are_the_same_value() {
        let expected: Fingerprint = HEX.parse().unwrap();
        let pairs: Vec<&str> = (0..32).map(|index| &HEX[index * 2..index * 2 + 2]).collect();
        for text in [
            HEX.to_uppercase(),
            format!("sha256:{HEX}"),
            format!("SHA256:{}", pairs.join(":").to_uppercase()),
            pairs.join(":"),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert_eq!(expected.to_hex(), HEX);
        assert_eq!(format!("{expected:?}"), format!("Fingerprint({HEX})"));
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        for (text, expected) in [
            (String::new(), ParseFingerprintError::Length { found: 0 }),
            (HEX[1..].to_owned(), ParseFingerprintError::Length { found: 63 }),
            (format!("{HEX}0"), ParseFingerprintError::Length { found: 65 }),
            (format!(" {HEX}"), ParseFingerprintError::Digit { found: ' ' }),
            (format!("sha1:{HEX}"), ParseFingerprintError::Digit { found: 's' }),
            (HEX.replace('0', "é"), ParseFingerprintError::Digit { found: 'é' }),
        ] {
            assert_eq!(text.parse::<Fingerprint>(), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_form_round_trips(bytes: [u8; 32]) {
            prop_assert_eq!(Fingerprint(bytes).to_string().parse(), Ok(Fingerprint(bytes)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = text.parse::<Fingerprint>();
        }
    }
}
