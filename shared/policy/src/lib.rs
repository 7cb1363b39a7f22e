//! May it run? The rules that the node enforces and the gateway forecasts with.
//!
//! Pure: no disk, clock, network or process environment; everything comes in as a value and goes out as one.
//!
//! The way of a command: [`shell`] reads its text, [`command`] finds the program behind each part, [`resolve`] the file
//! of that name (through the caller's [`resolve::Files`]), [`allowlist`], [`safe_bins`] and [`skills`] may satisfy it,
//! [`analyse`] makes the [`plan`] of all that, and [`judge`] gives the answer, which [`explain`] spells out.

pub mod allowlist;
pub mod analyse;
pub mod bind;
pub mod command;
mod document;
mod effective;
mod env;
pub mod explain;
#[cfg(test)]
mod fake;
pub mod highlight;
pub mod inline_eval;
mod mode;
pub mod plan;
mod printable;
pub mod resolve;
pub mod safe_bins;
pub mod shell;
pub mod skills;
pub mod verdict;

pub use document::{
    AgentEntry, AllowAlways, AllowEntry, ApprovalsDocument, BaseHashError, DocumentError, HostPolicy,
    MAIN_AGENT, MAX_DOCUMENT_BYTES, PolicyFields, SanitisedUpdate, SocketEntry, Usage, check_base_hash,
    hash_of,
};
pub use effective::{Configured, DecidedBy, EffectivePolicy, Requested};
pub use env::{
    CHILD_MARKERS, EnvRejection, MAX_OVERRIDES, PassList, check_overrides, clean_inherited,
    reduce_for_shell_wrapper,
};
pub use mode::{Ask, AskFallback, AutoReview, Mode, ModePolicy, Security, ShownMode, UnknownPolicyWord};
pub use verdict::{Denial, DenialKind, Judgement, Terms, Verdict, judge};
