//! What a start of a session takes, within which bounds, and why it fails.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use session::{Exit, LogLimits, RunId, SessionId};

use super::pool::PoolError;
use crate::process::journal::Owner;
use crate::process::wire::FrameError;
use crate::process::{Bound, EnvVar, Mode};

/// Bounds on the sessions of a node (runtime.md §2.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Sessions that run at one time.
    pub live_max: usize,
    /// Finished sessions that are kept once they were there for `finished_stay` and nobody holds them.
    pub finished_max: usize,
    /// How long a finished session is kept, or longer while somebody holds it.
    pub finished_age: Duration,
    /// How long a finished session is there in any case, for whoever lost its start or its end.
    pub finished_stay: Duration,
    /// Finished sessions that there are at most; this and the next bound count before all others.
    pub finished_hard_max: usize,
    /// Bytes on disk that finished sessions may take together. The newest one stays in any case.
    pub finished_bytes: u64,
    /// Holders kept ready.
    pub spares: usize,
    /// Bounds of each session's log.
    pub log: LogLimits,
}

impl Default for Limits {
    /// 256 live sessions; 50 finished ones for 30 minutes, all for 2 minutes, 2000 and 1 GiB at most; 2 spare holders.
    fn default() -> Self {
        Limits {
            live_max: 256,
            finished_max: 50,
            finished_age: Duration::from_secs(1800),
            finished_stay: Duration::from_secs(120),
            finished_hard_max: 2000,
            finished_bytes: 1 << 30,
            spares: 2,
            log: LogLimits::default(),
        }
    }
}

/// A command to start. The door has said yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    /// The caller's name of the run.
    pub run_id: RunId,
    /// Digest of the whole input; tells a retry from another run under the same name.
    pub input_digest: [u8; 32],
    /// The command for lists; cut to 512 characters.
    pub label: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment of the command.
    pub env: Vec<EnvVar>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Pipes or terminal.
    pub mode: Mode,
    /// When to kill it, in milliseconds from the start; none is never.
    pub deadline_ms: Option<u64>,
    /// Time between TERM and KILL, in milliseconds.
    pub kill_grace_ms: u64,
    /// What a person's yes was bound to.
    pub bound: Option<Box<Bound>>,
    /// Whose it is.
    pub owner: Owner,
    /// Bounds on what the command uses.
    pub limits: session::Limits,
    /// Bytes of output that are kept; 0: the node's own bound.
    pub log_bytes: u64,
    /// The holder answers where the program asks its terminal for the cursor.
    pub answer_queries: bool,
}

/// Why no session came to be. A command that could not be executed is a session that ended, not this.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The run id belongs to another command. Whose that is, and which session it has, is not for everybody.
    #[error("run id {run_id} was used for another command; choose a new one")]
    RunIdConflict {
        /// The id.
        run_id: RunId,
        /// The session that has it.
        session_id: SessionId,
    },
    /// The run is over and its session was let go of.
    #[error("run {run_id} {exit}; its output is no longer kept, and it is not run again")]
    Forgotten {
        /// The id.
        run_id: RunId,
        /// Its end.
        exit: Box<Exit>,
    },
    /// A kill of the run came before its start.
    #[error("run {run_id} was cancelled before it started")]
    Cancelled {
        /// The id.
        run_id: RunId,
    },
    /// No more sessions for now.
    #[error("{max} sessions run on this node, which is its limit")]
    TooManySessions {
        /// The limit.
        max: usize,
    },
    /// The session's directory could not be made.
    #[error("the session could not be written down")]
    Record(#[source] io::Error),
    /// No holder could be had.
    #[error("no process could be had for the session")]
    Holder(#[source] PoolError),
    /// Command and environment are too long to be handed over.
    #[error("the command and its environment are too long")]
    TooLong(#[source] FrameError),
    /// Holders died before they took the command.
    #[error("the session's holder did not take the command")]
    HandOver(#[source] io::Error),
}
