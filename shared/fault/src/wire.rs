//! A [`Fault`] inside a frame, where there is no gRPC status to carry it.

use proto::v1 as pb;

use crate::{ErrorCode, Fault};

impl From<Fault> for pb::Fault {
    fn from(fault: Fault) -> Self {
        Self {
            code: fault.code.as_str().to_owned(),
            message: fault.message,
            hint: fault.hint.unwrap_or_default(),
        }
    }
}

impl From<pb::Fault> for Fault {
    /// A code that this build does not know becomes `INTERNAL` and stays in
    /// the text: a newer peer's failure is still a failure.
    fn from(fault: pb::Fault) -> Self {
        let (code, message) = match fault.code.parse::<ErrorCode>() {
            Ok(code) => (code, fault.message),
            Err(_) => (ErrorCode::Internal, format!("{}: {}", fault.code, fault.message)),
        };
        Self { code, message, hint: (!fault.hint.is_empty()).then_some(fault.hint) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_unknown_code() {
        let fault = Fault::new(ErrorCode::UnknownNode, "no node `x`").hint("gateway nodes list");
        assert_eq!(Fault::from(pb::Fault::from(fault.clone())), fault);
        let newer = pb::Fault { code: "FROM_TOMORROW".into(), message: "m".into(), hint: String::new() };
        assert_eq!(Fault::from(newer), Fault::new(ErrorCode::Internal, "FROM_TOMORROW: m"));
    }
}
