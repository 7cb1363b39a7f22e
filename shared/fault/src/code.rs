//! The error codes and their two mappings, as one table.
//!
//! The strings are a public interface (logs, JSON, scripts): add, never rename. Owns no message text.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tonic::Code;

use crate::ExitClass;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $grpc:ident, $exit:expr;)+) => {
        /// What went wrong, as a stable name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable string, in capitals with underscores.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The gRPC code that a status with this error code bears.
            #[must_use]
            pub const fn grpc(self) -> Code {
                match self {
                    $(Self::$variant => Code::$grpc,)+
                }
            }

            /// The class of exit that a command line program ends with.
            #[must_use]
            pub const fn exit_class(self) -> ExitClass {
                match self {
                    $(Self::$variant => $exit,)+
                }
            }
        }
    };
}

error_codes! {
    /// A field of the request is missing, malformed or contradicts another.
    InvalidRequest = "INVALID_REQUEST", InvalidArgument, ExitClass::Usage;
    /// The command text holds a NUL byte.
    CommandNul = "COMMAND_NUL", InvalidArgument, ExitClass::Usage;
    /// The command text is longer than the limit.
    CommandTooLong = "COMMAND_TOO_LONG", InvalidArgument, ExitClass::Usage;
    /// The working directory does not exist on the machine that would run the command.
    WorkdirNotFound = "WORKDIR_NOT_FOUND", FailedPrecondition, ExitClass::CouldNotStart;
    /// The working directory is something other than a directory.
    WorkdirNotDirectory = "WORKDIR_NOT_DIRECTORY", FailedPrecondition, ExitClass::CouldNotStart;
    /// The working directory may not be entered by the node's user.
    WorkdirNotAccessible = "WORKDIR_NOT_ACCESSIBLE", FailedPrecondition, ExitClass::CouldNotStart;
    /// Environment overrides were blocked or malformed; the message names the keys.
    EnvRejected = "ENV_REJECTED", InvalidArgument, ExitClass::Refused;
    /// The policy of the node or the gateway refused this command.
    SystemRunDenied = "SYSTEM_RUN_DENIED", PermissionDenied, ExitClass::Refused;
    /// The policy refuses every command (security is `deny`).
    SystemRunDisabled = "SYSTEM_RUN_DISABLED", PermissionDenied, ExitClass::Refused;
    /// The approvals document cannot be read as one; everything is refused until it can.
    ApprovalsMalformed = "APPROVALS_MALFORMED", FailedPrecondition, ExitClass::Refused;
    /// The configuration file cannot be used; what depends on it is refused until it can.
    ConfigInvalid = "CONFIG_INVALID", FailedPrecondition, ExitClass::Refused;
    /// The approvals document changed since the caller read it.
    ApprovalsConflict = "APPROVALS_CONFLICT", Aborted, ExitClass::Refused;
    /// The `host` of the request names no kind of host that exists.
    UnknownHost = "UNKNOWN_HOST", InvalidArgument, ExitClass::Usage;
    /// No paired node has this name or id.
    UnknownNode = "UNKNOWN_NODE", NotFound, ExitClass::Usage;
    /// More than one node matches the name.
    AmbiguousNode = "AMBIGUOUS_NODE", InvalidArgument, ExitClass::Usage;
    /// No node is paired or none can run commands.
    NoNode = "NO_NODE", FailedPrecondition, ExitClass::NotDispatched;
    /// The node is paired but not connected.
    NodeOffline = "NODE_OFFLINE", Unavailable, ExitClass::NotDispatched;
    /// The node is not paired with this gateway.
    NotPaired = "NOT_PAIRED", Unauthenticated, ExitClass::Refused;
    /// The node was removed; its certificate is no longer accepted.
    NodeRemoved = "NODE_REMOVED", PermissionDenied, ExitClass::Refused;
    /// No pairing or approval request has this id.
    UnknownRequest = "UNKNOWN_REQUEST", NotFound, ExitClass::Usage;
    /// The pairing or approval request ran out of time.
    RequestExpired = "REQUEST_EXPIRED", FailedPrecondition, ExitClass::Refused;
    /// A person rejected the pairing or approval request.
    RequestRejected = "REQUEST_REJECTED", PermissionDenied, ExitClass::Refused;
    /// The invitation is unknown, used or expired.
    InviteInvalid = "INVITE_INVALID", PermissionDenied, ExitClass::Refused;
    /// No approval has this id.
    ApprovalNotFound = "APPROVAL_NOT_FOUND", NotFound, ExitClass::Usage;
    /// More than one approval has an id that begins so.
    AmbiguousApproval = "AMBIGUOUS_APPROVAL", InvalidArgument, ExitClass::Usage;
    /// The approval's time is over.
    ApprovalExpired = "APPROVAL_EXPIRED", FailedPrecondition, ExitClass::Refused;
    /// Somebody decided otherwise before.
    ApprovalAlreadyResolved = "APPROVAL_ALREADY_RESOLVED", FailedPrecondition, ExitClass::Refused;
    /// The approval was closed undecided: its run was given up, or the gateway was restarted.
    ApprovalCancelled = "APPROVAL_CANCELLED", FailedPrecondition, ExitClass::Refused;
    /// The decision was used before; each is good for one run.
    ApprovalAlreadyUsed = "APPROVAL_ALREADY_USED", FailedPrecondition, ExitClass::Refused;
    /// The approval id is in use.
    ApprovalIdTaken = "APPROVAL_ID_TAKEN", AlreadyExists, ExitClass::Usage;
    /// Nothing durable can be stored for this command, or not so wide.
    AllowAlwaysUnavailable = "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE", FailedPrecondition, ExitClass::Refused;
    /// The request is not the one that was approved.
    ApprovalRequestMismatch = "APPROVAL_REQUEST_MISMATCH", FailedPrecondition, ExitClass::Refused;
    /// The variables are not those that were approved.
    ApprovalEnvMismatch = "APPROVAL_ENV_MISMATCH", FailedPrecondition, ExitClass::Refused;
    /// The node takes only decisions that an enrolled approver signed.
    ApprovalSignatureRequired = "APPROVAL_SIGNATURE_REQUIRED", PermissionDenied, ExitClass::Refused;
    /// The signature of a decision is not that of an enrolled approver over it.
    ApprovalSignatureInvalid = "APPROVAL_SIGNATURE_INVALID", PermissionDenied, ExitClass::Refused;
    /// As many approvals are open as may be.
    ApprovalLimit = "APPROVAL_LIMIT_REACHED", ResourceExhausted, ExitClass::NotDispatched;
    /// The command is longer than anybody can read on a card.
    CommandDisplayLimit = "EXEC_APPROVAL_COMMAND_DISPLAY_LIMIT", InvalidArgument, ExitClass::Refused;
    /// A record of the audit log was changed, lost or moved.
    AuditBroken = "AUDIT_BROKEN", DataLoss, ExitClass::Internal;
    /// Too many requests are open; try again later.
    TooManyRequests = "TOO_MANY_REQUESTS", ResourceExhausted, ExitClass::NotDispatched;
    /// The command certainly did not reach the node.
    NotDispatched = "NOT_DISPATCHED", Unavailable, ExitClass::NotDispatched;
    /// The command may have run; its end is not known.
    OutcomeUnknown = "OUTCOME_UNKNOWN", Unknown, ExitClass::OutcomeUnknown;
    /// The link was lost after the request had been sent.
    Disconnected = "DISCONNECTED", Aborted, ExitClass::OutcomeUnknown;
    /// The deadline passed.
    Timeout = "TIMEOUT", DeadlineExceeded, ExitClass::TimedOut;
    /// The caller cancelled.
    Cancelled = "CANCELLED", Cancelled, ExitClass::Signal(2);
    /// The command was permitted but the operating system would not start it.
    CouldNotStart = "COULD_NOT_START", FailedPrecondition, ExitClass::CouldNotStart;
    /// The run id was used before with other input.
    RunIdConflict = "RUN_ID_CONFLICT", AlreadyExists, ExitClass::Refused;
    /// No session has this id or name.
    UnknownSession = "UNKNOWN_SESSION", NotFound, ExitClass::Usage;
    /// More than one session matches.
    AmbiguousSession = "AMBIGUOUS_SESSION", InvalidArgument, ExitClass::Usage;
    /// The session has ended and takes no input, signal or resize.
    SessionEnded = "SESSION_ENDED", FailedPrecondition, ExitClass::Usage;
    /// The session runs; only one that has ended can be cleared.
    SessionRunning = "SESSION_RUNNING", FailedPrecondition, ExitClass::Usage;
    /// No background command has this id.
    UnknownTask = "UNKNOWN_TASK", NotFound, ExitClass::Usage;
    /// The session's standard input is closed.
    StdinClosed = "STDIN_CLOSED", FailedPrecondition, ExitClass::Usage;
    /// The operation needs a session with a terminal.
    NotATerminal = "NOT_A_TERMINAL", FailedPrecondition, ExitClass::Usage;
    /// The node holds as many live sessions as it may.
    SessionLimit = "SESSION_LIMIT", ResourceExhausted, ExitClass::Refused;
    /// The caller's role does not cover the operation.
    PermissionDenied = "PERMISSION_DENIED", PermissionDenied, ExitClass::Refused;
    /// The caller is not known.
    Unauthenticated = "UNAUTHENTICATED", Unauthenticated, ExitClass::Refused;
    /// The two programs speak no common protocol version.
    VersionSkew = "VERSION_SKEW", FailedPrecondition, ExitClass::Internal;
    /// The clocks differ too much to judge a certificate or an expiry.
    ClockSkew = "CLOCK_SKEW", FailedPrecondition, ExitClass::Refused;
    /// The peer's certificate comes from another authority than the pinned one.
    OtherAuthority = "OTHER_AUTHORITY", Unauthenticated, ExitClass::Refused;
    /// A newer link of the same node took over.
    LinkReplaced = "LINK_REPLACED", Aborted, ExitClass::NotDispatched;
    /// The program is shutting down and takes nothing new.
    Draining = "DRAINING", Unavailable, ExitClass::NotDispatched;
    /// The state directory cannot be used safely.
    StateDirUnusable = "STATE_DIR_UNUSABLE", FailedPrecondition, ExitClass::NotDispatched;
    /// The state directory belongs to another product.
    StateDirForeign = "STATE_DIR_FOREIGN", FailedPrecondition, ExitClass::NotDispatched;
    /// Stored state is damaged or cannot be read.
    StoreUnreadable = "STORE_UNREADABLE", DataLoss, ExitClass::Internal;
    /// Another process holds the store.
    StoreBusy = "STORE_BUSY", Unavailable, ExitClass::NotDispatched;
    /// The address to listen on is taken.
    PortInUse = "PORT_IN_USE", FailedPrecondition, ExitClass::NotDispatched;
    /// No connection to the gateway could be made.
    GatewayUnreachable = "GATEWAY_UNREACHABLE", Unavailable, ExitClass::NotDispatched;
    /// The program already runs with this state directory.
    AlreadyRunning = "ALREADY_RUNNING", AlreadyExists, ExitClass::NotDispatched;
    /// The machine could not give a terminal.
    PtyUnavailable = "PTY_UNAVAILABLE", FailedPrecondition, ExitClass::CouldNotStart;
    /// Memory, descriptors, disk or a quota is used up.
    ResourceExhausted = "RESOURCE_EXHAUSTED", ResourceExhausted, ExitClass::NotDispatched;
    /// A defect of ours.
    Internal = "INTERNAL", Internal, ExitClass::Internal;
}

