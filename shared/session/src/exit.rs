//! How a session ended: one value that keeps apart what callers must keep apart.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::LimitHit;
use crate::offset::ByteOffset;

/// How the command's process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Death {
    /// It exited with this code, 0 to 255.
    Code(u8),
    /// This signal ended it.
    Signal(i32),
    /// It was still there 4 s after SIGKILL (stuck in the kernel); the session was settled without it.
    Unreaped,
}

/// Why a command never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFailure {
    /// No such program on the child's PATH. A shell would say 127.
    NotFound,
    /// The program is there but cannot be executed. A shell would say 126.
    NotExecutable,
    /// The working directory is missing, no directory, or closed to us.
    Workdir,
    /// An argument or the whole of them is above the system's limit.
    TooLong,
    /// No terminal could be opened.
    Terminal,
    /// Anything else; see the errno.
    Other,
    /// Something that a person approved is not what it was.
    Changed,
}

/// What ended a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The command ended by itself or by a signal or kill that somebody asked for.
    Died(Death),
    /// The deadline passed; `then` is how the process took it.
    TimedOut {
        /// How the process died after the kill.
        then: Death,
    },
    /// It never ran.
    CouldNotStart {
        /// The kind of obstacle.
        kind: StartFailure,
        /// The system's error number, 0 when none was involved.
        errno: i32,
        /// For people: what was looked for and where.
        detail: String,
    },
    /// The log could not be written (disk full, usually), so the command was killed rather than its output lost
    /// without a word.
    LogFailed {
        /// The failure in words.
        detail: String,
        /// How the process died after the kill.
        then: Death,
    },
    /// It used more than it was allowed to, so it was killed.
    LimitHit {
        /// The bound, and what was used.
        hit: LimitHit,
        /// How the process died.
        then: Death,
    },
    /// The session's holder died without a report. What it had written is still readable.
    Lost,
}

/// The end of a session. Exists only after the last byte of output is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// What ended it.
    pub ended: Ended,
    /// A kill was asked for before the end.
    pub cancelled: bool,
    /// The offset behind the last byte of output.
    pub final_offset: ByteOffset,
    /// How many processes outlived the command itself and were killed with the session.
    pub leftovers_killed: u32,
    /// When the session was asked for, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// When it was over, in milliseconds since 1970.
    pub ended_unix_ms: u64,
    /// How long it took by a clock that nobody sets, in milliseconds.
    pub duration_ms: u64,
}

impl Exit {
    /// The exit code as a shell would report it: codes as they are, 128 + signal, 127, 126; `None` where no code
    /// would be honest.
    pub fn shell_code(&self) -> Option<i32> {
        match &self.ended {
            Ended::Died(Death::Code(code)) => Some(i32::from(*code)),
            Ended::Died(Death::Signal(signal)) => Some(128 + signal),
            Ended::CouldNotStart { kind: StartFailure::NotFound, .. } => Some(127),
            Ended::CouldNotStart { kind: StartFailure::NotExecutable, .. } => Some(126),
            Ended::Died(Death::Unreaped)
            | Ended::TimedOut { .. }
            | Ended::CouldNotStart { .. }
            | Ended::LogFailed { .. }
            | Ended::LimitHit { .. }
            | Ended::Lost => None,
        }
    }
}

impl fmt::Display for Death {
    /// A phrase that goes on after "it ended with".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Code(code) => write!(f, "exit code {code}"),
            Death::Signal(signal) => write!(f, "signal {signal}"),
            Death::Unreaped => f.write_str("a process that SIGKILL did not end"),
        }
    }
}

impl fmt::Display for Exit {
    /// A clause about the command: "ended with exit code 7", "never started: …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ended {
            Ended::Died(death) => write!(f, "ended with {death}"),
            Ended::TimedOut { then } => write!(f, "ran out of time and ended with {then}"),
            Ended::CouldNotStart { detail, .. } => write!(f, "never started: {detail}"),
            Ended::LogFailed { detail, then } => {
                write!(
                    f,
                    "was killed because its output could not be written ({detail}) and ended with {then}"
                )
            }
            Ended::LimitHit { hit, then } => write!(f, "{hit} and ended with {then}"),
            Ended::Lost => f.write_str("ended in a way that nobody saw"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(ended: Ended) -> Exit {
        Exit {
            ended,
            cancelled: false,
            final_offset: ByteOffset(5),
            leftovers_killed: 0,
            started_unix_ms: 1,
            ended_unix_ms: 3,
            duration_ms: 2,
        }
    }

    #[test]
    fn every_end_survives_json_and_has_its_own_code() {
        let start = |kind| Ended::CouldNotStart { kind, errno: 2, detail: "x".into() };
        let cases = [
            (Ended::Died(Death::Code(7)), Some(7), "ended with exit code 7"),
            (Ended::Died(Death::Signal(9)), Some(137), "ended with signal 9"),
            (Ended::Died(Death::Unreaped), None, "ended with a process that SIGKILL did not end"),
            (Ended::TimedOut { then: Death::Signal(15) }, None, "ran out of time and ended with signal 15"),
            (start(StartFailure::NotFound), Some(127), "never started: x"),
            (start(StartFailure::NotExecutable), Some(126), "never started: x"),
            (start(StartFailure::Workdir), None, "never started: x"),
            (
                Ended::LogFailed { detail: "full".into(), then: Death::Signal(9) },
                None,
                "was killed because its output could not be written (full) and ended with signal 9",
            ),
            (
                Ended::LimitHit {
                    hit: LimitHit { kind: crate::limits::LimitKind::Pids, allowed: 5, used: 9 },
                    then: Death::Signal(9),
                },
                None,
                "went over its limit of processes (5, 9 used) and ended with signal 9",
            ),
            (Ended::Lost, None, "ended in a way that nobody saw"),
        ];
        for (ended, code, text) in cases {
            let exit = exit(ended);
            assert_eq!(exit.to_string(), text);
            assert_eq!(exit.shell_code(), code, "{exit:?}");
            let json = serde_json::to_string(&exit).unwrap();
            assert_eq!(serde_json::from_str::<Exit>(&json).unwrap(), exit);
        }
    }
}
