//! Why a handshake failed, in the few kinds that need different help.
//!
//! Owns the mapping from rustls errors. What to tell a person, and whether to try again, is the caller's business.

use std::error::Error;
use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, OtherError};
use rustls_pki_types::UnixTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::fingerprint::Fingerprint;

/// How many causes are followed when looking for a TLS error inside another one.
const MAX_CAUSES: usize = 16;

/// The gateway belongs to another authority than the pinned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway's authority is {presented}, the pin says {expected}")]
pub struct AuthorityMismatch {
    /// The pin.
    pub expected: Fingerprint,
    /// What the gateway presented.
    pub presented: Fingerprint,
}

/// Why a TLS handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsProblem {
    /// The two sides do not share an authority: the gateway is not the pinned one, or it does not know ours. Trying again
    /// does not help.
    OtherAuthority,
    /// A certificate is not valid yet or no longer, here or in the peer's eyes: a clock is wrong or a renewal was missed.
    Clock {
        /// Which end was passed, with both times where they are known.
        detail: String,
    },
    /// The peer does not want our certificate: removed, never approved, or one is required.
    Refused,
    /// Anything else, in rustls's words.
    Other(String),
}

impl TlsProblem {
    /// The kind of `error`.
    pub fn of(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(problem) => Self::of_certificate(problem, error),
            rustls::Error::AlertReceived(alert) => Self::of_alert(*alert, error),
            _ => Self::Other(error.to_string()),
        }
    }

    /// The kind of the TLS error inside `error`, `None` when there is none: the connection failed for another reason.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        Self::of_chain(error)
    }

    /// The kind of the first TLS error among `error` and its causes.
    pub fn of_chain(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        for _ in 0..MAX_CAUSES {
            let current = next?;
            if let Some(found) = current.downcast_ref::<rustls::Error>() {
                return Some(Self::of(found));
            }
            // `io::Error::source` skips the error that it wraps.
            let wrapped = current.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = match wrapped {
                Some(inner) => Some(inner),
                None => current.source(),
            };
        }
        None
    }

    fn of_certificate(problem: &CertificateError, error: &rustls::Error) -> Self {
        match problem {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::OtherAuthority,
            CertificateError::Other(OtherError(inner)) if inner.is::<AuthorityMismatch>() => {
                Self::OtherAuthority
            }
            CertificateError::Other(OtherError(inner)) => Self::Other(inner.to_string()),
            CertificateError::ExpiredContext { time, not_after } => Self::Clock {
                detail: format!(
                    "the peer's certificate ended at {}, the clock here says {}",
                    text(*not_after),
                    text(*time)
                ),
            },
            CertificateError::NotValidYetContext { time, not_before } => Self::Clock {
                detail: format!(
                    "the peer's certificate starts at {}, the clock here says {}",
                    text(*not_before),
                    text(*time)
                ),
            },
            CertificateError::Expired => {
                Self::Clock { detail: "the peer's certificate has ended by the clock here".to_owned() }
            }
            CertificateError::NotValidYet => {
                Self::Clock { detail: "the peer's certificate has not started by the clock here".to_owned() }
            }
            _ => Self::Other(error.to_string()),
        }
    }

    fn of_alert(alert: AlertDescription, error: &rustls::Error) -> Self {
        match alert {
            AlertDescription::UnknownCA => Self::OtherAuthority,
            AlertDescription::CertificateExpired => Self::Clock {
                detail:
                    "our certificate is not valid by the peer's clock: it has ended, or one clock is wrong"
                        .to_owned(),
            },
            AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::NoCertificate
            | AlertDescription::AccessDenied => Self::Refused,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherAuthority => f.write_str("the two sides do not share an authority"),
            Self::Clock { detail } => write!(f, "clock: {detail}"),
            Self::Refused => f.write_str("the peer refused our certificate"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

fn text(time: UnixTime) -> String {
    let seconds = time.as_secs();
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| format!("{seconds} s after 1970"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_error_has_its_kind() {
        let mismatch = AuthorityMismatch { expected: Fingerprint([1; 32]), presented: Fingerprint([2; 32]) };
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(86_400));
        let end = UnixTime::since_unix_epoch(std::time::Duration::from_secs(3_600));
        for (error, expected) in [
            (CertificateError::UnknownIssuer.into(), TlsProblem::OtherAuthority),
            (CertificateError::Other(OtherError(Arc::new(mismatch))).into(), TlsProblem::OtherAuthority),
            (rustls::Error::AlertReceived(AlertDescription::UnknownCA), TlsProblem::OtherAuthority),
            (
                CertificateError::ExpiredContext { time, not_after: end }.into(),
                TlsProblem::Clock {
                    detail: "the peer's certificate ended at 1970-01-01T01:00:00Z, \
                             the clock here says 1970-01-02T00:00:00Z"
                        .to_owned(),
                },
            ),
            (rustls::Error::AlertReceived(AlertDescription::AccessDenied), TlsProblem::Refused),
            (rustls::Error::AlertReceived(AlertDescription::CertificateRequired), TlsProblem::Refused),
            (rustls::Error::HandshakeNotComplete, TlsProblem::Other("handshake not complete".to_owned())),
        ] {
            assert_eq!(TlsProblem::of(&error), expected, "{error}");
        }
    }

    #[test]
    fn a_tls_error_is_found_inside_others() {
        let tls = rustls::Error::AlertReceived(AlertDescription::AccessDenied);
        let inner = io::Error::new(io::ErrorKind::InvalidData, tls);
        let outer = io::Error::other(inner);
        assert_eq!(TlsProblem::of_io(&outer), Some(TlsProblem::Refused));
        assert_eq!(TlsProblem::of_io(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
    }
}
