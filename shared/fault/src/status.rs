//! A `Fault` as a gRPC status, and back.
//!
//! Code and hint travel as two ASCII metadata values. Owns the bounds on what is sent: HTTP/2 peers accept 16 KiB of
//! headers, and percent encoding can triple a text, so `3 * (message + hint)` must stay below that.

use std::error::Error;

use tonic::{
    Code, Status,
    metadata::{MetadataMap, MetadataValue},
};

use crate::{ErrorCode, Fault};

/// Metadata key that carries [`ErrorCode::as_str`].
pub const CODE_KEY: &str = "farrun-code";
/// Metadata key that carries the hint, percent-encoded.
pub const HINT_KEY: &str = "farrun-hint";
/// Longest message that is sent or accepted, in bytes of UTF-8.
pub const MAX_MESSAGE_BYTES: usize = 4096;
/// Longest hint that is sent or accepted, in bytes of UTF-8 before encoding.
pub const MAX_HINT_BYTES: usize = 768;

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        let mut metadata = MetadataMap::new();
        metadata.insert(CODE_KEY, MetadataValue::from_static(fault.code.as_str()));
        if let Some(hint) = &fault.hint {
            // The encoding leaves only printable ASCII, so this value is always accepted.
            if let Ok(value) = encode(bounded(hint, MAX_HINT_BYTES)).parse() {
                metadata.insert(HINT_KEY, value);
            }
        }
        Self::with_metadata(fault.code.grpc(), bounded(&fault.message, MAX_MESSAGE_BYTES), metadata)
    }
}

impl Fault {
    /// Reads a status of ours, or the nearest fault for a foreign one.
    ///
    /// A status that this process made itself because the transport failed has an error source. It reads as
    /// `GATEWAY_UNREACHABLE` (safe to retry) only when connecting failed; on a connection that had been made it reads
    /// as `DISCONNECTED`, because the request may have arrived.
    #[must_use]
    pub fn from_status(status: &Status) -> Self {
        let metadata = status.metadata();
        let code = metadata
            .get(CODE_KEY)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| foreign_code(status));
        let hint = metadata
            .get(HINT_KEY)
            .and_then(|value| value.to_str().ok())
            .filter(|text| text.len() <= 3 * MAX_HINT_BYTES)
            .map(|text| bounded(&decode(text), MAX_HINT_BYTES).to_owned());
        Self { code, message: bounded(status.message(), MAX_MESSAGE_BYTES).to_owned(), hint }
    }
}

fn foreign_code(status: &Status) -> ErrorCode {
    let Some(mut cause) = status.source() else {
        return ErrorCode::from_grpc(status.code());
    };
    // Bounded: source chains are short, but a cycle must not hang an error path.
    for _ in 0..32 {
        if cause.is::<tonic::ConnectError>() {
            return ErrorCode::GatewayUnreachable;
        }
        match cause.source() {
            Some(next) => cause = next,
            None => break,
        }
    }
    match status.code() {
        Code::Unavailable | Code::Unknown | Code::Internal => ErrorCode::Disconnected,
        other => ErrorCode::from_grpc(other),
    }
}

/// The longest prefix of at most `max` bytes that ends at a character boundary.
fn bounded(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text.as_bytes() {
        if (0x20..0x7f).contains(&byte) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for nibble in [byte >> 4, byte & 0x0f] {
                out.push(char::from(b"0123456789ABCDEF"[usize::from(nibble)]));
            }
        }
    }
    out
}

/// Undoes [`encode`]; a malformed escape stays as it is, bytes that are not UTF-8 become replacement characters.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = match bytes[at..] {
            [b'%', high, low, ..] => hex(high).zip(hex(low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        out.push(escape.unwrap_or(bytes[at]));
        at += if escape.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_code_makes_the_round_trip() {
        for &code in ErrorCode::ALL {
            for hint in [None, Some("run `x`\n100 % — später \u{1f511}")] {
                let mut fault = Fault::new(code, "what happened: größer\nthan 4");
                fault.hint = hint.map(str::to_owned);
                let status = Status::from(fault.clone());
                assert_eq!(status.code(), code.grpc());
                assert_eq!(Fault::from_status(&status), fault);
            }
        }
    }

    #[test]
    fn foreign_statuses_map_by_grpc_code() {
        let table = [
            (Status::unavailable("x"), ErrorCode::GatewayUnreachable),
            (Status::unimplemented("x"), ErrorCode::VersionSkew),
            (Status::deadline_exceeded("x"), ErrorCode::Timeout),
            (Status::unauthenticated("x"), ErrorCode::Unauthenticated),
            (Status::aborted("x"), ErrorCode::OutcomeUnknown),
            (Status::unknown("x"), ErrorCode::Internal),
            (Status::not_found("x"), ErrorCode::InvalidRequest),
        ];
        for (status, code) in table {
            assert_eq!(Fault::from_status(&status), Fault::new(code, "x"));
        }
    }

    #[test]
    fn a_code_of_a_newer_peer_falls_back_and_keeps_its_hint() {
        let mut status = Status::permission_denied("m");
        status.metadata_mut().insert(CODE_KEY, MetadataValue::from_static("FROM_THE_FUTURE"));
        status.metadata_mut().insert(HINT_KEY, MetadataValue::from_static("do%20this %zz %"));
        assert_eq!(
            Fault::from_status(&status),
            Fault::new(ErrorCode::PermissionDenied, "m").hint("do this %zz %")
        );
    }

    #[test]
    fn a_broken_transport_is_told_from_a_failed_connect() {
        let cut = Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
        assert_eq!(Fault::from_status(&cut).code, ErrorCode::Disconnected);
        let refused =
            tonic::ConnectError(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)));
        assert_eq!(
            Fault::from_status(&Status::from_error(Box::new(refused))).code,
            ErrorCode::GatewayUnreachable
        );
    }

    #[test]
    fn texts_are_bounded_at_character_boundaries() {
        let fault = Fault::new(ErrorCode::Internal, "é".repeat(5000)).hint("é".repeat(5000));
        let back = Fault::from_status(&Status::from(fault));
        assert_eq!(back.message, "é".repeat(2048));
        assert_eq!(back.hint, Some("é".repeat(384)));
    }

    proptest! {
        #[test]
        fn hints_survive(text in "\\PC{0,80}|[\\x00-\\x7f]{0,80}") {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|b| (0x20..0x7f).contains(&b)));
            prop_assert_eq!(decode(&encoded), text);
        }

        #[test]
        fn any_text_decodes(text in "[%0-9a-zA-Z ]{0,60}") {
            let _: String = decode(&text);
        }
    }
}
