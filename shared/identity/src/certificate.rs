//! What a certificate says: whom it names, for which key, from when to when.
//!
//! Reading only; nothing here decides whether a certificate is to be trusted. Every function works on bytes from an
//! untrusted peer.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use crate::error::IdentityError;
use crate::fingerprint::Fingerprint;

/// The scheme of the name inside a certificate.
const SCHEME: &str = "farrun";

/// What kind of client a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A machine that runs commands.
    Node,
    /// A person's or an agent's client. What it may do is decided by the gateway, not by the certificate.
    Operator,
}

/// Whom a certificate names: the role, and the key by its fingerprint.
///
/// Written as the only subject alternative name, the URI `farrun:node:<hex>` or `farrun:operator:<hex>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// What kind of client.
    pub role: Role,
    /// Which key.
    pub fingerprint: Fingerprint,
}

/// From when to when a certificate is valid, both ends included, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First valid second.
    pub not_before: OffsetDateTime,
    /// Last valid second.
    pub not_after: OffsetDateTime,
}

/// Reads whom `certificate` names. Does not compare the name with the certified key: the server's check does.
///
/// # Errors
/// When the certificate is malformed, or carries anything but one name in the form above.
pub fn subject_of(certificate: &CertificateDer<'_>) -> Result<Subject, IdentityError> {
    let parsed = parse(certificate)?;
    let names = parsed
        .subject_alternative_name()
        .map_err(IdentityError::ParseCertificate)?
        .ok_or(IdentityError::Subject { reason: "no subject alternative name" })?;
    let [GeneralName::URI(uri)] = names.value.general_names.as_slice() else {
        return Err(IdentityError::Subject { reason: "the names are not exactly one URI" });
    };
    let (role, hex) = uri
        .strip_prefix(SCHEME)
        .and_then(|rest| rest.strip_prefix(':'))
        .and_then(|rest| rest.split_once(':'))
        .ok_or(IdentityError::Subject { reason: "the URI is not farrun:<role>:<fingerprint>" })?;
    let role = Role::from_name(role).ok_or(IdentityError::Subject { reason: "unknown role" })?;
    let fingerprint: Fingerprint = hex.parse().map_err(IdentityError::SubjectFingerprint)?;
    // One key has one spelling, so that two records about it can never differ by case or colons.
    if fingerprint.to_hex() != hex {
        return Err(IdentityError::Subject { reason: "the fingerprint is not in lower-case hex" });
    }
    Ok(Subject { role, fingerprint })
}

/// Reads from when to when `certificate` is valid.
///
/// # Errors
/// When the certificate is malformed.
pub fn validity_of(certificate: &CertificateDer<'_>) -> Result<Validity, IdentityError> {
    let parsed = parse(certificate)?;
    let validity = parsed.validity();
    Ok(Validity {
        not_before: validity.not_before.to_datetime(),
        not_after: validity.not_after.to_datetime(),
    })
}

/// Parses one certificate and refuses bytes behind it.
pub(crate) fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, IdentityError> {
    let (rest, parsed) = X509Certificate::from_der(certificate).map_err(|error| {
        IdentityError::ParseCertificate(match error {
            x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error) => error,
            x509_parser::nom::Err::Incomplete(_) => X509Error::InvalidCertificate,
        })
    })?;
    if rest.is_empty() { Ok(parsed) } else { Err(IdentityError::TrailingBytes) }
}

/// Writes a certificate as PEM (RFC 7468).
pub(crate) fn to_pem(certificate: &CertificateDer<'_>) -> String {
    let body = STANDARD.encode(certificate);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, next) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = next;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Operator => "operator",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Node, Self::Operator].into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Subject {
    /// The name for people, as common name in the certificate (which has room for 64 characters).
    pub(crate) fn short_name(&self) -> String {
        format!("{SCHEME}:{}:{}", self.role, &self.fingerprint.to_hex()[..16])
    }
}

impl fmt::Display for Subject {
    /// The URI in the certificate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}:{}:{}", self.role, self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    const HEX: &str = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef";

    fn certificate(names: &[SanType]) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names.to_vec();
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().into()
    }

    fn uri(text: &str) -> SanType {
        SanType::URI(text.try_into().unwrap())
    }

    #[test]
    fn the_written_name_is_read_back() {
        for role in [Role::Node, Role::Operator] {
            let subject = Subject { role, fingerprint: HEX.parse().unwrap() };
            assert_eq!(subject_of(&certificate(&[uri(&subject.to_string())])).unwrap(), subject);
        }
    }

    #[test]
    fn any_other_name_is_refused_with_the_reason() {
        let good = uri(&format!("farrun:node:{HEX}"));
        for (names, expected) in [
            (vec![], "no subject alternative name"),
            (vec![good.clone(), good.clone()], "the names are not exactly one URI"),
            (
                vec![SanType::DnsName("farrun:node:x".try_into().unwrap())],
                "the names are not exactly one URI",
            ),
            (vec![uri(&format!("farrun-node:{HEX}"))], "the URI is not farrun:<role>:<fingerprint>"),
            (vec![uri(&format!("farrun:admin:{HEX}"))], "unknown role"),
            (vec![uri("farrun:node:ab")], "malformed fingerprint"),
            (vec![uri(&format!("farrun:node:sha256:{HEX}"))], "the fingerprint is not in lower-case hex"),
            (
                vec![uri(&format!("farrun:node:{}", HEX.to_uppercase()))],
                "the fingerprint is not in lower-case hex",
            ),
        ] {
            let error = subject_of(&certificate(&names)).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{names:?}: {error}");
        }
    }

    #[test]
    fn bytes_that_are_no_certificate_are_refused() {
        let mut long = certificate(&[]).to_vec();
        long.push(0);
        assert!(matches!(subject_of(&long.into()), Err(IdentityError::TrailingBytes)));
        assert!(matches!(subject_of(&vec![].into()), Err(IdentityError::ParseCertificate(_))));
        assert!(matches!(
            Fingerprint::of_certificate(&vec![0x30].into()),
            Err(IdentityError::ParseCertificate(_))
        ));
    }
}
