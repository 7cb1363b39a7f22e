//! What changed between a plan that was approved and the world now (policy spec §7.6), and whether a request is the one
//! that the plan was made for (§7.9).

use proto::v1 as pb;

/// Something that was approved is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Drift {
    /// The working directory is another one.
    #[error("approval cwd changed before execution: {0}")]
    Workdir(String),
    /// A script has other content, or is another file.
    #[error("approval script operand changed before execution: {0}")]
    Script(String),
    /// A program is another file, or has other content.
    #[error("approval executable changed before execution: {0}")]
    Program(String),
    /// The command is understood otherwise, or a file is bound that was not.
    #[error("execution plan mismatch: {0}")]
    Plan(String),
}

/// A request that is not the one which was approved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} differs from what was approved")]
pub struct Mismatch {
    /// The field, for people: `the command`, `the working directory`, …
    pub what: &'static str,
    /// It is about the variables.
    pub env: bool,
}

/// The first thing that differs between the plan that was approved and the same made now. Fields that the node sets
/// anew each time (nonce, times, reasons, scopes) do not count.
#[must_use]
pub fn drift(approved: &pb::Plan, now: &pb::Plan) -> Option<Drift> {
    let _ = (approved, now);
    Some(Drift::Plan("not looked at".to_owned()))
}

/// The first field of the caller's that differs.
#[must_use]
pub fn mismatch(approved: &pb::Plan, now: &pb::Plan) -> Option<Mismatch> {
    let _ = (approved, now);
    Some(Mismatch { what: "the request", env: false })
}
