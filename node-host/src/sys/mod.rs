//! The only module with `unsafe`: the system calls that no safe wrapper covers.
//!
//! Owns fork, `posix_spawn` and the signal set-up of the small processes. Knows nothing of sessions.
#![allow(unsafe_code)]

mod fork;
mod spawn;

pub(crate) use fork::{
    Terminated, child_signals, drain_signals, duplicate, fork_child, ignore_signals, signal_group, watch,
};
pub(crate) use spawn::{Stdio, spawn};
