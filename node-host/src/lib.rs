//! The node host: dials out to its gateway, decides locally what may run, runs
//! it, and keeps its output.
//!
//! The way of a command: `link` (a frame comes in) → `link::requests` →
//! `enforce` (the door: may it run?) → `sessions` → `process` (launcher and
//! holder); back through `sessions` → `link::feeds` → the gateway.

pub mod app;
pub mod approvals;
pub mod approvers;
pub mod cli;
mod convert;
pub mod enforce;
mod enrol;
mod facts;
mod keys;
mod link;
pub mod node;
pub mod process;
pub mod sessions;
pub mod starter;
mod sys;
mod views;

pub use convert::on_disconnect_to_wire;
