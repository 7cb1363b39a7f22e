//! A person's yes (policy spec §7): what it is about, how it is signed, and the life of a request for one.
//!
//! Pure: no disk, clock, network or randomness. Time comes in as a number, what must happen goes out as a value. The
//! messages of the wire are the types here, since a decision is about exactly what both sides can see.

pub mod broker;
mod digest;
mod display;
mod drift;

pub use digest::{HASH_BYTES, permit_statement, plan_digest, seal};
pub use display::{SHOWN_MAX, Shown, TEXT_MAX, shown};
pub use drift::{Drift, Mismatch, drift, mismatch};
