//! Bounds on what one command may use, and the bound that it ran into.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bounds of one command; none is unbounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Resident memory of all its processes together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub pids: Option<u32>,
    /// Processor time of all its processes together, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// Size of a file that it writes, in bytes.
    pub file_bytes: Option<u64>,
}

impl Limits {
    /// Whether anything is bounded.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }
}

/// What is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Bytes of resident memory.
    Memory,
    /// Processes and threads.
    Pids,
    /// Milliseconds of processor time.
    Cpu,
    /// Bytes of one file.
    FileSize,
}

/// A bound that ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// Which one.
    pub kind: LimitKind,
    /// The bound, in its own unit.
    pub allowed: u64,
    /// What was seen; 0: the system stopped it before it could be measured.
    pub used: u64,
}

impl fmt::Display for LimitHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, unit) = match self.kind {
            LimitKind::Memory => ("memory", " bytes"),
            LimitKind::Pids => ("processes", ""),
            LimitKind::Cpu => ("processor time", " ms"),
            LimitKind::FileSize => ("file size", " bytes"),
        };
        write!(f, "went over its limit of {what} ({}{unit}", self.allowed)?;
        if self.used > 0 {
            write!(f, ", {}{unit} used", self.used)?;
        }
        f.write_str(")")
    }
}