impl ErrorCode {
    /// The process exit status of this code's class.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        self.exit_class().status()
    }

    /// The nearest code for a gRPC code that came without one of ours. Anything that could hide a command that ran
    /// stays on the careful side: only `Unavailable` reads as "nothing was sent".
    #[must_use]
    pub const fn from_grpc(code: Code) -> Self {
        match code {
            Code::Cancelled => Self::Cancelled,
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange => Self::InvalidRequest,
            Code::DeadlineExceeded => Self::Timeout,
            Code::PermissionDenied => Self::PermissionDenied,
            Code::ResourceExhausted => Self::ResourceExhausted,
            Code::Aborted => Self::OutcomeUnknown,
            Code::Unimplemented => Self::VersionSkew,
            Code::Unavailable => Self::GatewayUnreachable,
            Code::Unauthenticated => Self::Unauthenticated,
            Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Self::Internal,
        }
    }

    /// Whether the same request may be sent again without a chance that the command runs twice.
    #[must_use]
    pub const fn retry_safe(self) -> bool {
        matches!(
            self,
            Self::NotDispatched
                | Self::NodeOffline
                | Self::Draining
                | Self::GatewayUnreachable
                | Self::TooManyRequests
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A string is no error code that this version knows. It carries no copy of the string: that came from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an error code that this version knows")]
pub struct UnknownErrorCode;

impl FromStr for ErrorCode {
    type Err = UnknownErrorCode;

    fn from_str(text: &str) -> Result<Self, UnknownErrorCode> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text).ok_or(UnknownErrorCode)
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn strings_are_distinct_and_parse_back() {
        let distinct: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!((distinct.len(), ErrorCode::ALL.len()), (71, 71));
        for &code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(code));
            assert!(code.as_str().bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{code}");
        }
        for bad in ["", "internal", "INTERNAL ", "NO_SUCH_CODE"] {
            assert_eq!(bad.parse::<ErrorCode>(), Err(UnknownErrorCode), "{bad:?}");
        }
    }

    #[test]
    fn serde_uses_the_string() {
        for &code in ErrorCode::ALL {
            let text = serde_json::to_string(&code).unwrap();
            assert_eq!(text, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&text).unwrap(), code);
        }
        assert!(serde_json::from_str::<ErrorCode>("\"NOPE\"").is_err());
    }

    #[test]
    fn no_code_reads_as_success() {
        for &code in ErrorCode::ALL {
            assert_ne!(code.grpc(), Code::Ok, "{code}");
            assert_ne!(code.exit_status(), 0, "{code}");
        }
    }

    #[test]
    fn safe_retries_never_claim_an_unknown_outcome() {
        for code in ErrorCode::ALL.iter().filter(|code| code.retry_safe()) {
            assert_eq!(code.exit_class(), ExitClass::NotDispatched, "{code}");
        }
        let safe: Vec<&str> =
            ErrorCode::ALL.iter().filter(|code| code.retry_safe()).map(|code| code.as_str()).collect();
        assert_eq!(
            safe,
            ["NODE_OFFLINE", "TOO_MANY_REQUESTS", "NOT_DISPATCHED", "DRAINING", "GATEWAY_UNREACHABLE"]
        );
    }
}
