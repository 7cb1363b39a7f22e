//! Processes: the launcher, one holder per session, and what they do to a command.
//!
//! ```text
//! node-host ── seqpacket ── launcher ── fork ── holder ── posix_spawn ── command
//!     └───────────────── stream socket ──────────┘
//! ```
//! Everything here is synchronous and runs in small single-threaded processes, except [`LauncherHandle`], which is the
//! node's end. It does **not** decide whether a command may run, and does not know the gateway.

pub(crate) mod bound;
pub(crate) mod holder;
pub(crate) mod journal;
mod launcher;
pub(crate) mod reads;
pub(crate) mod shebang;
mod spawn;
pub(crate) mod tree;
pub mod wire;

pub(crate) use launcher::{HolderSource, SpareHolder};
pub use launcher::{Launcher, LauncherHandle};
pub use wire::{Bound, BoundFile, BoundRole, EnvVar, Mode, Stdin};
