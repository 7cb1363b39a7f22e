//! All sessions of this node: start, find, adopt after a restart, keep for a while, forget.
//!
//! The asynchronous side of `process`. It owns the directory of sessions and the connections to their holders. It does
//! **not** decide what may run (that is the door's), and holds no output: readers read the log files.

mod hold;
mod leased;
mod live;
mod pool;
mod reader;
mod receipts;
mod registry;
mod request;
mod store;
mod table;
mod tether;

pub use crate::process::journal::Owner;
pub use hold::Hold;
pub use live::{ControlError, LookedAfter, Progress, Session, SessionInfo, Started, StdinError};
pub use pool::PoolError;
pub use reader::{LogReader, Read, Record};
pub use registry::Sessions;
pub use request::{Limits, StartError, StartRequest};
