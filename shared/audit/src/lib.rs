//! An append-only log whose records are chained by hash: what was asked, decided, run, and changed.
//!
//! A log is a directory of segments, each a file of JSON lines, and a `head` that names the last record. Every record
//! holds the hash of the one before it, so a changed, lost or moved record shows ([`verify()`]). The chain shows what was
//! changed, not who could: whoever can write the directory can write all of it anew.

mod end;
mod head;
mod list;
mod log;
mod record;
mod segments;
mod verify;

#[cfg(test)]
mod tests;

pub use list::{Filter, list};
pub use log::{AuditError, DATA_MAX, Log};
pub use record::{Record, shown};
pub use verify::{Broken, Verified, verify};
