//! The pure core of a session: names, offsets, the output log and its gaps, the end.
//!
//! Owns every rule that can be decided without a clock, a disk or a process: how a record looks, which segments
//! may be dropped, where a reader goes on, what an end is. It does **not** read files, spawn, or keep time; the
//! node host does that and asks here.

pub mod exit;
pub mod gap;
pub mod id;
pub mod keys;
pub mod label;
pub mod lease;
pub mod limits;
pub mod modes;
pub mod offset;
pub mod record;
pub mod retention;
pub mod screen;
pub mod view;
mod words;

pub use exit::{Death, Ended, Exit, StartFailure};
pub use gap::{Place, locate};
pub use id::{IdError, RunId, SessionId};
pub use lease::{Lease, OnDisconnect};
pub use limits::{LimitHit, LimitKind, Limits};
pub use offset::{ByteOffset, StreamTag};
pub use record::{HEADER_LEN, Header, RECORD_MAX, RecordError};
pub use retention::{Decision, LogLimits, Segment};
