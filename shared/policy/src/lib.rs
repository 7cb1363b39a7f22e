//! May it run? The rules that the node enforces and the gateway forecasts with.
//!
//! Pure: no disk, clock, network or process environment; everything comes in as a value and goes out as one. Command
//! text is not analysed yet, so an allowlist satisfies nothing here (see [`judge`]).

mod document;
mod effective;
mod env;
mod mode;
mod verdict;

pub use document::{
    AgentEntry, AllowAlways, AllowEntry, ApprovalsDocument, BaseHashError, DocumentError, HostPolicy,
    MAX_DOCUMENT_BYTES, PolicyFields, SanitisedUpdate, SocketEntry, check_base_hash, hash_of,
};
pub use effective::{DecidedBy, EffectivePolicy, Requested};
pub use env::{
    CHILD_MARKERS, EnvRejection, MAX_OVERRIDES, PassList, check_overrides, clean_inherited,
    reduce_for_shell_wrapper,
};
pub use mode::{Ask, AskFallback, AutoReview, Mode, ModePolicy, Security, ShownMode, UnknownPolicyWord};
pub use verdict::{Denial, DenialKind, Verdict, judge};
