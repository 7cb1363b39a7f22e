//! A failure as it is told to a caller: code, sentence, what to do next.
//!
//! Owns the value and its text. How it travels is in `status`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ErrorCode, ExitClass};

/// A failure with a stable code, a sentence for people and, where there is one, the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// The stable name of what went wrong.
    pub code: ErrorCode,
    /// One sentence; never holds secrets, environment values or output of commands.
    pub message: String,
    /// What the reader can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Fault {
    /// A failure without a hint.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the same request may be sent again without a chance that the command runs twice.
    #[must_use]
    pub const fn retry_safe(&self) -> bool {
        self.code.retry_safe()
    }

    /// The class of exit that a command line program ends with.
    #[must_use]
    pub const fn exit_class(&self) -> ExitClass {
        self.code.exit_class()
    }
}

impl fmt::Display for Fault {
    /// `CODE: message`, or the message alone where it starts with its code, as some texts of the wire must; the hint
    /// is for the line after it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said =
            self.message.strip_prefix(self.code.as_str()).is_some_and(|rest| rest.starts_with([' ', ':']));
        if said { f.write_str(&self.message) } else { write!(f, "{}: {}", self.code, self.message) }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_says_the_code_once() {
        let table = [
            ("WORKDIR_NOT_FOUND /x on node n", "WORKDIR_NOT_FOUND /x on node n"),
            ("WORKDIR_NOT_FOUND: /x", "WORKDIR_NOT_FOUND: /x"),
            ("WORKDIR_NOT_FOUNDED", "WORKDIR_NOT_FOUND: WORKDIR_NOT_FOUNDED"),
            ("WORKDIR_NOT_FOUND", "WORKDIR_NOT_FOUND: WORKDIR_NOT_FOUND"),
            ("SYSTEM_RUN_DENIED: x", "WORKDIR_NOT_FOUND: SYSTEM_RUN_DENIED: x"),
            ("", "WORKDIR_NOT_FOUND: "),
        ];
        for (message, shown) in table {
            let fault = Fault::new(ErrorCode::WorkdirNotFound, message);
            assert_eq!(fault.to_string(), shown);
            assert_eq!(fault.message, message);
        }
    }

    #[test]
    fn display_has_no_hint_and_json_is_plain() {
        let fault = Fault::new(ErrorCode::NodeOffline, "node `a` is offline").hint("start node-host there");
        assert_eq!(fault.to_string(), "NODE_OFFLINE: node `a` is offline");
        assert_eq!(
            serde_json::to_string(&fault).unwrap(),
            r#"{"code":"NODE_OFFLINE","message":"node `a` is offline","hint":"start node-host there"}"#
        );
        let bare = Fault::new(ErrorCode::Internal, "x");
        assert_eq!(serde_json::to_string(&bare).unwrap(), r#"{"code":"INTERNAL","message":"x"}"#);
    }
}
