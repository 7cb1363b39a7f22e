//! The only module with `unsafe`: the system calls that no safe wrapper covers.
//!
//! Owns fork, `posix_spawn` and the signal set-up of the small processes. Knows nothing of sessions.
#![allow(unsafe_code)]

mod exec;
mod fork;
mod lease;
mod memory;
mod numbers;
mod spawn;

pub(crate) use exec::{ELF, exec_descriptor};
pub(crate) use fork::{
    Terminated, child_signals, drain_signals, duplicate, fork_child, ignore_signals, signal_group, watch,
};
pub(crate) use lease::{Lease, NoLease};
pub(crate) use memory::{give_back_heap, keep_large_apart, let_go_of_program};
pub(crate) use numbers::{page_bytes, ticks_per_second};
pub(crate) use spawn::{Command, Stdio, Workdir, spawn};
