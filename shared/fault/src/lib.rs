//! The one vocabulary of failure that gateway, node host and command line share.
//!
//! Owns the stable error codes, their gRPC code and their exit status, and the [`Fault`] that carries a code over the
//! wire. It does not own the errors of any module: each module has its own typed error and turns it into a `Fault` at
//! the edge, where an answer leaves the program.

mod code;
mod exit;
mod fault;
mod status;
mod wire;

pub use code::{ErrorCode, UnknownErrorCode};
pub use exit::ExitClass;
pub use fault::Fault;
pub use status::{CODE_KEY, HINT_KEY, MAX_HINT_BYTES, MAX_MESSAGE_BYTES};
